#include "ledger/receipt_statement.h"

#include "base/json.h"

/* Members are in canonical order, as in record.c. */
void receipt_statement(const struct receipt_facts *facts, struct buf *out)
{
	const struct declaration *declared = facts->declaration;
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_text(&writer, "chain", mode_text(facts->chain));
	json_hex(&writer, "chain_hash", facts->chain_hash.bytes, SHA256_SIZE);
	json_text(&writer, "channel_id", facts->channel_id);
	json_hex(&writer, "hash", declared->hash, hash_algorithm_size(declared->hash_algorithm));
	json_text(&writer, "hash_alg", hash_algorithm_text(declared->hash_algorithm));
	json_text(&writer, "origin", facts->origin);
	json_time(&writer, "received_at", facts->received_at_us);
	json_time(&writer, "seal_by", facts->seal_by_us);
	json_integer(&writer, "sequence", facts->sequence);
	json_text(&writer, "v", "constancia-receipt/1");
	json_end_object(&writer);
}
