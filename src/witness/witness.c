#include "witness/witness.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "seal/ed25519.h"
#include "tlog/witness_request.h"
#include "witness/witness_refusals.h"
#include "witness/witness_store.h"

#define KEY_FILE "witness.key"
#define NEW_KEY_FILE "witness.key.new" /* until the memory knows it */
#define TEXT_TYPE "text/plain; charset=utf-8"
#define ANSWER_MAX ((size_t)2 * NOTE_SIZE_MAX)
#define MEMORY_MAX ((size_t)1 << 20)
/* Seconds in which a repeated request costs no write: anybody can repeat it. */
#define FRESH_S 60

struct witness {
	char *directory;
	struct witness_store *store;
	EVP_PKEY *private_key;
	struct note_key key;
	size_t log_count;
	struct note_key logs[WITNESS_LOGS_MAX];
	struct arena arena; /* of one request */
};

/* ---- opening ---- */

static bool has_file(const char *directory, const char *name)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	return access(path, F_OK) == 0;
}

static int open_key(struct witness *witness, const char *name, bool make, struct error *error)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", witness->directory, name);
	return ed25519_open(path, make, &witness->private_key, error);
}

/* A witness that has lost its memory must not use its key. */
static int refuse_forgotten(const struct witness *witness, struct error *error)
{
	return error_cause(error, ERR_REFUSED,
	                   "%s has a key, and not what was cosigned with it (" WITNESS_STORE_FILE
	                   "); make a new witness in another directory",
	                   witness->directory);
}

/* Gives the key its name, durably. */
static int complete_key(const struct witness *witness, struct error *error)
{
	char from[PATH_MAX], to[PATH_MAX];
	snprintf(from, sizeof from, "%s/" NEW_KEY_FILE, witness->directory);
	snprintf(to, sizeof to, "%s/" KEY_FILE, witness->directory);
	return rename(from, to) != 0 ? file_fail(error, "rename", from)
	                             : durable_sync(witness->directory, error);
}

/* Makes the key, the identity and the key's name, in this order: so a key of that name without an
 * identity shows that the memory was lost, and whatever an interruption leaves can be completed. */
static int make_identity(struct witness *witness, const char *name, struct error *error)
{
	uint8_t public[ED25519_KEY_SIZE];
	if (has_file(witness->directory, KEY_FILE))
		return refuse_forgotten(witness, error);
	if (!name)
		return error_cause(error, ERR_USAGE, "%s has no witness; a new one needs a name (--name)",
		                   witness->directory);
	const char *wrong = note_check_name(slice_of(name));
	if (wrong)
		return error_cause(error, ERR_USAGE, "the name of a witness %s", wrong);
	int result = open_key(witness, NEW_KEY_FILE, true, error);
	if (result)
		return result;
	ed25519_public(witness->private_key, public);
	witness->key = note_key_make(name, NOTE_COSIGNATURE, public);
	result = witness_store_set_identity(witness->store, &witness->key, error);
	return result ? result : complete_key(witness, error);
}

static int check_identity(struct witness *witness, const char *given, const char *name,
                          const uint8_t known[NOTE_KEY_SIZE], struct error *error)
{
	uint8_t public[ED25519_KEY_SIZE];
	if (given && strcmp(given, name) != 0)
		return error_cause(error, ERR_USAGE, "the witness in %s has the name %s",
		                   witness->directory, name);
	bool is_complete = has_file(witness->directory, KEY_FILE);
	int result = open_key(witness, is_complete ? KEY_FILE : NEW_KEY_FILE, false, error);
	if (result == ERR_NOT_FOUND)
		return error_cause(error, ERR_REFUSED, "%s/" KEY_FILE " is missing", witness->directory);
	if (result)
		return result;
	ed25519_public(witness->private_key, public);
	if (memcmp(public, known, NOTE_KEY_SIZE) != 0)
		return error_cause(error, ERR_REFUSED,
		                   "%s/" KEY_FILE " is not the key to which " WITNESS_STORE_FILE " belongs",
		                   witness->directory);
	witness->key = note_key_make(name, NOTE_COSIGNATURE, public);
	return is_complete ? OK : complete_key(witness, error);
}

static int open_parts(struct witness *witness, const char *given_name, struct error *error)
{
	char name[NOTE_NAME_MAX + 1];
	uint8_t public[NOTE_KEY_SIZE];
	int result = durable_make_directory(witness->directory, error);
	if (!result && has_file(witness->directory, KEY_FILE) &&
	    !has_file(witness->directory, WITNESS_STORE_FILE))
		result = refuse_forgotten(witness, error);
	if (!result)
		result = witness_refusals_prepare(witness->directory, error);
	if (!result)
		result = witness_store_open(witness->directory, &witness->store, error);
	if (result)
		return result;
	result = witness_store_get_identity(witness->store, name, public, error);
	if (result == ERR_NOT_FOUND)
		return make_identity(witness, given_name, error);
	return result ? result : check_identity(witness, given_name, name, public, error);
}

int witness_open(const struct witness_options *options, struct witness **ret, struct error *error)
{
	assert(options->log_count <= WITNESS_LOGS_MAX);
	struct witness *witness = calloc(1, sizeof *witness);
	if (!witness)
		return ERR_NO_MEMORY;
	arena_init(&witness->arena, MEMORY_MAX);
	witness->directory = strdup(options->directory);
	for (size_t i = 0; i < options->log_count; i++) {
		assert(options->logs[i].type == NOTE_ED25519);
		witness->logs[witness->log_count++] = options->logs[i];
	}
	int result = witness->directory ? open_parts(witness, options->name, error) : ERR_NO_MEMORY;
	if (result)
		witness_close(witness);
	else
		*ret = witness;
	return result;
}

void witness_close(struct witness *witness)
{
	if (!witness)
		return;
	witness_store_close(witness->store);
	EVP_PKEY_free(witness->private_key);
	arena_free(&witness->arena);
	free(witness->directory);
	free(witness);
}

int witness_read_key(const char *directory, struct note_key *ret, struct error *error)
{
	struct witness_store *store;
	char name[NOTE_NAME_MAX + 1];
	uint8_t public[NOTE_KEY_SIZE];
	if (!has_file(directory, WITNESS_STORE_FILE))
		return error_cause(error, ERR_NOT_FOUND, "%s has no witness", directory);
	int result = witness_store_open_to_read(directory, &store, error);
	if (result)
		return result;
	result = witness_store_get_identity(store, name, public, error);
	witness_store_close(store);
	if (!result)
		*ret = note_key_make(name, NOTE_COSIGNATURE, public);
	return result;
}

const struct note_key *witness_key(const struct witness *witness)
{
	return &witness->key;
}

bool witness_has_failed(const struct witness *witness)
{
	return witness_store_has_failed(witness->store);
}

/* ---- answers ---- */

void witness_answer_free(struct witness_answer *answer)
{
	if (answer)
		buf_free(&answer->body);
}

static void answer_begin(struct witness_answer *answer)
{
	*answer = (struct witness_answer){.type = TEXT_TYPE};
	buf_init(&answer->body, ANSWER_MAX);
}

static void answer_line(struct witness_answer *answer, int status, const char *text)
{
	answer->status = status;
	buf_clear(&answer->body);
	buf_add_text(&answer->body, text);
	buf_add_byte(&answer->body, '\n');
}

/* An error that is not the client's. */
static void answer_failure(struct witness_answer *answer, const struct error *error, int code)
{
	answer->failure = *error;
	answer->failure.code = code;
	answer_line(answer, 500, "The witness cannot answer now.");
}

/* ---- add-checkpoint ---- */

struct submission {
	struct witness *witness;
	struct slice body;
	struct witness_request request;
	struct note note;
	struct checkpoint checkpoint;
	struct buf *signatures; /* lines of the log's keys */
	struct witness_record known;
	enum witness_verdict verdict;
};

/* Reads the request. A result other than ERR_INVALID_EVIDENCE is not the client's fault. */
static int parse(struct submission *submission, struct error *error)
{
	int result = witness_request_parse(submission->body, &submission->request, error);
	if (!result)
		result = note_parse(&submission->witness->arena, submission->request.checkpoint,
		                    &submission->note, error);
	return result ? result
	              : checkpoint_parse(submission->note.text, &submission->checkpoint, error);
}

static void add_signature(struct submission *submission, const struct note_key *key)
{
	for (size_t i = 0; i < submission->note.count; i++)
		if (note_signature_is_of(&submission->note.signatures[i], key)) {
			buf_add_slice(submission->signatures, submission->note.signatures[i].line);
			return;
		}
}

/* Verifies the signatures of the log. Returns the status of a refusal; 0: it is signed. */
static int check_signatures(struct submission *submission)
{
	const struct witness *witness = submission->witness;
	bool known = false, is_signed = false;
	for (size_t i = 0; i < witness->log_count; i++) {
		if (strcmp(witness->logs[i].name, submission->checkpoint.origin) != 0)
			continue;
		known = true;
		enum note_verdict verdict = note_verify(&submission->note, &witness->logs[i], NULL);
		if (verdict == NOTE_FALSE || verdict == NOTE_NOT_CHECKED)
			return verdict == NOTE_FALSE ? 403 : 500;
		if (verdict == NOTE_SIGNED)
			add_signature(submission, &witness->logs[i]);
		is_signed |= verdict == NOTE_SIGNED;
	}
	if (!known)
		return 404;
	return is_signed ? 0 : 403;
}

static int find_known(struct witness *witness, const char *origin, struct witness_record *ret,
                      struct error *error)
{
	const struct sha256 hash = sha256_of(origin, strlen(origin));
	*ret = (struct witness_record){.checkpoint.root = merkle_empty_root()};
	int result = witness_store_find(witness->store, &hash, &witness->arena, ret, error);
	return result == ERR_NOT_FOUND ? OK : result;
}

static int cosign(const struct witness *witness, struct slice text, int64_t time_s,
                  struct buf *line)
{
	uint8_t signature[ED25519_SIGNATURE_SIZE];
	BUF_AUTO struct buf message;
	buf_init(&message, NOTE_SIZE_MAX + 64);
	note_cosigned_message(text, time_s, &message);
	if (buf_check(&message) || !ed25519_sign(witness->private_key, buf_slice(&message), signature))
		return ERR_NO_MEMORY;
	note_add_cosignature(&witness->key, time_s, signature, line);
	return buf_check(line);
}

/* Cosigns, and keeps the checkpoint; within the transaction, which it ends. */
static int accept(struct submission *submission, struct witness_answer *answer, struct error *error)
{
	struct witness *witness = submission->witness;
	const struct witness_record *known = &submission->known;
	int64_t now_s = clock_now_us() / US_PER_SECOND, age_s = now_s - known->cosigned_at_s;
	answer->status = 200;
	if (slice_equal(known->text, submission->note.text) && age_s >= 0 && age_s < FRESH_S) {
		witness_store_rollback(witness->store);
		buf_add_slice(&answer->body, known->cosignature);
		return buf_check(&answer->body);
	}
	if (now_s <= 0)
		return error_cause(error, ERR_CLOCK, "the clock is before 1970");
	int result = cosign(witness, submission->note.text, now_s, &answer->body);
	const struct witness_record record = {.checkpoint = submission->checkpoint,
	                                      .text = submission->note.text,
	                                      .signatures = buf_slice(submission->signatures),
	                                      .cosignature = buf_slice(&answer->body),
	                                      .cosigned_at_s = now_s};
	if (!result)
		result = witness_store_put(witness->store, &record, error);
	if (!result)
		result = witness_store_commit(witness->store, error);
	answer->is_new = !result && known->checkpoint.size != submission->checkpoint.size;
	return result;
}

static void write_known_note(const struct witness_record *record, struct buf *out)
{
	if (record->text.size == 0)
		return;
	buf_add_slice(out, record->text);
	buf_add_byte(out, '\n');
	buf_add_slice(out, record->signatures);
	buf_add_slice(out, record->cosignature);
}

/* Keeps a checkpoint that speaks against the log. */
static void keep_refusal(const struct submission *submission, struct witness_answer *answer)
{
	const struct checkpoint *given = &submission->checkpoint;
	const struct checkpoint *known = &submission->known.checkpoint;
	bool is_fork = given->size == known->size && !sha256_equal(&given->root, &known->root);
	if (!is_fork && submission->verdict != WITNESS_INCONSISTENT)
		return;
	BUF_AUTO struct buf note;
	buf_init(&note, ANSWER_MAX);
	write_known_note(&submission->known, &note);
	const struct witness_refusal refusal = {.kind = is_fork ? WITNESS_FORK : WITNESS_UNPROVEN,
	                                        .checkpoint = given,
	                                        .request = submission->body,
	                                        .known = buf_slice(&note),
	                                        .at_us = clock_now_us()};
	bool is_new = false;
	struct error *failure = &answer->failure;
	int result = buf_check(&note);
	if (!result)
		result = witness_refusals_keep(submission->witness->directory, &refusal, answer->kept_name,
		                               &is_new, failure);
	failure->code = result;
	if (is_new)
		answer->kept_kind = witness_refusal_text(refusal.kind);
}

static void refuse(struct submission *submission, struct witness_answer *answer)
{
	char size[24];
	switch (submission->verdict) {
	case WITNESS_INVALID_SIZE:
		answer_line(answer, 400, "The old size is above that of the checkpoint.");
		break;
	case WITNESS_OTHER_SIZE:
		snprintf(size, sizeof size, "%" PRIu64, submission->known.checkpoint.size);
		answer_line(answer, 409, size);
		answer->type = WITNESS_SIZE_TYPE;
		break;
	default:
		answer_line(answer, 422,
		            "The proof does not show that the tree begins with the known one.");
	}
	keep_refusal(submission, answer);
}

/* Decides in one transaction, so that no other request changes what is known meanwhile. */
static void decide(struct submission *submission, struct witness_answer *answer)
{
	struct witness *witness = submission->witness;
	struct error error = {0};
	int result = witness_store_begin(witness->store, &error);
	if (!result)
		result = find_known(witness, submission->checkpoint.origin, &submission->known, &error);
	if (!result) {
		submission->verdict = witness_decide(&submission->request, &submission->checkpoint,
		                                     &submission->known.checkpoint);
		if (submission->verdict == WITNESS_COSIGNS)
			result = accept(submission, answer, &error);
	}
	witness_store_rollback(witness->store);
	if (result)
		answer_failure(answer, &error, result);
	else if (submission->verdict != WITNESS_COSIGNS)
		refuse(submission, answer);
}

void witness_add_checkpoint(struct witness *witness, struct slice body, struct witness_answer *ret)
{
	BUF_AUTO struct buf signatures;
	struct submission submission = {.witness = witness, .body = body, .signatures = &signatures};
	struct error error = {0};
	answer_begin(ret);
	buf_init(&signatures, NOTE_SIZE_MAX);
	arena_reset(&witness->arena);
	int result = parse(&submission, &error);
	if (result == ERR_INVALID_EVIDENCE) {
		answer_line(ret, 400, error.cause);
		return;
	}
	int status = result ? 0 : check_signatures(&submission);
	if (!result && !status)
		result = buf_check(&signatures);
	if (result) {
		answer_failure(ret, &error, result);
	} else if (status) {
		answer_line(ret, status,
		            status == 404 ? "The log is unknown."
		                          : "The checkpoint has no valid signature of its log.");
	} else {
		memcpy(ret->origin, submission.checkpoint.origin, sizeof ret->origin);
		ret->size = submission.checkpoint.size;
		decide(&submission, ret);
	}
}

/* ---- checkpoint ---- */

static bool is_lower_case(struct slice text)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] >= 'A' && text.data[i] <= 'F')
			return false;
	return true;
}

void witness_get_checkpoint(struct witness *witness, struct slice origin_hash,
                            struct witness_answer *ret)
{
	struct sha256 hash;
	struct witness_record record;
	struct error error = {0};
	answer_begin(ret);
	arena_reset(&witness->arena);
	int result = ERR_NOT_FOUND;
	if (hex_decode(origin_hash, hash.bytes, sizeof hash.bytes) && is_lower_case(origin_hash))
		result = witness_store_find(witness->store, &hash, &witness->arena, &record, &error);
	if (!result) {
		ret->status = 200;
		write_known_note(&record, &ret->body);
		result = buf_check(&ret->body);
	}
	if (result == ERR_NOT_FOUND)
		answer_line(ret, 404, "No checkpoint of this log was cosigned.");
	else if (result)
		answer_failure(ret, &error, result);
}
