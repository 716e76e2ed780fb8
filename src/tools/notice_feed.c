#include "tools/notice_feed.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/percent.h"
#include "tools/json_items.h"

#define WAIT_SECONDS 20
#define FEED_TIMEOUT_MS 45000
#define RECEIVER_TIMEOUT_MS 10000 /* as of the service */
#define RECEIVER_ANSWER_MAX 65536
#define NOTICE_MEMORY_MAX ((size_t)4 << 20)

static bool copy_text(const struct json *json, const char *name, char *text, size_t size)
{
	struct slice value;
	if (!json_get_text(json, name, &value) || value.size >= size || utf8_has_control(value))
		return false;
	memcpy(text, value.data, value.size);
	text[value.size] = '\0';
	return true;
}

int notice_read(struct slice text, struct notice *ret_notice, struct error *error)
{
	ARENA_AUTO struct arena arena;
	struct json *json;
	*ret_notice = (struct notice){.text = text};
	arena_init(&arena, NOTICE_MEMORY_MAX);
	if (json_parse(&arena, text, NULL, &json, error) ||
	    !copy_text(json, "id", ret_notice->id, sizeof ret_notice->id) ||
	    !copy_text(json, "type", ret_notice->type, sizeof ret_notice->type) ||
	    !copy_text(json, "created_at", ret_notice->created_at, sizeof ret_notice->created_at))
		return error_cause(error, ERR_NETWORK, "the answer has an item that is no notice");
	return 0;
}

struct taking {
	int (*take)(void *context, const struct notice *notice);
	void *context;
	struct error *error;
};

static int take_item(void *context, struct slice item)
{
	struct taking *taking = context;
	struct notice notice;
	int result = notice_read(item, &notice, taking->error);
	return result ? result : taking->take(taking->context, &notice);
}

int notice_feed_next(struct notice_feed *feed, struct api *api, struct arena *arena,
                     int (*take)(void *context, const struct notice *notice), void *context,
                     struct error *error)
{
	BUF_AUTO struct buf path;
	struct api_answer answer;
	struct taking taking = {take, context, error};
	char cursor[NOTICE_CURSOR_MAX];
	buf_init(&path, HTTP_URL_MAX);
	buf_add_text(&path, "/notices");
	if (feed->cursor[0]) {
		buf_printf(&path, "?wait=%d&limit=100&cursor=", WAIT_SECONDS);
		buf_add_percent(&path, slice_of(feed->cursor), "");
	}
	if (buf_check(&path))
		return ERR_NO_MEMORY;
	const struct api_request request = {
		.path = path.data, .timeout_ms = FEED_TIMEOUT_MS, .once = true};
	int result = api_send(api, &request, arena, &answer, error);
	if (result)
		return result;
	if (!copy_text(answer.json, "next_cursor", cursor, sizeof cursor) || !cursor[0])
		return error_cause(error, ERR_NETWORK, "the answer is no list of notices");
	/* Also when a notice ends the command: what was passed is not passed again. */
	memcpy(feed->cursor, cursor, sizeof cursor);
	return json_items(answer.text, "data", take_item, &taking);
}

/* ---- the receiver ---- */

void notice_prefix(const char *key, char prefix[16])
{
	const char *end = strstr(key, "_test_");
	size_t size = end ? (size_t)(end - key) : 0;
	if (size == 0 || size > 15) {
		snprintf(prefix, 16, "SVC");
		return;
	}
	for (size_t i = 0; i < size; i++)
		prefix[i] = (char)toupper((unsigned char)key[i]);
	prefix[size] = '\0';
}

void notice_secret(char secret[NOTICE_SECRET_MAX])
{
	uint8_t random[SHA256_SIZE];
	random_bytes(random, sizeof random);
	memcpy(secret, "whsec_", 6);
	hex_encode(random, sizeof random, secret + 6);
}

struct signed_headers {
	char id[128], timestamp[64], signature[160];
	const char *list[3];
};

static bool sign(const struct notice_receiver *receiver, const struct notice *notice,
                 struct signed_headers *headers)
{
	BUF_AUTO struct buf text;
	char timestamp[24], hex[2 * SHA256_SIZE + 1];
	snprintf(timestamp, sizeof timestamp, "%" PRId64, clock_now_us() / US_PER_SECOND);
	buf_init(&text, API_ANSWER_MAX);
	buf_printf(&text, "%s.", timestamp);
	buf_add_slice(&text, notice->text);
	if (buf_check(&text))
		return false;
	struct sha256 mac = hmac_sha256(slice_of(receiver->secret), buf_slice(&text));
	hex_encode(mac.bytes, SHA256_SIZE, hex);
	const char *prefix = receiver->prefix;
	snprintf(headers->id, sizeof headers->id, "X-%s-Webhook-Id: %s", prefix, notice->id);
	snprintf(headers->timestamp, sizeof headers->timestamp, "X-%s-Timestamp: %s", prefix,
	         timestamp);
	snprintf(headers->signature, sizeof headers->signature, "X-%s-Signature: v1=%s", prefix, hex);
	headers->list[0] = headers->id;
	headers->list[1] = headers->timestamp;
	headers->list[2] = headers->signature;
	return true;
}

bool notice_post(const struct notice_receiver *receiver, const struct notice *notice,
                 struct notice_attempt *ret_attempt)
{
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	struct signed_headers headers;
	struct error error = {0};
	*ret_attempt = (struct notice_attempt){0};
	if (!sign(receiver, notice, &headers)) {
		snprintf(ret_attempt->reason, sizeof ret_attempt->reason, "out of memory");
		return false;
	}
	const struct http_request request = {.method = "POST",
	                                     .url = receiver->url,
	                                     .content_type = "application/json",
	                                     .headers = headers.list,
	                                     .header_count = 3,
	                                     .body = notice->text,
	                                     .session = receiver->session,
	                                     .timeout_ms = RECEIVER_TIMEOUT_MS,
	                                     .answer_limit = RECEIVER_ANSWER_MAX,
	                                     .cut_over_limit = true,
	                                     .allow_http = true,
	                                     .guard = &receiver->guard};
	int64_t begin_us = clock_monotonic_us();
	int result = http_send(&request, &answer, &error);
	ret_attempt->duration_us = clock_monotonic_us() - begin_us;
	if (result)
		snprintf(ret_attempt->reason, sizeof ret_attempt->reason, "%.199s",
		         error_reason(&error, result));
	ret_attempt->status = answer.status;
	return !result && answer.status >= 200 && answer.status <= 299;
}
