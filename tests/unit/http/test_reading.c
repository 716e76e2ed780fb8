/* Lists, single objects, downloads and the verification page. */
#include "base/json.h"
#include "harness.h"
#include "store/certifications/certifications.h"

#define EVENTS 7

static struct harness harness;
#define LIVE harness.key[MODALITY_CONTENT][MODE_LIVE]
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

TEST_CASE(test_pages)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct reply reply;
	char path[256] = "/v1/events?limit=3&seq_from=2", cursor[64] = "";
	int64_t expected = 2;
	for (int page = 0; page < 2; page++) {
		get(&reply, path, LIVE, NULL);
		struct json *list = parse(&arena, &reply);
		for (struct json *event = json_member(list, "data")->first; event; event = event->next) {
			int64_t sequence = 0;
			assert_true(json_get_integer(event, "sequence", &sequence));
			assert_int_equal(sequence, expected++);
			assert_null(json_member(event, "proof"));
		}
		assert_int_equal(json_member(list, "has_more")->type, page ? JSON_FALSE : JSON_TRUE);
		struct slice text;
		assert_true(json_get_text(list, "next_cursor", &text) == !page);
		if (!page)
			snprintf(cursor, sizeof cursor, "%.*s", (int)text.size, text.data);
		reply_expect(&reply, 200, NULL);
		snprintf(path, sizeof path, "/v1/events?limit=500&seq_from=2&cursor=%s", cursor);
	}
	assert_int_equal(expected, EVENTS + 1);
	/* A cursor is bound to its filters and to its chain. */
	snprintf(path, sizeof path, "/v1/events?cursor=%s", cursor);
	get(&reply, path, LIVE, NULL);
	reply_expect(&reply, 400, "validation_error");
	snprintf(path, sizeof path, "/v1/events?seq_from=2&cursor=%s", cursor);
	get(&reply, path, TEST, NULL);
	reply_expect(&reply, 400, "validation_error");
	snprintf(path, sizeof path, "/v1/certifications?cursor=%s", cursor);
	get(&reply, path, LIVE, NULL);
	reply_expect(&reply, 400, "validation_error");
}

TEST_CASE(test_filters)
{
	struct reply reply;
	static const struct {
		const char *query;
		int status;
		const char *part; /* of the body */
	} cases[] = {
		{"", 200, "\"has_more\":false,\"next_cursor\":null}"},
		{"?status=registered&limit=1", 200, "\"has_more\":true"},
		{"?status=unpaid", 200, "{\"data\":[],"},
		{"?seq_from=3&seq_to=3", 200, "\"sequence\":3,"},
		{"?seq_from=5&seq_to=3", 400, "'seq_from'"},
		{"?from=2001-01-01T00:00:00Z&to=2002-01-01T00:00:00Z", 200, "{\"data\":[],"},
		{"?from=2001-01-01T00:00:00Z", 200, "\"sequence\":1,"},
		{"?limit=0", 400, "'limit'"},
		{"?limit=501", 400, "'limit'"},
		{"?limit=ten", 400, "'limit'"},
		{"?limit=1&limit=1", 400, "'limit'"},
		{"?seq_from=0", 400, "'seq_from'"},
		{"?status=done", 400, "'status'"},
		{"?from=yesterday", 400, "'from'"},
		{"?colour=red", 400, "'colour'"},
		{"?cursor=abc", 400, "cursor"},
		{"?cursor=", 400, "'cursor' is empty"},
		{"?order=desc&limit=1", 200, "\"sequence\":7,"},
		{"?order=up", 400, "asc, desc"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char path[128];
		snprintf(path, sizeof path, "/v1/events%s", cases[i].query);
		get(&reply, path, LIVE, NULL);
		if (!strstr(reply.body, cases[i].part))
			fail_msg("%s: %s", path, reply.body);
		reply_expect(&reply, cases[i].status, cases[i].status == 400 ? "validation_error" : NULL);
	}
}

TEST_CASE(test_one)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct reply reply;
	char id[ID_SIZE], path[128];
	event_id_make(harness.channel_id[MODALITY_CONTENT], MODE_LIVE, 2, id);
	snprintf(path, sizeof path, "/v1/events/%s", id);
	get(&reply, path, LIVE, NULL);
	struct json *event = parse(&arena, &reply);
	struct slice previous;
	assert_true(json_get_text(json_member(event, "proof"), "previous_chain_hash", &previous));
	assert_int_equal(previous.size, 64);
	reply_expect(&reply, 200, NULL);
	/* It is not found with the key of the other chain or of another channel. */
	get(&reply, path, TEST, NULL);
	reply_expect(&reply, 404, "not_found");
	get(&reply, path, harness.key[MODALITY_HASH_ONLY][MODE_LIVE], NULL);
	reply_expect(&reply, 404, "not_found");
	event_id_make(harness.channel_id[MODALITY_CONTENT], MODE_LIVE, 99, id);
	snprintf(path, sizeof path, "/v1/events/%s", id);
	get(&reply, path, LIVE, NULL);
	reply_expect(&reply, 404, "not_found");

	event_id_make(harness.channel_id[MODALITY_CONTENT], MODE_LIVE, 3, id);
	snprintf(path, sizeof path, "/v1/events/%s/content", id);
	get(&reply, path, LIVE, NULL);
	assert_string_equal(reply.body, "{\"n\":3}");
	assert_string_equal(reply_header(&reply, "X-Content-Type-Options"), "nosniff");
	reply_expect(&reply, 200, NULL);
	event_id_make(harness.channel_id[MODALITY_HASH_ONLY], MODE_LIVE, 1, id);
	snprintf(path, sizeof path, "/v1/events/%s/content", id);
	get(&reply, path, harness.key[MODALITY_HASH_ONLY][MODE_LIVE], NULL);
	reply_expect(&reply, 404, "not_found");
}

TEST_CASE(test_channel)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct reply reply;
	get(&reply, "/v1/channel", LIVE, NULL);
	struct json *channel = parse(&arena, &reply);
	struct slice text;
	assert_true(json_get_text(channel, "name", &text) && slice_is(text, "Canal ñ"));
	assert_true(json_get_text(json_member(channel, "current_config"), "declarant", &text));
	assert_true(slice_is(text, "Sample & Co"));
	assert_int_equal(json_member(channel, "config_versions")->count, 1);
	reply_expect(&reply, 200, NULL);
	get(&reply, "/v1/account/balance", LIVE, NULL);
	char expected[96];
	snprintf(expected, sizeof expected, "{\"balance\":%d,\"operational\":true,\"unpaid_events\":0}",
	         1000 - EVENTS - 1);
	assert_string_equal(reply.body, expected);
	reply_expect(&reply, 200, NULL);
}

TEST_CASE(test_certification_bodies)
{
	struct reply reply;
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"seq_from\":1}",
		"{\"seq_from\":1,\"seq_to\":0}",
		"{\"seq_from\":2,\"seq_to\":1}",
		"{\"seq_from\":1,\"seq_to\":99}",
		"{\"seq_from\":\"1\",\"seq_to\":2}",
		"{\"seq_from\":1.0,\"seq_to\":2}",
		"{\"from\":\"2026-01-01T00:00:00Z\",\"seq_to\":2}",
		"{\"seq_from\":1,\"seq_to\":1,\"x\":1}",
		"{\"from\":1,\"to\":2}",
		"{\"from\":\"2001-01-01T00:00:00Z\",\"to\":\"2002-01-01T00:00:00Z\"}",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		harness_post(&harness, &reply, "/v1/certifications", TEST, bad[i]);
		if (reply.status != 400)
			fail_msg("%s: %s", bad[i], reply.body);
		reply_expect(&reply, 400, "validation_error");
	}
	harness_ask(&harness, &reply, "POST", "/v1/certifications", TEST, NULL, "{}", 2);
	reply_expect(&reply, 400, "validation_error");
	get(&reply, "/v1/certifications/CERT-2026-9999999", TEST, NULL);
	reply_expect(&reply, 404, "not_found");
	get(&reply, "/v1/certifications?status=done", TEST, NULL);
	reply_expect(&reply, 400, "validation_error");
}

static void certify_with(struct reply *reply, const char *headers, const char *body)
{
	char all[512];
	snprintf(all, sizeof all, "Content-Type: application/json\r\n%s", headers);
	harness_ask(&harness, reply, "POST", "/v1/certifications", TEST, all, body, strlen(body));
}

static void check_ranges(const char *path)
{
	static const struct {
		const char *headers;
		int status;
		const char *range;
		const char *body;
	} cases[] = {
		{NULL, 200, "", "0123456789"},
		{"Range: bytes=2-4\r\n", 206, "bytes 2-4/10", "234"},
		{"Range: bytes=-2\r\n", 206, "bytes 8-9/10", "89"},
		{"Range: bytes=9-\r\n", 206, "bytes 9-9/10", "9"},
		{"Range: bytes=10-\r\n", 416, "bytes */10", NULL},
		{"Range: bytes=0-1,3-4\r\n", 200, "", "0123456789"},
		{"Range: bytes=2-4\r\nIf-Range: \"x\"\r\n", 200, "", "0123456789"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct reply reply;
		get(&reply, path, NULL, cases[i].headers);
		assert_string_equal(reply_header(&reply, "Content-Range"), cases[i].range);
		if (cases[i].body) {
			assert_string_equal(reply.body, cases[i].body);
			assert_string_equal(reply_header(&reply, "Content-Type"), "application/pdf");
			assert_string_equal(reply_header(&reply, "Content-Disposition"),
			                    "attachment; filename=\"report-es.pdf\"");
		}
		reply_expect(&reply, cases[i].status, cases[i].body ? NULL : "validation_error");
	}
	struct reply reply;
	harness_ask(&harness, &reply, "HEAD", path, NULL, NULL, NULL, 0);
	assert_string_equal(reply_header(&reply, "Content-Length"), "10");
	assert_string_equal(reply_header(&reply, "Accept-Ranges"), "bytes");
	reply_expect(&reply, 200, NULL);
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
	get(&reply, "/verify?code=%3Cscript%3E", NULL, NULL);
	assert_null(strstr(reply.body, "<script>"));
	reply_expect(&reply, 404, NULL);
	get(&reply, "/verify?sha256=12", NULL, "Accept: application/json\r\n");
	reply_expect(&reply, 400, "validation_error");
	get(&reply, "/verify?sha256=12", NULL, NULL);
	assert_non_null(strstr(reply.body, "role=\"alert\""));
	assert_string_equal(reply_header(&reply, "Content-Type"), "text/html; charset=utf-8");
	reply_expect(&reply, 400, NULL);
	get(&reply, "/verify/SVC-2026-AAAA-AAAA", NULL, "Accept: application/json\r\n");
	reply_expect(&reply, 404, "not_found");
}

/* A missing object, or one of another length, is reported as a fault of the service. */
TEST_CASE(test_lost_content)
{
	static char body[40000];
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct reply reply;
	struct slice id;
	char path[128];
	snprintf(body, sizeof body, "{\"client_ref\":\"lost\",\"payload\":{\"a\":\"%020000d\"}}", 7);
	harness_post(&harness, &reply, "/v1/events", harness.key[MODALITY_CONTENT][MODE_TEST], body);
	assert_true(json_get_text(parse(&arena, &reply), "event_id", &id));
	snprintf(path, sizeof path, "/v1/events/%.*s/content", (int)id.size, id.data);
	reply_expect(&reply, 201, NULL);
	get(&reply, path, TEST, NULL);
	assert_int_equal(reply.body_size, 20008);
	reply_expect(&reply, 200, NULL);
	harness_cut_objects(&harness, 100);
	get(&reply, path, TEST, NULL);
	reply_expect(&reply, error_http_status(ERR_CORRUPT), NULL);
	harness_cut_objects(&harness, -1);
	get(&reply, path, TEST, NULL);
	reply_expect(&reply, error_http_status(ERR_CORRUPT), NULL);
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
	assert_non_null(strstr(reply.body, "\"status\":\"processing\""));
	reply_expect(&reply, 202, NULL);
	harness_issue(&harness, "0123456789", 10);
	snprintf(path, sizeof path, "/v1/certifications/%s", id);
	get(&reply, path, LIVE, NULL);
	reply_expect(&reply, 404, "not_found");
	get(&reply, path, TEST, "Accept-Language: es\r\n");
	struct json *record = parse(&arena, &reply);
	assert_true(json_get_text(record, "verification_code", &text));
	snprintf(code, sizeof code, "%.*s", (int)text.size, text.data);
	assert_true(json_get_text(record, "report_url", &text));
	snprintf(link, sizeof link, "%.*s", (int)text.size, text.data);
	reply_expect(&reply, 200, NULL);
	get(&reply, "/v1/certifications?status=completed&limit=1", TEST, NULL);
	assert_non_null(strstr(reply.body, id));
	reply_expect(&reply, 200, NULL);

	const char *public_url = harness.settings.service_public_url;
	assert_memory_equal(link, public_url, strlen(public_url));
	const char *local = link + strlen(public_url);
	check_ranges(local);
	snprintf(path, sizeof path, "%s", local);
	path[strlen(path) - 1] = path[strlen(path) - 1] == '0' ? '1' : '0';
	get(&reply, path, NULL, NULL);
	reply_expect(&reply, 404, "not_found");
	snprintf(path, sizeof path, "%.*s", (int)strcspn(local, "?"), local);
	get(&reply, path, NULL, NULL);
	reply_expect(&reply, 404, "not_found");
	check_verification(code);
	harness_cut_objects(&harness, 9);
	get(&reply, local, NULL, NULL);
	reply_expect(&reply, error_http_status(ERR_CORRUPT), NULL);
	harness_cut_objects(&harness, -1);
	get(&reply, local, NULL, NULL);
	reply_expect(&reply, error_http_status(ERR_CORRUPT), NULL);
}

TEST_CASE(test_idempotency_key)
{
	static const char *const bad[] = {
		"Idempotency-Key:\r\n",
		"Idempotency-Key: a b\r\n",
		"Idempotency-Key: \xc3\xb1\r\n",
		"Idempotency-Key: a\r\nidempotency-key: a\r\n",
		"Idempotency-Key: \r\nIdempotency-Key: a\r\n",
	};
	struct reply reply;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		certify_with(&reply, bad[i], "{\"seq_from\":1,\"seq_to\":1}");
		if (!strstr(reply.body, "Idempotency-Key"))
			fail_msg("%s: %s", bad[i], reply.body);
		reply_expect(&reply, 400, "validation_error");
	}
	char first[64] = "";
	for (int i = 0; i < 3; i++) {
		certify_with(&reply, "idempotency-key:  \"a-1\" \r\n", "{\"seq_from\":1,\"seq_to\":1}");
		assert_string_equal(reply_header(&reply, "Idempotent-Replayed"), i ? "true" : "");
		assert_memory_equal(reply.body, "{\"certification_id\":\"", 21);
		if (i)
			assert_memory_equal(reply.body, first, 50);
		snprintf(first, sizeof first, "%.50s", reply.body);
		reply_expect(&reply, 202, NULL);
	}
	certify_with(&reply, "Idempotency-Key: \"a-1\"\r\n", "{\"seq_to\":2,\"seq_from\":1}");
	assert_string_equal(reply_header(&reply, "Idempotent-Replayed"), "");
	reply_expect(&reply, 409, "client_ref_conflict");
	/* An invalid range is reported before the conflict. */
	certify_with(&reply, "Idempotency-Key: \"a-1\"\r\n", "{\"seq_from\":2,\"seq_to\":1}");
	reply_expect(&reply, 400, "validation_error");
	/* Without quotes it is another key; and lists ignore it. */
	certify_with(&reply, "Idempotency-Key: a-1\r\n", "{\"seq_from\":1,\"seq_to\":1}");
	assert_string_equal(reply_header(&reply, "Idempotent-Replayed"), "");
	reply_expect(&reply, 202, NULL);
	get(&reply, "/v1/certifications", TEST, "Idempotency-Key: a b\r\n");
	reply_expect(&reply, 200, NULL);
}

static int start(void **state)
{
	struct reply reply;
	char body[256];
	harness_start(&harness, NULL);
	for (int i = 1; i <= EVENTS; i++) {
		snprintf(body, sizeof body, "{\"client_ref\":\"%d\",\"payload\":{\"n\":%d}}", i, i);
		harness_post(&harness, &reply, "/v1/events", LIVE, body);
		reply_expect(&reply, 201, NULL);
	}
	harness_post(&harness, &reply, "/v1/events", TEST, "{\"client_ref\":\"1\",\"payload\":{}}");
	reply_expect(&reply, 201, NULL);
	snprintf(body, sizeof body,
	         "{\"client_ref\":\"1\",\"hash\":\"%064d\",\"hash_alg\":\"sha-256\"}", 7);
	harness_post(&harness, &reply, "/v1/events", harness.key[MODALITY_HASH_ONLY][MODE_LIVE], body);
	reply_expect(&reply, 201, NULL);
	return 0;
}

TEST_MAIN(start, harness_tear_down)
