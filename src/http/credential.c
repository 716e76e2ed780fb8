#include "http/credential.h"

#include "base/base64.h"
#include "base/utf8.h"
#include "http/header.h"

/* PREFIX_live_ or PREFIX_test_. */
static bool begins_like_key(struct slice text, const char *prefix)
{
	size_t size = strlen(prefix);
	if (text.size < size + 6 || memcmp(text.data, prefix, size) != 0)
		return false;
	return memcmp(text.data + size, "_live_", 6) == 0 || memcmp(text.data + size, "_test_", 6) == 0;
}

bool credential_is_misplaced(struct slice name, struct slice value, const char *prefix)
{
	static const char *const names[] = {
		"X-API-Key",    "API-Key",    "ApiKey",         "X-ApiKey",     "X-API-Token",
		"X-Auth-Token", "X-Auth-Key", "X-Access-Token", "Access-Token", "X-Authorization"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (header_name_is(name, names[i]))
			return true;
	}
	return begins_like_key(value, prefix) && !begins_like_key(name, prefix);
}

static bool query_has_key(struct slice query, const char *prefix)
{
	static const char *const names[] = {"key",   "api_key",      "apikey", "api-key",
	                                    "token", "access_token", "auth"};
	while (query.size) {
		const char *end = memchr(query.data, '&', query.size);
		size_t size = end ? (size_t)(end - query.data) : query.size;
		const char *equals = memchr(query.data, '=', size);
		struct slice name = slice_make(query.data, equals ? (size_t)(equals - query.data) : size);
		struct slice value = equals ? slice_make(equals + 1, size - name.size - 1) : name;
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			if (header_name_is(name, names[i]))
				return true;
		}
		if (begins_like_key(value, prefix))
			return true;
		size += end ? 1 : 0;
		query = slice_make(query.data + size, query.size - size);
	}
	return false;
}

static int refuse(enum message message, const char *place, struct error *error)
{
	return error_set(error, ERR_INVALID_KEY, message, place, NULL);
}

/* No evaluated header contains a candidate key. */
static int refuse_missing(const struct head *head, struct slice query, const char *prefix,
                          struct error *error)
{
	char name[64];
	if (head->misplaced_key.size) {
		utf8_show(head->misplaced_key, name, sizeof name);
		return refuse(MSG_HTTP_KEY_HEADER, name, error);
	}
	return refuse(query_has_key(query, prefix) ? MSG_HTTP_KEY_QUERY : MSG_HTTP_KEY_MISSING, NULL,
	              error);
}

static int find_basic(struct slice text, const char *prefix, char scratch[CREDENTIAL_SCRATCH],
                      struct slice *ret_key, struct error *error)
{
	size_t size;
	if (!base64_decode(text, scratch, CREDENTIAL_SCRATCH, &size))
		return refuse(MSG_HTTP_KEY_BASIC, NULL, error);
	const char *colon = memchr(scratch, ':', size);
	struct slice user = slice_make(scratch, colon ? (size_t)(colon - scratch) : size);
	if (!begins_like_key(user, prefix))
		return refuse(MSG_HTTP_KEY_BASIC, NULL, error);
	*ret_key = user;
	return 0;
}

int credential_find(const struct head *head, struct slice query, const char *prefix,
                    char scratch[CREDENTIAL_SCRATCH], struct slice *ret_key, struct error *error)
{
	struct slice value = head->authorization;
	if (head->repeated_key)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_HEADER_REPEATED, head->repeated_key, NULL);
	if (head->authorization_repeated)
		return refuse(MSG_HTTP_KEY_REPEATED, NULL, error);
	if (!value.data && head->api_key.size) {
		*ret_key = head->api_key;
		return 0;
	}
	if (!value.size)
		return refuse_missing(head, query, prefix, error);
	const char *space = memchr(value.data, ' ', value.size);
	struct slice scheme = slice_make(value.data, space ? (size_t)(space - value.data) : value.size);
	struct slice rest = header_trim(slice_make(value.data + scheme.size, value.size - scheme.size));
	bool bearer = header_name_is(scheme, "Bearer"), basic = header_name_is(scheme, "Basic");
	if (bearer && !rest.size)
		return refuse_missing(head, query, prefix, error);
	if (basic)
		return find_basic(rest, prefix, scratch, ret_key, error);
	if (!bearer)
		return refuse(MSG_HTTP_KEY_SCHEME, NULL, error);
	*ret_key = rest;
	return 0;
}
