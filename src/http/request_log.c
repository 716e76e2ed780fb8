#include "http/request_log.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#include "base/log.h"
#include "http/http_internal.h"

#define NETWORK_BYTES_FOUR 3
#define NETWORK_BYTES_SIX 6
#define STATUS_TOO_SLOW 408
/* Log lines per second for requests without a key or above their rate; enough for a page with its
 * assets. */
#define KEYLESS_LINES 10

struct entry {
	const struct exchange *exchange; /* NULL: no request */
	int status;                      /* 0: no answer */
	bool cut;
	int64_t duration_us;
	char address[INET6_ADDRSTRLEN + 4]; /* "": not logged */
};

/* ---- settings ---- */

static bool parse(const char *const *words, const char *text, int *ret)
{
	for (int i = 0; words[i]; i++) {
		if (strcmp(words[i], text) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

bool request_log_which_parse(const char *text, enum request_log_which *ret)
{
	static const char *const words[] = {"none", "errors", "all", NULL};
	int which;
	bool known = parse(words, text, &which);
	if (known)
		*ret = (enum request_log_which)which;
	return known;
}

bool request_log_addresses_parse(const char *text, enum request_log_addresses *ret)
{
	static const char *const words[] = {"none", "network", "full", NULL};
	int addresses;
	bool known = parse(words, text, &addresses);
	if (known)
		*ret = (enum request_log_addresses)addresses;
	return known;
}

void request_log_configure(struct http_server *server, const struct settings *settings)
{
	enum request_log_which which = REQUESTS_NONE;
	enum request_log_addresses addresses = ADDRESSES_NONE;
	if (request_log_which_parse(settings->log_requests, &which))
		atomic_store(&server->requests_logged, (int)which);
	if (request_log_addresses_parse(settings->log_addresses, &addresses))
		atomic_store(&server->addresses_logged, (int)addresses);
}

static enum request_log_which which_logged(const struct http_server *server)
{
	return (enum request_log_which)atomic_load_explicit(&server->requests_logged,
	                                                    memory_order_relaxed);
}

/* ---- data of the head ---- */

/* Returns a known method name. Others are not logged, because clients can send any word. */
static const char *method_name(const char *method)
{
	static const char *const names[] = {"GET",    "HEAD",    "POST",  "PUT",     "PATCH",
	                                    "DELETE", "OPTIONS", "TRACE", "CONNECT", NULL};
	for (int i = 0; names[i]; i++)
		if (strcmp(names[i], method) == 0)
			return names[i];
	return "other";
}

void request_log_head(struct exchange *exchange, const char *method)
{
	exchange->method = method_name(method);
	if (which_logged(exchange->server) == REQUESTS_NONE)
		return;
	guard_client_address(exchange, &exchange->address);
}

/* ---- the line ---- */

static void put_address(const struct http_server *server, const struct sockaddr_storage *address,
                        struct entry *entry)
{
	int logged = atomic_load_explicit(&server->addresses_logged, memory_order_relaxed);
	struct in_addr four = ((const struct sockaddr_in *)address)->sin_addr;
	struct in6_addr six = ((const struct sockaddr_in6 *)address)->sin6_addr;
	bool is_four = address->ss_family == AF_INET;
	bool network = logged == ADDRESSES_NETWORK;
	if (logged == ADDRESSES_NONE || (!is_four && address->ss_family != AF_INET6))
		return;
	if (!is_four && IN6_IS_ADDR_V4MAPPED(&six)) {
		memcpy(&four, six.s6_addr + sizeof six - sizeof four, sizeof four);
		is_four = true;
	}
	if (network && is_four)
		memset((char *)&four + NETWORK_BYTES_FOUR, 0, sizeof four - NETWORK_BYTES_FOUR);
	if (network)
		memset(six.s6_addr + NETWORK_BYTES_SIX, 0, sizeof six - NETWORK_BYTES_SIX);
	inet_ntop(is_four ? AF_INET : AF_INET6, is_four ? (void *)&four : (void *)&six, entry->address,
	          INET6_ADDRSTRLEN);
	if (network)
		memcpy(entry->address + strlen(entry->address), is_four ? "/24" : "/48", sizeof "/24");
}

static void put_socket_address(const struct http_server *server, const struct sockaddr *any,
                               struct entry *entry)
{
	struct sockaddr_storage address = {0};
	memcpy(&address, any,
	       any->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	put_address(server, &address, entry);
}

static void put_connection_address(const struct http_server *server,
                                   struct MHD_Connection *connection, struct entry *entry)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	if (info && info->client_addr)
		put_socket_address(server, info->client_addr, entry);
}

int64_t request_log_bytes_out(const struct exchange *exchange)
{
	const struct answer *answer = &exchange->answer;
	const char *method = exchange->method;
	if (answer->status == 304 || (method && strcmp(method, "HEAD") == 0))
		return 0;
	return (int64_t)(answer->size ? answer->size : answer->body.size);
}

static void fill_request(struct json_writer *writer, const void *context)
{
	const struct entry *entry = context;
	const struct exchange *exchange = entry->exchange;
	/* Includes revoked keys and keys of disabled accounts. */
	const struct key_identity *key = exchange->key.key ? &exchange->key : NULL;
	json_text(writer, "request_id", exchange->request_id);
	json_text(writer, "method", exchange->method);
	json_text(writer, "route", exchange->route ? exchange->route->pattern : NULL);
	if (entry->status)
		json_integer(writer, "status", entry->status);
	else
		json_null(writer, "status");
	json_text(writer, "code", exchange->error_code ? error_code_text(exchange->error_code) : NULL);
	json_text(writer, "key_id", key ? key->key_id : NULL);
	json_text(writer, "account_id", key ? key->account_id : NULL);
	json_text(writer, "channel_id", key ? key->channel_id : NULL);
	json_integer(writer, "duration_us", entry->duration_us);
	json_integer(writer, "bytes_in", (int64_t)exchange->body_seen);
	json_integer(writer, "bytes_out", entry->status ? request_log_bytes_out(exchange) : 0);
	if (*entry->address)
		json_text(writer, "client", entry->address);
	if (*exchange->incident_id)
		json_text(writer, "incident_id", exchange->incident_id);
	if (entry->cut)
		json_boolean(writer, "cut", true);
}

/* Returns the status that the library sent itself for a malformed head. */
static int library_status(const struct exchange *exchange)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_HTTP_STATUS);
	return info ? (int)info->http_status : 0;
}

int request_log_status(const struct exchange *exchange, bool answered)
{
	return answered                    ? exchange->answer.status
	       : exchange->client->is_late ? STATUS_TOO_SLOW
	                                   : library_status(exchange);
}

static void fill_refused(struct json_writer *writer, const void *context)
{
	const struct refusals *refusals = context;
	json_integer(writer, "status", refusals->status);
	json_integer(writer, "count", refusals->count);
	if (*refusals->client)
		json_text(writer, "client", refusals->client);
}

static void write_refusals(struct refusals *refusals, const char *event, int64_t now_us)
{
	if (!refusals->count || now_us < refusals->logged_us + US_PER_SECOND)
		return;
	log_write_frequent(LOG_INFO, event, fill_refused, refusals);
	refusals->count = 0;
	refusals->logged_us = now_us;
}

/* Caller holds the lock. */
static void write_all_refusals(struct request_log_state *lines, int64_t now_us)
{
	write_refusals(&lines->refusals, "connection_refused", now_us);
	write_refusals(&lines->unlisted, "requests_omitted", now_us);
}

void request_log_flush(struct http_server *server, int64_t now_us)
{
	struct request_log_state *lines = &server->request_log_state;
	pthread_mutex_lock(&lines->lock);
	write_all_refusals(lines, now_us);
	pthread_mutex_unlock(&lines->lock);
}

static void add_refusal(struct refusals *refusals, const struct entry *entry)
{
	refusals->count++;
	refusals->status = entry->status;
	snprintf(refusals->client, sizeof refusals->client, "%s", entry->address);
}

/* Returns whether a request without a key gets a line; otherwise counts it. Anyone can send such
 * requests at any rate. */
static bool has_line(struct request_log_state *lines, const struct entry *entry, int64_t now_us)
{
	pthread_mutex_lock(&lines->lock);
	if (now_us >= lines->listing_since_us + US_PER_SECOND) {
		lines->listing_since_us = now_us;
		lines->listed = 0;
	}
	bool has = lines->listed++ < KEYLESS_LINES;
	if (!has)
		add_refusal(&lines->unlisted, entry);
	pthread_mutex_unlock(&lines->lock);
	return has;
}

void request_log_end(const struct exchange *exchange, bool answered, bool cut, int64_t duration_us)
{
	struct http_server *server = exchange->server;
	enum request_log_which which = which_logged(server);
	if (which == REQUESTS_NONE)
		return;
	struct entry entry = {.exchange = exchange, .cut = cut, .duration_us = duration_us};
	entry.status = request_log_status(exchange, answered);
	if (which == REQUESTS_ERRORS && entry.status && entry.status < 400 && !cut)
		return;
	if (exchange->address.ss_family != AF_UNSPEC)
		put_address(server, &exchange->address, &entry);
	else
		put_connection_address(server, exchange->connection, &entry);
	/* Requests above the rate cost the client nothing. */
	bool is_paid = exchange->key.key && exchange->rate.allowed;
	if (is_paid || has_line(&server->request_log_state, &entry, clock_monotonic_us()))
		log_write_frequent(LOG_INFO, "request", fill_request, &entry);
}

void request_log_refused(struct http_server *server, const struct sockaddr *address, int status)
{
	struct request_log_state *lines = &server->request_log_state;
	struct entry entry = {.status = status};
	if (which_logged(server) == REQUESTS_NONE)
		return;
	put_socket_address(server, address, &entry);
	pthread_mutex_lock(&lines->lock);
	add_refusal(&lines->refusals, &entry);
	write_all_refusals(lines, clock_monotonic_us());
	pthread_mutex_unlock(&lines->lock);
}
