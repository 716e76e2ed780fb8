#include "http/loop.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/epoch.h"
#include "base/log.h"
#include "base/thread.h"
#include "http/http_internal.h"
#include "http/key_lookup.h"
#include "http/object_stream.h"
#include "http/request_head.h"

/* The "turbo" mode omits the TLS closure alert, so it is used only without TLS. */
#define PLAIN_FLAGS (MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO | MHD_USE_ERROR_LOG)

#define CHECK_INTERVAL_US (US_PER_SECOND / 2)

#define EVENTS_MAX 64 /* two descriptors, and sockets with a handshake in progress */

#define KEPT_US (100 * 1000)
#define KEPT_POLL_MS 5
#define IDLE_ITERATIONS_MAX 1000

void loop_wake(struct loop *loop)
{
	uint64_t one = 1;
	while (write(loop->wake_descriptor, &one, sizeof one) < 0 && errno == EINTR)
		continue;
}

void loop_post(struct loop *loop, struct loop_item *item)
{
	/* After the loop has received the item, it may end and be freed before it is woken; `giving`
	 * prevents this. */
	atomic_fetch_add_explicit(&loop->giving, 1, memory_order_relaxed);
	struct loop_item *head = atomic_load_explicit(&loop->given, memory_order_relaxed);
	do
		item->next = head;
	while (!atomic_compare_exchange_weak_explicit(&loop->given, &head, item, memory_order_release,
	                                              memory_order_relaxed));
	if (!head)
		loop_wake(loop);
	atomic_fetch_sub_explicit(&loop->giving, 1, memory_order_release);
}

static void take_given(struct loop *loop)
{
	struct loop_item *item = atomic_exchange_explicit(&loop->given, NULL, memory_order_acquire);
	while (item) {
		struct loop_item *next = item->next;
		loop->out--;
		item->take(item);
		assert(loop->out >= 0); /* what was not counted before, `take` has counted */
		item = next;
	}
}

/* ---- waiting ---- */

static void begin_to_wait(struct exchange *exchange)
{
	struct loop *loop = exchange->loop;
	/* The loop owns it, and no response to it is queued. */
	assert(!exchange->waiting && !exchange->kept && !atomic_load(&exchange->abandoned));
	assert(exchange->client && exchange->client->exchange == exchange);
	assert(exchange->step != STEP_ANSWER && exchange->step != STEP_SENT);
	assert(!loop->ending);
	exchange->step = STEP_WAITING;
	exchange->waiting = true;
	int64_t now_us = clock_monotonic_us();
	exchange->deadline_us = now_us + loop->deadline_us;
	assert(!loop->waiting_last || loop->waiting_last->deadline_us <= exchange->deadline_us);
	client_begin_wait(exchange->client, now_us);
	exchange->next = NULL;
	exchange->previous = loop->waiting_last;
	*(loop->waiting_last ? &loop->waiting_last->next : &loop->waiting_first) = exchange;
	loop->waiting_last = exchange;
}

void loop_suspend(struct exchange *exchange)
{
	begin_to_wait(exchange);
	MHD_suspend_connection(exchange->connection);
}

static bool unkeep(struct exchange *exchange)
{
	bool was_kept = exchange->kept;
	assert(!was_kept || (exchange->loop->kept > 0 && exchange->loop->kept <= KEPT_MAX));
	exchange->kept = false;
	exchange->loop->kept -= was_kept;
	return was_kept;
}

void loop_check_wait(struct exchange *exchange)
{
	struct loop *loop = exchange->loop;
	assert(exchange->waiting);
	int64_t began_us = exchange->deadline_us - loop->deadline_us;
	if (loop->iteration_started_us - began_us > KEPT_US && unkeep(exchange))
		MHD_suspend_connection(exchange->connection);
}

void loop_end_wait(struct exchange *exchange)
{
	struct loop *loop = exchange->loop;
	assert(exchange->waiting);
	assert(exchange->previous || loop->waiting_first == exchange);
	assert(exchange->next || loop->waiting_last == exchange);
	exchange->waiting = false;
	*(exchange->previous ? &exchange->previous->next : &loop->waiting_first) = exchange->next;
	*(exchange->next ? &exchange->next->previous : &loop->waiting_last) = exchange->previous;
	exchange->previous = exchange->next = NULL;
	if (!unkeep(exchange))
		MHD_resume_connection(exchange->connection);
}

void loop_resume(struct exchange *exchange)
{
	loop_end_wait(exchange);
	client_end_wait(exchange->client, clock_monotonic_us());
}

static void take_exchange(struct loop_item *item)
{
	struct exchange *exchange = (struct exchange *)((char *)item - offsetof(struct exchange, item));
	if (atomic_load_explicit(&exchange->abandoned, memory_order_relaxed)) {
		assert(!exchange->waiting && !exchange->client);
		request_release(exchange);
		exchange_free(exchange);
	} else {
		loop_resume(exchange);
	}
}

void loop_wait(struct exchange *exchange)
{
	exchange->item.take = take_exchange;
	exchange->loop->out++;
	loop_suspend(exchange);
}

void loop_wait_briefly(struct exchange *exchange)
{
	struct loop *loop = exchange->loop;
	if (loop->kept == KEPT_MAX) {
		loop_wait(exchange);
		return;
	}
	exchange->item.take = take_exchange;
	loop->out++;
	begin_to_wait(exchange);
	exchange->kept = true;
	loop->kept++;
}

void loop_return(struct exchange *exchange)
{
	loop_post(exchange->loop, &exchange->item);
}

static void abandon_first(struct loop *loop)
{
	struct exchange *exchange = loop->waiting_first;
	if (exchange->lookup) {
		key_lookup_abort(exchange);
		return;
	}
	request_abandon(exchange);
}

static void check_deadlines(struct loop *loop)
{
	int64_t now_us = loop->iteration_started_us = clock_monotonic_us();
	if (now_us >= loop->check_at_us) {
		clients_check_timeouts(loop, now_us);
		loop->check_at_us = now_us + CHECK_INTERVAL_US;
	}
	while (loop->waiting_first && loop->waiting_first->deadline_us <= now_us) {
		atomic_fetch_add_explicit(&loop->server->metrics.deadline_passed, 1, memory_order_relaxed);
		abandon_first(loop);
	}
}

/* ---- the thread ---- */

/* With kept connections the library always reports pending work; our handler shows whether there
 * really is any. Work that does not call our handler (a head that fills a buffer exactly, data
 * after "100 Continue", a refusal by the library) continues after KEPT_POLL_MS. */
static int timeout_ms(struct loop *loop)
{
	MHD_UNSIGNED_LONG_LONG library_ms;
	int64_t wait_ms = CHECK_INTERVAL_US / 1000;
	if (MHD_get_timeout(loop->daemon, &library_ms) == MHD_YES && library_ms < (unsigned)wait_ms)
		wait_ms = (int64_t)library_ms;
	if (wait_ms == 0 && loop->kept && !loop->has_pending_work)
		wait_ms = KEPT_POLL_MS;
	if (wait_ms && loop->waiting_first) {
		int64_t left_us = loop->waiting_first->deadline_us - clock_monotonic_us();
		int64_t left_ms = left_us > 0 ? left_us / 1000 + 1 : 0;
		wait_ms = left_ms < wait_ms ? left_ms : wait_ms;
	}
	return (int)wait_ms;
}

/* Slows down a busy loop. A connection with full memory and a silent client counts as ready until
 * its timeout. Otherwise, consecutive iterations without a call of our handler are rare. */
static int throttle_ms(const struct loop *loop, int wait_ms, unsigned *idle_iterations)
{
	*idle_iterations = wait_ms || loop->has_pending_work ? 0 : *idle_iterations + 1;
	if (*idle_iterations <= IDLE_ITERATIONS_MAX)
		return wait_ms;
	*idle_iterations = IDLE_ITERATIONS_MAX;
	return 1;
}

static void wait_events(struct loop *loop, int wait_ms)
{
	struct epoll_event events[EVENTS_MAX];
	int count = epoll_wait(loop->poll_descriptor, events, EVENTS_MAX, wait_ms);
	for (int i = 0; i < count; i++)
		if (events[i].data.ptr)
			tls_resume(events[i].data.ptr);
}

/* Quiesces first; otherwise the library would close the listening socket, which belongs to the
 * server. */
static void stop_daemon(struct loop *loop)
{
	MHD_quiesce_daemon(loop->daemon);
	MHD_stop_daemon(loop->daemon);
	loop->daemon = NULL;
}

/* Resumes handshakes: the library must not be stopped with suspended connections. */
static void end_handshakes(const struct client_queue *list)
{
	for (struct client *client = list->first; client; client = client->next)
		if (client->tls)
			tls_resume(client->tls);
}

static void end(struct loop *loop)
{
	loop->ending = true;
	take_given(loop);
	while (loop->waiting_first)
		abandon_first(loop);
	assert(loop->kept == 0);
	object_stream_end_all(loop);
	end_handshakes(&loop->idle);
	end_handshakes(&loop->busy); /* connections that are cut */
	/* Twice: resumed connections queue their answer in the first run and send it in the second. */
	for (int i = 0; i < 2; i++)
		MHD_run(loop->daemon);
	stop_daemon(loop);
	while (loop->out > 0) {
		wait_events(loop, -1);
		take_given(loop);
	}
	while (atomic_load_explicit(&loop->giving, memory_order_acquire) > 0)
		sched_yield();
}

static void run_library(struct loop *loop)
{
	if (!loop->is_operators)
		registrations_begin(loop->server->service);
	MHD_run(loop->daemon);
	clients_free_rejected(loop);
	if (!loop->is_operators)
		registrations_end(loop->server->service);
}

static void *run(void *context)
{
	struct loop *loop = context;
	pthread_setname_np(pthread_self(), "http-loop");
	thread_mark_polling();
	unsigned idle_iterations = 0;
	while (!atomic_load(&loop->stopping)) {
		int wait_ms = throttle_ms(loop, timeout_ms(loop), &idle_iterations);
		if (wait_ms > 0 || loop->handshakes)
			wait_events(loop, wait_ms);
		epoch_enter();
		take_given(loop);
		if (atomic_exchange(&loop->files_evicted, false))
			checked_files_refuse_evicted(loop);
		check_deadlines(loop);
		loop->has_pending_work = false;
		run_library(loop);
		epoch_leave();
		atomic_fetch_add_explicit(&loop->turns, 1, memory_order_relaxed);
	}
	epoch_enter();
	end(loop);
	epoch_leave();
	return NULL;
}

static bool watch(struct loop *loop, int descriptor, uint32_t events)
{
	struct epoll_event event = {.events = events};
	return epoll_ctl(loop->poll_descriptor, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

__attribute__((format(printf, 2, 0))) static void log_library(void *context, const char *format,
                                                              va_list list)
{
	char text[256];
	vsnprintf(text, sizeof text, format, list);
	text[strcspn(text, "\n")] = '\0';
	log_write(LOG_DEBUG, "http_library", "text", text, NULL);
}

static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text)
{
	return strlen(text);
}

static struct MHD_Daemon *start_daemon(struct loop *loop, int listen_descriptor)
{
	const struct settings *settings = loop->server->service->settings;
	int64_t idle_seconds = settings->http_idle_timeout / US_PER_SECOND;
	bool listens = listen_descriptor >= 0;
	struct MHD_OptionItem options[] = {
		{MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)log_library, NULL},
		{MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)keep_escapes, NULL},
		{MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)CONNECTION_MEMORY, NULL},
		{MHD_OPTION_CONNECTION_LIMIT, (intptr_t)loop->connections_max, NULL},
		{MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)(idle_seconds > 0 ? idle_seconds : 1), NULL},
		/* Before 1.0 the library sends its own refusals of these twice, so request_head.c refuses
	     * them instead. */
		{MHD_OPTION_STRICT_FOR_CLIENT, head_parser_is_lenient() ? 0 : 1, NULL},
		{MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL},
		{MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)request_completed, loop},
		{MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)request_connection, loop},
		{MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)request_begin, loop},
		{listens ? MHD_OPTION_LISTEN_SOCKET : MHD_OPTION_END, listen_descriptor, NULL},
		{MHD_OPTION_END, 0, NULL},
	};
	struct MHD_OptionItem none = {MHD_OPTION_END, 0, NULL};
	unsigned flags =
		(loop->tls ? TLS_FLAGS : PLAIN_FLAGS) | (listens ? 0 : MHD_USE_NO_LISTEN_SOCKET);
	return MHD_start_daemon(flags, 0, NULL, NULL, request_handle, loop, MHD_OPTION_ARRAY, options,
	                        MHD_OPTION_ARRAY, loop->tls ? tls_options : &none, MHD_OPTION_END);
}

int loop_start(struct loop *loop, struct http_server *server, int listen_descriptor,
               struct error *error)
{
	loop->server = server;
	arena_init(&loop->scratch, BODY_ARENA_MAX);
	loop->wake_descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	loop->poll_descriptor = epoll_create1(EPOLL_CLOEXEC);
	if (loop->wake_descriptor < 0 || loop->poll_descriptor < 0)
		return error_cause(error, ERR_IO, "polling for HTTP: %s", strerror(errno));
	loop->daemon = start_daemon(loop, listen_descriptor);
	if (!loop->daemon)
		return error_cause(error, ERR_IO, "the HTTP library failed to start");
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	/* Wake-ups are edge triggered, so the counter need not be read. */
	if (!info || !watch(loop, info->epoll_fd, EPOLLIN) ||
	    !watch(loop, loop->wake_descriptor, EPOLLIN | EPOLLET))
		return error_cause(error, ERR_IO, "polling for HTTP: %s", strerror(errno));
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	loop->started = pthread_create(&loop->thread, NULL, run, loop) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return loop->started ? 0 : error_cause(error, ERR_IO, "no thread for HTTP");
}

void loop_stop(struct loop *loop)
{
	if (loop->started) {
		atomic_store(&loop->stopping, true);
		loop_wake(loop);
		pthread_join(loop->thread, NULL);
	} else if (loop->daemon) {
		stop_daemon(loop);
	}
	exchange_free_spare(loop);
	arena_free(&loop->scratch);
	if (loop->poll_descriptor > 0)
		close(loop->poll_descriptor);
	if (loop->wake_descriptor > 0)
		close(loop->wake_descriptor);
}
