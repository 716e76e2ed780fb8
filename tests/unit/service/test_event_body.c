#include "testing.h"
#include "base/clock.h"
#include "service/event_body.h"

static struct arena arena;
static struct buf canonical;
static struct error error;
static struct declaration declaration;

static int parse(const char *body, enum modality modality)
{
	arena_reset(&arena);
	error_clear(&error);
	return event_body_parse(slice_of(body), modality, &arena, &canonical, &declaration, &error);
}

TEST_CASE(test_payload)
{
	assert_int_equal(parse("{\"client_ref\":\"ñ 1\",\"payload\":{\"b\":1.0,\"a\":[]},"
	                       "\"occurred_at\":\"2026-01-01T00:00:00.1234567+01:00\"}",
	                       MODALITY_CONTENT),
	                 0);
	assert_true(slice_is(declaration.client_ref, "ñ 1"));
	assert_string_equal(canonical.data, "{\"a\":[],\"b\":1}");
	assert_int_equal(declaration.occurred_at_us, INT64_C(1767222000123456));
	struct sha256 expected = sha256_of("{\"a\":[],\"b\":1}", 14);
	assert_memory_equal(declaration.hash, expected.bytes, SHA256_SIZE);
	assert_int_equal(
		parse("{\"client_ref\":\"a\",\"payload\":{},\"occurred_at\":null}", MODALITY_CONTENT), 0);
	assert_true(declaration.occurred_at_us == TIME_NONE);
}

TEST_CASE(test_hash)
{
	char body[400];
	snprintf(body, sizeof body,
	         "{\"client_ref\":\"a\",\"hash_alg\":\"sha-256\",\"hash\":\"%064d\"}", 0);
	body[strlen(body) - 3] = 'F';
	assert_int_equal(parse(body, MODALITY_HASH_ONLY), 0);
	assert_int_equal(declaration.hash[31], 0x0f);
	assert_int_equal(declaration.modality, MODALITY_HASH_ONLY);
	assert_int_equal(parse(body, MODALITY_CONTENT), ERR_VALIDATION);
	assert_int_equal(error.message, MSG_HTTP_CONTENT_WANTED);
	assert_int_equal(parse("{\"client_ref\":\"a\",\"payload\":1}", MODALITY_HASH_ONLY),
	                 ERR_VALIDATION);
	assert_int_equal(error.message, MSG_HTTP_DIGEST_WANTED);
	snprintf(body, sizeof body,
	         "{\"client_ref\":\"a\",\"hash_alg\":\"sha-512\",\"hash\":\"%0128d\"}", 0);
	assert_int_equal(parse(body, MODALITY_HASH_ONLY), 0);
	assert_int_equal(declaration.hash_algorithm, HASH_SHA512);
	snprintf(body, sizeof body,
	         "{\"client_ref\":\"a\",\"hash_alg\":\"sha-512\",\"hash\":\"%064d\"}", 0);
	assert_int_equal(parse(body, MODALITY_HASH_ONLY), ERR_VALIDATION);
}

TEST_CASE(test_refused)
{
	static const struct {
		const char *body;
		const char *named; /* in the message */
	} cases[] = {
		{"[]", "object"},
		{"{\"payload\":{}}", "client_ref"},
		{"{\"client_ref\":\"a\"}", "payload"},
		{"{\"client_ref\":\"a\",\"payload\":[]}", "payload"},
		{"{\"client_ref\":\"a\",\"payload\":null}", "payload"},
		{"{\"client_ref\":1,\"payload\":{}}", "client_ref"},
		{"{\"client_ref\":\"\",\"payload\":{}}", "client_ref"},
		{"{\"client_ref\":\"a\\u0000b\",\"payload\":{}}", "client_ref"},
		{"{\"client_ref\":\"a\\u0085\",\"payload\":{}}", "client_ref"},
		{"{\"client_ref\":\"a\",\"payload\":{},\"extra\":1}", "extra"},
		{"{\"client_ref\":\"a\",\"payload\":{},\"occurred_at\":1}", "occurred_at"},
		{"{\"client_ref\":\"a\",\"payload\":{},\"occurred_at\":\"2026-02-30T00:00:00Z\"}",
	     "occurred_at"},
		{"{\"client_ref\":\"a\",\"payload\":{},\"hash\":\"00\"}", "both"},
		{"{\"client_ref\":\"a\",\"hash\":\"00\"}", "hash_alg"},
		{"{\"client_ref\":\"a\",\"hash_alg\":\"sha-256\"}", "hash"},
		{"{\"client_ref\":\"a\",\"hash\":\"00\",\"hash_alg\":\"md5\"}", "hash_alg"},
		{"{\"client_ref\":\"a\",\"client_ref\":\"b\",\"payload\":{}}", "client_ref"},
		{"{\"client_ref\":\"a\",\"payload\":{\"n\":9007199254740993}}", "string"},
		{"{", "JSON"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(parse(cases[i].body, MODALITY_CONTENT), ERR_VALIDATION);
		if (!strstr(error.english, cases[i].named) || !*error.spanish)
			fail_msg("%s: %s", cases[i].body, error.english);
	}
}

/* A payload of that many nested objects, with `inside` in the innermost one. */
static char *nested(unsigned depth, const char *inside)
{
	char *body = malloc(depth * 6 + 100);
	char *at = body + sprintf(body, "{\"client_ref\":\"a\",\"payload\":");
	for (unsigned i = 1; i < depth; i++)
		at += sprintf(at, "{\"a\":");
	at += sprintf(at, "{%s}", inside);
	for (unsigned i = 1; i < depth; i++)
		*at++ = '}';
	strcpy(at, "}");
	return body;
}

TEST_CASE(test_limits)
{
	static const char *const scalars[] = {"", "\"a\":1", "\"a\":\"b\"", "\"a\":null"};
	char *body;
	for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
		body = nested(64, scalars[i]);
		assert_int_equal(parse(body, MODALITY_CONTENT), 0);
		free(body);
		body = nested(65, scalars[i]);
		assert_int_equal(parse(body, MODALITY_CONTENT), ERR_VALIDATION);
		free(body);
	}

	/* 262,144 bytes in canonical form are accepted, one more is not. */
	size_t room = PAYLOAD_MAX + 200;
	body = malloc(room);
	for (size_t extra = 0; extra < 2; extra++) {
		char *at = body + sprintf(body, "{\"client_ref\":\"a\",\"payload\":{\"a\":\"");
		size_t filler = PAYLOAD_MAX - 8 + extra;
		memset(at, 'x', filler);
		strcpy(at + filler, "\"}}");
		assert_int_equal(parse(body, MODALITY_CONTENT), extra ? ERR_TOO_LARGE : 0);
	}
	/* The canonical form counts: short spellings of long numbers. */
	char *at = body + sprintf(body, "{\"client_ref\":\"a\",\"payload\":{\"a\":[1");
	while ((size_t)(at - body) < PAYLOAD_MAX / 3)
		at += sprintf(at, ",1e20");
	strcpy(at, "]}}");
	assert_int_equal(parse(body, MODALITY_CONTENT), ERR_TOO_LARGE);
	free(body);
	char reference[300];
	memset(reference, 'r', sizeof reference);
	assert_int_equal(client_ref_check(slice_make(reference, 255), &error), 0);
	assert_int_equal(client_ref_check(slice_make(reference, 256), &error), ERR_VALIDATION);
	assert_int_equal(client_ref_check(slice_of("\xff"), &error), ERR_VALIDATION);
}

/* Returns a body whose payload is `{"a":` start, `count` times `unit`, end `}`, then spaces up to
 * the maximum. */
static char *largest_body(const char *start, size_t count, const char *unit, const char *end)
{
	char *body = malloc(EVENT_BODY_MAX + 1), *at = body;
	assert_non_null(body);
	at += sprintf(at, "{\"client_ref\":\"a\",\"payload\":{\"a\":%s", start);
	size_t size = strlen(unit);
	assert_true((size_t)(at - body) + count * size + strlen(end) + 2 <= EVENT_BODY_MAX);
	for (size_t i = 0; i < count; i++, at += size)
		memcpy(at, unit, size);
	at += sprintf(at, "%s}", end);
	memset(at, ' ', (size_t)(body + EVENT_BODY_MAX - 1 - at));
	body[EVENT_BODY_MAX - 1] = '}';
	body[EVENT_BODY_MAX] = '\0';
	return body;
}

static void check_largest(char *body, size_t canonical_size)
{
	assert_int_equal(parse(body, MODALITY_CONTENT), 0);
	assert_int_equal(canonical.size, canonical_size);
	free(body);
}

static void check_too_large(char *body, const char *english, const char *spanish)
{
	assert_int_equal(parse(body, MODALITY_CONTENT), ERR_TOO_LARGE);
	assert_non_null(strstr(error.english, english));
	assert_non_null(strstr(error.spanish, spanish));
	assert_int_equal(
		event_body_parse(slice_of(body), MODALITY_CONTENT, &arena, &canonical, &declaration, NULL),
		ERR_TOO_LARGE);
	free(body);
}

/* The canonical form counts, and memory suffices for each way to reach its limit. */
TEST_CASE(test_canonical_limit)
{
	const size_t text = PAYLOAD_MAX - strlen("{'a':''}"), items = PAYLOAD_MAX - strlen("{'a':[]}");
	static const char *const escapes[] = {"\\u0061", "\\u003c", "\\/"};
	for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
		check_largest(largest_body("\"", text, escapes[i], "\""), PAYLOAD_MAX);
		check_too_large(largest_body("\"", text + 1, escapes[i], "\""), "has 262145 bytes",
		                "tiene 262145 bytes");
	}
	check_largest(largest_body("\"", text / 2, "\\u00e9", "\""), PAYLOAD_MAX - text % 2);
	check_largest(largest_body("\"", text / 4, "\\ud83d\\ude00", "\""), PAYLOAD_MAX - text % 4);
	/* As many values as possible: each has a comma, except the last. */
	check_largest(largest_body("[", (items - 1) / 2, "0,", "0]"), PAYLOAD_MAX - (items - 1) % 2);
	check_largest(largest_body("[", items / 3 - 1, "[],", "[]]"), PAYLOAD_MAX - 1 - items % 3);
	check_too_large(largest_body("[", (items - 1) / 2 + 1, "0,", "0]"), "has 26214", "tiene 26214");
	check_too_large(largest_body("[", 700000, "0,", "0]"), "has more than 262144 bytes",
	                "tiene más de 262144 bytes");
	check_too_large(largest_body("[", 100000, "1e20,", "0]"), "has more than 524288 bytes",
	                "tiene más de 524288 bytes");
	assert_true(event_body_limit(MODALITY_CONTENT) == EVENT_BODY_MAX);
	assert_true(event_body_limit(MODALITY_HASH_ONLY) == BODY_SLACK);
}

TEST_CASE(test_file_name)
{
	struct slice name;
	assert_int_equal(file_name_check(slice_of("C:\\dir\\a.pdf"), &name, &error), 0);
	assert_true(slice_is(name, "a.pdf"));
	assert_int_equal(file_name_check(slice_of("../../etc/passwd"), &name, &error), 0);
	assert_true(slice_is(name, "passwd"));
	static const char *const ended[] = {"a.pdf\\", "dir/a.pdf/", "\\\\host\\a.pdf\\/"};
	for (size_t i = 0; i < sizeof ended / sizeof *ended; i++) {
		assert_int_equal(file_name_check(slice_of(ended[i]), &name, &error), 0);
		assert_true(slice_is(name, "a.pdf"));
	}
	assert_int_equal(file_name_check(slice_of("\\/"), &name, &error), 0);
	assert_int_equal(name.size, 0);
	assert_int_equal(file_name_check(slice_of("a/.."), &name, &error), 0);
	assert_int_equal(name.size, 0);
	assert_int_equal(file_name_check(slice_of("a\nb"), &name, &error), ERR_VALIDATION);
}

int main(void)
{
	arena_init(&arena, BODY_ARENA_MAX);
	buf_init(&canonical, EVENT_CANONICAL_MAX);
	int failed = tests_run(NULL, NULL, NULL, NULL);
	buf_free(&canonical);
	arena_free(&arena);
	return failed;
}
