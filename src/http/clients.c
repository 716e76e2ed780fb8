#include "http/clients.h"

#include <assert.h>
#include <errno.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "http/http_internal.h"

#define BYTES_PER_SECOND (16 * 1024)
/* distinguishes their buckets from those of addresses */
#define HANDSHAKES UINT64_C(0x8f3a6c51d92e47b5)
#define HANDSHAKE_BURST 4
#define BYTES_UNKNOWN (-1)
#define HEAD_CHECKS 8 /* checks for a started head per http.transfer_timeout */
#define SLOW_AFTER_US US_PER_SECOND
#define READ_PIECES 16 /* reads of data that a refused client has already sent */

/* ---- lists ---- */

static void leave(struct client_queue *list, struct client *client)
{
	assert((client->previous ? client->previous->next : list->first) == client);
	assert((client->next ? client->next->previous : list->last) == client);
	*(client->previous ? &client->previous->next : &list->first) = client->next;
	*(client->next ? &client->next->previous : &list->last) = client->previous;
}

static void join(struct client_queue *list, struct client *client)
{
	client->next = NULL;
	client->previous = list->last;
	*(list->last ? &list->last->next : &list->first) = client;
	list->last = client;
}

static struct client_queue *list_of(struct client *client)
{
	return client->is_idle ? &client->loop->idle : &client->loop->busy;
}

static void become(struct client *client, bool idle, int64_t now_us)
{
	leave(list_of(client), client);
	client->is_idle = idle;
	client->since_us = now_us;
	client->answered_us = client->waits_us = client->service_wait_us = 0;
	client->head_since_us = client->check_at_us = 0;
	join(list_of(client), client);
}

static bool become_in_table(struct client *client, enum connection_kind kind, int64_t now_us)
{
	return connection_set_kind(client->loop->connections, &client->entry, kind, now_us);
}

/* ---- cutting ---- */

bool client_is_cut(const struct client *client)
{
	return atomic_load_explicit(&client->entry.is_cut, memory_order_relaxed);
}

/* Sends `text`. With TLS also sends the closure alert, so that the client can detect truncation. */
static bool say_last(struct client *client, struct slice text)
{
	ssize_t sent;
	if (client->loop->tls)
		return client->tls && tls_send_last(client->tls, text);
	do
		sent = send(client->descriptor, text.data, text.size, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)text.size;
}

bool client_send_last(struct client *client, struct slice text)
{
	bool whole = say_last(client, text);
	shutdown(client->descriptor, SHUT_WR);
	return whole;
}

#define DISCARDED_MAX ((size_t)256 * 1024)

void client_discard(struct client *client)
{
	if (client->tls)
		tls_discard(client->tls);
	else if (!client->loop->tls)
		(void)!recv(client->descriptor, NULL, DISCARDED_MAX, MSG_TRUNC | MSG_DONTWAIT);
}

/* Cuts the connection; the library notices the end and cleans up. `text` is sent if possible
 * without blocking; NULL: in the middle of an answer. */
static void cut(struct client *client, const char *text)
{
	/* Other threads shut the connection down silently; only its own thread may use its TLS
	 * session. */
	if (client->loop->tls && text && !client_is_cut(client))
		(void)say_last(client, slice_of(text));
	connection_cut(client->loop->connections, &client->entry,
	               client->loop->tls || !text ? "" : text);
}

static const char too_slow[] = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
							   "Content-Length: 0\r\n\r\n";
static const char too_many[] = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\n"
							   "Connection: close\r\nContent-Length: 0\r\n\r\n";
static const char full[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n"
						   "Connection: close\r\nContent-Length: 0\r\n\r\n";

/* ---- new connections ---- */

static void count(struct http_server *server, struct loop *loop, int by)
{
	if (!loop || !loop->is_operators)
		atomic_fetch_add_explicit(&server->metrics.connections, by, memory_order_relaxed);
}

static struct client *client_new(const struct sockaddr *address, socklen_t address_size)
{
	struct client *client = calloc(1, sizeof *client);
	if (!client)
		return NULL;
	client->address_size =
		address_size <= sizeof client->address ? address_size : (socklen_t)sizeof client->address;
	memcpy(&client->address, address, client->address_size);
	client->is_idle = client->is_fresh = true;
	client->since_us = clock_monotonic_us();
	return client;
}

/* Sends `text` and closes. Reads received data first, because closing with unread bytes resets the
 * connection and loses the answer. */
static void refuse(int descriptor, const char *text)
{
	char unread[1024];
	if (*text)
		(void)!send(descriptor, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	shutdown(descriptor, SHUT_WR);
	for (int i = 0; i < READ_PIECES; i++)
		if (recv(descriptor, unread, sizeof unread, MSG_DONTWAIT) <= 0)
			break;
	close(descriptor);
}

/* Limits handshakes per address: a handshake costs a loop about a thousand times what a request for
 * it costs the client. */
static bool allows_handshake(const struct http_server *server,
                             const struct connection_origin *origin, int64_t now_us)
{
	int64_t rate = server->service->settings->http_tls_handshakes;
	return origin->is_proxy || rate_take(server->limiter, origin->address ^ HANDSHAKES, rate,
	                                     rate * HANDSHAKE_BURST, now_us)
	                               .allowed;
}

static int enter(struct http_server *server, struct client *client, int descriptor)
{
	const struct sockaddr *address = (const struct sockaddr *)&client->address;
	client->by_proxy = network_list_contains(&server->trusted_proxies->networks, address);
	const struct connection_origin origin = {
		.address = guard_address_id(server, address),
		.is_proxy = client->by_proxy,
		.limit = server->service->settings->http_connections_per_address,
	};
	if (server->loops[0].tls && !allows_handshake(server, &origin, client->since_us))
		return ERR_RATE_LIMITED;
	return connection_add(server->connections, &client->entry, &origin, descriptor,
	                      client->since_us);
}

struct client *client_accept(struct http_server *server, int descriptor,
                             const struct sockaddr *address, socklen_t address_size)
{
	struct client *client = client_new(address, address_size);
	int result = client ? enter(server, client, descriptor) : ERR_NO_MEMORY;
	if (!result) {
		client->descriptor = descriptor;
		atomic_fetch_add_explicit(&server->fresh, 1, memory_order_relaxed);
		count(server, NULL, 1);
		return client;
	}
	bool many = result == ERR_RATE_LIMITED;
	refuse(descriptor, server->loops[0].tls ? "" : many ? too_many : full);
	atomic_fetch_add_explicit(&server->metrics.connections_cut, 1, memory_order_relaxed);
	request_log_refused(server, address, many ? 429 : 503);
	free(client);
	return NULL;
}

static void clear_fresh(struct client *client)
{
	if (client->is_fresh)
		atomic_fetch_sub_explicit(&client->loop->server->fresh, 1, memory_order_relaxed);
	client->is_fresh = false;
}

/* Counts failed handshakes, but not those of refused connections. */
static void count_handshake(const struct client *client)
{
	struct metrics *metrics = &client->loop->server->metrics;
	if (client->loop->tls && !tls_is_established(client->tls))
		atomic_fetch_add_explicit(&metrics->tls_handshakes_failed, 1, memory_order_relaxed);
}

static void client_free(struct client *client)
{
	struct loop *loop = client->loop;
	clear_fresh(client);
	count_handshake(client);
	tls_end(client->tls);
	if (client->forwarded)
		connection_forward_end(loop->connections, client->forwarded);
	connection_remove(loop->connections, &client->entry);
	atomic_fetch_sub_explicit(&loop->connection_count, 1, memory_order_relaxed);
	count(loop->server, loop, -1);
	free(client);
}

static void take(struct loop_item *item)
{
	struct client *client = (struct client *)((char *)item - offsetof(struct client, item));
	struct loop *loop = client->loop;
	loop->out++; /* compensates for the decrement in take_given */
	/* From here on the library may close the descriptor at any time. */
	bool wanted = connection_set_descriptor(loop->connections, &client->entry, -1);
	if (loop->ending || !wanted) {
		int descriptor = client->descriptor;
		client_free(client);
		close(descriptor);
		return;
	}
	client->next = loop->added_clients;
	loop->added_clients = client;
	MHD_add_connection(loop->daemon, client->descriptor, (struct sockaddr *)&client->address,
	                   client->address_size);
}

void client_pass(struct client *client, struct loop *loop)
{
	client->loop = loop;
	client->item.take = take;
	atomic_fetch_add_explicit(&loop->connection_count, 1, memory_order_relaxed);
	loop_post(loop, &client->item);
}

void clients_free_rejected(struct loop *loop)
{
	while (loop->added_clients) {
		struct client *client = loop->added_clients;
		loop->added_clients = client->next;
		client_free(client);
	}
}

static int descriptor_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	return info ? info->connect_fd : -1;
}

/* Returns the passed client with that descriptor. */
static struct client *take_added(struct loop *loop, int descriptor)
{
	struct client **at = &loop->added_clients;
	while (*at && (*at)->descriptor != descriptor)
		at = &(*at)->next;
	struct client *client = *at;
	if (client)
		*at = client->next;
	return client;
}

/* Creates the client of a connection that the library accepted for the operators' listener. */
static struct client *client_of_operator(struct loop *loop, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct client *client = info && info->client_addr
	                            ? client_new(info->client_addr, sizeof(struct sockaddr_in))
	                            : NULL;
	if (!client)
		return NULL;
	const struct connection_origin any = {.limit = INT64_MAX};
	client->loop = loop;
	client->descriptor = descriptor_of(connection);
	client->is_fresh = false;
	atomic_fetch_add_explicit(&loop->connection_count, 1, memory_order_relaxed);
	if (connection_add(loop->connections, &client->entry, &any, client->descriptor,
	                   client->since_us)) {
		if (!loop->tls)
			(void)!send(client->descriptor, full, strlen(full), MSG_NOSIGNAL | MSG_DONTWAIT);
		atomic_store(&client->entry.is_cut, true);
		shutdown(client->descriptor, SHUT_RDWR);
	}
	return client;
}

struct client *client_attach(struct loop *loop, struct MHD_Connection *connection)
{
	struct client *client = loop->is_operators ? client_of_operator(loop, connection)
	                                           : take_added(loop, descriptor_of(connection));
	if (!client)
		return NULL;
	client->connection = connection;
	join(&loop->idle, client);
	if (!connection_set_descriptor(loop->connections, &client->entry, client->descriptor))
		become(client, false, client->since_us);
	if (loop->tls && !tls_begin(client, loop->tls))
		cut(client, "");
	return client;
}

void client_end(struct client *client)
{
	tls_session_closed(client->tls);
	if (client->exchange)
		request_connection_lost(client);
	leave(list_of(client), client);
	client_free(client);
}

/* ---- requests ---- */

void client_begin_request(struct client *client, int64_t now_us)
{
	tls_begin_request(client->tls);
	int64_t head_since_us = client->head_since_us;
	clear_fresh(client);
	become(client, false, head_since_us ? head_since_us : now_us);
}

bool client_finish_head(struct client *client)
{
	return become_in_table(client, CONNECTION_BUSY, client->since_us);
}

bool client_finish_request(struct client *client)
{
	return client->entry.kind == CONNECTION_BUSY || client_finish_head(client);
}

void client_mark_refused(struct client *client, int64_t now_us)
{
	if (client->entry.kind == CONNECTION_BUSY && !client->by_proxy)
		become_in_table(client, CONNECTION_SLOW, now_us);
}

void client_mark_answered(struct client *client, int64_t now_us)
{
	client->answered_us = now_us;
	client->service_wait_us = 0;
}

static void end_forwarded(struct client *client)
{
	if (client->forwarded)
		connection_forward_end(client->loop->connections, client->forwarded);
	client->forwarded = 0;
}

void client_end_request(struct client *client, int64_t now_us)
{
	end_forwarded(client);
	client->bytes = BYTES_UNKNOWN;
	become(client, become_in_table(client, CONNECTION_IDLE, now_us), now_us);
}

void client_begin_wait(struct client *client, int64_t now_us)
{
	client->waits_us = now_us;
	if (client->entry.kind == CONNECTION_SLOW)
		become_in_table(client, CONNECTION_BUSY, now_us);
}

void client_end_wait(struct client *client, int64_t now_us)
{
	client->service_wait_us += now_us - client->waits_us;
	client->waits_us = 0;
}

int client_count_forwarded(struct client *client, uint64_t address)
{
	int64_t limit = client->loop->server->service->settings->http_connections_per_address;
	int result = connection_forward(client->loop->connections, address, limit);
	if (!result)
		client->forwarded = address;
	return result;
}

/* ---- stuck connections ---- */

/* Detects a connection that cannot continue. If a chunk-size line fills the connection memory,
 * libmicrohttpd before 1.0 stops reading without an error. Such a connection has unread input that
 * does not change between two checks. */
static bool is_stuck(struct client *client)
{
	const struct exchange *exchange = client->exchange;
	int unread = 0;
	bool may_be = exchange->head.chunked && !client->answered_us &&
	              (exchange->step == STEP_BODY || exchange->step == STEP_DISCARD);
	if (may_be && ioctl(client->descriptor, FIONREAD, &unread) == 0)
		unread += tls_unread(client->tls);
	bool stays = unread > 0 && unread == client->unread && exchange->body_seen == client->seen;
	client->unread = unread;
	client->seen = exchange->body_seen;
	return stays;
}

/* Sets a timeout of one second. The library treats a connection that does not wait for its socket
 * as always ready, and after a suspension it does not poll the socket, so it would not notice its
 * end. */
static void set_short_timeout(struct client *client)
{
	MHD_set_connection_option(client->connection, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
}

static void end_stuck(struct client *client)
{
	struct exchange *exchange = client->exchange;
	answer_error(exchange, error_set(&exchange->error, ERR_VALIDATION, MSG_HTTP_CHUNK, NULL));
	client_discard(client);
	(void)answer_send_now(exchange);
	cut(client, "");
	set_short_timeout(client);
}

/* ---- timeouts ---- */

/* Returns the time until which the client must complete the current transfer. */
static int64_t transfer_deadline_us(const struct client *client)
{
	const struct exchange *exchange = client->exchange;
	int64_t timeout_us = exchange->service->settings->http_transfer_timeout;
	int64_t bytes = 0;
	if (client->answered_us)
		bytes = (int64_t)(exchange->answer.size + exchange->answer.body.size);
	else if (exchange->step != STEP_HEAD)
		bytes = (int64_t)exchange->body_seen;
	int64_t from_us = client->answered_us ? client->answered_us : client->since_us;
	return from_us + client->service_wait_us + timeout_us +
	       bytes * US_PER_SECOND / BYTES_PER_SECOND;
}

/* Returns the number of received bytes; BYTES_UNKNOWN: not available from the system. */
static int64_t bytes_received(const struct client *client)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof info;
	bool available =
		getsockopt(client->descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
		size >= offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;
	return available ? (int64_t)info.tcpi_bytes_received : BYTES_UNKNOWN;
}

/* Detects that a head has started, which the library does not report before the request line is
 * complete. */
static void check_for_head(struct client *client, int64_t timeout_us, int64_t now_us)
{
	client->check_at_us = now_us + timeout_us / HEAD_CHECKS;
	int64_t bytes = bytes_received(client);
	if (client->bytes == BYTES_UNKNOWN)
		client->bytes = bytes;
	if (client->head_since_us || bytes <= client->bytes)
		return;
	client->head_since_us = now_us;
	if (client->entry.kind == CONNECTION_IDLE)
		become_in_table(client, CONNECTION_UNFINISHED, now_us);
}

static void check_idle(struct client *client, int64_t now_us)
{
	const struct settings *settings = client->loop->server->service->settings;
	int64_t timeout_us = settings->http_transfer_timeout;
	if (client_is_cut(client))
		return;
	/* A handshake with the first request line has the timeout of a head. */
	bool is_silent = tls_has_no_request(client->tls) && client->since_us + timeout_us < now_us;
	if (is_silent || client->since_us + settings->http_idle_timeout < now_us) {
		cut(client, "");
		become(client, false, now_us);
		return;
	}
	if (client->check_at_us <= now_us)
		check_for_head(client, timeout_us, now_us);
	if (client->head_since_us && client->head_since_us + timeout_us < now_us) {
		client->is_late = true;
		cut(client, too_slow);
		become(client, false, now_us);
	}
}

/* Returns whether the service waits for the client to send a body or to read an answer. */
static bool is_slow(const struct client *client, int64_t now_us)
{
	if (client->by_proxy)
		return false;
	enum step step = client->exchange->step;
	int64_t from_us = client->answered_us ? client->answered_us : client->since_us;
	return from_us + client->service_wait_us + SLOW_AFTER_US < now_us &&
	       (client->answered_us || step == STEP_BODY || step == STEP_DISCARD || step == STEP_SENT);
}

static void check_busy(struct client *client, int64_t now_us)
{
	const struct exchange *exchange = client->exchange;
	if (client_is_cut(client)) {
		set_short_timeout(client);
		return;
	}
	if (client->waits_us || !exchange)
		return;
	if (is_stuck(client)) {
		end_stuck(client);
	} else if (transfer_deadline_us(client) < now_us) {
		client->is_late = !client->answered_us && exchange->step != STEP_SENT;
		cut(client, client->is_late ? too_slow : NULL);
	} else if (exchange->step == STEP_HEAD && client->entry.kind == CONNECTION_IDLE) {
		become_in_table(client, CONNECTION_UNFINISHED, client->since_us);
	} else if (client->entry.kind == CONNECTION_BUSY && is_slow(client, now_us)) {
		become_in_table(client, CONNECTION_SLOW, now_us);
	}
}

void clients_check_timeouts(struct loop *loop, int64_t now_us)
{
	struct client *next;
	for (struct client *client = loop->idle.first; client; client = next) {
		next = client->next;
		check_idle(client, now_us);
	}
	for (struct client *client = loop->busy.first; client; client = next) {
		next = client->next;
		check_busy(client, now_us);
	}
}
