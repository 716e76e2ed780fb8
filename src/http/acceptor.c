#include "http/acceptor.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/epoch.h"
#include "base/log.h"
#include "base/thread.h"
#include "http/http_internal.h"

#define BUNCH 64 /* maximum accepted per iteration */
#define CHECK_INTERVAL_MS 500
#define PAUSE_MS 5
#define FAILURE_LOG_INTERVAL_US (10 * US_PER_SECOND)

enum command { COMMAND_RUN, COMMAND_DRAIN, COMMAND_STOP };

struct acceptor {
	struct http_server *server;
	pthread_t thread;
	int listen_descriptor;
	int wake_descriptor;
	_Atomic int command;
	_Atomic bool quiet;
	_Atomic uint64_t turns; /* iterations; at least two per second */
	uint64_t iterations_seen;
	bool paused;
	int64_t logged_us; /* time of the last logged failure; 0: none */
	int64_t check_at_us;
};

/* ---- one connection ---- */

static struct loop *find_least_loaded(const struct http_server *server)
{
	struct loop *fewest = &server->loops[0];
	for (unsigned i = 1; i < server->loop_count; i++) {
		struct loop *loop = &server->loops[i];
		if (atomic_load_explicit(&loop->connection_count, memory_order_relaxed) <
		    atomic_load_explicit(&fewest->connection_count, memory_order_relaxed))
			fewest = loop;
	}
	return fewest;
}

static void log_failure(struct acceptor *acceptor, int failure, int64_t now_us)
{
	if (acceptor->logged_us && now_us < acceptor->logged_us + FAILURE_LOG_INTERVAL_US)
		return;
	acceptor->logged_us = now_us;
	log_warning("accept_failed", "cause", strerror(failure));
}

/* Returns whether to continue with the next connection immediately. */
static bool may_continue(struct acceptor *acceptor, int failure)
{
	int64_t now_us = clock_monotonic_us();
	switch (failure) {
	case EAGAIN: return false;
	case EINTR:
	case ECONNABORTED:
	case EPROTO:
	case ENETDOWN:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EOPNOTSUPP:
	case ENOPROTOOPT: return true;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM: (void)connection_evict(acceptor->server->connections, now_us); break;
	default: break;
	}
	log_failure(acceptor, failure, now_us);
	acceptor->paused = true;
	return false;
}

static bool is_full(const struct http_server *server)
{
	return atomic_load_explicit(&server->metrics.connections, memory_order_relaxed) >=
	       server->service->settings->http_connections + CONNECTIONS_SPARE;
}

/* Returns whether more connections may be pending. */
static bool accept_one(struct acceptor *acceptor)
{
	struct http_server *server = acceptor->server;
	if (is_full(server)) {
		acceptor->paused = true;
		return false;
	}
	struct sockaddr_in6 address = {0};
	socklen_t size = sizeof address;
	int descriptor = accept4(acceptor->listen_descriptor, (struct sockaddr *)&address, &size,
	                         SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (descriptor < 0)
		return may_continue(acceptor, errno);
	struct client *client =
		client_accept(server, descriptor, (const struct sockaddr *)&address, size);
	if (client)
		client_pass(client, find_least_loaded(server));
	return true;
}

/* ---- the thread ---- */

static void run_once(struct acceptor *acceptor)
{
	int taken = 0;
	acceptor->paused = false;
	epoch_enter();
	while (taken < BUNCH && !acceptor->quiet && accept_one(acceptor))
		taken++;
	int64_t now_us = clock_monotonic_us();
	if (now_us >= acceptor->check_at_us) {
		request_log_flush(acceptor->server, now_us);
		acceptor->check_at_us = now_us + CHECK_INTERVAL_MS * 1000;
	}
	epoch_leave();
	if (taken < BUNCH && atomic_load(&acceptor->command) == COMMAND_DRAIN)
		atomic_store(&acceptor->quiet, true);
	atomic_fetch_add_explicit(&acceptor->turns, 1, memory_order_relaxed);
}

static void wait_events(const struct acceptor *acceptor)
{
	bool listens = !acceptor->paused && !acceptor->quiet;
	struct pollfd polled[] = {
		{.fd = acceptor->wake_descriptor, .events = POLLIN},
		{.fd = acceptor->listen_descriptor, .events = POLLIN},
	};
	uint64_t count;
	bool pauses = acceptor->paused && !acceptor->quiet;
	if (poll(polled, listens ? 2 : 1, pauses ? PAUSE_MS : CHECK_INTERVAL_MS) > 0 &&
	    polled[0].revents)
		(void)!read(acceptor->wake_descriptor, &count, sizeof count);
}

static void *run(void *context)
{
	struct acceptor *acceptor = context;
	pthread_setname_np(pthread_self(), "http-acceptor");
	thread_mark_polling();
	while (atomic_load(&acceptor->command) != COMMAND_STOP) {
		wait_events(acceptor);
		if (atomic_load(&acceptor->command) != COMMAND_STOP)
			run_once(acceptor);
	}
	return NULL;
}

static void command(struct acceptor *acceptor, enum command command)
{
	uint64_t one = 1;
	atomic_store(&acceptor->command, (int)command);
	(void)!write(acceptor->wake_descriptor, &one, sizeof one);
}

int acceptor_start(struct http_server *server, int listen_descriptor, struct acceptor **ret,
                   struct error *error)
{
	struct acceptor *acceptor = calloc(1, sizeof *acceptor);
	if (!acceptor)
		return error_cause(error, ERR_NO_MEMORY, "no memory for HTTP");
	acceptor->server = server;
	acceptor->listen_descriptor = listen_descriptor;
	acceptor->wake_descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool started = acceptor->wake_descriptor >= 0 &&
	               pthread_create(&acceptor->thread, NULL, run, acceptor) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (started) {
		*ret = acceptor;
		return OK;
	}
	if (acceptor->wake_descriptor >= 0)
		close(acceptor->wake_descriptor);
	free(acceptor);
	return error_cause(error, ERR_IO, "no thread for HTTP");
}

void acceptor_drain(struct acceptor *acceptor)
{
	command(acceptor, COMMAND_DRAIN);
}

bool acceptor_is_drained(struct acceptor *acceptor)
{
	return atomic_load(&acceptor->quiet);
}

bool acceptor_has_iterated(struct acceptor *acceptor)
{
	return atomic_load(&acceptor->turns) != acceptor->iterations_seen;
}

void acceptor_mark_seen(struct acceptor *acceptor)
{
	acceptor->iterations_seen = atomic_load(&acceptor->turns);
}

void acceptor_stop(struct acceptor *acceptor)
{
	if (!acceptor)
		return;
	command(acceptor, COMMAND_STOP);
	pthread_join(acceptor->thread, NULL);
	close(acceptor->wake_descriptor);
	free(acceptor);
}
