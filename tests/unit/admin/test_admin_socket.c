/* The administration socket, with each call failing in turn on either side. An operator gets the
 * fault itself, never a message that the service or the object is missing or that the command is
 * wrong. The next command is answered. */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "testing.h"
#include "failing.h"
#include "sample.h"
#include "admin/admin_socket.h"

#define KINDS (FAILING_MEMORY | FAILING_FILES | FAILING_SYSTEM | FAILING_TRAFFIC | FAILING_ARENAS)
#define LIST "{\"operation\":\"account list\"}"

static struct sample sample;
static struct settings settings;
static struct admin admin;
static struct error error;
static char short_path[100], long_path[400];

static int set_up(void **state)
{
	char directory[300];
	sample_open(&sample, MODALITY_HASH_ONLY, 5);
	settings = (struct settings){.service_prefix = "svc"};
	admin = (struct admin){.settings = &settings, .store = sample.store};
	snprintf(short_path, sizeof short_path, "%s/admin.sock", sample.directory);
	snprintf(directory, sizeof directory, "%s/%0120d", sample.directory, 1);
	assert_int_equal(mkdir(directory, 0700), 0);
	snprintf(long_path, sizeof long_path, "%s/admin.sock", directory);
	return 0;
}

static bool is_fault(int result)
{
	return result == ERR_IO || result == ERR_NO_MEMORY || result == ERR_UNAVAILABLE;
}

static struct admin_server *start(const char *path)
{
	struct admin_server *server;
	assert_int_equal(admin_server_start(&admin, path, &server, &error), OK);
	return server;
}

static void ask(const char *path, const char *request, const char *expected)
{
	BUF_AUTO struct buf answer = {.limit = ADMIN_RESULT_MAX};
	assert_int_equal(admin_exchange(path, slice_of(request), &answer, &error), OK);
	if (!strstr(answer.data, expected))
		fail_msg("%s", answer.data);
}

TEST_CASE(starts_or_says_why_not)
{
	const char *const paths[] = {short_path, long_path};
	for (size_t i = 0; i < 2; i++)
		for (int at = 1;; at++) {
			struct admin_server *server = NULL;
			failing_arm(KINDS, at);
			int result = admin_server_start(&admin, paths[i], &server, &error);
			const char *failed = failing_disarm();
			if (failed ? !is_fault(result) : result)
				fail_msg("%s, call %d, %s: %d", paths[i], at, failed ? failed : "none", result);
			if (!failed)
				ask(paths[i], LIST, "\"has_more\":false");
			admin_server_stop(server);
			if (!failed)
				break;
		}
}

TEST_CASE(a_caller_is_told_of_his_own_faults)
{
	const char *const paths[] = {short_path, long_path};
	for (size_t i = 0; i < 2; i++) {
		struct admin_server *server = start(paths[i]);
		for (int at = 1;; at++) {
			BUF_AUTO struct buf answer = {.limit = ADMIN_RESULT_MAX};
			failing_arm(KINDS, at);
			int result = admin_exchange(paths[i], slice_of(LIST), &answer, &error);
			const char *failed = failing_disarm();
			if (failed ? !is_fault(result) : result)
				fail_msg("%s, call %d, %s: %d", paths[i], at, failed ? failed : "none", result);
			if (!failed)
				break;
		}
		admin_server_stop(server);
	}
}

/* Faults of the server: no answer, or one that names the fault. */
TEST_CASE(the_services_faults_are_told)
{
	struct admin_server *server = start(short_path);
	int told = 0;
	for (int at = 1;; at++) {
		BUF_AUTO struct buf answer = {.limit = ADMIN_RESULT_MAX};
		failing_arm_others(KINDS | FAILING_PARTS | FAILING_SQLITE, at);
		int result = admin_exchange(short_path, slice_of(LIST), &answer, &error);
		const char *failed = failing_disarm();
		if (result && result != ERR_UNAVAILABLE && result != ERR_IO)
			fail_msg("call %d, %s: %d", at, failed ? failed : "none", result);
		bool good = !result && strstr(answer.data, "{\"result\":{\"data\":[{\"account_id\"");
		bool named =
			!result && strstr(answer.data, "\"code\":\"temporarily_unavailable\",\"exit\":2");
		if (!failed ? !good : !result && !good && !named)
			fail_msg("call %d, %s: %s", at, failed ? failed : "none", answer.data);
		told += named;
		if (!failed)
			break;
		ask(short_path, LIST, "\"has_more\":false");
	}
	assert_true(told > 10);
	admin_server_stop(server);
}

/* Clients that disconnect early or send garbage do not prevent answers to the others. */
TEST_CASE(odd_callers)
{
	struct admin_server *server = start(short_path);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s", short_path);
	static const char *const texts[] = {"", "\n", "{\"operation\"", LIST "\n", LIST};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		int connection = socket(AF_UNIX, SOCK_STREAM, 0);
		assert_int_equal(connect(connection, (struct sockaddr *)&address, sizeof address), 0);
		if (*texts[i])
			(void)!send(connection, texts[i], strlen(texts[i]), MSG_NOSIGNAL);
		close(connection);
	}
	ask(short_path, "{\"operation\":7}", "\"exit\":2");
	ask(short_path, "{\"operation\":\"account list\",\"arguments\":[]}", "\"exit\":2");
	ask(short_path, "{\"operation\":\"account list\",\"arguments\":{\"limits\":1}}", "limits");
	ask(short_path, "{\"operation\":\"account show\",\"arguments\":{}}",
	    "\\u0001account\\u0002 is missing");
	ask(short_path, LIST, "\"has_more\":false");
	admin_server_stop(server);
}

TEST_CASE(paths_that_cannot_be)
{
	struct admin_server *server;
	char path[300];
	memset(path, 'a', 150);
	path[150] = '\0';
	assert_int_equal(admin_server_start(&admin, path, &server, &error), ERR_IO);
	snprintf(path, sizeof path, "%s/%0120d", sample.directory, 2);
	assert_int_equal(admin_server_start(&admin, path, &server, &error), ERR_IO);
	snprintf(path, sizeof path, "%s/%0120d/admin.sock", sample.directory, 3);
	assert_int_equal(admin_server_start(&admin, path, &server, &error), ERR_IO);
	admin_server_stop(NULL);
	/* A socket without a listener, as a killed service leaves it. */
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s", short_path);
	int left = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(left, (struct sockaddr *)&address, sizeof address), 0);
	close(left);
	BUF_AUTO struct buf answer = {.limit = ADMIN_RESULT_MAX};
	assert_int_equal(admin_exchange(short_path, slice_of(LIST), &answer, &error), ERR_NOT_FOUND);
	admin_server_stop(start(short_path));
}

TEST_MAIN_EACH(set_up, sample_tear_down)
