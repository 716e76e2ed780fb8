#include "http/server.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "http/internal.h"

#define BACKLOG 1024
#define DRAIN_STEP_NS (5 * 1000 * 1000)
#define OPERATOR_CONNECTIONS 64
#define OPERATOR_DEADLINE_US (3 * US_PER_SECOND) /* those who ask /readyz do not wait for long */

/* ---- listening ---- */

/* "127.0.0.1:8080", "[::1]:8080". */
static bool parse_listen(const char *text, struct sockaddr_storage *ret, socklen_t *ret_size)
{
	char host[64];
	const char *colon = strrchr(text, ':');
	if (!colon || !isdigit((unsigned char)colon[1]) || (size_t)(colon - text) >= sizeof host)
		return false;
	char *end;
	unsigned long port = strtoul(colon + 1, &end, 10);
	if (*end || port > 65535)
		return false;
	bool bracketed = text[0] == '[' && colon > text + 1 && colon[-1] == ']';
	snprintf(host, sizeof host, "%.*s", (int)(colon - text) - (bracketed ? 2 : 0),
	         text + bracketed);
	memset(ret, 0, sizeof *ret);
	struct sockaddr_in *four = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
	if (!bracketed && inet_pton(AF_INET, host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons((uint16_t)port);
		*ret_size = sizeof *four;
		return true;
	}
	if (!bracketed || inet_pton(AF_INET6, host, &six->sin6_addr) != 1)
		return false;
	six->sin6_family = AF_INET6;
	six->sin6_port = htons((uint16_t)port);
	*ret_size = sizeof *six;
	return true;
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
	return ntohs(address->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port
	                                            : ((const struct sockaddr_in *)address)->sin_port);
}

static int listen_on(const char *setting, const char *text, int *ret_descriptor, uint16_t *ret_port,
                     struct error *error)
{
	struct sockaddr_storage address;
	socklen_t size;
	if (!parse_listen(text, &address, &size))
		return error_set(error, ERR_VALIDATION, MSG_HTTP_LISTEN, setting, NULL);
	int descriptor = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;
	if (descriptor < 0 || setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
	    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
	    bind(descriptor, (struct sockaddr *)&address, size) < 0 ||
	    listen(descriptor, BACKLOG) < 0 ||
	    getsockname(descriptor, (struct sockaddr *)&address, &size) < 0) {
		int number = errno;
		if (descriptor >= 0)
			close(descriptor);
		return error_cause(error, ERR_IO, "listening on %s: %s", text, strerror(number));
	}
	*ret_descriptor = descriptor;
	*ret_port = port_of(&address);
	return 0;
}

/* ---- start and stop ---- */

static void make_names(struct http_server *server)
{
	char prefix[24];
	snprintf(prefix, sizeof prefix, "%s", server->service->settings->service_prefix);
	for (char *c = prefix; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	snprintf(server->key_header, sizeof server->key_header, "X-%s-Api-Key", prefix);
	snprintf(server->scenario_header, sizeof server->scenario_header, "X-%s-Test-Scenario", prefix);
}

static bool start_workers(struct http_server *server)
{
	bool remote = content_is_remote(server->service->content);
	server->workers = worker_pool_start(WORKERS, WORKER_QUEUE_MAX);
	server->key_workers = worker_pool_start(KEY_WORKERS, WORKER_QUEUE_MAX);
	server->operator_workers = worker_pool_start(OPERATOR_WORKERS, WORKER_QUEUE_MAX);
	server->check_workers = worker_pool_start(CHECK_WORKERS, WORKER_QUEUE_MAX);
	server->content_workers =
		worker_pool_start(remote ? REMOTE_CONTENT_WORKERS : CONTENT_WORKERS, WORKER_QUEUE_MAX);
	return server->workers && server->key_workers && server->operator_workers &&
	       server->check_workers && server->content_workers;
}

static int start_operators_loop(struct http_server *server, struct error *error)
{
	int64_t deadline_us = server->service->settings->http_deadline;
	struct loop *loop = &server->operators_loop;
	loop->routes = operators_routes;
	loop->workers = server->operator_workers;
	loop->deadline_us = deadline_us < OPERATOR_DEADLINE_US ? deadline_us : OPERATOR_DEADLINE_US;
	loop->connections_max = OPERATOR_CONNECTIONS;
	loop->is_operators = true;
	return loop_start(loop, server, server->monitor_descriptor, error);
}

static int start(struct http_server *server, struct error *error)
{
	const struct settings *settings = server->service->settings;
	make_names(server);
	random_bytes(server->address_salt, sizeof server->address_salt);
	int result = network_list_parse(slice_of(settings->service_trusted_proxies),
	                                &server->trusted_proxies, error);
	if (result)
		return result;
	server->limiter = rate_limiter_create(RATE_BUCKETS);
	server->bodies = shares_create();
	server->checks = shares_create();
	if (!server->limiter || !server->bodies || !server->checks || !start_workers(server) ||
	    error_docs_make(server))
		return error_cause(error, ERR_NO_MEMORY, "no memory or threads for HTTP");
	result = listen_on("service.listen", settings->service_listen, &server->listen_descriptor,
	                   &server->port, error);
	if (!result && settings->service_admin_listen && *settings->service_admin_listen) {
		result = listen_on("service.admin_listen", settings->service_admin_listen,
		                   &server->monitor_descriptor, &server->monitor_port, error);
		if (!result)
			result = start_operators_loop(server, error);
	}
	for (int i = 0; i < LOOPS && !result; i++) {
		struct loop *loop = &server->loops[i];
		loop->routes = public_routes;
		loop->workers = server->workers;
		loop->deadline_us = settings->http_deadline;
		loop->connections_max = settings->http_connections / LOOPS;
		result = loop_start(loop, server, server->listen_descriptor, error);
	}
	return result;
}

int http_start(struct service *service, struct http_server **ret_server, struct error *error)
{
	struct http_server *server = calloc(1, sizeof *server);
	if (!server)
		return error_cause(error, ERR_NO_MEMORY, "no memory for HTTP");
	server->service = service;
	pthread_mutex_init(&server->bodies_lock, NULL);
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

static int64_t under_way(struct http_server *server)
{
	int64_t sum = 0;
	for (int i = 0; i < LOOPS; i++)
		sum += atomic_load(&server->loops[i].under_way);
	return sum;
}

void http_drain(struct http_server *server, int64_t deadline_us)
{
	atomic_store(&server->draining, true);
	for (int i = 0; i < LOOPS; i++)
		loop_drain(&server->loops[i]);
	while (under_way(server) > 0 && clock_monotonic_us() < deadline_us)
		nanosleep(&(struct timespec){.tv_nsec = DRAIN_STEP_NS}, NULL);
}

void http_stop(struct http_server *server)
{
	if (!server)
		return;
	atomic_store(&server->draining, true);
	for (int i = 0; i < LOOPS; i++)
		loop_stop(&server->loops[i]);
	loop_stop(&server->operators_loop);
	worker_pool_stop(server->workers);
	worker_pool_stop(server->key_workers);
	worker_pool_stop(server->operator_workers);
	worker_pool_stop(server->check_workers);
	worker_pool_stop(server->content_workers); /* the last, for it clears up */
	if (server->listen_descriptor >= 0)
		close(server->listen_descriptor);
	if (server->monitor_descriptor >= 0)
		close(server->monitor_descriptor);
	rate_limiter_free(server->limiter);
	shares_free(server->bodies);
	shares_free(server->checks);
	pthread_mutex_destroy(&server->bodies_lock);
	free(server->error_docs);
	free(server);
}
