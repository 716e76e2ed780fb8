#include "http/route.h"

#include <assert.h>

#include "http/header.h"
#include "http/prometheus.h"

#define GET_ONLY "GET, HEAD"

const struct route public_routes[] = {
	{"/v1/events", {&operation_list_events, &operation_register}, "GET, HEAD, POST", CORS_LISTED},
	{"/v1/events/batch", {NULL, &operation_register_batch}, "POST", CORS_LISTED},
	{"/v1/events/{event_id}", {&operation_get_event}, GET_ONLY, CORS_LISTED},
	{"/v1/events/{event_id}/content", {&operation_get_content}, GET_ONLY, CORS_LISTED},
	{"/v1/events/{event_id}/evidence-record",
     {&operation_get_evidence_record},
     GET_ONLY,
     CORS_LISTED},
	{"/v1/channel", {&operation_get_channel}, GET_ONLY, CORS_LISTED},
	{"/v1/channel/seals", {&operation_get_channel_seals}, GET_ONLY, CORS_LISTED},
	{"/v1/notices",
     {&operation_list_notices, &operation_create_notice},
     "GET, HEAD, POST",
     CORS_LISTED},
	{"/v1/account/balance", {&operation_get_balance}, GET_ONLY, CORS_LISTED},
	{"/v1/certifications",
     {&operation_list_certifications, &operation_certify},
     "GET, HEAD, POST",
     CORS_LISTED},
	{"/v1/certifications/{certification_id}",
     {&operation_get_certification},
     GET_ONLY,
     CORS_LISTED},
	{"/v1/certifications/{certification_id}/evidence-record",
     {&operation_get_certification_evidence_record},
     GET_ONLY,
     CORS_LISTED},
	{"/v1/downloads/{certification_id}/{name}", {&operation_download}, GET_ONLY, CORS_ANY},
	{"/v1/signers", {&operation_get_signers}, GET_ONLY, CORS_ANY},
	{"/v1/signers.p7m", {&operation_get_signer_list}, GET_ONLY, CORS_ANY},
	{"/log/checkpoint", {&operation_get_log_checkpoint}, GET_ONLY, CORS_ANY},
	{"/log/{*}", {&operation_get_log_tile}, GET_ONLY, CORS_ANY},
	{"/v1/openapi.yaml", {&operation_openapi}, GET_ONLY, CORS_ANY},
	{"/v1/webhooks.yaml", {&operation_webhooks}, GET_ONLY, CORS_ANY},
	{"/v1", {&operation_index}, GET_ONLY, CORS_ANY},
	{"/v1/", {&operation_index}, GET_ONLY, CORS_ANY},
	{"/", {&operation_home}, GET_ONLY, CORS_NEVER},
	{"/docs", {&operation_docs}, GET_ONLY, CORS_NEVER},
	{"/docs/reference", {&operation_reference}, GET_ONLY, CORS_NEVER},
	{"/verify", {&operation_verify, &operation_check_file}, "GET, HEAD, POST", CORS_ANY},
	{"/verify/{code}", {&operation_verify_code}, GET_ONLY, CORS_ANY},
	{"/assets/{name}", {&operation_verify_asset}, GET_ONLY, CORS_NEVER},
	{"/docs/errors", {&operation_error_docs}, GET_ONLY, CORS_NEVER},
	{"/.well-known/security.txt", {&operation_security}, GET_ONLY, CORS_NEVER},
	{"/robots.txt", {&operation_robots}, GET_ONLY, CORS_NEVER},
	{"/favicon.ico", {&operation_icon}, GET_ONLY, CORS_NEVER},
	{"/payments/{provider}/notices", {NULL, &operation_payment_notice}, "POST", CORS_NEVER},
	{"/console", {&operation_console}, GET_ONLY, CORS_NEVER},
	{"/console/sign-in",
     {&operation_console, &operation_console_sign_in},
     "GET, HEAD, POST",
     CORS_NEVER},
	{"/console/enter",
     {&operation_console, &operation_console_sign_in},
     "GET, HEAD, POST",
     CORS_NEVER},
	{"/console/passkey", {NULL, &operation_console_sign_in}, "POST", CORS_NEVER},
	{"/console/again",
     {&operation_console, &operation_console_sign_in},
     "GET, HEAD, POST",
     CORS_NEVER},
	{"/console/events/{event_id}/content",
     {&operation_console_content, &operation_console_form},
     "GET, HEAD, POST",
     CORS_NEVER},
	{"/console/webhooks/{endpoint}/test",
     {&operation_console, &operation_console_call},
     "GET, HEAD, POST",
     CORS_NEVER},
	{"/console/money/purchases/{sale}/page",
     {&operation_console, &operation_console_call},
     "GET, HEAD, POST",
     CORS_NEVER},
	{"/console/money/buy",
     {&operation_console, &operation_console_call},
     "GET, HEAD, POST",
     CORS_NEVER},
	{"/console/try/send",
     {&operation_console, &operation_console_try},
     "GET, HEAD, POST",
     CORS_NEVER},
	{"/console/{*}", {&operation_console, &operation_console_form}, "GET, HEAD, POST", CORS_NEVER},
	{.pattern = NULL},
};

const size_t public_route_count = sizeof public_routes / sizeof *public_routes - 1;
static_assert(sizeof public_routes / sizeof *public_routes - 1 <= METRICS_ROUTES_MAX,
              "every route has a counter");

const struct route operators_routes[] = {
	{"/livez", {&operation_live}, GET_ONLY, CORS_NEVER},
	{"/readyz", {&operation_ready}, GET_ONLY, CORS_NEVER},
	{"/metrics", {&operation_metrics}, GET_ONLY, CORS_NEVER},
	{.pattern = NULL},
};

static bool match(const char *pattern, struct slice path, struct slice arguments[2])
{
	int place = 0;
	while (*pattern) {
		if (strcmp(pattern, "{*}") == 0)
			return true;
		if (pattern[0] == '{') {
			const char *end = path.size ? memchr(path.data, '/', path.size) : NULL;
			size_t size = end ? (size_t)(end - path.data) : path.size;
			if (!size)
				return false;
			arguments[place++] = slice_make(path.data, size);
			path = slice_make(path.data + size, path.size - size);
			pattern = strchr(pattern, '}') + 1;
		} else {
			if (!path.size || path.data[0] != *pattern)
				return false;
			path = slice_make(path.data + 1, path.size - 1);
			pattern++;
		}
	}
	return path.size == 0;
}

static int decode(struct exchange *exchange, struct slice arguments[2])
{
	for (int i = 0; i < 2; i++) {
		bool escaped = arguments[i].size && memchr(arguments[i].data, '%', arguments[i].size);
		int result = escaped ? header_unescape(arguments[i], &exchange->arena, &arguments[i]) : 0;
		if (result)
			return result == ERR_NO_MEMORY ? result : ERR_NOT_FOUND;
		exchange->arguments[i] = arguments[i];
	}
	return 0;
}

int route_find(struct exchange *exchange)
{
	exchange->route = NULL;
	for (const struct route *route = exchange->loop->routes; route->pattern; route++) {
		struct slice arguments[2] = {{"", 0}, {"", 0}};
		if (!match(route->pattern, exchange->path, arguments))
			continue;
		int result = decode(exchange, arguments);
		if (result == ERR_NOT_FOUND)
			continue; /* a placeholder for the rest may match less specifically */
		if (!result)
			exchange->route = route;
		return result;
	}
	return ERR_NOT_FOUND;
}

const struct route *route_of_path(struct slice path)
{
	for (const struct route *route = public_routes; route->pattern; route++) {
		struct slice arguments[2];
		if (match(route->pattern, path, arguments))
			return route;
	}
	return NULL;
}

enum method method_parse(const char *method)
{
	if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
		return METHOD_GET;
	return strcmp(method, "POST") == 0 ? METHOD_POST : METHOD_OTHER;
}
