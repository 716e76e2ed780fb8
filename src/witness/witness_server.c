#include "witness/witness_server.h"

#include <assert.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/log_throttle.h"
#include "libmicrohttpd.h"
#include "net/listen.h"

#define SOCKET_NAME "witness" /* of the supervisor */
#define POLL_MS 500
#define IDLE_RUNS_MAX 100
#define CONNECTION_MEMORY ((size_t)16 << 10) /* the head of a request, and of its answer */
#define DISCARD_MAX ((size_t)1 << 20)        /* bytes of a body that is not read */
#define ADD_PATH "/add-checkpoint"
#define CHECKPOINT_PATH "/checkpoint"

/* A connection. */
struct peer {
	struct peer *next, *previous;
	struct MHD_Connection *connection;
	int socket;
	bool is_local;      /* not counted for its address */
	uint8_t network[8]; /* of its address: all of IPv4, or half of IPv6 */
	int64_t since_us;   /* monotonic: the beginning, or the end of the request before */
};

struct witness_server {
	struct witness *witness;
	struct MHD_Daemon *daemon;
	int listener, poll; /* the second belongs to the library */
	struct peer *peers;
	size_t peer_count;
	bool was_called;    /* by the library, in its last run */
	unsigned idle_runs; /* in a row */
};

enum operation { ADD_CHECKPOINT, GET_CHECKPOINT, REFUSE };

struct exchange {
	enum operation operation;
	struct slice origin_hash; /* in the URL */
	int status;               /* of a refusal */
	const char *allow;        /* methods, for 405 */
	struct buf body;
	size_t seen; /* bytes of the body */
};

/* ---- connections ---- */

static void read_address(const struct sockaddr *address, struct peer *peer)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	if (address->sa_family == AF_INET) {
		memcpy(peer->network, &four->sin_addr, sizeof four->sin_addr);
		peer->is_local = ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	} else if (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
		memcpy(peer->network, six->sin6_addr.s6_addr + 12, 4);
		peer->is_local = six->sin6_addr.s6_addr[12] == IN_LOOPBACKNET;
	} else if (address->sa_family == AF_INET6) {
		memcpy(peer->network, six->sin6_addr.s6_addr, sizeof peer->network);
		peer->is_local = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
	}
}

static enum MHD_Result admit(void *context, const struct sockaddr *address, socklen_t size)
{
	const struct witness_server *server = context;
	struct peer asking = {0};
	size_t count = 0;
	(void)size;
	read_address(address, &asking);
	for (const struct peer *peer = server->peers; peer; peer = peer->next)
		count += memcmp(peer->network, asking.network, sizeof peer->network) == 0;
	return asking.is_local || count < WITNESS_CONNECTIONS_PER_ADDRESS ? MHD_YES : MHD_NO;
}

static void peer_begin(struct witness_server *server, struct MHD_Connection *connection,
                       void **socket_context)
{
	const union MHD_ConnectionInfo *info;
	struct peer *peer = calloc(1, sizeof *peer);
	*socket_context = peer;
	if (!peer)
		return; /* its requests are refused */
	peer->connection = connection;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	peer->socket = info->connect_fd;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	read_address(info->client_addr, peer);
	peer->since_us = clock_monotonic_us();
	peer->next = server->peers;
	if (peer->next)
		peer->next->previous = peer;
	server->peers = peer;
	server->peer_count++;
}

static void peer_end(struct witness_server *server, struct peer *peer)
{
	if (!peer)
		return;
	*(peer->previous ? &peer->previous->next : &server->peers) = peer->next;
	if (peer->next)
		peer->next->previous = peer->previous;
	server->peer_count--;
	free(peer);
}

static void notice_connection(void *context, struct MHD_Connection *connection,
                              void **socket_context, enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		peer_begin(context, connection, socket_context);
	else
		peer_end(context, *socket_context);
}

static struct peer *peer_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

/* Ends connections whose time is over. Where there are too many, it is short: others wait in the
 * kernel until there is room. The timeout is for those that the library does not poll. */
static void end_late(struct witness_server *server)
{
	bool is_crowded = server->peer_count >= WITNESS_CONNECTIONS_CROWD;
	int64_t seconds = is_crowded ? WITNESS_CROWDED_SECONDS : WITNESS_REQUEST_SECONDS;
	int64_t since_us = clock_monotonic_us() - seconds * US_PER_SECOND;
	for (struct peer *peer = server->peers; peer; peer = peer->next)
		if (peer->since_us < since_us) {
			shutdown(peer->socket, SHUT_RDWR);
			MHD_set_connection_option(peer->connection, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
		}
}

/* ---- the log ---- */

static void log_answer(const struct witness_answer *answer)
{
	static struct log_throttle pace = LOG_THROTTLE(10, 60);
	char omitted[LOG_THROTTLE_NUMBER_SIZE], size[24];
	const struct error *failure = &answer->failure;
	snprintf(size, sizeof size, "%" PRIu64, answer->size);
	if (answer->is_new)
		log_info("checkpoint_cosigned", "origin", answer->origin, "size", size);
	if (answer->kept_kind)
		log_error("checkpoint_refused", "origin", answer->origin, "size", size, "kind",
		          answer->kept_kind, "file", answer->kept_name);
	if (failure->code && log_throttle_take(&pace, clock_monotonic_us(), omitted))
		log_error(answer->status == 500 ? "request_failed" : "refusal_not_kept", "origin",
		          answer->origin, "size", size, "cause", error_reason(failure, failure->code),
		          "omitted", omitted);
}

/* ---- requests ---- */

static enum MHD_Result queue(struct MHD_Connection *connection, int status, const char *type,
                             struct slice body, const char *allow)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(body.size, (void *)body.data, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	enum MHD_Result result = MHD_add_response_header(response, "Content-Type", type);
	if (result == MHD_YES)
		result = MHD_add_response_header(response, "Access-Control-Allow-Origin", "*");
	if (result == MHD_YES && allow)
		result = MHD_add_response_header(response, "Allow", allow);
	if (result == MHD_YES)
		result = MHD_queue_response(connection, (unsigned)status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result queue_refusal(struct MHD_Connection *connection,
                                     const struct exchange *exchange)
{
	const char *text = "There is nothing here.\n";
	if (exchange->status == 405)
		text = "This path does not support the request method.\n";
	else if (exchange->status == 413)
		text = "The body may have 131,072 bytes at most.\n";
	return queue(connection, exchange->status, "text/plain; charset=utf-8", slice_of(text),
	             exchange->allow);
}

static void refuse(struct exchange *exchange, int status, const char *allow)
{
	exchange->operation = REFUSE;
	exchange->status = status;
	exchange->allow = allow;
}

static void route(struct exchange *exchange, const char *path, const char *method)
{
	size_t size = strlen(path);
	bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	if (strcmp(path, ADD_PATH) == 0) {
		exchange->operation = ADD_CHECKPOINT;
		if (strcmp(method, "POST") != 0)
			refuse(exchange, 405, "POST");
	} else if (size == 1 + WITNESS_ORIGIN_HASH_SIZE + strlen(CHECKPOINT_PATH) &&
	           strcmp(path + 1 + WITNESS_ORIGIN_HASH_SIZE, CHECKPOINT_PATH) == 0) {
		exchange->operation = GET_CHECKPOINT;
		exchange->origin_hash = slice_make(path + 1, WITNESS_ORIGIN_HASH_SIZE);
		if (!is_get)
			refuse(exchange, 405, "GET, HEAD");
	} else {
		refuse(exchange, 404, NULL);
	}
}

/* Whether the client declares a body that is too long, or waits for permission to send one that is
 * not read. */
static bool is_refused_by_head(struct MHD_Connection *connection, struct exchange *exchange)
{
	const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
	if (exchange->operation == ADD_CHECKPOINT && length &&
	    strtoull(length, NULL, 10) > WITNESS_BODY_MAX)
		refuse(exchange, 413, NULL);
	return exchange->operation == REFUSE &&
	       MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Expect");
}

static enum MHD_Result begin(struct MHD_Connection *connection, const char *path,
                             const char *method, void **context)
{
	struct exchange *exchange = peer_of(connection) ? calloc(1, sizeof *exchange) : NULL;
	if (!exchange)
		return MHD_NO;
	*context = exchange;
	buf_init(&exchange->body, WITNESS_BODY_MAX);
	route(exchange, path, method);
	return is_refused_by_head(connection, exchange) ? queue_refusal(connection, exchange) : MHD_YES;
}

static enum MHD_Result take_data(struct exchange *exchange, struct slice data)
{
	exchange->seen += data.size;
	if (exchange->operation == ADD_CHECKPOINT)
		buf_add_slice(&exchange->body, data);
	if (exchange->body.full)
		refuse(exchange, 413, NULL);
	return exchange->body.failed && !exchange->body.full ? MHD_NO
	       : exchange->seen <= DISCARD_MAX               ? MHD_YES
	                                                     : MHD_NO;
}

static enum MHD_Result finish(struct witness_server *server, struct MHD_Connection *connection,
                              const struct exchange *exchange)
{
	struct witness_answer answer;
	if (exchange->operation == REFUSE)
		return queue_refusal(connection, exchange);
	if (exchange->operation == ADD_CHECKPOINT)
		witness_add_checkpoint(server->witness, buf_slice(&exchange->body), &answer);
	else
		witness_get_checkpoint(server->witness, exchange->origin_hash, &answer);
	log_answer(&answer);
	enum MHD_Result result = MHD_NO;
	if (!buf_check(&answer.body))
		result = queue(connection, answer.status, answer.type, buf_slice(&answer.body), NULL);
	witness_answer_free(&answer);
	return result;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **request_context)
{
	struct exchange *exchange = *request_context;
	((struct witness_server *)context)->was_called = true;
	(void)version;
	if (!exchange)
		return begin(connection, path, method, request_context);
	if (*size == 0)
		return finish(context, connection, exchange);
	struct slice part = slice_make(data, *size);
	*size = 0;
	return take_data(exchange, part);
}

static void complete(void *context, struct MHD_Connection *connection, void **request_context,
                     enum MHD_RequestTerminationCode code)
{
	struct exchange *exchange = *request_context;
	struct peer *peer = peer_of(connection);
	(void)context;
	(void)code;
	if (exchange)
		buf_free(&exchange->body);
	free(exchange);
	*request_context = NULL;
	if (peer)
		peer->since_us = clock_monotonic_us();
}

/* ---- the server ---- */

__attribute__((format(printf, 2, 0))) static void log_library(void *context, const char *format,
                                                              va_list list)
{
	char text[256];
	(void)context;
	vsnprintf(text, sizeof text, format, list);
	text[strcspn(text, "\n")] = '\0';
	log_write(LOG_DEBUG, "http_library", "text", text, NULL);
}

static struct MHD_Daemon *start_daemon(struct witness_server *server)
{
	struct MHD_OptionItem options[] = {
		{MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)log_library, NULL},
		{MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)CONNECTION_MEMORY, NULL},
		{MHD_OPTION_CONNECTION_LIMIT, WITNESS_CONNECTIONS_MAX, NULL},
		{MHD_OPTION_CONNECTION_TIMEOUT, WITNESS_REQUEST_SECONDS, NULL},
		{MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
		{MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL},
		{MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)complete, server},
		{MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)notice_connection, server},
		{MHD_OPTION_LISTEN_SOCKET, server->listener, NULL},
		{MHD_OPTION_END, 0, NULL},
	};
	return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, admit, server, handle, server,
	                        MHD_OPTION_ARRAY, options, MHD_OPTION_END);
}

static int start(struct witness_server *server, const char *listen, struct error *error)
{
	uint16_t port;
	int result = libmicrohttpd_load(error);
	if (!result)
		result = listen_on("--listen", listen, SOCKET_NAME, &server->listener, &port, error);
	if (result)
		return result;
	server->daemon = start_daemon(server);
	const union MHD_DaemonInfo *info =
		server->daemon ? MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return error_cause(error, ERR_IO, "the HTTP library failed to start");
	server->poll = info->epoll_fd;
	return OK;
}

int witness_server_open(struct witness *witness, const char *listen, struct witness_server **ret,
                        struct error *error)
{
	struct witness_server *server = calloc(1, sizeof *server);
	if (!server)
		return ERR_NO_MEMORY;
	server->witness = witness;
	server->listener = -1;
	int result = start(server, listen, error);
	if (result)
		witness_server_close(server);
	else
		*ret = server;
	return result;
}

void witness_server_close(struct witness_server *server)
{
	if (!server)
		return;
	if (server->daemon) {
		/* Otherwise the library would close the socket, too. */
		MHD_quiesce_daemon(server->daemon);
		MHD_stop_daemon(server->daemon);
	}
	assert(!server->peers);
	descriptor_close(&server->listener);
	free(server);
}

void witness_server_url(const struct witness_server *server, char url[WITNESS_URL_SIZE])
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	char host[48] = "", port[8] = "";
	if (getsockname(server->listener, (struct sockaddr *)&address, &size) == 0)
		(void)getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
		                  NI_NUMERICHOST | NI_NUMERICSERV);
	bool brackets = strchr(host, ':') != NULL;
	snprintf(url, WITNESS_URL_SIZE, "http://%s%s%s:%s", brackets ? "[" : "", host,
	         brackets ? "]" : "", port);
}

/* The library takes a connection for ready whose client sends nothing, in the middle of a chunk or
 * with a full buffer. After many runs without a call the next one waits for a moment. */
static int timeout_ms(struct witness_server *server)
{
	MHD_UNSIGNED_LONG_LONG library_ms;
	int wait_ms = POLL_MS;
	if (MHD_get_timeout(server->daemon, &library_ms) == MHD_YES && library_ms < POLL_MS)
		wait_ms = (int)library_ms;
	server->idle_runs = wait_ms > 0 || server->was_called ? 0 : server->idle_runs + 1;
	server->was_called = false;
	if (server->idle_runs <= IDLE_RUNS_MAX)
		return wait_ms;
	server->idle_runs = IDLE_RUNS_MAX;
	return 1;
}

int witness_server_run(struct witness_server *server, const atomic_bool *stop, struct error *error)
{
	struct pollfd ready = {.fd = server->poll, .events = POLLIN};
	while (!atomic_load(stop)) {
		(void)poll(&ready, 1, timeout_ms(server));
		if (MHD_run(server->daemon) != MHD_YES)
			return error_cause(error, ERR_IO, "the HTTP library failed");
		end_late(server);
		if (witness_has_failed(server->witness))
			return error_cause(error, ERR_IO, "a sync of what was cosigned failed");
	}
	return OK;
}
