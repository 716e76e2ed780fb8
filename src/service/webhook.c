#include "service/webhook.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "ledger/ledger.h"

#define SECRET_CONTEXT "webhook secret"

/* ---- rules ---- */

int webhook_rules_read(const struct settings *settings, struct webhook_rules *ret,
                       struct error *error)
{
	*ret = (struct webhook_rules){
		.allow_http = settings->webhook_allow_http,
		.roots_path =
			settings->webhook_roots && *settings->webhook_roots ? settings->webhook_roots : NULL,
		.timeout_ms = (int)(settings->webhook_timeout / 1000),
	};
	for (size_t i = 0; settings->service_prefix[i] && i < sizeof ret->prefix - 1; i++)
		ret->prefix[i] = (char)toupper((unsigned char)settings->service_prefix[i]);
	if (!schedule_parse(settings->webhook_schedule, &ret->schedule))
		return error_cause(error, ERR_VALIDATION, "webhook.schedule");
	return network_list_parse(slice_of(settings->webhook_allow_networks), &ret->guard.allowed,
	                          error);
}

/* ---- requests ---- */

void webhook_secret(const struct sha256 *installation, const char *endpoint_id, int64_t version,
                    char secret[WEBHOOK_SECRET_SIZE])
{
	char text[128];
	int size = snprintf(text, sizeof text, SECRET_CONTEXT "\n%s\n%" PRId64, endpoint_id, version);
	/* Two endpoints would have one secret if the text was cut. */
	assert(size > 0 && (size_t)size < sizeof text);
	struct sha256 derived =
		hmac_sha256(slice_make(installation->bytes, SHA256_SIZE), slice_make(text, (size_t)size));
	memcpy(secret, "whsec_", 6);
	hex_encode(derived.bytes, SHA256_SIZE, secret + 6);
	explicit_bzero(&derived, sizeof derived);
}

void webhook_test_id(char id[40])
{
	uint8_t random[12];
	random_bytes(random, sizeof random);
	memcpy(id, "tst_", 4);
	hex_encode(random, sizeof random, id + 4);
}

void webhook_envelope(const char *notice_id, const char *type, int64_t created_at_us,
                      const char *mode, struct slice data, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_text(&writer, "id", notice_id);
	json_text(&writer, "type", type);
	json_time(&writer, "created_at", created_at_us);
	json_text(&writer, "mode", mode);
	json_raw(&writer, "data", data);
	json_end_object(&writer);
}

/* Appends "v1=<hex>", a MAC over the timestamp, a dot and the body. */
static int add_signature(struct buf *out, const char *secret, const char *timestamp,
                         struct slice body)
{
	BUF_AUTO struct buf text;
	buf_init(&text, body.size + 32);
	buf_printf(&text, "%s.", timestamp);
	buf_add_slice(&text, body);
	int result = buf_check(&text);
	if (result)
		return result;
	struct sha256 mac = hmac_sha256(slice_of(secret), buf_slice(&text));
	buf_printf(out, "%sv1=", out->size && out->data[out->size - 1] != ' ' ? "," : "");
	buf_add_hex(out, mac.bytes, SHA256_SIZE);
	return buf_check(out);
}

int webhook_sign(const struct webhook_rules *rules, const char *notice_id, struct slice body,
                 const char *secret, const char *previous, int64_t now_us,
                 struct webhook_headers *ret)
{
	BUF_AUTO struct buf signature;
	char timestamp[24];
	buf_init(&signature, sizeof ret->signature - 1);
	snprintf(timestamp, sizeof timestamp, "%" PRId64, now_us / US_PER_SECOND);
	buf_printf(&signature, "X-%s-Signature: ", rules->prefix);
	int result = add_signature(&signature, secret, timestamp, body);
	if (!result && previous)
		result = add_signature(&signature, previous, timestamp, body);
	if (result)
		return result;
	snprintf(ret->id, sizeof ret->id, "X-%s-Webhook-Id: %s", rules->prefix, notice_id);
	snprintf(ret->timestamp, sizeof ret->timestamp, "X-%s-Timestamp: %s", rules->prefix, timestamp);
	snprintf(ret->signature, sizeof ret->signature, "%s", signature.data);
	ret->list[0] = ret->id;
	ret->list[1] = ret->timestamp;
	ret->list[2] = ret->signature;
	return OK;
}

struct http_request webhook_request(const struct webhook_rules *rules, const char *url,
                                    const struct webhook_headers *headers, struct slice body)
{
	return (struct http_request){
		.method = "POST",
		.url = url,
		.content_type = "application/json",
		.headers = headers->list,
		.header_count = sizeof headers->list / sizeof *headers->list,
		.body = body,
		.timeout_ms = rules->timeout_ms,
		.answer_limit = WEBHOOK_ANSWER_MAX,
		.cut_over_limit = true,
		.allow_http = rules->allow_http,
		.authority_file = rules->roots_path,
		.guard = &rules->guard,
	};
}

bool webhook_is_acknowledged(int result, const struct http_answer *answer)
{
	return !result && answer->status >= 200 && answer->status <= 299;
}

bool webhook_is_gone(int result, const struct http_answer *answer)
{
	return !result && answer->status == 410;
}

int64_t webhook_retry_after_us(const struct webhook_rules *rules, int result,
                               const struct http_answer *answer, int64_t now_us)
{
	int64_t longest_us = 0;
	if (result)
		return 0;
	for (size_t i = 0; i < rules->schedule.count; i++)
		if (rules->schedule.waits_us[i] > longest_us)
			longest_us = rules->schedule.waits_us[i];
	int64_t wait_us = http_retry_after_us(http_answer_header(answer, "Retry-After"), now_us);
	return wait_us < longest_us ? wait_us : longest_us;
}

/* ---- types ---- */

static bool is_type(struct slice name)
{
	for (int type = 0; type < NOTICE_WEBHOOK_TEST; type++)
		if (slice_is(name, notice_type_text((enum notice_type)type)))
			return true;
	return false;
}

static int refuse_type(struct slice name, struct error *error)
{
	BUF_AUTO struct buf all;
	buf_init(&all, 512);
	for (int type = 0; type < NOTICE_WEBHOOK_TEST; type++)
		buf_printf(&all, "%s%s", type ? ", " : "", notice_type_text((enum notice_type)type));
	char shown[64];
	snprintf(shown, sizeof shown, "%.*s", (int)(name.size < 60 ? name.size : 60), name.data);
	return error_set(error, ERR_USAGE, MSG_ADMIN_WEBHOOK_TYPE, shown, all.data, NULL);
}

static bool lists(const struct buf *list, struct slice name)
{
	struct slice rest = buf_slice(list);
	while (rest.size) {
		const char *comma = memchr(rest.data, ',', rest.size);
		size_t size = comma ? (size_t)(comma - rest.data) : rest.size;
		if (slice_equal(slice_make(rest.data, size), name))
			return true;
		size += comma != NULL;
		rest = slice_make(rest.data + size, rest.size - size);
	}
	return false;
}

int webhook_types_check(struct slice types, struct buf *out, struct error *error)
{
	if (slice_is(types, "all"))
		return OK;
	for (size_t at = 0; at <= types.size;) {
		const char *comma = memchr(types.data + at, ',', types.size - at);
		size_t end = comma ? (size_t)(comma - types.data) : types.size;
		struct slice name = slice_make(types.data + at, end - at);
		while (name.size && name.data[0] == ' ')
			name = slice_make(name.data + 1, name.size - 1);
		while (name.size && name.data[name.size - 1] == ' ')
			name.size--;
		if (!is_type(name))
			return refuse_type(name, error);
		if (!lists(out, name)) {
			buf_add_text(out, out->size ? "," : "");
			buf_add_slice(out, name);
		}
		at = end + 1;
	}
	return buf_check(out);
}
