/* The documents match the evidence format byte for byte and are canonical JSON. */
#include "testing.h"
#include "base/json.h"
#include "ledger/ledger.h"

static void assert_canonical(const struct buf *document)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	BUF_AUTO struct buf canonical = {.limit = (size_t)1 << 20};
	struct json *json;
	assert_int_equal(json_parse(&arena, buf_slice(document), NULL, &json, NULL), OK);
	json_canonical(json, &canonical);
	assert_string_equal(canonical.data, document->data);
}

TEST_CASE(event_record_is_exact)
{
	BUF_AUTO struct buf out = {.limit = EVENT_RECORD_MAX};
	uint8_t hash[32];
	memset(hash, 0xab, sizeof hash);
	struct event_facts facts = {.channel_id = "chn_0",
	                            .chain = MODE_LIVE,
	                            .sequence = 12,
	                            .event_id = slice_of("evt_0lc"),
	                            .declaration = {.client_ref = slice_of("pedido \"ñ\"\\1"),
	                                            .occurred_at_us = TIME_NONE,
	                                            .modality = MODALITY_CONTENT,
	                                            .hash_algorithm = HASH_SHA256},
	                            .received_at_us = INT64_C(1767268800000001),
	                            .config_version = 3};
	memset(facts.config_hash.bytes, 0x01, SHA256_SIZE);
	memset(facts.previous_chain_hash.bytes, 0x02, SHA256_SIZE);
	memcpy(facts.declaration.hash, hash, sizeof hash);
	event_record(&facts, &out);
	assert_string_equal(
		out.data,
		"{\"chain\":\"live\",\"channel_id\":\"chn_0\",\"client_ref\":\"pedido \\\"ñ\\\"\\\\1\","
		"\"config_hash\":\"0101010101010101010101010101010101010101010101010101010101010101\","
		"\"config_version\":3,\"event_id\":\"evt_0lc\","
		"\"hash\":\"abababababababababababababababababababababababababababababababab\","
		"\"hash_alg\":\"sha-256\",\"modality\":\"content\",\"occurred_at\":null,"
		"\"previous_chain_hash\":"
		"\"0202020202020202020202020202020202020202020202020202020202020202\","
		"\"received_at\":\"2026-01-01T12:00:00.000001Z\",\"sequence\":12,\"v\":1}");
	assert_canonical(&out);
	struct sha256 expected = sha256_of(out.data, out.size);
	BUF_AUTO struct buf scratch = {.limit = EVENT_RECORD_MAX};
	struct sha256 chain_hash;
	assert_int_equal(event_chain_hash(&facts, &scratch, &chain_hash), OK);
	assert_memory_equal(chain_hash.bytes, expected.bytes, SHA256_SIZE);
}

TEST_CASE(largest_record_fits)
{
	BUF_AUTO struct buf out = {.limit = EVENT_RECORD_MAX};
	char channel[ID_SIZE];
	char ref[CLIENT_REF_MAX];
	uint8_t hash[64] = {0};
	memset(channel, 'c', sizeof channel - 1);
	channel[sizeof channel - 1] = '\0';
	memset(ref, '"', sizeof ref);
	struct event_facts facts = {.channel_id = channel,
	                            .chain = MODE_TEST,
	                            .sequence = (INT64_C(1) << 53) - 1,
	                            .event_id = slice_make(channel, ID_SIZE - 1),
	                            .declaration = {.client_ref = slice_make(ref, sizeof ref),
	                                            .occurred_at_us = 0,
	                                            .modality = MODALITY_HASH_ONLY,
	                                            .hash_algorithm = HASH_SHA512},
	                            .received_at_us = INT64_C(253402300799999999),
	                            .config_version = (INT64_C(1) << 53) - 1};
	memcpy(facts.declaration.hash, hash, sizeof hash);
	event_record(&facts, &out);
	assert_int_equal(buf_check(&out), OK);
	assert_canonical(&out);
}

TEST_CASE(other_documents_are_canonical)
{
	BUF_AUTO struct buf out = {.limit = 65536};
	genesis_document(&(struct genesis_facts){.channel_id = "chn_0", .chain = MODE_TEST}, &out);
	assert_string_equal(out.data, "{\"chain\":\"test\",\"channel_id\":\"chn_0\",\"created_at\":"
	                              "\"1970-01-01T00:00:00.000000Z\",\"v\":1}");
	buf_clear(&out);
	struct config_facts facts = {.channel_id = "chn_0",
	                             .version = 2,
	                             .name = "n\n\"",
	                             .declarant = "Ω 株式会社",
	                             .supplementary_info = "x"};
	config_document(&facts, &out);
	assert_canonical(&out);
	assert_non_null(strstr(out.data, "\"description\":null"));
}

TEST_CASE(event_ids_lead_back)
{
	char id[ID_SIZE];
	static const int64_t sequences[] = {1, 31, 32, 1000000, (INT64_C(1) << 40) - 1};
	for (size_t i = 0; i < 5; i++) {
		event_id_make("chn_0123456789abcdef", MODE_LIVE, sequences[i], id);
		assert_true(strlen(id) < ID_SIZE);
		assert_int_equal(event_id_sequence(slice_of(id), "chn_0123456789abcdef", MODE_LIVE),
		                 sequences[i]);
		assert_int_equal(event_id_sequence(slice_of(id), "chn_0123456789abcdef", MODE_TEST), 0);
		assert_int_equal(event_id_sequence(slice_of(id), "chn_0123456789abcdeg", MODE_LIVE), 0);
		for (enum mode mode = MODE_LIVE; mode <= MODE_TEST; mode++) {
			char channel_id[ID_SIZE];
			enum mode read;
			int64_t sequence;
			event_id_make("chn_0123456789abcdet", mode, sequences[i], id);
			assert_true(event_id_read(slice_of(id), channel_id, &read, &sequence));
			assert_string_equal(channel_id, "chn_0123456789abcdet");
			assert_int_equal(read, mode);
			assert_int_equal(sequence, sequences[i]);
		}
	}
	static const char *const bad[] = {"",
	                                  "evt_",
	                                  "evt_0123456789abcdefl",
	                                  "evt_0123456789abcdefl01",
	                                  "evt_0123456789abcdefl!",
	                                  "evt_0123456789abcdefl123456789",
	                                  "EVT_0123456789abcdefl1"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char channel_id[ID_SIZE];
		enum mode mode;
		int64_t sequence;
		assert_int_equal(event_id_sequence(slice_of(bad[i]), "chn_0123456789abcdef", MODE_LIVE), 0);
		assert_false(event_id_read(slice_of(bad[i]), channel_id, &mode, &sequence));
	}
}

TEST_MAIN(NULL, NULL)
