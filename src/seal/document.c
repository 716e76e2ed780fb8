#include "seal/document.h"

#include <assert.h>

#include "base/json.h"

static void write_hash(struct json_writer *writer, const char *name, const struct sha256 *hash)
{
	if (hash)
		json_hex(writer, name, hash->bytes, SHA256_SIZE);
	else
		json_null(writer, name);
}

/* The members stand in canonical order. */
void seal_document_write(const struct seal_document *document, struct buf *out)
{
	struct json_writer writer = {.out = out};
	int64_t count = document->last_sequence - document->first_sequence + 1;

	assert(document->first_sequence >= 1 && count >= 1 && count <= SEGMENT_EVENTS_MAX);
	json_begin_object(&writer, NULL);
	json_text(&writer, "chain", document->chain);
	write_hash(&writer, "chain_hash_before", &document->chain_hash_before);
	write_hash(&writer, "chain_hash_last", &document->chain_hash_last);
	json_text(&writer, "channel_id", document->channel_id);
	json_begin_object(&writer, "clock");
	json_integer(&writer, "max_error_us", document->clock.max_error_us);
	json_text(&writer, "source", document->clock.source);
	json_boolean(&writer, "synchronized", document->clock.synchronized);
	json_end_object(&writer);
	json_integer(&writer, "count", count);
	json_integer(&writer, "first_sequence", document->first_sequence);
	json_integer(&writer, "last_sequence", document->last_sequence);
	write_hash(&writer, "previous_seal_hash", document->previous_seal_hash);
	write_hash(&writer, "previous_token_hash", document->previous_token_hash);
	json_text(&writer, "segment_id", document->segment_id);
	json_integer(&writer, "v", 1);
	json_end_object(&writer);
}

struct sha256 seal_document_digest(const struct seal_document *document, struct buf *scratch)
{
	buf_clear(scratch);
	seal_document_write(document, scratch);
	int result = buf_check(scratch);
	assert(result == 0); /* a digest of half a document must never be sealed */
	return sha256_of(scratch->data, scratch->size);
}
