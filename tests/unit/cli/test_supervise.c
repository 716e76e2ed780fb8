/* The messages to a supervisor about a start that succeeds, one that only waits, and an end. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "testing.h"
#include "cli/supervision.h"
#include "http/server.h"

static sem_t pauses; /* pauses of the thread that have ended */
static sem_t looks;  /* checks that were made */
static struct rusage used;
static int heard;

int __wrap_pthread_cond_clockwait(pthread_cond_t *changed, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until);
int __wrap_pthread_cond_clockwait(pthread_cond_t *changed, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until)
{
	(void)changed, (void)clock, (void)until;
	pthread_mutex_unlock(mutex);
	while (sem_wait(&pauses) != 0)
		continue;
	pthread_mutex_lock(mutex);
	return ETIMEDOUT;
}

int __wrap_pthread_cond_signal(pthread_cond_t *changed);
int __wrap_pthread_cond_signal(pthread_cond_t *changed)
{
	(void)changed;
	return sem_post(&pauses);
}

int __wrap_getrusage(int who, struct rusage *ret);
int __wrap_getrusage(int who, struct rusage *ret)
{
	(void)who;
	*ret = used;
	sem_post(&looks);
	return 0;
}

bool __wrap_http_has_iterated(struct http_server *server);
bool __wrap_http_has_iterated(struct http_server *server)
{
	(void)server;
	return true;
}

static void expect(const char *wanted)
{
	char message[512];
	ssize_t size = recv(heard, message, sizeof message - 1, 0);
	assert_true(size > 0);
	message[size] = '\0';
	if (!strstr(message, wanted))
		fail_msg("\"%s\" came for \"%s\"", message, wanted);
}

static void expect_silence(void)
{
	char message[512];
	assert_int_equal(recv(heard, message, sizeof message, MSG_DONTWAIT), -1);
}

static int set_up(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char name[64];
	used = (struct rusage){0};
	assert_int_equal(sem_init(&pauses, 0, 0), 0);
	assert_int_equal(sem_init(&looks, 0, 0), 0);
	heard = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(name, sizeof name, "@constancia-supervise-%d", (int)getpid());
	memcpy(address.sun_path + 1, name + 1, strlen(name) - 1);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	assert_int_equal(bind(heard, (struct sockaddr *)&address, size), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	unsetenv("WATCHDOG_PID");
	setenv("WATCHDOG_USEC", "2000000", 1);
	return 0;
}

static int tear_down(void **state)
{
	close(heard);
	sem_destroy(&pauses);
	sem_destroy(&looks);
	return 0;
}

/* A signal for a thread that did not wait does not reach the next one. */
static void make_ready(struct supervision *supervision)
{
	supervision_notify_ready(supervision, "127.0.0.1:1");
	expect("READY=1");
	while (sem_trywait(&pauses) == 0)
		continue;
}

TEST_CASE(a_start_that_works_is_given_time)
{
	struct supervision *supervision = supervision_start();
	assert_non_null(supervision);
	expect("STATUS=starting");
	sem_wait(&looks); /* before its first pause */
	used.ru_utime.tv_sec = 3;
	sem_post(&pauses);
	expect("EXTEND_TIMEOUT_USEC=60000000");
	used.ru_inblock = 8;
	sem_post(&pauses);
	expect("EXTEND_TIMEOUT_USEC=60000000");
	/* A start that waits for a server is not ready: three checks, and the next message is the
	 * end. */
	sem_wait(&looks);
	sem_wait(&looks);
	for (int i = 0; i < 3; i++) {
		sem_post(&pauses);
		sem_wait(&looks);
	}
	make_ready(supervision);
	expect_silence();
	supervision_begin_stop(supervision);
	expect("STOPPING=1");
	supervision_free(supervision);
}

TEST_CASE(an_end_gives_signs_of_life)
{
	struct supervision *supervision = supervision_start();
	expect("STATUS=starting");
	make_ready(supervision);
	supervision_begin_stop(supervision);
	expect("WATCHDOG=1"); /* with the end */
	for (int i = 0; i < 2; i++) {
		sem_post(&pauses);
		expect("WATCHDOG=1");
	}
	expect_silence();
	supervision_free(supervision);
}

TEST_CASE(nobody_who_waits_for_no_sign_hears_one)
{
	unsetenv("WATCHDOG_USEC");
	struct supervision *supervision = supervision_start();
	expect("STATUS=starting");
	make_ready(supervision);
	supervision_keep_alive(supervision, NULL);
	supervision_begin_stop(supervision);
	expect("STOPPING=1\nSTATUS=finishing requests in progress");
	supervision_free(supervision);
	expect_silence();
}

TEST_MAIN_EACH(set_up, tear_down)
