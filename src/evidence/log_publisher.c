#include "evidence/log_publisher.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/schedule.h"
#include "net/http_multi.h"
#include "seal/signer.h"
#include "store/evidence/public_keys.h"
#include "store/tlog/log_records.h"
#include "tlog/checkpoint.h"
#include "tlog/policy.h"
#include "tlog/witness_request.h"

#define CHECKPOINT_MEMORY_MAX ((size_t)512 << 10)
#define KEYS_MEMORY_MAX ((size_t)1 << 20)
#define PAUSE_FIRST_US US_PER_SECOND
#define PAUSE_MAX_US (60 * US_PER_SECOND)
#define CONFLICTS_MAX 2              /* of sizes, before a witness counts as failing */
#define QUORUM_WAIT_US US_PER_SECOND /* for further cosignatures, once there is a quorum */

/* A witness and the exchange with it. */
struct witness {
	struct log_witness given;
	uint64_t known_size; /* of the last tree that it cosigned, as far as is known */
	bool busy;
	bool cosigned;       /* the current checkpoint */
	uint64_t asked_size; /* of the checkpoint that it was asked about last */
	struct slice text;   /* of that one, in `body` */
	int64_t failures;
	int64_t conflicts;     /* answers 409 since the last cosignature */
	int64_t not_before_us; /* monotonic */
	char url[1100];
	struct buf body;
	struct http_exchange exchange;
};

struct log_publisher {
	struct service *service;
	char origin[NOTE_NAME_MAX + 1];
	struct note_key key; /* of the log */
	struct http_multi *many;
	struct address_guard guard;
	size_t count;
	struct witness witnesses[LOG_WITNESSES_MAX];
	/* The current checkpoint: the newest one. */
	struct arena arena;
	struct log_checkpoint current; /* size 0: none */
	struct slice text;             /* of its note */
	struct buf cosignatures;
	struct buf stored;      /* cosignatures in the store */
	int64_t asked_since_us; /* monotonic */
	struct tile_reader reader;
};

/* ---- proofs ---- */

static int read_tile(void *context, const struct tile_id *id, struct sha256 *ret_hashes,
                     struct error *error)
{
	return store_read_log_tile(context, id, ret_hashes, error);
}

/* Appends the request about a checkpoint to one that knows the tree of `old_size`. */
static int write_request(struct log_publisher *publisher, uint64_t old_size, uint64_t size,
                         struct slice checkpoint, struct buf *out, struct error *error)
{
	const struct tile_store tiles = {.read = read_tile, .context = publisher->service->store};
	struct witness_request request = {.old_size = old_size, .checkpoint = checkpoint};
	const struct merkle_source source = tile_reader_init(&publisher->reader, &tiles, size);
	int result = merkle_prove_consistency(&source, old_size, size, &request.path, error);
	if (result)
		return result;
	buf_clear(out);
	witness_request_write(&request, out);
	return buf_check(out);
}

/* ---- signing ---- */

/* Has the signing process sign the text of a checkpoint. It proves from the stored tiles that the
 * tree begins with the one that the process signed last; ERR_CORRUPT: it does not. */
static int sign_text(struct log_publisher *publisher, uint64_t known_size, uint64_t size,
                     struct slice text, uint8_t signature[SIGNER_LOG_SIGNATURE_SIZE],
                     struct error *error)
{
	BUF_AUTO struct buf request;
	buf_init(&request, WITNESS_REQUEST_MAX);
	int result = write_request(publisher, known_size, size, text, &request, error);
	if (!result)
		result = signer_sign_checkpoint(publisher->service->signer, buf_slice(&request), signature,
		                                error);
	return result == ERR_REFUSED ? error_cause(error, ERR_CORRUPT,
	                                           "the tree of %" PRIu64
	                                           " entries does not begin with the one of %" PRIu64
	                                           " that was signed: the store was set back",
	                                           size, known_size)
	                             : result;
}

static int check_size(uint64_t known_size, uint64_t size, struct error *error)
{
	return known_size <= size
	           ? OK
	           : error_cause(error, ERR_CORRUPT,
	                         "the log has %" PRIu64 " entries, and a checkpoint of %" PRIu64
	                         " was signed: the store was set back",
	                         size, known_size);
}

static int check_not_ended(struct log_publisher *publisher, struct error *error)
{
	bool ended = false;
	int result = store_get_log_end(publisher->service->store, publisher->origin, &ended, error);
	return !result && ended
	           ? error_cause(error, ERR_CORRUPT,
	                         "the log %s ended when the store was set back and that was confirmed; "
	                         "set log.origin to a new name on all nodes",
	                         publisher->origin)
	           : result;
}

static int sign_head(struct log_publisher *publisher, const struct log_head *head,
                     struct error *error)
{
	struct checkpoint checkpoint = {.size = head->size, .root = head->root};
	memcpy(checkpoint.origin, publisher->origin, sizeof checkpoint.origin);
	BUF_AUTO struct buf text, note;
	buf_init(&text, NOTE_SIZE_MAX);
	buf_init(&note, NOTE_SIZE_MAX);
	checkpoint_write(&checkpoint, &text);
	uint64_t known_size;
	struct sha256 known_root;
	uint8_t signature[SIGNER_LOG_SIGNATURE_SIZE];
	int result = check_not_ended(publisher, error);
	if (!result)
		result = signer_get_checkpoint(publisher->service->signer, publisher->origin, &known_size,
		                               &known_root, error);
	if (!result)
		result = check_size(known_size, head->size, error);
	if (!result)
		result = sign_text(publisher, known_size, head->size, buf_slice(&text), signature, error);
	if (result)
		return result;
	buf_add_slice(&note, buf_slice(&text));
	buf_add_byte(&note, '\n');
	note_add_signature(&publisher->key, signature, &note);
	const struct log_checkpoint made = {.origin = publisher->origin,
	                                    .size = head->size,
	                                    .root = head->root,
	                                    .signed_at_us = clock_now_us(),
	                                    .note = buf_slice(&note),
	                                    .is_final = publisher->count == 0};
	result = buf_check(&note);
	return result ? result : store_add_log_checkpoint(publisher->service->store, &made, error);
}

/* ---- the current checkpoint ---- */

/* Keeps the cosignatures that are of no witness, which was named once, or that verify. */
static void keep_lines(struct log_publisher *publisher, const struct note *lines)
{
	for (size_t i = 0; i < lines->count; i++) {
		bool is_false = false;
		for (size_t j = 0; j < publisher->count; j++)
			is_false = is_false || (!publisher->witnesses[j].cosigned &&
			                        note_signature_is_of(&lines->signatures[i],
			                                             &publisher->witnesses[j].given.key));
		if (!is_false)
			buf_add_slice(&publisher->cosignatures, lines->signatures[i].line);
	}
}

/* Finds out which witnesses have cosigned it: those of an earlier run of the service, too. What no
 * reader takes is dropped by the next change. */
static int read_cosignatures(struct log_publisher *publisher, struct error *error)
{
	struct note lines = {0};
	const struct slice stored = publisher->current.cosignatures;
	BUF_AUTO struct buf readable;
	buf_init(&readable, NOTE_SIZE_MAX);
	buf_clear(&publisher->stored);
	buf_add_slice(&publisher->stored, stored);
	buf_clear(&publisher->cosignatures);
	int result = note_add_readable(stored, &readable);
	if (!result && readable.size > 0)
		result = note_parse_signatures(&publisher->arena, buf_slice(&readable), &lines, error);
	publisher->current.cosigners = 0;
	for (size_t i = 0; !result && i < publisher->count; i++) {
		struct witness *witness = &publisher->witnesses[i];
		witness->cosigned =
			note_verify_text(publisher->text, &lines, &witness->given.key, NULL) == NOTE_SIGNED;
		publisher->current.cosigners += witness->cosigned;
	}
	if (!result)
		keep_lines(publisher, &lines);
	if (!result)
		result = buf_check(&publisher->cosignatures);
	return result ? result : buf_check(&publisher->stored);
}

/* Witnesses and monitors know the log by its origin and one key. */
static int check_key(const struct log_publisher *publisher, const struct note *note,
                     struct error *error)
{
	return note_verify(note, &publisher->key, NULL) == NOTE_SIGNED
	           ? OK
	           : error_cause(
					 error, ERR_REFUSED,
					 "the log %s was signed by another key than this node's; give all nodes "
					 "the same log.key, or set log.origin to a new name",
					 publisher->origin);
}

/* Reads the newest checkpoint, which another node may have signed. */
static int read_newest(struct log_publisher *publisher, struct error *error)
{
	struct note note;
	arena_reset(&publisher->arena);
	publisher->asked_since_us = clock_monotonic_us();
	int result =
		store_get_newest_checkpoint(publisher->service->store, publisher->origin, CHECKPOINT_ANY,
	                                &publisher->arena, &publisher->current, error);
	if (!result)
		result = note_parse(&publisher->arena, publisher->current.note, &note, error);
	if (!result)
		result = check_key(publisher, &note, error);
	if (!result) {
		publisher->text = note.text;
		result = read_cosignatures(publisher, error);
	}
	if (result)
		publisher->current = (struct log_checkpoint){0};
	return result == ERR_NOT_FOUND ? OK : result;
}

/* Lets this node's signing process know the newest checkpoint, of another node, as its own last
 * one: if the store is set back later, it refuses other trees as the node that signed does. It
 * signs the same text again, which gives the same signature. */
static int take_over(struct log_publisher *publisher, struct error *error)
{
	const struct log_checkpoint *current = &publisher->current;
	uint8_t signature[SIGNER_LOG_SIGNATURE_SIZE];
	uint64_t known_size;
	struct sha256 known_root;
	if (current->size == 0)
		return OK;
	int result = signer_get_checkpoint(publisher->service->signer, publisher->origin, &known_size,
	                                   &known_root, error);
	if (result || known_size > current->size)
		return result; /* signed, and not stored: the next one is checked when it is signed */
	if (known_size < current->size)
		return sign_text(publisher, known_size, current->size, publisher->text, signature, error);
	return sha256_equal(&known_root, &current->root)
	           ? OK
	           : error_cause(error, ERR_CORRUPT,
	                         "another tree of %" PRIu64
	                         " entries was signed: the store was set back",
	                         known_size);
}

/* Signs the head of the log unless that was done, also by another node, and makes the newest
 * checkpoint the current one. A checkpoint that is not final stays the current one: if rounds are
 * more frequent than answers of witnesses, there would otherwise never be a final one. */
static int follow_head(struct log_publisher *publisher, struct error *error)
{
	struct log_head head;
	if (publisher->current.size > 0 && !publisher->current.is_final)
		return OK;
	int result = store_get_log_head(publisher->service->store, &head, error);
	if (result || head.size == 0 || head.size == publisher->current.size)
		return result;
	result = read_newest(publisher, error);
	if (!result)
		result = take_over(publisher, error);
	if (result || publisher->current.size >= head.size)
		return result;
	result = sign_head(publisher, &head, error);
	return result ? result : read_newest(publisher, error);
}

static int keep_cosignatures(struct log_publisher *publisher, struct error *error)
{
	struct log_checkpoint *current = &publisher->current;
	int64_t count = 0;
	for (size_t i = 0; i < publisher->count; i++)
		count += publisher->witnesses[i].cosigned;
	current->cosignatures = buf_slice(&publisher->cosignatures);
	current->cosigners = count;
	int result = store_set_cosignatures(publisher->service->store, current,
	                                    buf_slice(&publisher->stored), error);
	if (result)
		return result;
	buf_clear(&publisher->stored);
	buf_add_slice(&publisher->stored, current->cosignatures);
	return buf_check(&publisher->stored);
}

/* Returns whether the wait for cosignatures is over. A witness whose request failed is asked again
 * after a pause, for which nothing waits unless the quorum needs it. */
static bool is_concluded(const struct log_publisher *publisher)
{
	const struct settings *settings = publisher->service->settings;
	int64_t now_us = clock_monotonic_us(), waited_us = now_us - publisher->asked_since_us;
	bool has_quorum = publisher->current.cosigners >= settings->log_quorum;
	bool all = true, awaited = false;
	for (size_t i = 0; i < publisher->count; i++) {
		const struct witness *witness = &publisher->witnesses[i];
		all = all && witness->cosigned;
		awaited =
			awaited || (!witness->cosigned && (witness->busy || now_us >= witness->not_before_us));
	}
	return all || waited_us > settings->log_witness_timeout ||
	       (has_quorum && (!awaited || (settings->log_quorum > 0 && waited_us > QUORUM_WAIT_US)));
}

/* Makes the current checkpoint final once the wait for cosignatures is over. Later ones are added
 * while it is the current one. */
static int conclude(struct log_publisher *publisher, struct error *error)
{
	struct log_checkpoint *current = &publisher->current;
	if (current->size == 0 || current->is_final || !is_concluded(publisher))
		return OK;
	current->is_final = true;
	int result = keep_cosignatures(publisher, error);
	current->is_final = !result;
	if (!result && current->cosigners < publisher->service->settings->log_quorum) {
		char size[24], cosigners[24];
		snprintf(size, sizeof size, "%" PRIu64, current->size);
		snprintf(cosigners, sizeof cosigners, "%" PRId64, current->cosigners);
		log_warning("log_quorum_missing", "size", size, "cosigners", cosigners);
		atomic_fetch_add(&publisher->service->counters.log_quorums_missing, 1);
	}
	return result;
}

/* ---- exchanges ---- */

static void delay(struct witness *witness)
{
	witness->failures++;
	witness->not_before_us =
		clock_monotonic_us() + backoff_us(witness->failures, PAUSE_FIRST_US, PAUSE_MAX_US);
}

static void report(struct log_publisher *publisher, struct witness *witness, const char *cause)
{
	/* Not each time: a witness may be away for days. */
	if (witness->failures == 0 || witness->failures == 10)
		log_warning("log_witness_failed", "witness", witness->given.key.name, "cause", cause);
	atomic_fetch_add(&publisher->service->counters.log_witness_failures, 1);
	delay(witness);
}

/* A witness that does not accept a consistent tree has seen another one of this log: somebody has
 * a copy of the store, or set it back. */
static void report_refusal(struct log_publisher *publisher, struct witness *witness,
                           const char *cause)
{
	log_error("log_witness_refuses", "witness", witness->given.key.name, "cause", cause);
	atomic_fetch_add(&publisher->service->counters.log_witness_refusals, 1);
	delay(witness);
}

/* Takes the cosignature of an answer. */
static int take_cosignature(struct log_publisher *publisher, struct witness *witness,
                            struct error *error)
{
	const struct log_checkpoint *current = &publisher->current;
	struct note lines;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, CHECKPOINT_MEMORY_MAX);
	int result =
		note_parse_signatures(&arena, buf_slice(&witness->exchange.answer.body), &lines, error);
	if (!result &&
	    note_verify_text(witness->text, &lines, &witness->given.key, NULL) != NOTE_SIGNED)
		result = error_cause(error, ERR_INVALID_EVIDENCE, "no valid cosignature of its key");
	if (result)
		return result;
	witness->failures = witness->conflicts = 0;
	witness->known_size = witness->asked_size;
	if (witness->asked_size != current->size || witness->cosigned)
		return OK;
	/* The first line, which was verified: a witness must not fill the note with its own. */
	size_t i = 0;
	while (!note_signature_is_of(&lines.signatures[i], &witness->given.key))
		i++;
	buf_add_slice(&publisher->cosignatures, lines.signatures[i].line);
	witness->cosigned = true;
	result = buf_check(&publisher->cosignatures);
	return result ? result : keep_cosignatures(publisher, error);
}

/* Returns whether this log has signed a tree of that size or more: on another node, if this one has
 * lost the job. */
static int has_signed(struct log_publisher *publisher, uint64_t size, bool *ret,
                      struct error *error)
{
	struct log_checkpoint newest;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, CHECKPOINT_MEMORY_MAX);
	int result = store_get_newest_checkpoint(publisher->service->store, publisher->origin,
	                                         CHECKPOINT_ANY, &arena, &newest, error);
	*ret = !result && newest.size >= size;
	return result == ERR_NOT_FOUND ? OK : result;
}

/* The witness knows a tree of another size. It is asked again, with the proof from there. */
static int take_size(struct log_publisher *publisher, struct witness *witness, struct slice body,
                     struct error *error)
{
	uint64_t size;
	bool is_signed = true;
	int result = OK;
	if (body.size > 0 && body.data[body.size - 1] == '\n')
		body.size--;
	if (!checkpoint_parse_size(body, &size)) {
		report(publisher, witness, "409 without a size");
		return OK;
	}
	bool is_ahead = size > publisher->current.size;
	witness->known_size = is_ahead ? publisher->current.size : size;
	if (!is_ahead && ++witness->conflicts > CONFLICTS_MAX)
		report(publisher, witness, "409 again, although it was given the proof from its size");
	if (is_ahead)
		result = has_signed(publisher, size, &is_signed, error);
	if (!result && !is_signed)
		report_refusal(publisher, witness, "it has cosigned a larger tree of this log");
	else if (is_ahead)
		delay(witness);
	return result;
}

static int take_answer(struct log_publisher *publisher, struct witness *witness,
                       struct error *error)
{
	struct http_exchange *exchange = &witness->exchange;
	struct error detail = {0};
	char status[64];
	int result = OK;
	witness->busy = false;
	if (exchange->result) {
		report(publisher, witness, error_reason(&exchange->error, exchange->result));
		return OK;
	}
	const struct slice body = buf_slice(&exchange->answer.body);
	snprintf(status, sizeof status, "status %d", exchange->answer.status);
	switch (exchange->answer.status) {
	case 200:
		result = take_cosignature(publisher, witness, &detail);
		if (result == ERR_INVALID_EVIDENCE) {
			report(publisher, witness, detail.cause);
			result = OK;
		} else if (result && error) {
			*error = detail;
		}
		break;
	case 409: result = take_size(publisher, witness, body, error); break;
	case 422: report_refusal(publisher, witness, status); break;
	default: report(publisher, witness, status);
	}
	http_answer_free(&exchange->answer);
	return result;
}

/* Asks each witness that has not cosigned the current checkpoint. */
static int ask_witnesses(struct log_publisher *publisher, struct error *error)
{
	int64_t now_us = clock_monotonic_us();
	int result = OK;
	for (size_t i = 0; i < publisher->count && !result; i++) {
		struct witness *witness = &publisher->witnesses[i];
		if (witness->busy || witness->cosigned || publisher->current.size == 0 ||
		    now_us < witness->not_before_us)
			continue;
		uint64_t size = publisher->current.size;
		if (witness->known_size > size)
			witness->known_size = 0;
		result = write_request(publisher, witness->known_size, size, publisher->current.note,
		                       &witness->body, error);
		/* The note ends the body, and its text begins it. */
		const struct slice body = buf_slice(&witness->body);
		witness->text =
			slice_make(body.data + body.size - publisher->current.note.size, publisher->text.size);
		witness->asked_size = size;
		witness->exchange = (struct http_exchange){
			.request = {.url = witness->url,
		                .body = body,
		                .content_type = "text/plain; charset=utf-8",
		                .timeout_ms =
		                    (int)(publisher->service->settings->log_witness_timeout / 1000),
		                .allow_http = true,
		                .guard = &publisher->guard},
			.context = witness};
		if (!result) {
			witness->busy = true;
			http_multi_submit(publisher->many, &witness->exchange);
		}
	}
	return result;
}

static int collect(struct log_publisher *publisher, int64_t wait_us, struct error *error)
{
	int result = OK;
	struct http_exchange *exchange =
		publisher->many ? http_multi_collect(publisher->many, wait_us) : NULL;
	while (exchange) {
		struct http_exchange *next = exchange->next;
		int taken = take_answer(publisher, exchange->context, error);
		result = result ? result : taken;
		exchange = next;
	}
	return result;
}

/* Returns whether an answer may come soon, or a witness can be asked. */
static bool is_asking(const struct log_publisher *publisher)
{
	int64_t now_us = clock_monotonic_us();
	for (size_t i = 0; i < publisher->count; i++) {
		const struct witness *witness = &publisher->witnesses[i];
		if (witness->busy || (!witness->cosigned && now_us >= witness->not_before_us))
			return !log_publisher_is_done(publisher);
	}
	return false;
}

int log_publisher_run(struct log_publisher *publisher, int64_t wait_us, struct error *error)
{
	int64_t left_us = wait_us, until_us = clock_monotonic_us() + wait_us;
	int result = follow_head(publisher, error);
	/* A witness that answers with its size is asked again at once. */
	do {
		if (!result)
			result = ask_witnesses(publisher, error);
		if (!result)
			result = collect(publisher, is_asking(publisher) ? left_us : 0, error);
		if (!result)
			result = conclude(publisher, error);
		left_us = until_us - clock_monotonic_us();
	} while (!result && left_us > 0 && is_asking(publisher));
	return result;
}

int log_publisher_follow(struct log_publisher *publisher, struct error *error)
{
	int result = read_newest(publisher, error);
	bool has_other_key = result == ERR_REFUSED; /* then this node signs nothing */
	if (!result)
		result = take_over(publisher, error);
	log_publisher_forget(publisher);
	if (has_other_key)
		error_clear(error);
	return has_other_key ? OK : result;
}

void log_publisher_forget(struct log_publisher *publisher)
{
	publisher->current = (struct log_checkpoint){0};
}

bool log_publisher_is_done(const struct log_publisher *publisher)
{
	return publisher->current.size == 0 || publisher->current.is_final;
}

/* ---- the settings ---- */

static int parse_witness(struct slice item, struct log_witness *ret, struct error *error)
{
	struct error detail = {0};
	const char *space = item.size > 0 ? memchr(item.data, ' ', item.size) : NULL;
	if (!space)
		return error_cause(error, ERR_VALIDATION, "each must be a verifier key, a space and a URL");
	struct slice key = slice_make(item.data, (size_t)(space - item.data));
	struct slice url = slice_make(space + 1, item.size - key.size - 1);
	while (url.size > 0 && url.data[url.size - 1] == '/')
		url.size--;
	if (note_key_parse(key, &ret->key, &detail))
		return error_cause(error, ERR_VALIDATION, "a key is not valid: %s", detail.cause);
	if (ret->key.type != NOTE_COSIGNATURE)
		return error_cause(error, ERR_VALIDATION, "the key of %s must be of type 4 (cosignatures)",
		                   ret->key.name);
	if (url.size >= sizeof ret->url)
		return error_cause(error, ERR_VALIDATION, "a URL is too long");
	memcpy(ret->url, url.data, url.size);
	ret->url[url.size] = '\0';
	struct error why = {0};
	return http_url_check(url, true, "log.witnesses", &why)
	           ? error_cause(error, ERR_VALIDATION,
	                         "the URL of %s must begin with https:// or http://", ret->key.name)
	           : OK;
}

static struct slice trim(struct slice text)
{
	while (text.size > 0 && text.data[0] == ' ')
		text = slice_make(text.data + 1, text.size - 1);
	while (text.size > 0 && text.data[text.size - 1] == ' ')
		text.size--;
	return text;
}

int log_witnesses_parse(const char *list, struct log_witness witnesses[LOG_WITNESSES_MAX],
                        size_t *ret_count, struct error *error)
{
	struct slice rest = slice_of(list);
	int result = OK;
	*ret_count = 0;
	while (!result && rest.size > 0) {
		const char *comma = memchr(rest.data, ',', rest.size);
		size_t size = comma ? (size_t)(comma - rest.data) : rest.size;
		if (*ret_count == LOG_WITNESSES_MAX)
			return error_cause(error, ERR_VALIDATION, "there are more than %d", LOG_WITNESSES_MAX);
		struct log_witness *witness = &witnesses[*ret_count];
		result = parse_witness(trim(slice_make(rest.data, size)), witness, error);
		for (size_t i = 0; !result && i < *ret_count; i++)
			if (memcmp(witnesses[i].key.key, witness->key.key, NOTE_KEY_SIZE) == 0)
				result = error_cause(error, ERR_VALIDATION, "two keys are the same");
		*ret_count += !result;
		size += comma != NULL;
		rest = slice_make(rest.data + size, rest.size - size);
	}
	return result;
}

struct known_keys {
	struct note_key keys[POLICY_LOGS_MAX];
	size_t count;
};

/* A policy has each key once, under whatever name. */
static void add_known_key(struct known_keys *known, const struct note_key *key, struct buf *out)
{
	char vkey[NOTE_VKEY_SIZE];
	for (size_t i = 0; i < known->count; i++)
		if (memcmp(known->keys[i].key, key->key, sizeof key->key) == 0)
			return;
	if (known->count == POLICY_LOGS_MAX)
		return;
	known->keys[known->count++] = *key;
	note_key_write(key, vkey);
	buf_printf(out, "log %s\n", vkey);
}

/* Writes the keys with which nodes of this service sign the log or have signed it: this node's
 * first, then the newest ones; not those whose use was ended. */
static int write_logs(const struct service *service, struct buf *out, struct error *error)
{
	struct known_keys known = {0};
	const struct note_key own =
		note_key_make(service->log_origin, NOTE_ED25519, signer_log_key(service->signer));
	struct public_key *items;
	size_t count;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, KEYS_MEMORY_MAX);
	int result =
		store_list_public_keys(service->store, PUBLIC_KEY_LOG, &arena, &items, &count, error);
	add_known_key(&known, &own, out);
	for (size_t i = result ? 0 : count; i > 0; i--) {
		struct note_key key;
		if (items[i - 1].used_until_us == TIME_NONE &&
		    !note_key_parse(slice_of(items[i - 1].key), &key, NULL))
			add_known_key(&known, &key, out);
	}
	return result;
}

int log_policy_write(const struct service *service, struct buf *out, struct error *error)
{
	char vkey[NOTE_VKEY_SIZE];
	struct log_witness witnesses[LOG_WITNESSES_MAX];
	size_t count;
	int result = log_witnesses_parse(service->settings->log_witnesses, witnesses, &count, error);
	if (result)
		return result;
	result = write_logs(service, out, error);
	if (result)
		return result;
	for (size_t i = 0; i < count; i++) {
		note_key_write(&witnesses[i].key, vkey);
		buf_printf(out, "witness %s %s\n", witnesses[i].key.name, vkey);
	}
	buf_add_text(out, "quorum none\n");
	return buf_check(out);
}

int log_publisher_make(struct service *service, struct log_publisher **ret, struct error *error)
{
	struct log_witness given[LOG_WITNESSES_MAX];
	struct log_publisher *publisher = calloc(1, sizeof *publisher);
	if (!publisher)
		return ERR_NO_MEMORY;
	publisher->service = service;
	arena_init(&publisher->arena, CHECKPOINT_MEMORY_MAX);
	buf_init(&publisher->cosignatures, NOTE_SIZE_MAX);
	buf_init(&publisher->stored, 16 * NOTE_SIZE_MAX);
	memcpy(publisher->origin, service->log_origin, sizeof publisher->origin);
	publisher->key =
		note_key_make(publisher->origin, NOTE_ED25519, signer_log_key(service->signer));
	int result =
		log_witnesses_parse(service->settings->log_witnesses, given, &publisher->count, error);
	if (!result)
		result = network_list_parse(slice_of(service->settings->log_allow_networks),
		                            &publisher->guard.allowed, error);
	for (size_t i = 0; i < publisher->count; i++) {
		struct witness *witness = &publisher->witnesses[i];
		witness->given = given[i];
		snprintf(witness->url, sizeof witness->url, "%s/add-checkpoint", given[i].url);
		buf_init(&witness->body, WITNESS_REQUEST_MAX);
	}
	if (!result && publisher->count > 0)
		result = http_multi_start(&publisher->many, error);
	if (result)
		log_publisher_free(publisher);
	else
		*ret = publisher;
	return result;
}

void log_publisher_free(struct log_publisher *publisher)
{
	if (!publisher)
		return;
	struct http_exchange *left = publisher->many ? http_multi_stop(publisher->many) : NULL;
	for (; left; left = left->next)
		if (!left->result)
			http_answer_free(&left->answer);
	for (size_t i = 0; i < publisher->count; i++)
		buf_free(&publisher->witnesses[i].body);
	buf_free(&publisher->cosignatures);
	buf_free(&publisher->stored);
	arena_free(&publisher->arena);
	free(publisher);
}
