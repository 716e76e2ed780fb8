#include <assert.h>
#include <stdio.h>

#include "base/utf8.h"
#include "http/header.h"
#include "http/internal.h"

#define MIB ((int64_t)1024 * 1024)
#define SHARE 4 /* an account has at most this part of what there is */

static_assert(BODY_HELD_MAX > PAYLOAD_MAX + BODY_SLACK, "one body, whichever it is");

/* Large ones leave an eighth to small ones, so that these are served whatever those wait for. */
static int64_t memory_for(const struct exchange *exchange, uint64_t size)
{
	int64_t all = exchange->service->settings->http_body_memory * MIB;
	return size > 2 * BODY_SLACK ? all - all / 8 : all;
}

/* The same of one account: always enough for one body. */
static int64_t share_for(const struct exchange *exchange, uint64_t size)
{
	int64_t share = memory_for(exchange, size) / SHARE;
	return share > (int64_t)BODY_HELD_MAX ? share : (int64_t)BODY_HELD_MAX;
}

size_t body_largest(const struct exchange *exchange)
{
	return (size_t)share_for(exchange, SIZE_MAX);
}

static int refuse(struct exchange *exchange, struct error *error)
{
	atomic_fetch_add(&exchange->server->metrics.body_memory_refused, 1);
	return error_cause(error, ERR_UNAVAILABLE,
	                   "http.body_memory, or the account's share of it, is used up");
}

int body_expect(struct exchange *exchange, uint64_t size, struct error *error)
{
	struct http_server *server = exchange->server;
	if (size > BODY_HELD_MAX)
		size = BODY_HELD_MAX;
	exchange->body_owner = guard_owner_id(exchange);
	pthread_mutex_lock(&server->bodies_lock);
	int64_t all = atomic_load(&server->metrics.body_bytes) + (int64_t)size;
	int64_t own = share_held(server->bodies, exchange->body_owner) + (int64_t)size;
	pthread_mutex_unlock(&server->bodies_lock);
	bool fits = all <= memory_for(exchange, size) && own <= share_for(exchange, size);
	return fits ? 0 : refuse(exchange, error);
}

/* Under the lock. */
static bool take(struct exchange *exchange, int64_t more, size_t size)
{
	struct http_server *server = exchange->server;
	return atomic_load(&server->metrics.body_bytes) + more <= memory_for(exchange, size) &&
	       share_take(server->bodies, exchange->body_owner, more, share_for(exchange, size)) == 0;
}

int body_count(struct exchange *exchange, struct error *error)
{
	struct http_server *server = exchange->server;
	size_t now = exchange->body.capacity + exchange->canonical.capacity +
	             checked_file_held(exchange->checked);
	int64_t more = (int64_t)now - (int64_t)exchange->held;
	pthread_mutex_lock(&server->bodies_lock);
	bool fits = more <= 0 || take(exchange, more, now);
	if (more < 0)
		share_give(server->bodies, exchange->body_owner, -more);
	if (fits) {
		atomic_fetch_add(&server->metrics.body_bytes, more);
		exchange->held = now;
	}
	pthread_mutex_unlock(&server->bodies_lock);
	return fits ? 0 : refuse(exchange, error);
}

void body_release(struct exchange *exchange)
{
	struct http_server *server = exchange->server;
	if (!exchange->held)
		return;
	pthread_mutex_lock(&server->bodies_lock);
	share_give(server->bodies, exchange->body_owner, (int64_t)exchange->held);
	atomic_fetch_sub(&server->metrics.body_bytes, (int64_t)exchange->held);
	pthread_mutex_unlock(&server->bodies_lock);
	exchange->held = 0;
}

int body_collect(struct exchange *exchange, struct slice part, struct error *error)
{
	buf_add_slice(&exchange->body, part);
	if (buf_check(&exchange->body))
		return error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
	return body_count(exchange, error);
}

/* ---- what is refused ---- */

#define SHOWN_MAX 100 /* of a client's header */

int body_check_encoding(const struct exchange *exchange, struct error *error)
{
	char came[SHOWN_MAX];
	struct slice encoding = exchange->head.content_encoding;
	if (!encoding.size || header_name_is(encoding, "identity"))
		return 0;
	utf8_show(encoding, came, sizeof came);
	return error_set(error, ERR_VALIDATION, MSG_HTTP_CONTENT_ENCODING, came, NULL);
}

int body_refuse_type(const struct exchange *exchange, const char *wanted, struct error *error)
{
	char came[SHOWN_MAX];
	struct slice type = exchange->head.content_type;
	if (!type.size)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_CONTENT_TYPE_MISSING, wanted, NULL);
	utf8_show(type, came, sizeof came);
	return error_set(error, ERR_VALIDATION, MSG_HTTP_CONTENT_TYPE, wanted, came, NULL);
}

int body_refuse_size(const struct exchange *exchange, struct error *error)
{
	char most[24];
	snprintf(most, sizeof most, "%zu", exchange->body_limit);
	return error_set(error, ERR_TOO_LARGE, MSG_HTTP_BODY_LARGE, most, NULL);
}
