/* Receipts from untrusted users. Those that can be used are written again as receipts with the same
 * contents. */
#include "base/json.h"
#include "fuzz.h"
#include "archive/receipt.h"

/* Returns their number. */
static size_t write_all(const struct receipt *receipts, size_t count, struct buf *out)
{
	struct json_writer writer = {.out = out};
	size_t written = 0;
	json_begin_array(&writer, NULL);
	for (size_t i = 0; i < count; i++) {
		const struct event_facts *event = &receipts[i].event;
		if (receipts[i].cause)
			continue;
		written++;
		json_begin_object(&writer, NULL);
		json_hex(&writer, "chain_hash", receipts[i].chain_hash.bytes, SHA256_SIZE);
		json_text(&writer, "channel_id", event->channel_id);
		json_slice(&writer, "client_ref", event->declaration.client_ref);
		json_integer(&writer, "config_version", event->config_version);
		json_slice(&writer, "event_id", event->event_id);
		json_hex(&writer, "hash", event->declaration.hash,
		         hash_algorithm_size(event->declaration.hash_algorithm));
		json_text(&writer, "hash_alg", hash_algorithm_text(event->declaration.hash_algorithm));
		json_text(&writer, "modality", modality_text(event->declaration.modality));
		json_text(&writer, "mode", mode_text(event->chain));
		json_time(&writer, "occurred_at", event->declaration.occurred_at_us);
		json_time(&writer, "received_at", event->received_at_us);
		json_integer(&writer, "sequence", event->sequence);
		json_end_object(&writer);
	}
	json_end_array(&writer);
	return written;
}

/* Verifies the first signatures: each takes a tenth of a millisecond. */
static void verify_some(const struct receipt *receipts, size_t count)
{
	for (size_t i = 0, left = 16; i < count && left > 0; i++) {
		const struct receipt_signature *signature = receipts[i].signature;
		bool valid;
		if (!signature)
			continue;
		left--;
		require(signature->path_count <= RECEIPT_TREE_PATH_MAX, "the path is within its limits");
		require(receipt_verify(&receipts[i], &valid) == 0, "a signature can be verified");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)512 << 20};
	BUF_AUTO struct buf once = {.limit = (size_t)64 << 20};
	BUF_AUTO struct buf twice = {.limit = (size_t)64 << 20};
	struct receipt *receipts = NULL;
	size_t count = 0, again = 0;
	struct error error = {0};
	int result =
		receipts_read(&arena, slice_make((const char *)data, size), &receipts, &count, &error);
	if (result) {
		require(result == ERR_INVALID_EVIDENCE && error.cause[0], "a rejected text has a cause");
		require(!receipts && !count, "a rejected text returns nothing");
		return 0;
	}
	require(count > 0 && count <= RECEIPTS_MAX, "the number is within its limits");
	verify_some(receipts, count);
	count = write_all(receipts, count, &once);
	require(count > 0, "one can be used");
	require(receipts_read(&arena, buf_slice(&once), &receipts, &again, NULL) == 0 && again == count,
	        "the receipts can be read again");
	require(write_all(receipts, again, &twice) == again, "all can be used again");
	require(slice_equal(buf_slice(&once), buf_slice(&twice)), "the receipts are the same");
	return 0;
}
