/* Proofs that an event is in a log, and proofs against a log. What was read is written so that it
 * is read again; a proof is checked with the key of the corpus. */
#include "fuzz.h"
#include "archive/logged_event.h"
#include "monitor/log_proof.h"

#define KEY "log.example/segments+311f3c36+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c"

static void fuzz_event(struct arena *arena, struct slice text)
{
	struct logged_event found;
	struct error error = {0};
	int result = logged_event_read(arena, text, &found, &error);
	require(!result || result == ERR_INVALID_EVIDENCE, "a proof is accepted or rejected");
	require(!result || error.cause[0], "a rejected proof has a cause");
	require(result || (found.event.sequence >= found.seal.first_sequence &&
	                   found.event.sequence <= found.seal.last_sequence),
	        "the event is in its segment");
	require(result || found.index < found.checkpoint.size, "the entry is in the tree");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)64 << 20};
	BUF_AUTO struct buf again = {.limit = (size_t)16 << 20};
	struct slice text = slice_make((const char *)data, size);
	struct log_proof proof, repeated;
	struct log_proof_verdict verdict;
	struct error error = {0};
	struct note_key key;
	struct policy policy;
	const struct log_trust trust = {.policy = &policy};
	if (logged_event_is(text)) {
		fuzz_event(&arena, text);
		return 0;
	}
	require(!note_key_parse(slice_of(KEY), &key, &error), "the key is valid");
	require(!policy_make(&arena, &key, 1, NULL, 0, 0, &policy, &error), "the policy is valid");
	if (log_proof_read(&arena, text, &proof, &error)) {
		require(error.cause[0], "a rejected document has a cause");
		return 0;
	}
	log_proof_write(&proof, &again);
	require(!buf_check(&again) && !log_proof_read(&arena, buf_slice(&again), &repeated, &error),
	        "what was read is written so that it is read again");
	require(repeated.kind == proof.kind && repeated.path_count == proof.path_count,
	        "and it is the same");
	if (log_proof_check(&arena, &proof, &trust, NULL, &verdict, &error)) {
		require(error.cause[0], "a proof that shows nothing has a cause");
		return 0;
	}
	require(verdict.what[0] && verdict.is_shown == !verdict.missing[0],
	        "a verdict says what is shown");
	return 0;
}
