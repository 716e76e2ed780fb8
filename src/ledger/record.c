#include "ledger/record.h"

#include "base/json.h"

const char *mode_text(enum mode mode)
{
	return mode == MODE_TEST ? "test" : "live";
}

const char *modality_text(enum modality modality)
{
	return modality == MODALITY_HASH_ONLY ? "hash_only" : "content";
}

const char *hash_algorithm_text(enum hash_algorithm algorithm)
{
	return algorithm == HASH_SHA512 ? "sha-512" : "sha-256";
}

size_t hash_algorithm_size(enum hash_algorithm algorithm)
{
	return algorithm == HASH_SHA512 ? SHA512_SIZE : SHA256_SIZE;
}

static bool parse_one_of(struct slice text, const char *zero, const char *one, int *ret)
{
	if (!slice_is(text, zero) && !slice_is(text, one))
		return false;
	*ret = slice_is(text, one);
	return true;
}

bool modality_parse(struct slice text, enum modality *ret)
{
	int value;
	if (!parse_one_of(text, "content", "hash_only", &value))
		return false;
	*ret = (enum modality)value;
	return true;
}

bool mode_parse(struct slice text, enum mode *ret)
{
	int value;
	if (!parse_one_of(text, "live", "test", &value))
		return false;
	*ret = (enum mode)value;
	return true;
}

bool hash_algorithm_parse(struct slice text, enum hash_algorithm *ret)
{
	int value;
	if (!parse_one_of(text, "sha-256", "sha-512", &value))
		return false;
	*ret = (enum hash_algorithm)value;
	return true;
}

/* Members are in canonical order; all names are ASCII, so it is the byte order. */
void event_record(const struct event_facts *facts, struct buf *out)
{
	const struct declaration *declared = &facts->declaration;
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_text(&writer, "chain", mode_text(facts->chain));
	json_text(&writer, "channel_id", facts->channel_id);
	json_slice(&writer, "client_ref", declared->client_ref);
	json_hex(&writer, "config_hash", facts->config_hash.bytes, SHA256_SIZE);
	json_integer(&writer, "config_version", facts->config_version);
	json_slice(&writer, "event_id", facts->event_id);
	json_hex(&writer, "hash", declared->hash, hash_algorithm_size(declared->hash_algorithm));
	json_text(&writer, "hash_alg", hash_algorithm_text(declared->hash_algorithm));
	json_text(&writer, "modality", modality_text(declared->modality));
	json_time(&writer, "occurred_at", declared->occurred_at_us);
	json_hex(&writer, "previous_chain_hash", facts->previous_chain_hash.bytes, SHA256_SIZE);
	json_time(&writer, "received_at", facts->received_at_us);
	json_integer(&writer, "sequence", facts->sequence);
	json_integer(&writer, "v", 1);
	json_end_object(&writer);
}

void genesis_document(const struct genesis_facts *facts, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_text(&writer, "chain", mode_text(facts->chain));
	json_text(&writer, "channel_id", facts->channel_id);
	json_time(&writer, "created_at", facts->created_at_us);
	json_integer(&writer, "v", 1);
	json_end_object(&writer);
}

void config_document(const struct config_facts *facts, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_text(&writer, "channel_id", facts->channel_id);
	json_text(&writer, "declarant", facts->declarant);
	json_text(&writer, "description", facts->description);
	json_text(&writer, "modality", modality_text(facts->modality));
	json_text(&writer, "name", facts->name);
	json_time(&writer, "sealed_at", facts->sealed_at_us);
	json_text(&writer, "supplementary_info", facts->supplementary_info);
	json_integer(&writer, "v", 1);
	json_integer(&writer, "version", facts->version);
	json_end_object(&writer);
}

int event_chain_hash(const struct event_facts *facts, struct buf *scratch, struct sha256 *ret_hash)
{
	buf_clear(scratch);
	event_record(facts, scratch);
	if (buf_check(scratch))
		return ERR_NO_MEMORY;
	*ret_hash = sha256_of(scratch->data, scratch->size);
	return OK;
}
