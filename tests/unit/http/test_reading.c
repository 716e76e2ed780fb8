/* Downloads of damaged objects, and the verification page about a part with a hostile name. */
#include "base/json.h"
#include "harness.h"
#include "store/certifications/certifications.h"

static struct harness harness;
#define TEST harness.key[MODALITY_CONTENT][MODE_TEST]

static void get(struct reply *reply, const char *path, const char *key, const char *headers)
{
	harness_ask(&harness, reply, "GET", path, key, headers, NULL, 0);
}

static struct json *parse(struct arena *arena, const struct reply *reply)
{
	struct json *json;
	struct error error;
	arena_reset(arena);
	if (json_parse(arena, slice_make(reply->body, reply->body_size), NULL, &json, &error))
		fail_msg("%s: %s", error.english, reply->body);
	return json;
}

static void check_verification(const char *code)
{
	struct reply reply;
	char path[160], hex[65];
	struct sha256 digest = sha256_of("0123456789", 10);
	hex_encode(digest.bytes, SHA256_SIZE, hex);
	snprintf(path, sizeof path, "/verify/%s", code);
	get(&reply, path, NULL, NULL);
	assert_non_null(strstr(reply.body, hex));
	assert_non_null(strstr(reply.body, ">&lt;a&gt; &amp; &quot;b&quot; &#39;c&#39;.zip<"));
	assert_non_null(strstr(reply.body, "no probative value"));
	assert_non_null(strstr(reply_header(&reply, "Content-Security-Policy"), "default-src 'none'"));
	assert_string_equal(reply_header(&reply, "Content-Type"), "text/html; charset=utf-8");
	reply_expect(&reply, 200, NULL);
	get(&reply, path, NULL, "Accept: application/json\r\nAccept-Language: es\r\n");
	assert_non_null(strstr(reply.body, "\"sha256\""));
	assert_string_equal(reply_header(&reply, "Vary"), "Accept, Accept-Language");
	reply_expect(&reply, 200, NULL);
	snprintf(path, sizeof path, "/verify?sha256=%s", hex);
	get(&reply, path, NULL, "Accept-Language: es\r\n");
	assert_non_null(strstr(reply.body, "no está alterado"));
	reply_expect(&reply, 200, NULL);
	get(&reply, "/verify?sha256=12", NULL, NULL);
	assert_non_null(strstr(reply.body, "role=\"alert\""));
	assert_string_equal(reply_header(&reply, "Content-Type"), "text/html; charset=utf-8");
	reply_expect(&reply, 400, NULL);
}

TEST_CASE(test_certification)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct reply reply;
	struct slice text;
	char id[64], path[512], link[400], code[64];
	harness_post(&harness, &reply, "/v1/certifications", TEST,
	             "{\"seq_from\":1,\"seq_to\":1,\"to\":null}");
	assert_true(json_get_text(parse(&arena, &reply), "certification_id", &text));
	snprintf(id, sizeof id, "%.*s", (int)text.size, text.data);
	reply_expect(&reply, 202, NULL);
	harness_issue(&harness, "0123456789", 10);
	snprintf(path, sizeof path, "/v1/certifications/%s", id);
	get(&reply, path, TEST, "Accept-Language: es\r\n");
	struct json *record = parse(&arena, &reply);
	assert_true(json_get_text(record, "verification_code", &text));
	snprintf(code, sizeof code, "%.*s", (int)text.size, text.data);
	assert_true(json_get_text(record, "report_url", &text));
	snprintf(link, sizeof link, "%.*s", (int)text.size, text.data);
	reply_expect(&reply, 200, NULL);

	const char *public_url = harness.settings.service_public_url;
	assert_memory_equal(link, public_url, strlen(public_url));
	const char *local = link + strlen(public_url);
	check_verification(code);
	harness_cut_objects(&harness, 9);
	get(&reply, local, NULL, NULL);
	reply_expect(&reply, error_http_status(ERR_CORRUPT), NULL);
	harness_cut_objects(&harness, -1);
	get(&reply, local, NULL, NULL);
	reply_expect(&reply, error_http_status(ERR_CORRUPT), NULL);
}

static int start(void **state)
{
	struct reply reply;
	harness_start(&harness, NULL);
	harness_post(&harness, &reply, "/v1/events", TEST, "{\"client_ref\":\"1\",\"payload\":{}}");
	reply_expect(&reply, 201, NULL);
	return 0;
}

TEST_MAIN(start, harness_tear_down)
