/* The Event record of the interface, verbatim. */
#include "testing.h"
#include "ledger/receipt_statement.h"
#include "service/service.h"

#define TWICE(text) text text
#define OF_32_BYTES(digits) TWICE(TWICE(TWICE(TWICE(TWICE(digits)))))

/* A live event that is not sealed yet. */
static struct event sample_event(void)
{
	struct event event = {
		.event_id = "evt_1",
		.channel_id = "chn_1",
		.declaration = {.client_ref = slice_of("order \"7\""),
	                    .occurred_at_us = TIME_NONE,
	                    .modality = MODALITY_CONTENT,
	                    .hash_algorithm = HASH_SHA256},
		.sequence = 12,
		.received_at_us = INT64_C(1767323045678901),
		.status = STATUS_REGISTERED,
		.mode = MODE_LIVE,
		.config_version = 3,
		.sealed_at_us = TIME_NONE,
		.content = slice_of("{\"secret\":1}"),
		.content_object = "event/object",
		.file_name = "order.pdf",
		.content_bytes = 12,
	};
	memset(event.declaration.hash, 0xab, sizeof event.declaration.hash);
	memset(event.chain_hash.bytes, 0x0c, SHA256_SIZE);
	return event;
}

static void is_written(const struct event *event, const char *expected)
{
	BUF_AUTO struct buf out = {.limit = 4096};
	event_json(event, &out);
	assert_int_equal(buf_check(&out), OK);
	assert_string_equal(out.data, expected);
}

/* It contains nothing of the content. */
TEST_CASE(a_live_event_is_pending)
{
	struct event event = sample_event();
	is_written(&event,
	           "{\"event_id\":\"evt_1\",\"channel_id\":\"chn_1\","
	           "\"client_ref\":\"order \\\"7\\\"\",\"sequence\":12,"
	           "\"received_at\":\"2026-01-02T03:04:05.678901Z\",\"occurred_at\":null,"
	           "\"hash\":\"" OF_32_BYTES(
				   "ab") "\",\"hash_alg\":\"sha-256\","
	                     "\"modality\":\"content\",\"chain_hash\":\"" OF_32_BYTES(
							 "0c") "\","
	                               "\"status\":\"registered\",\"timestamp\":{\"type\":\"pending\","
	                               "\"reference\":null,\"sealed_at\":null},\"config_version\":3,"
	                               "\"mode\":\"live\"}");
}

TEST_CASE(a_sealed_event_names_its_segment)
{
	struct event event = sample_event();
	event.declaration.occurred_at_us = INT64_C(1767323045000000);
	event.declaration.hash_algorithm = HASH_SHA512;
	event.declaration.modality = MODALITY_HASH_ONLY;
	event.status = STATUS_UNPAID;
	strcpy(event.segment_id, "seg_1");
	event.sealed_at_us = INT64_C(1767323046000000);
	is_written(
		&event,
		"{\"event_id\":\"evt_1\",\"channel_id\":\"chn_1\","
		"\"client_ref\":\"order \\\"7\\\"\",\"sequence\":12,"
		"\"received_at\":\"2026-01-02T03:04:05.678901Z\","
		"\"occurred_at\":\"2026-01-02T03:04:05.000000Z\","
		"\"hash\":\"" TWICE(OF_32_BYTES(
			"ab")) "\",\"hash_alg\":\"sha-512\","
				   "\"modality\":\"hash_only\",\"chain_hash\":\"" OF_32_BYTES(
					   "0c") "\","
							 "\"status\":\"unpaid\",\"timestamp\":{\"type\":\"batch\","
							 "\"reference\":\"seg_1\",\"sealed_at\":\"2026-01-02T03:04:06.000000Z\"},"
							 "\"config_version\":3,\"mode\":\"live\"}");
}

TEST_CASE(a_test_event_has_a_simulated_timestamp)
{
	struct event event = sample_event();
	event.mode = MODE_TEST;
	event.status = STATUS_TEST;
	is_written(&event,
	           "{\"event_id\":\"evt_1\",\"channel_id\":\"chn_1\","
	           "\"client_ref\":\"order \\\"7\\\"\",\"sequence\":12,"
	           "\"received_at\":\"2026-01-02T03:04:05.678901Z\",\"occurred_at\":null,"
	           "\"hash\":\"" OF_32_BYTES(
				   "ab") "\",\"hash_alg\":\"sha-256\","
	                     "\"modality\":\"content\",\"chain_hash\":\"" OF_32_BYTES(
							 "0c") "\","
	                               "\"status\":\"test\",\"timestamp\":{\"type\":\"simulated\","
	                               "\"reference\":null,\"sealed_at\":null},\"config_version\":3,"
	                               "\"mode\":\"test\"}");
}

#define BASE64_OF_0C_32 "DAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw="
#define BASE64_OF_01_32 "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="

TEST_CASE(a_registration_has_a_receipt)
{
	BUF_AUTO struct buf bare = {.limit = 8192};
	BUF_AUTO struct buf out = {.limit = 8192};
	struct event event = sample_event();
	struct receipt_signature receipt = {.origin = "log.example/\"log\"",
	                                    .seal_by_us = INT64_C(1767323645678901),
	                                    .index = 2,
	                                    .tree_size = 3,
	                                    .path_count = 1};
	memset(receipt.path[0].bytes, 0x0c, SHA256_SIZE);
	memset(receipt.key, 0x01, sizeof receipt.key);
	event_json(&event, &bare);
	registered_event_json(&event, &receipt, &out);
	assert_int_equal(buf_check(&out), OK);
	assert_memory_equal(out.data, bare.data, bare.size - 1);
	assert_string_equal(
		out.data + bare.size - 1,
		",\"receipt\":{\"index\":2,\"key\":\"" BASE64_OF_01_32
		"\",\"origin\":\"log.example/\\\"log\\\"\",\"path\":[\"" BASE64_OF_0C_32
		"\"],\"seal_by\":\"2026-01-02T03:14:05.678901Z\",\"signature\":\"AAAAAAAAAAAAAAAAAAAAAAAA"
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==\",\"size\":3}}");
	buf_clear(&out);
	receipt.path_count = 0;
	receipt.seal_by_us = TIME_NONE;
	registered_event_json(&event, &receipt, &out);
	assert_non_null(strstr(out.data, "\"path\":[],\"seal_by\":null,"));
	buf_clear(&out);
	registered_event_json(&event, NULL, &out);
	assert_string_equal(out.data + bare.size - 1, ",\"receipt\":null}");
}

TEST_MAIN(NULL, NULL)
