#include "http/cors.h"

#include <assert.h>
#include <string.h>

#include "http/http_internal.h"
#include "service/settings.h"

/* Browsers cap it: Chromium at two hours, Firefox at a day. */
#define PREFLIGHT_SECONDS "7200"

static const char exposed[] =
	"Accept-Ranges, Allow, Content-Disposition, Content-Range, ETag, Idempotent-Replayed, Link, "
	"RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, WWW-Authenticate, "
	"X-Request-Id";
static const char allowed[] =
	"Accept, Accept-Language, Authorization, Content-Type, Idempotency-Key, If-None-Match, "
	"If-Range, Range";

_Static_assert(CORS_HEAD_MAX >= sizeof exposed + ORIGIN_SIZE + 80,
               "the headers with their names are within their limit");

/* ---- a request ---- */

/* Returns which origins may read the answer. A request that was refused before its path was
 * resolved has no route yet. */
static enum cors scope_of(const struct exchange *exchange)
{
	if (exchange->loop->is_operators)
		return CORS_NEVER;
	const struct route *route = exchange->route;
	if (!route && exchange->head.origin.size)
		route = route_of_path(exchange->path);
	if (route)
		return route->cors;
	bool in_interface = exchange->path.size >= 4 && memcmp(exchange->path.data, "/v1/", 4) == 0;
	return in_interface ? CORS_LISTED : CORS_NEVER;
}

static bool may_read(const struct exchange *exchange, enum cors scope)
{
	const struct head *head = &exchange->head;
	if (scope == CORS_ANY)
		return true;
	return scope == CORS_LISTED && !head->origin_repeated &&
	       origin_list_has(exchange->service->settings->http_cors_origins, head->origin);
}

static void put(struct cors_headers *headers, const char *name, const char *value)
{
	assert(headers->count < CORS_HEADERS_MAX);
	headers->names[headers->count][0] = name;
	headers->names[headers->count++][1] = value;
}

void cors_headers(const struct exchange *exchange, struct cors_headers *ret)
{
	enum cors scope = scope_of(exchange);
	struct slice origin = exchange->head.origin;
	ret->count = 0;
	ret->varies = scope == CORS_LISTED && *exchange->service->settings->http_cors_origins;
	if (!may_read(exchange, scope))
		return;
	if (scope == CORS_ANY) {
		put(ret, "Access-Control-Allow-Origin", "*");
	} else {
		assert(origin.size < sizeof ret->origin);
		memcpy(ret->origin, origin.data, origin.size);
		ret->origin[origin.size] = '\0';
		put(ret, "Access-Control-Allow-Origin", ret->origin);
	}
	put(ret, "Access-Control-Expose-Headers", exposed);
}

bool cors_is_preflight(const struct exchange *exchange, const char *method)
{
	const struct head *head = &exchange->head;
	return strcmp(method, "OPTIONS") == 0 && head->origin.size && head->asks_for_method &&
	       may_read(exchange, scope_of(exchange));
}

/* ---- preflights ---- */

/* Answers regardless of the requested method and headers: the browser compares. */
static bool preflight(struct exchange *exchange)
{
	const struct http_server *server = exchange->server;
	const char *headers = arena_printf(&exchange->arena, "%s, %s, %s", allowed, server->key_header,
	                                   server->scenario_header);
	if (!headers) {
		answer_error(exchange, ERR_NO_MEMORY);
		return true;
	}
	answer_with(exchange, 204, NULL, (struct slice){"", 0});
	answer_header(exchange, "Allow", exchange->route->allow);
	answer_header(exchange, "Access-Control-Allow-Methods", exchange->route->allow);
	answer_header(exchange, "Access-Control-Allow-Headers", headers);
	answer_header(exchange, "Access-Control-Max-Age", PREFLIGHT_SECONDS);
	return true;
}

/* In a bucket of its own, so that preflights do not use up the requests that they are for. */
const struct operation operation_preflight = {
	.open = true, .bucket = 5, .parses_query = true, .finish = preflight};
