#include "http/route.h"

#include "http/header.h"

#define GET_ONLY "GET, HEAD"

const struct route public_routes[] = {
	{"/v1/events", {&operation_list_events, &operation_register}, "GET, HEAD, POST"},
	{"/v1/events/{}", {&operation_get_event}, GET_ONLY},
	{"/v1/events/{}/content", {&operation_get_content}, GET_ONLY},
	{"/v1/events/{}/evidence-record", {&operation_get_evidence_record}, GET_ONLY},
	{"/v1/channel", {&operation_get_channel}, GET_ONLY},
	{"/v1/account/balance", {&operation_get_balance}, GET_ONLY},
	{"/v1/certifications", {&operation_list_certifications, &operation_certify}, "GET, HEAD, POST"},
	{"/v1/certifications/{}", {&operation_get_certification}, GET_ONLY},
	{"/v1/certifications/{}/evidence-record",
     {&operation_get_certification_evidence_record},
     GET_ONLY},
	{"/v1/downloads/{}/{}", {&operation_download}, GET_ONLY},
	{"/v1/signers", {&operation_get_signers}, GET_ONLY},
	{"/v1/openapi.yaml", {&operation_openapi}, GET_ONLY},
	{"/v1/webhooks.yaml", {&operation_webhooks}, GET_ONLY},
	{"/v1", {&operation_index}, GET_ONLY},
	{"/v1/", {&operation_index}, GET_ONLY},
	{"/", {&operation_home}, GET_ONLY},
	{"/docs", {&operation_docs}, GET_ONLY},
	{"/docs/reference", {&operation_reference}, GET_ONLY},
	{"/verify", {&operation_verify, &operation_check_file}, "GET, HEAD, POST"},
	{"/verify/{}", {&operation_verify_code}, GET_ONLY},
	{"/assets/{}", {&operation_verify_asset}, GET_ONLY},
	{"/docs/errors", {&operation_error_docs}, GET_ONLY},
	{"/.well-known/security.txt", {&operation_security}, GET_ONLY},
	{"/robots.txt", {&operation_robots}, GET_ONLY},
	{"/favicon.ico", {&operation_icon}, GET_ONLY},
	{"/payments/{}/notices", {NULL, &operation_payment_notice}, "POST"},
	{NULL},
};

const struct route operators_routes[] = {
	{"/livez", {&operation_live}, GET_ONLY},
	{"/readyz", {&operation_ready}, GET_ONLY},
	{"/metrics", {&operation_metrics}, GET_ONLY},
	{NULL},
};

static bool match(const char *pattern, struct slice path, struct slice arguments[2])
{
	int place = 0;
	while (*pattern) {
		if (pattern[0] == '{') {
			const char *end = path.size ? memchr(path.data, '/', path.size) : NULL;
			size_t size = end ? (size_t)(end - path.data) : path.size;
			if (!size)
				return false;
			arguments[place++] = slice_make(path.data, size);
			path = slice_make(path.data + size, path.size - size);
			pattern += 2;
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
		if (!result)
			exchange->route = route;
		return result;
	}
	return ERR_NOT_FOUND;
}

enum method method_parse(const char *method)
{
	if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
		return METHOD_GET;
	return strcmp(method, "POST") == 0 ? METHOD_POST : METHOD_OTHER;
}
