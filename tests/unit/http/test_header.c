#include "testing.h"
#include "http/header.h"

static void check_disposition(const char *name, const char *expected)
{
	BUF_AUTO struct buf out = {.limit = 4096};
	header_disposition(slice_of(name), &out);
	assert_string_equal(out.data, expected);
}

TEST_CASE(test_tags)
{
	static const char *const named[] = {
		"\"t\"",          "W/\"t\"",       " \"t\" ",       "*", " * ", "\"a\", \"t\"",
		"\"a\",,W/\"t\"", ",\"t\",broken", "\"a,b\",\"t\"",
	};
	static const char *const others[] = {
		"",
		"t",
		"\"t",
		"t\"",
		"\"T\"",
		"\"tt\"",
		"\"\"",
		"\"",
		"W/",
		"W/\"",
		"W/t",
		"w/\"t\"",
		"*,\"a\"",
		"broken, \"t\"",
		"\"a\" \"t\"",
		"W/,\"t\"",
		"\"a\"*",
		",",
		"W/W/\"t\"",
	};
	for (size_t i = 0; i < sizeof named / sizeof *named; i++)
		if (!header_has_entity_tag(slice_of(named[i]), "\"t\""))
			fail_msg("%s", named[i]);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (header_has_entity_tag(slice_of(others[i]), "\"t\""))
			fail_msg("%s", others[i]);
}

TEST_CASE(test_language)
{
	static const struct {
		const char *value;
		enum language expected;
	} cases[] = {
		{"", LANGUAGE_ENGLISH},
		{"es", LANGUAGE_SPANISH},
		{"ES-mx", LANGUAGE_SPANISH},
		{"en", LANGUAGE_ENGLISH},
		{"fr, de", LANGUAGE_ENGLISH},
		{"fr, es;q=0.1", LANGUAGE_SPANISH},
		{"en;q=0.5, es;q=0.9", LANGUAGE_SPANISH},
		{"es;q=0.3,en;q=0.8", LANGUAGE_ENGLISH},
		{"es-ES,es;q=0.9,en;q=0.8", LANGUAGE_SPANISH},
		{"es, en", LANGUAGE_SPANISH},
		{"en, es", LANGUAGE_ENGLISH},
		{"*", LANGUAGE_ENGLISH},
		{"en;q=0, *", LANGUAGE_SPANISH},
		{"es;q=0", LANGUAGE_ENGLISH},
		{"*;q=0.5, es;q=0.4", LANGUAGE_ENGLISH},
		{"es;q=0.9876", LANGUAGE_ENGLISH}, /* no weight */
		{"es;q=2", LANGUAGE_ENGLISH},
		{"esp", LANGUAGE_ENGLISH},
		{";;,,q=,es", LANGUAGE_SPANISH},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		enum language language = header_language(slice_of(cases[i].value));
		if (language != cases[i].expected)
			fail_msg("%s", cases[i].value);
	}
}

TEST_CASE(test_accept)
{
	assert_true(header_prefers_json(slice_of("application/json")));
	assert_true(header_prefers_json(slice_of("text/html;q=0.5, application/json")));
	assert_false(header_prefers_json(slice_of("text/html,application/xhtml+xml,*/*;q=0.8")));
	assert_true(
		header_prefers_json(slice_of("application/json, text/html"))); /* generated clients */
	assert_true(header_prefers_json(slice_of("text/html, application/json")));
	assert_false(header_prefers_json(slice_of("application/json;q=0.9, text/html")));
	assert_false(header_prefers_json(slice_of("*/*")));
	assert_false(header_prefers_json(slice_of("application/json;q=0")));
	assert_false(header_prefers_json(slice_of("")));
	assert_true(header_prefers_html(slice_of("text/html,application/xhtml+xml,*/*;q=0.8")));
	assert_true(header_prefers_html(slice_of("application/json;q=0.5, text/html")));
	assert_false(header_prefers_html(slice_of("application/json, text/html")));
	assert_false(header_prefers_html(slice_of("*/*")));
	assert_false(header_prefers_html(slice_of("text/html;q=0")));
	assert_false(header_prefers_html(slice_of("")));
	assert_true(
		header_media_type_is(slice_of("Application/JSON; charset=utf-8"), "application/json"));
	assert_false(header_media_type_is(slice_of("application/jsonp"), "application/json"));
}

TEST_CASE(test_parameters)
{
	ARENA_AUTO struct arena arena = {.limit = 65536};
	struct slice rest = slice_of("; name=\"a \\\"b\\\" \\c\" ;filename=x.txt"), name, value;
	assert_int_equal(header_parameter(&rest, ESCAPES_FORM, &arena, &name, &value), 1);
	assert_true(slice_is(name, "name") && slice_is(value, "a \"b\" \\c"));
	assert_int_equal(header_parameter(&rest, ESCAPES_FORM, &arena, &name, &value), 1);
	assert_true(slice_is(name, "filename") && slice_is(value, "x.txt"));
	assert_int_equal(header_parameter(&rest, ESCAPES_FORM, &arena, &name, &value), 0);
	static const char *const bad[] = {"x=1",  ";;=1",    "; =1",        "; a",
	                                  "; a=", "; a=\"b", "; a=\"b\\\"", ";a==b"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		rest = slice_of(bad[i]);
		int status;
		while ((status = header_parameter(&rest, ESCAPES_FORM, &arena, &name, &value)) == 1)
			continue;
		if (status != ERR_VALIDATION)
			fail_msg("%s", bad[i]);
	}
}

static void check_escapes(enum header_escapes escapes, const char *text, const char *expected)
{
	ARENA_AUTO struct arena arena = {.limit = 65536};
	struct slice rest = slice_of(text), name, value;
	assert_int_equal(header_parameter(&rest, escapes, &arena, &name, &value), 1);
	assert_true(slice_is(value, expected));
	assert_int_equal(header_parameter(&rest, escapes, &arena, &name, &value), 0);
}

TEST_CASE(test_escapes)
{
	check_escapes(ESCAPES_ALL, "; a=\"\\a\\\"\\\\;=\"", "a\"\\;=");
	check_escapes(ESCAPES_FORM, "; a=\"\\a\\\"\\\\;=\"", "\\a\"\\;=");
	check_escapes(ESCAPES_NONE, "; a=\"\\a\\\\;=\\\"", "\\a\\\\;=\\");
	check_escapes(ESCAPES_ALL, ";; ; a=b ; ;\t", "b");
}

/* Many empty values need memory for their characters, not a copy of the rest of the header each. */
TEST_CASE(test_parameters_use_little)
{
	static char many[2000 * 5 + 1];
	ARENA_AUTO struct arena arena;
	struct slice name, value;
	for (size_t i = 0; i < 2000; i++)
		memcpy(many + i * 5, ";a=\"\"", 6);
	arena_init(&arena, sizeof many * 4);
	struct slice rest = slice_of(many);
	for (size_t i = 0; i < 2000; i++)
		assert_int_equal(header_parameter(&rest, ESCAPES_FORM, &arena, &name, &value), 1);
	assert_int_equal(header_parameter(&rest, ESCAPES_FORM, &arena, &name, &value), 0);
}

TEST_CASE(test_disposition)
{
	check_disposition("a b.pdf", "attachment; filename=\"a b.pdf\"");
	check_disposition("ñ€\".pdf",
	                  "attachment; filename=\"___.pdf\"; filename*=UTF-8''%C3%B1%E2%82%AC%22.pdf");
	check_disposition("x\r\nSet-Cookie: a=b", "attachment; filename=\"x__Set-Cookie: a=b\"; "
	                                          "filename*=UTF-8''x%0D%0ASet-Cookie%3A%20a%3Db");
}

static void check_range(const char *value, uint64_t size, enum header_range expected,
                        uint64_t offset, uint64_t length)
{
	uint64_t got_offset = 0, got_length = 0;
	enum header_range range = header_range(slice_of(value), size, &got_offset, &got_length);
	if (range != expected ||
	    (range == RANGE_PART && (got_offset != offset || got_length != length)))
		fail_msg("%s: %d %lu %lu", value, range, got_offset, got_length);
}

TEST_CASE(test_range)
{
	check_range("bytes=0-0", 10, RANGE_PART, 0, 1);
	check_range("bytes=2-", 10, RANGE_PART, 2, 8);
	check_range("bytes=-3", 10, RANGE_PART, 7, 3);
	check_range("bytes=-30", 10, RANGE_PART, 0, 10);
	check_range("Bytes=5-99", 10, RANGE_PART, 5, 5);
	check_range("bytes=10-", 10, RANGE_UNSATISFIABLE, 0, 0);
	check_range("bytes=-0", 10, RANGE_UNSATISFIABLE, 0, 0);
	check_range("bytes=0-", 0, RANGE_UNSATISFIABLE, 0, 0);
	check_range("bytes=5-2", 10, RANGE_NONE, 0, 0);
	check_range("bytes=0-1,3-4", 10, RANGE_NONE, 0, 0);
	check_range("lines=0-1", 10, RANGE_NONE, 0, 0);
	check_range("bytes=a-b", 10, RANGE_NONE, 0, 0);
	check_range("bytes=99999999999999999999-", 10, RANGE_NONE, 0, 0);
	check_range("bytes", 10, RANGE_NONE, 0, 0);
	check_range("bytes=-x", 10, RANGE_NONE, 0, 0);
	check_range("bytes=-", 10, RANGE_NONE, 0, 0);
	check_range("bytes=1-x", 10, RANGE_NONE, 0, 0);
	check_range("bytes= ", 10, RANGE_NONE, 0, 0);
	check_range("bytes=-0", 10, RANGE_UNSATISFIABLE, 0, 0);
	check_range("bytes=-1", 0, RANGE_UNSATISFIABLE, 0, 0);
}

TEST_CASE(test_percent)
{
	ARENA_AUTO struct arena arena = {.limit = 65536};
	struct slice out;
	assert_int_equal(header_unescape(slice_of("a%C3%B1+%2b"), &arena, &out), 0);
	assert_true(slice_is(out, "a\u00f1++"));
	static const char *const bad[] = {"%", "%1", "%zz", "%00", "%ff", "a%C3"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(header_unescape(slice_of(bad[i]), &arena, &out), ERR_VALIDATION);
}

/* An invalid weight makes the preference count as absent. */
TEST_CASE(test_weights)
{
	static const char *const none[] = {"0.0", "0.000", "",       "2",  "1.001",
	                                   "1x",  "0,5",   "0.0001", "0.a"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		char text[64];
		snprintf(text, sizeof text, "es;q=%s, en;q=0.1", none[i]);
		if (header_language(slice_of(text)) != LANGUAGE_ENGLISH)
			fail_msg("%s", text);
	}
	assert_int_equal(header_language(slice_of("es;q=1.000, en;q=0.999")), LANGUAGE_SPANISH);
	assert_int_equal(header_language(slice_of("*;q=0.5, *;q=0.1, en;q=0")), LANGUAGE_SPANISH);
	assert_true(header_prefers_json(slice_of("application/json;q=0.5, application/json;q=0.1, "
	                                         "text/html;q=0.4, text/*;q=0.3")));
}

TEST_CASE(test_idempotency_key)
{
	char text[258] = "";
	assert_false(header_is_idempotency_key(slice_of(text)));
	for (int c = 1; c < 256; c++) {
		text[0] = 'a';
		text[1] = (char)c;
		assert_int_equal(header_is_idempotency_key(slice_of(text)), c > 0x20 && c < 0x7f);
	}
	assert_false(header_is_idempotency_key(slice_make("a\0b", 3)));
	memset(text, '~', 256);
	assert_true(header_is_idempotency_key(slice_make(text, 1)));
	assert_true(header_is_idempotency_key(slice_make(text, 255)));
	assert_false(header_is_idempotency_key(slice_make(text, 256)));
}

TEST_MAIN(NULL, NULL)
