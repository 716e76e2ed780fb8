/* Evidence records from untrusted users. An accepted record is written back unchanged, and its
 * verification returns either valid or not valid. */
#include "fuzz.h"
#include "seal/evidence_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = NULL;
	ARENA_AUTO struct arena arena = {.limit = (size_t)16 << 20};
	BUF_AUTO struct buf again = {.limit = EVIDENCE_RECORD_MAX};
	struct error error = {0};
	struct slice der = slice_make(data, size);
	int result = evidence_record_parse(der, &record, &error);
	if (result) {
		require(result == ERR_INVALID_EVIDENCE && error.cause[0], "a rejected record has a cause");
		require(!record, "a rejected record returns nothing");
		return 0;
	}
	require(evidence_record_write(record, &again) == 0 && slice_equal(buf_slice(&again), der),
	        "the record is written back unchanged");
	struct digest digests[DIGEST_ALGORITHM_COUNT];
	for (int i = 0; i < DIGEST_ALGORITHM_COUNT; i++)
		digests[i] = digest_by((enum digest_algorithm)i, "event", 5);
	struct evidence_query question = {.at_us = TIME_NONE};
	struct evidence_facts facts;
	result = evidence_record_verify(record, digests, &question, &arena, &facts, &error);
	require(result == ERR_INVALID_EVIDENCE || !result, "the result is valid or not valid");
	require(!result ? facts.stamp_count >= facts.chain_count && !facts.trusted
	                : error.cause[0] != 0,
	        "the result has facts or a cause");
	return 0;
}
