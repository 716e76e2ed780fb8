#include "http/clients.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "http/shares.h"
#include "http/internal.h"

#define BYTES_PER_SECOND (16 * 1024)
#define HANDSHAKES UINT64_C(0x8f3a6c51d92e47b5) /* their buckets among those of addresses */
#define HANDSHAKE_BURST 4

/* ---- lists ---- */

static void leave(struct client_list *list, struct client *client)
{
	*(client->previous ? &client->previous->next : &list->first) = client->next;
	*(client->next ? &client->next->previous : &list->last) = client->previous;
}

static void join(struct client_list *list, struct client *client)
{
	client->next = NULL;
	client->previous = list->last;
	*(list->last ? &list->last->next : &list->first) = client;
	list->last = client;
}

static struct client_list *list_of(struct client *client)
{
	return client->is_idle ? &client->loop->idle : &client->loop->busy;
}

static void become(struct client *client, bool idle, int64_t now_us)
{
	leave(list_of(client), client);
	client->is_idle = idle;
	client->since_us = now_us;
	client->answered_us = client->waits_us = client->excused_us = 0;
	join(list_of(client), client);
}

/* ---- cutting ---- */

static int descriptor_of(const struct client *client)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(client->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	return info ? info->connect_fd : -1;
}

/* Of TLS the end is said, too, so that a client knows that nothing is missing. */
static void say_last(struct client *client, int descriptor, struct slice text)
{
	ssize_t sent = 0;
	if (client->loop->tls) {
		if (client->tls)
			tls_say_last(client->tls, text);
		return;
	}
	do
		sent = text.size ? send(descriptor, text.data, text.size, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
	while (sent < 0 && errno == EINTR);
}

void client_say_last(struct client *client, struct slice text)
{
	int descriptor = descriptor_of(client);
	say_last(client, descriptor, text);
	shutdown(descriptor, SHUT_WR);
}

/* The library sees the end of the connection and tidies up. `text`, if it can be said at once;
 * NULL: in the middle of an answer. */
static void cut(struct client *client, const char *text)
{
	client->is_cut = true;
	int descriptor = descriptor_of(client);
	if (text)
		say_last(client, descriptor, slice_of(text));
	shutdown(descriptor, SHUT_RDWR);
	struct metrics *metrics = &client->loop->server->metrics;
	atomic_fetch_add_explicit(&metrics->connections_cut, 1, memory_order_relaxed);
}

static const char too_slow[] = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
							   "Content-Length: 0\r\n\r\n";
static const char too_many[] = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\n"
							   "Connection: close\r\nContent-Length: 0\r\n\r\n";
static const char full[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n"
						   "Connection: close\r\nContent-Length: 0\r\n\r\n";

/* ---- coming and going ---- */

static bool find_address(struct client *client)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(client->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	if (!info || !info->client_addr)
		return false;
	const struct http_server *server = client->loop->server;
	client->address = guard_address_id(server, info->client_addr);
	client->by_proxy = network_list_contains(&server->trusted_proxies->networks, info->client_addr);
	return true;
}

static int count_address(struct client *client)
{
	struct loop *loop = client->loop;
	int64_t limit = loop->server->service->settings->http_connections_per_address;
	if (loop->is_operators || !find_address(client) || client->by_proxy)
		return 0;
	int result = share_take(loop->addresses, client->address, 1, limit);
	client->is_counted = !result;
	return result;
}

/* Out of the list of idle ones, where it would be taken for room once more: it is gone only when
 * the library looks at it. */
static void cut_idle(struct client *client, const char *text, int64_t now_us)
{
	become(client, false, now_us);
	cut(client, text);
}

static bool make_room(struct client *client)
{
	struct loop *loop = client->loop;
	if (loop->connections <= loop->connections_max)
		return true;
	if (loop->idle.first == client)
		return false;
	cut_idle(loop->idle.first, "", client->since_us);
	return true;
}

static void count(struct loop *loop, int by)
{
	loop->connections += by;
	if (!loop->is_operators)
		atomic_fetch_add_explicit(&loop->server->metrics.connections, by, memory_order_relaxed);
}

static void turn_away(struct client *client, const char *text, int status)
{
	cut_idle(client, text, client->since_us);
	request_log_refused(client, status);
}

/* A handshake costs a loop a thousand times what it costs to ask for one. */
static bool may_shake_hands(const struct client *client)
{
	const struct http_server *server = client->loop->server;
	int64_t rate = server->service->settings->http_tls_handshakes;
	if (client->loop->is_operators || client->by_proxy || !client->address)
		return true;
	return rate_take(server->limiter, client->address ^ HANDSHAKES, rate, rate * HANDSHAKE_BURST,
	                 client->since_us)
	    .allowed;
}

struct client *client_begin(struct loop *loop, struct MHD_Connection *connection)
{
	struct client *client = calloc(1, sizeof *client);
	if (!client)
		return NULL;
	client->loop = loop;
	client->connection = connection;
	client->is_idle = client->is_fresh = true;
	atomic_fetch_add_explicit(&loop->fresh, 1, memory_order_relaxed);
	client->since_us = clock_monotonic_us();
	count(loop, 1);
	join(&loop->idle, client);
	int counted = count_address(client);
	if (!counted && loop->tls && !may_shake_hands(client))
		counted = ERR_RATE_LIMITED;
	bool ready = counted || !loop->tls || tls_begin(client, loop->tls);
	if (counted == ERR_RATE_LIMITED)
		turn_away(client, too_many, 429);
	else if (counted || !ready || !make_room(client))
		turn_away(client, full, 503);
	return client;
}

static void forget_forwarded(struct client *client)
{
	if (client->forwarded)
		share_give(client->loop->addresses, client->forwarded, 1);
	client->forwarded = 0;
}

static void is_fresh_no_more(struct client *client)
{
	if (client->is_fresh)
		atomic_fetch_sub_explicit(&client->loop->fresh, 1, memory_order_relaxed);
	client->is_fresh = false;
}

/* Of those that were turned away nothing was awaited. */
static void count_handshake(const struct client *client)
{
	struct metrics *metrics = &client->loop->server->metrics;
	if (client->loop->tls && !tls_has_shaken_hands(client->tls))
		atomic_fetch_add_explicit(&metrics->tls_handshakes_failed, 1, memory_order_relaxed);
}

void client_end(struct client *client)
{
	is_fresh_no_more(client);
	forget_forwarded(client);
	count_handshake(client);
	tls_end(client->tls);
	if (client->is_counted)
		share_give(client->loop->addresses, client->address, 1);
	count(client->loop, -1);
	leave(list_of(client), client);
	exchange_free(client->exchange);
	free(client);
}

void client_begins_request(struct client *client, int64_t now_us)
{
	tls_has_request(client->tls);
	is_fresh_no_more(client);
	become(client, false, now_us);
}

void client_is_answered(struct client *client, int64_t now_us)
{
	client->answered_us = now_us;
	client->excused_us = 0;
}

void client_ends_request(struct client *client, int64_t now_us)
{
	forget_forwarded(client);
	become(client, !client->is_cut, now_us);
}

void client_waits(struct client *client, int64_t now_us)
{
	client->waits_us = now_us;
}

void client_goes_on(struct client *client, int64_t now_us)
{
	client->excused_us += now_us - client->waits_us;
	client->waits_us = 0;
}

int client_comes_from(struct client *client, uint64_t address)
{
	int64_t limit = client->loop->server->service->settings->http_connections_per_address;
	int result = share_take(client->loop->addresses, address, 1, limit);
	if (!result)
		client->forwarded = address;
	return result;
}

/* ---- time ---- */

/* Until when the client may take for what it is at. */
static int64_t patience_us(const struct client *client)
{
	const struct exchange *exchange = client->exchange;
	int64_t timeout_us = exchange->service->settings->http_transfer_timeout;
	int64_t bytes = 0;
	if (client->answered_us)
		bytes = (int64_t)(exchange->answer.size + exchange->answer.body.size);
	else if (exchange->step != STEP_HEAD)
		bytes = (int64_t)exchange->body_seen;
	int64_t from_us = client->answered_us ? client->answered_us : client->since_us;
	return from_us + client->excused_us + timeout_us + bytes * US_PER_SECOND / BYTES_PER_SECOND;
}

/* A handshake, and the first request line behind it, have the time of a head. */
static void cut_silent(struct loop *loop, int64_t now_us)
{
	int64_t since_us = now_us - loop->server->service->settings->http_transfer_timeout;
	struct client *next;
	for (struct client *client = loop->idle.first; client && client->since_us < since_us;
	     client = next) {
		next = client->next;
		if (tls_is_silent(client->tls))
			cut_idle(client, "", now_us);
	}
}

void clients_look(struct loop *loop, int64_t now_us)
{
	int64_t idle_us = loop->server->service->settings->http_idle_timeout;
	while (loop->idle.first && loop->idle.first->since_us + idle_us < now_us)
		cut_idle(loop->idle.first, "", now_us);
	if (loop->tls)
		cut_silent(loop, now_us);
	for (struct client *client = loop->busy.first; client; client = client->next) {
		const struct exchange *exchange = client->exchange;
		bool excused = client->is_cut || client->waits_us || !exchange;
		if (excused || patience_us(client) >= now_us)
			continue;
		client->is_late = !client->answered_us && exchange->step != STEP_SAID;
		cut(client, client->is_late ? too_slow : NULL);
	}
}
