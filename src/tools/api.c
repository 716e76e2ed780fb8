#include "tools/api.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/utf8.h"

#define ATTEMPTS 5
#define PATIENCE_US (60 * US_PER_SECOND)
#define TIMEOUT_MS 60000
#define CONNECT_TIMEOUT_MS 10000
#define UPLOAD_TIMEOUT_MS (24 * 3600 * 1000)
#define BACKOFF_FIRST_US (US_PER_SECOND / 2)
#define BACKOFF_DOUBLINGS 6
#define REQUEST_ID_SHOWN 64

void api_guard_nothing(struct address_guard *guard)
{
	guard->allowed.count = 2;
	guard->allowed.networks[0] = (struct network){.family = AF_INET};
	guard->allowed.networks[1] = (struct network){.family = AF_INET6};
}

static bool is_key(const char *key)
{
	size_t size = strlen(key);
	for (const char *at = key; *at; at++)
		if (*at < '!' || *at > '~')
			return false;
	return size > 0 && size < API_KEY_MAX;
}

int api_open(struct api *api, const struct api_access *access, struct error *error)
{
	assert(access->url);
	size_t size = strlen(access->url);
	*api = (struct api){
		.tls_roots = access->tls_roots, .attempts = ATTEMPTS, .patience_us = PATIENCE_US};
	int result = http_url_check(slice_make(access->url, size), true, "--url", error);
	if (result)
		return result;
	while (size > 0 && access->url[size - 1] == '/')
		size--;
	if (size > API_BASE_MAX || memchr(access->url, '?', size))
		return error_set(error, ERR_VALIDATION, MSG_TOOLS_URL, NULL);
	bool versioned = size > 3 && memcmp(access->url + size - 3, "/v1", 3) == 0;
	snprintf(api->base, sizeof api->base, "%.*s%s", (int)size, access->url, versioned ? "" : "/v1");
	if (access->key && !is_key(access->key))
		return error_set(error, ERR_VALIDATION, MSG_TOOLS_KEY, NULL);
	if (access->key)
		snprintf(api->key, sizeof api->key, "%s", access->key);
	api_guard_nothing(&api->guard);
	api->session = http_session_open();
	return api->session ? 0 : ERR_NO_MEMORY;
}

void api_close(struct api *api)
{
	http_session_close(api->session);
	explicit_bzero(api, sizeof *api);
}

int tool_fail(struct error *error, int code, const char *format, ...)
{
	va_list list;
	if (!error)
		return code;
	error_clear(error);
	va_start(list, format);
	vsnprintf(error->english, sizeof error->english, format, list);
	va_end(list);
	error->code = code;
	return code;
}

/* ---- retries ---- */

void api_sleep_us(int64_t duration_us)
{
	struct timespec left = {.tv_sec = duration_us / US_PER_SECOND,
	                        .tv_nsec = duration_us % US_PER_SECOND * 1000};
	while (nanosleep(&left, &left) != 0)
		;
}

int64_t api_pause_us(unsigned attempts, int64_t retry_after_us)
{
	uint16_t random;
	random_bytes(&random, sizeof random);
	if (retry_after_us > 0)
		return retry_after_us + retry_after_us / 4 * random / UINT16_MAX;
	unsigned doublings = attempts > 0 ? attempts - 1 : 0;
	if (doublings > BACKOFF_DOUBLINGS)
		doublings = BACKOFF_DOUBLINGS;
	int64_t longest_us = BACKOFF_FIRST_US << doublings;
	return longest_us / 2 + longest_us / 2 * random / UINT16_MAX;
}

/* The service is busy, or a proxy had no whole answer of it. */
static bool is_passing(int status)
{
	return status == 429 || status == 503 || status == 408 || status == 502 || status == 504;
}

/* ---- one exchange ---- */

static int exchange(struct api *api, const struct api_request *request,
                    struct http_answer *ret_answer, struct error *error)
{
	char url[HTTP_URL_MAX + 1], idempotency[320];
	const char *headers[] = {"Accept: application/json", idempotency};
	int timeout_ms = request->timeout_ms ? request->timeout_ms : TIMEOUT_MS;
	const char *method = request->upload ? "POST" : request->method;
	int base_size = (int)strlen(api->base) - (request->is_public ? 3 : 0);
	if (snprintf(url, sizeof url, "%.*s%s", base_size, api->base, request->path) >= (int)sizeof url)
		return error_cause(error, ERR_VALIDATION, "the address is too long");
	if (request->idempotency_key)
		snprintf(idempotency, sizeof idempotency, "Idempotency-Key: %s", request->idempotency_key);
	struct http_request http = {.method = method,
	                            .url = url,
	                            .content_type = request->content_type,
	                            .headers = headers,
	                            .header_count = request->idempotency_key ? 2 : 1,
	                            .body = request->body,
	                            .upload = request->upload,
	                            .session = api->session,
	                            .timeout_ms = request->upload ? UPLOAD_TIMEOUT_MS : timeout_ms,
	                            .connect_timeout_ms = CONNECT_TIMEOUT_MS,
	                            .stall_timeout_ms = request->upload ? timeout_ms : 0,
	                            .answer_limit = API_ANSWER_MAX,
	                            .allow_http = true,
	                            .bearer = api->key[0] && !request->is_public ? api->key : NULL,
	                            .authority_file = api->tls_roots,
	                            .guard = &api->guard};
	return http_send(&http, ret_answer, error);
}

static int read_refusal(const struct http_answer *answer, struct arena *arena, struct error *error)
{
	struct json *json = NULL;
	struct slice code = {0}, message = {0};
	struct slice id = http_answer_header(answer, "X-Request-Id");
	if (json_parse(arena, buf_slice(&answer->body), NULL, &json, error) ||
	    !json_get_text(json, "code", &code) || !json_get_text(json, "message", &message))
		return error_cause(error, ERR_NETWORK,
		                   "the answer (%d) is not one of this service; check the address",
		                   answer->status);
	int result = error_find(code.data, code.size, 1);
	if (result == ERR_INTERNAL)
		result = error_find(code.data, code.size, 2);
	error_clear(error);
	error->code = result;
	/* General messages have a form for commands (base/command_message.def). */
	if (!slice_is(message, error_general_message(result, LANGUAGE_ENGLISH)))
		utf8_show(message, error->english, sizeof error->english);
	char shown[REQUEST_ID_SHOWN];
	utf8_show(id, shown, sizeof shown);
	if (id.size)
		snprintf(error->cause, sizeof error->cause, "request %s", shown);
	return result;
}

static int read_answer(const struct http_answer *answer, int64_t retry_after_us,
                       struct arena *arena, struct api_answer *ret_answer, struct error *error)
{
	if (answer->status < 200 || answer->status > 299)
		return read_refusal(answer, arena, error);
	char *text = arena_copy(arena, answer->body.data, answer->body.size);
	struct json *json = NULL;
	if (!text)
		return ERR_NO_MEMORY;
	struct slice source = slice_make(text, answer->body.size);
	int result = json_parse(arena, source, NULL, &json, error);
	if (result == ERR_VALIDATION)
		return error_cause(error, ERR_NETWORK, "the answer is not JSON; check the address");
	if (result)
		return result;
	*ret_answer = (struct api_answer){
		.status = answer->status,
		.json = json,
		.text = source,
		.replayed = slice_is(http_answer_header(answer, "Idempotent-Replayed"), "true"),
		.retry_after_us = retry_after_us};
	return 0;
}

int api_send(struct api *api, const struct api_request *request, struct arena *arena,
             struct api_answer *ret_answer, struct error *error)
{
	int64_t waited_us = 0;
	for (unsigned attempt = 1;; attempt++) {
		HTTP_ANSWER_AUTO struct http_answer answer = {0};
		error_clear(error);
		int result = exchange(api, request, &answer, error);
		bool passing = result == ERR_NETWORK || (!result && is_passing(answer.status));
		int64_t after_us = result ? 0
		                          : http_retry_after_us(http_answer_header(&answer, "Retry-After"),
		                                                clock_now_us());
		int64_t pause_us = api_pause_us(attempt, after_us);
		bool last =
			request->once || attempt >= api->attempts || pause_us > api->patience_us - waited_us;
		if (result && (!passing || last))
			return result;
		if (!result && (!passing || last))
			return read_answer(&answer, after_us, arena, ret_answer, error);
		api_sleep_us(pause_us);
		waited_us += pause_us;
	}
}
