#include "http/server.h"

#include <assert.h>
#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/epoch.h"
#include "base/log.h"
#include "http/http_internal.h"
#include "http/listeners.h"
#include "http/request_head.h"
#include "http/tls_files.h"
#include "net/listen.h"

#define DRAIN_STEP_NS (5 * 1000 * 1000)
#define DRAIN_FRESH_US US_PER_SECOND
/* Niceness of threads, added to that of the process. */
#define BODIES_NICE 10
#define CONTENT_NICE 5
#define OPERATOR_CONNECTIONS 64
#define OPERATOR_DEADLINE_US (3 * US_PER_SECOND) /* monitoring of /readyz has short timeouts */

int http_listen_port(const char *text)
{
	return listen_port(text);
}

bool http_listeners_conflict(const char *listen, const char *admin_listen)
{
	return listen_conflicts(listen, admin_listen) && !listen_is_inherited("public") &&
	       !listen_is_inherited("admin");
}

int http_check_listen_address(const char *setting, const char *text, struct error *error)
{
	const char *name = strcmp(setting, "service.listen") == 0 ? "public" : "admin";
	return listen_is_inherited(name) ? OK : listen_check(setting, text, error);
}

static void set_lenient_error(struct error *error)
{
	(void)error_set(error, ERR_VALIDATION, MSG_HTTP_LENIENT, MHD_get_version(), NULL);
}

bool http_needs_proxy(const char *text, struct error *error)
{
	struct error ignored = {0};
	if (listen_is_inherited("public") || listen_is_loopback(text) || libmicrohttpd_load(&ignored) ||
	    !head_parser_is_lenient())
		return false;
	set_lenient_error(error);
	return true;
}

static void warn_if_lenient(const struct http_server *server)
{
	struct error error = {0};
	bool is_local = listen_is_inherited("public")
	                    ? listen_is_bound_to_loopback(server->listen_descriptor)
	                    : listen_is_loopback(server->service->settings->service_listen);
	if (is_local || !head_parser_is_lenient())
		return;
	set_lenient_error(&error);
	log_warning("http_library_lenient", "setting", "service.listen", "cause",
	            error_message(&error, LANGUAGE_ENGLISH));
}

/* ---- start and stop ---- */

static void make_names(struct http_server *server)
{
	char prefix[24];
	snprintf(prefix, sizeof prefix, "%s", server->service->settings->service_prefix);
	for (char *c = prefix; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	snprintf(server->key_header, sizeof server->key_header, "X-%s-Api-Key", prefix);
	scenario_header(prefix, server->scenario_header);
}

static size_t threads_for_bodies(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	return processors < 2 ? 2 : processors > 8 ? 8 : (size_t)processors;
}

/* Starts the worker pools. Remote content needs more threads because it takes longer. A limit per
 * owner leaves workers to other owners if one owner's tasks hang or take long, such as a channel
 * with a thousand versions. Workers for bodies and files have a lower priority than polling threads
 * and sequencers. */
static bool start_workers(struct http_server *server)
{
	size_t content = content_is_remote(server->service->content) ? 20 : 5;
	size_t bodies = threads_for_bodies();
	const struct {
		size_t workers, of_one;
		int niceness;
	} pools[LANE_COUNT] = {
		[LANE_READERS] = {3, 2, 0},
		[LANE_OPERATORS] = {2, 2, 0},
		[LANE_KEYS] = {2, 2, 0},
		[LANE_CONTENT] = {content, content - content / 5, CONTENT_NICE},
		[LANE_CHECKS] = {1, 1, BODIES_NICE},
		[LANE_BODIES] = {bodies, bodies / 2, BODIES_NICE},
		[LANE_FORMS] = {4, 2, 0},
		[LANE_TEST_EVENTS] = {1, 1, 0},
		[LANE_EXTERNAL] = {4, 2, 0},
	};
	bool started = true;
	for (int lane = LANE_READERS; lane < LANE_COUNT; lane++) {
		server->workers[lane] = worker_pool_start(pools[lane].workers, pools[lane].of_one,
		                                          WORKER_QUEUE_MAX, pools[lane].niceness);
		started = started && server->workers[lane];
	}
	return started;
}

static struct tls_listener *tls_of(struct http_server *server, enum http_listener listener)
{
	return server->tls[listener].current ? &server->tls[listener] : NULL;
}

static int start_operators_loop(struct http_server *server, struct error *error)
{
	int64_t deadline_us = server->service->settings->http_deadline;
	struct loop *loop = &server->operators_loop;
	loop->routes = operators_routes;
	loop->tls = tls_of(server, HTTP_OPERATORS);
	loop->workers = server->workers[LANE_OPERATORS];
	loop->deadline_us = deadline_us < OPERATOR_DEADLINE_US ? deadline_us : OPERATOR_DEADLINE_US;
	server->operators_connections =
		connection_table_create(OPERATOR_CONNECTIONS, &server->metrics.connections_cut);
	if (!server->operators_connections)
		return error_cause(error, ERR_NO_MEMORY, "no memory for HTTP");
	loop->connections = server->operators_connections;
	loop->connections_max = OPERATOR_CONNECTIONS + CONNECTIONS_SPARE;
	loop->is_operators = true;
	return loop_start(loop, server, server->monitor_descriptor, error);
}

/* Returns one loop per processor available to the program. */
static unsigned loops_for(const struct settings *settings)
{
	cpu_set_t processors;
	int64_t count = settings->http_loops;
	if (count < 1)
		count =
			sched_getaffinity(0, sizeof processors, &processors) == 0 ? CPU_COUNT(&processors) : 1;
	return count < LOOPS_MAX ? (unsigned)count : LOOPS_MAX;
}

static int start_loops(struct http_server *server, struct error *error)
{
	const struct settings *settings = server->service->settings;
	server->loops = calloc(loops_for(settings), sizeof *server->loops);
	if (!server->loops)
		return error_cause(error, ERR_NO_MEMORY, "no memory for HTTP");
	int result = 0;
	while (!result && server->loop_count < loops_for(settings)) {
		struct loop *loop = &server->loops[server->loop_count++];
		loop->routes = public_routes;
		loop->tls = tls_of(server, HTTP_PUBLIC);
		loop->workers = server->workers[LANE_READERS];
		loop->deadline_us = settings->http_deadline;
		loop->connections = server->connections;
		loop->connections_max = settings->http_connections + 2 * CONNECTIONS_SPARE;
		result = loop_start(loop, server, -1, error);
	}
	return result ? result
	              : acceptor_start(server, server->listen_descriptor, &server->acceptor, error);
}

/* Frees replaced lists that no thread can still read. */
static void forget_proxies(struct proxies *in_force)
{
	struct proxies **at = &in_force->former;
	while (*at) {
		struct proxies *one = *at;
		if (!epoch_is_over(one->number)) {
			at = &one->former;
			continue;
		}
		*at = one->former;
		free(one);
	}
}

_Static_assert(SERVICE_LISTENERS == HTTP_LISTENERS, "both constants are equal");

struct fresh {
	struct proxies *proxies;
	struct tls_generation *tls[HTTP_LISTENERS];
};

static void drop(struct fresh *fresh)
{
	free(fresh->proxies);
	for (int listener = 0; listener < HTTP_LISTENERS; listener++)
		tls_release(fresh->tls[listener]);
}

static const char *const certificate_settings[HTTP_LISTENERS] = {"service.tls_certificate",
                                                                 "service.admin_tls_certificate"};

/* TLS can be turned on or off only by a restart. */
static int check_switch(const struct http_server *server, const struct fresh *fresh,
                        const char **ret_setting, struct error *error)
{
	for (int listener = 0; server->started && listener < HTTP_LISTENERS; listener++) {
		if (!fresh->tls[listener] == !server->tls[listener].current)
			continue;
		*ret_setting = certificate_settings[listener];
		return error_cause(
			error, ERR_VALIDATION,
			"cannot turn TLS on or off without a restart; a reload only reads its files again");
	}
	return OK;
}

/* A certificate that clients would refuse must not replace a valid one. */
static int check_times(const struct http_server *server, const struct fresh *fresh,
                       const char **ret_setting, struct error *error)
{
	for (int listener = 0; listener < HTTP_LISTENERS; listener++) {
		const struct tls_generation *current = server->tls[listener].current;
		if (!current || tls_is_current(fresh->tls[listener]) || !tls_is_current(current))
			continue;
		*ret_setting = certificate_settings[listener];
		return error_cause(
			error, ERR_VALIDATION,
			"has expired or is not valid yet, and clients would refuse it; the current "
			"certificate is still valid and stays in use");
	}
	return OK;
}

static int read_fresh(const struct http_server *server, const struct settings *settings,
                      struct fresh *fresh, const char **ret_setting, struct error *error)
{
	*ret_setting = "service.trusted_proxies";
	fresh->proxies = calloc(1, sizeof *fresh->proxies);
	if (!fresh->proxies)
		return ERR_NO_MEMORY;
	int result = network_list_parse(slice_of(settings->service_trusted_proxies),
	                                &fresh->proxies->networks, error);
	for (enum http_listener listener = 0; listener < HTTP_LISTENERS && !result; listener++)
		result =
			tls_read(settings, listener, NULL, NULL, &fresh->tls[listener], ret_setting, error);
	if (!result)
		result = check_switch(server, fresh, ret_setting, error);
	return result ? result : check_times(server, fresh, ret_setting, error);
}

static void apply(struct http_server *server, struct fresh *fresh)
{
	struct proxies *former = server->trusted_proxies;
	fresh->proxies->former = former;
	server->trusted_proxies = fresh->proxies;
	if (former)
		former->number = epoch_advance();
	forget_proxies(fresh->proxies);
	for (int listener = 0; listener < HTTP_LISTENERS; listener++) {
		struct tls_generation *generation = fresh->tls[listener];
		atomic_store(&server->service->tls_expires_us[listener],
		             generation ? tls_expires_us(generation) : 0);
		tls_replace(&server->tls[listener], generation);
	}
}

int http_reload(struct http_server *server, const struct settings *settings,
                const char **ret_setting, struct error *error)
{
	struct fresh fresh = {0};
	int result = read_fresh(server, settings, &fresh, ret_setting, error);
	if (result) {
		drop(&fresh);
		return result;
	}
	apply(server, &fresh);
	request_log_configure(server, settings);
	return OK;
}

void http_check_tls(const struct settings *settings, http_setting_problem *problem,
                    http_setting_problem *warning, void *context)
{
	for (enum http_listener listener = 0; listener < HTTP_LISTENERS; listener++) {
		struct tls_generation *generation = NULL;
		struct error error = {0};
		const char *setting = NULL;
		int result = tls_read(settings, listener, warning, context, &generation, &setting, &error);
		if (result)
			problem(context, setting, error_reason(&error, result));
		tls_release(generation);
	}
}

static void free_proxies(struct http_server *server)
{
	struct proxies *former;
	for (struct proxies *at = server->trusted_proxies; at; at = former) {
		former = at->former;
		free(at);
	}
}

static int check_tls_support(const struct http_server *server, struct error *error)
{
	bool wanted = server->tls[HTTP_PUBLIC].current || server->tls[HTTP_OPERATORS].current;
	if (wanted && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
		return error_cause(error, ERR_UNAVAILABLE, "libmicrohttpd was built without TLS");
	return OK;
}

static int start(struct http_server *server, struct error *error)
{
	const struct settings *settings = server->service->settings;
	make_names(server);
	random_bytes(server->address_salt, sizeof server->address_salt);
	int result = libmicrohttpd_load(error);
	const char *setting = NULL;
	struct error reason = {0};
	if (!result)
		result = http_reload(server, settings, &setting, &reason);
	if (result)
		return error_cause(error, result, "%s: %s", setting ? setting : "HTTP",
		                   error_reason(&reason, result));
	server->started = true;
	result = check_tls_support(server, error);
	if (result)
		return result;
	server->limiter = rate_limiter_create(RATE_BUCKETS);
	server->bodies = shares_create();
	server->connections = connection_table_create((size_t)settings->http_connections,
	                                              &server->metrics.connections_cut);
	server->uploads = shares_create();
	server->checks = shares_create();
	if (!server->limiter || !server->connections || !server->bodies || !server->uploads ||
	    !server->checks || !start_workers(server) || !(server->listeners = listeners_start()) ||
	    error_docs_make(server))
		return error_cause(error, ERR_NO_MEMORY, "no memory or threads for HTTP");
	result = listen_on("service.listen", settings->service_listen, "public",
	                   &server->listen_descriptor, &server->port, error);
	const char *admin_listen = settings->service_admin_listen;
	if (!result && ((admin_listen && *admin_listen) || listen_is_inherited("admin"))) {
		result = listen_on("service.admin_listen", admin_listen, "admin",
		                   &server->monitor_descriptor, &server->monitor_port, error);
		if (!result)
			result = start_operators_loop(server, error);
	}
	if (!result)
		warn_if_lenient(server);
	return result ? result : start_loops(server, error);
}

int http_start(struct service *service, struct admin *admin, struct http_server **ret_server,
               struct error *error)
{
	struct http_server *server = calloc(1, sizeof *server);
	if (!server)
		return error_cause(error, ERR_NO_MEMORY, "no memory for HTTP");
	server->service = service;
	server->admin = admin;
	pthread_mutex_init(&server->bodies_lock, NULL);
	for (int listener = 0; listener < HTTP_LISTENERS; listener++)
		tls_init(&server->tls[listener]);
	pthread_mutex_init(&server->request_log_state.lock, NULL);
	server->listen_descriptor = server->monitor_descriptor = -1;
	int result = start(server, error);
	if (result) {
		http_stop(server);
		return result;
	}
	*ret_server = server;
	return 0;
}

uint16_t http_port(const struct http_server *server)
{
	return server->port;
}

uint16_t http_monitor_port(const struct http_server *server)
{
	return server->monitor_port;
}

static bool has_turned(const struct loop *loop)
{
	return !loop->started || atomic_load(&loop->turns) != loop->iterations_seen;
}

bool http_has_iterated(struct http_server *server)
{
	bool all = has_turned(&server->operators_loop) && acceptor_has_iterated(server->acceptor);
	for (unsigned i = 0; i < server->loop_count; i++)
		all = all && has_turned(&server->loops[i]);
	if (!all)
		return false;
	acceptor_mark_seen(server->acceptor);
	server->operators_loop.iterations_seen = atomic_load(&server->operators_loop.turns);
	for (unsigned i = 0; i < server->loop_count; i++)
		server->loops[i].iterations_seen = atomic_load(&server->loops[i].turns);
	return true;
}

/* Returns whether requests are in progress. A newly accepted connection most likely has a request
 * on its way. */
static bool is_busy(struct http_server *server, bool wait_for_fresh)
{
	bool busy = !acceptor_is_drained(server->acceptor) ||
	            (wait_for_fresh && atomic_load(&server->fresh) > 0);
	for (unsigned i = 0; i < server->loop_count; i++)
		busy = busy || atomic_load(&server->loops[i].under_way) > 0;
	return busy;
}

void http_announce_drain(struct http_server *server)
{
	atomic_store(&server->draining, true);
}

void http_drain(struct http_server *server, int64_t deadline_us)
{
	int64_t fresh_until_us = clock_monotonic_us() + DRAIN_FRESH_US;
	atomic_store(&server->draining, true);
	listeners_end(server->listeners);
	acceptor_drain(server->acceptor);
	for (int64_t now_us = 0; is_busy(server, now_us < fresh_until_us) && now_us < deadline_us;
	     now_us = clock_monotonic_us())
		nanosleep(&(struct timespec){.tv_nsec = DRAIN_STEP_NS}, NULL);
}

void http_stop(struct http_server *server)
{
	if (!server)
		return;
	atomic_store(&server->draining, true);
	acceptor_stop(server->acceptor);
	listeners_end(server->listeners);
	for (unsigned i = 0; i < server->loop_count; i++)
		loop_stop(&server->loops[i]);
	loop_stop(&server->operators_loop);
	request_log_flush(server, INT64_MAX);
	listeners_free(server->listeners);
	for (int lane = LANE_READERS; lane < LANE_COUNT; lane++)
		if (lane != LANE_CONTENT)
			worker_pool_stop(server->workers[lane]);
	worker_pool_stop(server->workers[LANE_CONTENT]); /* last, because it runs cleanup tasks */
	if (server->listen_descriptor >= 0)
		close(server->listen_descriptor);
	if (server->monitor_descriptor >= 0)
		close(server->monitor_descriptor);
	assert(server->held == 0 && server->upload_held == 0);
	rate_limiter_free(server->limiter);
	shares_free(server->bodies);
	shares_free(server->uploads);
	shares_free(server->checks);
	connection_table_free(server->connections);
	connection_table_free(server->operators_connections);
	free(server->loops);
	pthread_mutex_destroy(&server->bodies_lock);
	pthread_mutex_destroy(&server->request_log_state.lock);
	free(server->error_docs);
	free_proxies(server);
	for (int listener = 0; listener < HTTP_LISTENERS; listener++) {
		tls_free(&server->tls[listener]);
		atomic_store(&server->service->tls_expires_us[listener], 0);
	}
	free(server);
}
