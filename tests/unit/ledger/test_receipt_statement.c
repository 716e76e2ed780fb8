/* The statement of a receipt matches the evidence format byte for byte. */
#include "testing.h"
#include "base/json.h"
#include "ledger/receipt_statement.h"

static void assert_canonical(const struct buf *document)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	BUF_AUTO struct buf canonical = {.limit = (size_t)1 << 20};
	struct json *json;
	assert_int_equal(json_parse(&arena, buf_slice(document), NULL, &json, NULL), OK);
	json_canonical(json, &canonical);
	assert_string_equal(canonical.data, document->data);
}

TEST_CASE(the_statement_is_exact)
{
	BUF_AUTO struct buf out = {.limit = RECEIPT_STATEMENT_MAX};
	struct declaration declaration = {
		.client_ref = slice_of("not in it"), .occurred_at_us = 5, .hash_algorithm = HASH_SHA256};
	memset(declaration.hash, 0xab, sizeof declaration.hash);
	struct receipt_facts facts = {.channel_id = "chn_0",
	                              .chain = MODE_LIVE,
	                              .sequence = 12,
	                              .declaration = &declaration,
	                              .received_at_us = INT64_C(1767268800000001),
	                              .origin = "records.example/log",
	                              .seal_by_us = INT64_C(1767269400000001)};
	memset(facts.chain_hash.bytes, 0x0c, SHA256_SIZE);
	receipt_statement(&facts, &out);
	assert_string_equal(
		out.data,
		"{\"chain\":\"live\","
		"\"chain_hash\":\"0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c\","
		"\"channel_id\":\"chn_0\","
		"\"hash\":\"abababababababababababababababababababababababababababababababab\","
		"\"hash_alg\":\"sha-256\",\"origin\":\"records.example/log\","
		"\"received_at\":\"2026-01-01T12:00:00.000001Z\","
		"\"seal_by\":\"2026-01-01T12:10:00.000001Z\",\"sequence\":12,"
		"\"v\":\"constancia-receipt/1\"}");
	assert_canonical(&out);
	buf_clear(&out);
	facts.chain = MODE_TEST;
	facts.seal_by_us = TIME_NONE;
	receipt_statement(&facts, &out);
	assert_non_null(strstr(out.data, "\"seal_by\":null,"));
	assert_non_null(strstr(out.data, "{\"chain\":\"test\","));
	assert_canonical(&out);
}

TEST_CASE(the_largest_statement_fits)
{
	BUF_AUTO struct buf out = {.limit = RECEIPT_STATEMENT_MAX};
	char channel[ID_SIZE], origin[256];
	struct declaration declaration = {.hash_algorithm = HASH_SHA512};
	memset(channel, 'c', sizeof channel - 1);
	memset(origin, '"', sizeof origin - 1);
	channel[sizeof channel - 1] = origin[sizeof origin - 1] = '\0';
	const struct receipt_facts facts = {.channel_id = channel,
	                                    .chain = MODE_TEST,
	                                    .sequence = (INT64_C(1) << 53) - 1,
	                                    .declaration = &declaration,
	                                    .received_at_us = INT64_C(253402300799999999),
	                                    .origin = origin,
	                                    .seal_by_us = INT64_C(253402300799999999)};
	receipt_statement(&facts, &out);
	assert_int_equal(buf_check(&out), OK);
	assert_canonical(&out);
}

TEST_MAIN(NULL, NULL)
