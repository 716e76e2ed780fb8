#include "testing.h"
#include "failing.h"
#include "evidence/stored_segment.h"

TEST_CASE(test_document)
{
	struct sha256 hash = sha256_of("seal", 4);
	struct seal_document seal = {
		.segment_id = "seg_a1",
		.channel_id = "chn_a",
		.chain = "live",
		.first_sequence = 3,
		.last_sequence = 9,
		.chain_hash_before = hash,
		.chain_hash_last = sha256_of("last", 4),
		.previous_token_hash = &hash,
		.clock = {.synchronized = true, .max_error_us = 1234, .source = "ntp_adjtime"},
	};
	BUF_AUTO struct buf text = {.limit = SEAL_DOCUMENT_MAX};
	seal_document_write(&seal, &text);
	struct segment_record segment = {
		.segment_id = "seg_a1",
		.first_sequence = 3,
		.last_sequence = 9,
		.document = buf_slice(&text),
	};
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct seal_document read;
	struct error error = {0};
	assert_int_equal(stored_segment_document(&segment, &arena, &read, &error), OK);
	assert_null(read.previous_seal_hash);
	assert_true(sha256_equal(read.previous_token_hash, &hash));
	assert_true(read.clock.synchronized);
	/* A temporary lack of memory is not reported as a fault of the document. */
	int at = 0, code;
	const char *failed;
	do {
		ARENA_AUTO struct arena small = {.limit = 1 << 20};
		failing_arm(FAILING_MEMORY, ++at);
		code = stored_segment_document(&segment, &small, &read, &error);
		failed = failing_disarm();
		assert_int_equal(code, failed ? ERR_NO_MEMORY : OK);
	} while (failed);
	assert_true(at > 2);
	segment.last_sequence = 10;
	assert_int_equal(stored_segment_document(&segment, &arena, &read, &error), ERR_CORRUPT);
	segment.last_sequence = 9;
	segment.segment_id[0] = 'x';
	assert_int_equal(stored_segment_document(&segment, &arena, &read, &error), ERR_CORRUPT);
	segment.segment_id[0] = 's';
	segment.document.size--;
	assert_int_equal(stored_segment_document(&segment, &arena, &read, &error), ERR_CORRUPT);
	segment.document = slice_of("{}");
	assert_int_equal(stored_segment_document(&segment, &arena, &read, &error), ERR_CORRUPT);
}

TEST_CASE(test_path)
{
	struct sha256 siblings[TREE_PROOF_MAX + 1] = {{{0}}};
	struct segment_record segment = {
		.segment_id = "seg_a1", .root = sha256_of("root", 4), .place = SEGMENT_HAS_PATH};
	struct tree_proof path;
	struct error error = {0};
	segment.path = slice_make(siblings, SHA256_SIZE);
	assert_int_equal(stored_segment_path(NULL, &segment, &path, &error), OK);
	assert_int_equal(path.count, 1);
	assert_true(sha256_equal(&path.leaf, &segment.root));
	segment.path.size = sizeof siblings;
	assert_int_equal(stored_segment_path(NULL, &segment, &path, &error), ERR_CORRUPT);
	assert_non_null(strstr(error.cause, "seg_a1"));
}

TEST_MAIN(NULL, NULL)
