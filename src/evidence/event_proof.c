/* The proof of one event: as JSON, and as an evidence record. */
#include "base/base64.h"
#include "base/json.h"
#include "evidence/audit_proof.h"
#include "evidence/event_proof.h"
#include "evidence/evidence_chain.h"
#include "evidence/record_validation.h"
#include "evidence/stored_segment.h"
#include "service/service.h"
#include "store/accounts/accounts.h"

static int base64(struct arena *arena, struct slice bytes, struct slice *ret_text)
{
	size_t size = BASE64_SIZE(bytes.size);
	char *text = arena_alloc(arena, size + 1);
	if (!text)
		return ERR_NO_MEMORY;
	base64_encode(bytes.data, bytes.size, text);
	*ret_text = slice_make(text, size);
	return OK;
}

/* The parts of a seal, all read before anything is written. */
struct seal {
	struct segment_record segment;
	struct round_record round;
	struct tree_proof proof;
};

static int load_seal(struct store *store, int64_t account, int64_t chain, int64_t sequence,
                     struct arena *arena, struct seal *seal, struct error *error)
{
	int result = store_find_segment(store, account, chain, sequence, arena, &seal->segment, error);
	if (!result)
		result = stored_segment_prove(store, &seal->segment, sequence, &seal->proof, error);
	if (!result)
		result = store_get_round(store, seal->segment.round, arena, &seal->round, error);
	return result;
}

static void write_seal(const struct seal *seal, struct slice token_base64,
                       struct json_writer *writer)
{
	const struct segment_record *segment = &seal->segment;
	const struct round_record *round = &seal->round;
	json_begin_object(writer, "segment");
	json_text(writer, "segment_id", segment->segment_id);
	json_integer(writer, "first_sequence", segment->first_sequence);
	json_integer(writer, "last_sequence", segment->last_sequence);
	json_raw(writer, "seal_document", segment->document);
	json_hex(writer, "root", segment->root.bytes, SHA256_SIZE);
	json_end_object(writer);
	tree_proof_write(&seal->proof, writer, "path");
	json_begin_object(writer, "round");
	json_hex(writer, "root", round->root.bytes, SHA256_SIZE);
	json_text(writer, "authority", round->authority);
	json_text(writer, "kind", round->kind);
	json_time(writer, "sealed_at", round->sealed_at_us);
	json_slice(writer, "token", token_base64);
	json_end_object(writer);
}

int event_proof_json(struct store *store, int64_t account, int64_t chain, const struct event *event,
                     struct arena *arena, struct json_writer *writer, struct error *error)
{
	struct sha256 previous;
	int result = store_get_chain_hash(store, account, chain, event->sequence - 1, &previous, error);
	struct channel channel;
	if (!result)
		result = store_get_channel_versions(store, account, chain / 2, event->config_version + 1, 1,
		                                    arena, &channel, error);
	if (!result &&
	    (!channel.config_count || channel.configs[0].facts.version != event->config_version))
		result = error_cause(error, ERR_CORRUPT, "%s: no configuration version %lld",
		                     event->event_id, (long long)event->config_version);
	bool sealed = event->segment_id[0] != '\0';
	struct seal seal;
	if (!result && sealed)
		result = load_seal(store, account, chain, event->sequence, arena, &seal, error);
	struct slice token;
	if (!result && sealed)
		result = base64(arena, seal.round.token, &token);
	if (result)
		return result;
	json_begin_object(writer, "proof");
	json_hex(writer, "previous_chain_hash", previous.bytes, SHA256_SIZE);
	json_hex(writer, "config_hash", channel.configs[0].hash.bytes, SHA256_SIZE);
	if (sealed)
		write_seal(&seal, token, writer);
	json_end_object(writer);
	return OK;
}

/* Sources of a record. */
struct sources {
	struct store *store;
	struct revocation_client *revocation; /* NULL: nothing is fetched */
};

/* Builds a record from one of the round's tokens and its renewals. */
static int make_record(const struct sources *from, const struct seal *seal, const char *of,
                       enum token_source source, struct slice token,
                       struct evidence_record **ret_record, int64_t *ret_until_us,
                       struct error *error)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = NULL;
	struct renewable_token newest;
	struct error cause = {0};
	int result = evidence_record_create(&seal->proof, token, &record, &cause);
	if (result == ERR_INVALID_EVIDENCE)
		result = error_cause(error, ERR_CORRUPT, "the round of %s: %s", of, cause.cause);
	if (!result)
		result = evidence_chain_follow(from->store, record, source, seal->round.round, 0, &newest,
		                               error);
	if (!result)
		result = record_validation_add(from->store, from->revocation, token, record, error);
	if (result)
		return result;
	*ret_record = record;
	record = NULL;
	/* A token that is not recorded for renewal yet is new. */
	*ret_until_us = newest.valid_until_us ? newest.valid_until_us : INT64_MAX;
	return OK;
}

/* Uses the second token if the first one has expired without renewal. */
static int make_best_record(const struct sources *from, const struct seal *seal, const char *of,
                            struct arena *arena, struct evidence_record **ret_record,
                            struct error *error)
{
	struct round_token second;
	struct evidence_record *other = NULL;
	int64_t until_us, other_until_us = 0;
	int result =
		make_record(from, seal, of, TOKEN_ROUND, seal->round.token, ret_record, &until_us, error);
	if (result || until_us >= clock_now_us())
		return result;
	result = store_get_second_token(from->store, seal->round.round, arena, &second, error);
	if (!result)
		result =
			make_record(from, seal, of, TOKEN_SECOND, second.token, &other, &other_until_us, error);
	if (!result && other_until_us > until_us) {
		evidence_record_free(*ret_record);
		*ret_record = other;
		other = NULL;
	}
	evidence_record_free(other);
	return result == ERR_NOT_FOUND ? OK : result;
}

static int write_best_record(const struct sources *from, const struct seal *seal, const char *of,
                             struct arena *arena, struct buf *out, struct error *error)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = NULL;
	int result = make_best_record(from, seal, of, arena, &record, error);
	return result ? result : evidence_record_write(record, out);
}

int event_evidence_record(struct store *store, struct revocation_client *revocation,
                          int64_t account, int64_t chain, const struct event *event,
                          struct arena *arena, struct buf *out, struct error *error)
{
	if (event->mode == MODE_TEST)
		return error_set(error, ERR_NOT_FOUND, MSG_EVIDENCE_RECORD_TEST, NULL);
	if (!event->segment_id[0])
		return error_set(error, ERR_NOT_FOUND, MSG_EVIDENCE_RECORD_PENDING, NULL);
	struct seal seal;
	const struct sources from = {store, revocation};
	int result = load_seal(store, account, chain, event->sequence, arena, &seal, error);
	return result ? result : write_best_record(&from, &seal, event->event_id, arena, out, error);
}

int audit_evidence_records(struct store *store, struct revocation_client *revocation,
                           const struct audit_record *act, struct arena *arena,
                           struct audit_evidence *evidence, struct error *error)
{
	struct seal seal;
	const struct sources from = {store, revocation};
	int result = load_seal(store, act->account, act->chain, act->number, arena, &seal, error);
	if (result == ERR_NOT_FOUND)
		return error_set(error, result, MSG_ADMIN_AUDIT_RECORD_PENDING, act->act_id, NULL);
	if (!result)
		result = write_best_record(&from, &seal, act->act_id, arena, evidence->act, error);
	/* The seal document is the leaf after the last record. */
	if (!result)
		result = stored_segment_prove(store, &seal.segment, seal.segment.last_sequence + 1,
		                              &seal.proof, error);
	if (!result)
		result = write_best_record(&from, &seal, seal.segment.segment_id, arena,
		                           evidence->seal_document, error);
	if (!result)
		evidence->document = seal.segment.document;
	return result;
}
