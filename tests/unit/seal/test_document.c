#include "support.h"

#include "base/json.h"
#include "seal/document.h"

static struct seal_document sample(void)
{
	struct seal_document document = {
		.segment_id = "seg_1",
		.channel_id = "chn_1",
		.chain = "live",
		.first_sequence = 5,
		.last_sequence = 20,
		.clock = {.synchronized = true, .max_error_us = 1500, .source = "ntp_adjtime"},
	};

	memset(document.chain_hash_before.bytes, 1, SHA256_SIZE);
	memset(document.chain_hash_last.bytes, 2, SHA256_SIZE);
	return document;
}

#define HEX_4(x) x x x x
#define HEX_32(x) HEX_4(x) HEX_4(x) HEX_4(x) HEX_4(x) HEX_4(x) HEX_4(x) HEX_4(x) HEX_4(x)

static void test_bytes(void **state)
{
	struct seal_document document = sample();
	struct sha256 previous;
	BUF_AUTO struct buf text;

	buf_init(&text, SEAL_DOCUMENT_MAX);
	seal_document_write(&document, &text);
	assert_string_equal(
		text.data,
		"{\"chain\":\"live\",\"chain_hash_before\":\"" HEX_32("01") "\",\"chain_hash_last\":\"" HEX_32(
			"02") "\",\"channel_id\":\"chn_1\","
				  "\"clock\":{\"max_error_us\":1500,\"source\":\"ntp_adjtime\","
				  "\"synchronized\":true},\"count\":16,\"first_sequence\":5,"
				  "\"last_sequence\":20,\"previous_seal_hash\":null,"
				  "\"previous_token_hash\":null,\"segment_id\":\"seg_1\",\"v\":1}");
	memset(previous.bytes, 3, SHA256_SIZE);
	document.previous_seal_hash = &previous;
	document.previous_token_hash = &previous;
	document.clock.synchronized = false;
	buf_clear(&text);
	seal_document_write(&document, &text);
	assert_non_null(strstr(text.data, "\"previous_seal_hash\":\"" HEX_32(
										  "03") "\","
	                                            "\"previous_token_hash\":\"" HEX_32("03") "\","));
	assert_non_null(strstr(text.data, "\"synchronized\":false}"));
}

/* The digest was computed apart with Python's hashlib. */
static void test_digest(void **state)
{
	struct seal_document document = sample();
	char hex[65];
	BUF_AUTO struct buf scratch_buf;

	buf_init(&scratch_buf, SEAL_DOCUMENT_MAX);
	buf_add_text(&scratch_buf, "left over");
	struct sha256 digest = seal_document_digest(&document, &scratch_buf);
	hex_encode(digest.bytes, SHA256_SIZE, hex);
	assert_string_equal(hex, "9849662a95defc56af5cdf27340100f0e59520b1d297dddd9a5b29ebf6647a0b");
}

/* Written as it is, and as RFC 8785 would have it, must be the same bytes. */
static void test_is_canonical(void **state)
{
	struct seal_document document = sample();
	struct json *json = NULL;
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf text;
	BUF_AUTO struct buf canonical;

	arena_init(&arena, 1 << 16);
	buf_init(&text, SEAL_DOCUMENT_MAX);
	buf_init(&canonical, SEAL_DOCUMENT_MAX);
	seal_document_write(&document, &text);
	assert_int_equal(json_parse(&arena, buf_slice(&text), NULL, &json, NULL), 0);
	json_canonical(json, &canonical);
	assert_string_equal(canonical.data, text.data);
}

static void test_clock_state(void **state)
{
	struct clock_state clock = clock_state_read();

	assert_string_equal(clock.source, "ntp_adjtime");
	assert_true(clock.max_error_us >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_digest),
		cmocka_unit_test(test_is_canonical),
		cmocka_unit_test(test_clock_state),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
