#include "http/internal.h"

#define MIB ((int64_t)1024 * 1024)

/* Large ones leave an eighth to small ones, so that these are served whatever those wait for. */
static int64_t memory_for(const struct exchange *exchange, uint64_t size)
{
	int64_t all = exchange->service->settings->http_body_memory * MIB;
	return size > 2 * BODY_SLACK ? all - all / 8 : all;
}

static int refuse(struct exchange *exchange, struct error *error)
{
	atomic_fetch_add(&exchange->server->metrics.body_memory_refused, 1);
	return error_cause(error, ERR_UNAVAILABLE, "http.body_memory is used up");
}

int body_expect(struct exchange *exchange, uint64_t size, struct error *error)
{
	int64_t held = atomic_load(&exchange->server->metrics.body_bytes);
	bool fits = held + (int64_t)size <= memory_for(exchange, size);
	return fits ? 0 : refuse(exchange, error);
}

int body_count(struct exchange *exchange, struct error *error)
{
	size_t now = exchange->body.capacity + exchange->canonical.capacity +
	             upload_held(exchange->upload);
	int64_t more = (int64_t)now - (int64_t)exchange->held;
	exchange->held = now;
	int64_t held = atomic_fetch_add(&exchange->server->metrics.body_bytes, more) + more;
	return more > 0 && held > memory_for(exchange, now) ? refuse(exchange, error) : 0;
}

void body_release(struct exchange *exchange)
{
	atomic_fetch_sub(&exchange->server->metrics.body_bytes, (int64_t)exchange->held);
	exchange->held = 0;
}

int body_collect(struct exchange *exchange, struct slice part, struct error *error)
{
	buf_add_slice(&exchange->body, part);
	if (buf_check(&exchange->body))
		return error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
	return body_count(exchange, error);
}
