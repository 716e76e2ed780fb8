/* The verification of proofs against a log (monitor/log_proof.h). */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "archive/archive_lines.h"
#include "base/base64.h"
#include "monitor/log_proof.h"
#include "monitor/log_scan.h"
#include "monitor/log_watch.h"
#include "monitor/owned_chains.h"
#include "tlog/entry_proof.h"

struct checking {
	struct arena *arena;
	const struct log_proof *proof;
	const struct log_trust *trust;
	struct log_source *source;
	struct log_proof_verdict *verdict;
	struct error *error;
};

static int refuse(struct checking *checking, const char *why)
{
	return error_cause(checking->error, ERR_INVALID_EVIDENCE, "%s", why);
}

__attribute__((format(printf, 2, 3))) static void say(struct checking *checking, const char *format,
                                                      ...)
{
	va_list list;
	va_start(list, format);
	vsnprintf(checking->verdict->what, sizeof checking->verdict->what, format, list);
	va_end(list);
}

static void lacks(struct checking *checking, const char *what)
{
	char *missing = checking->verdict->missing;
	size_t size = strlen(missing);
	snprintf(missing + size, sizeof checking->verdict->missing - size, "%s%s", size ? "; " : "",
	         what);
}

static int judge_note(struct checking *checking, struct slice note, struct log_head *ret)
{
	char name[LOG_HEAD_NAME_SIZE];
	int result =
		log_head_judge(checking->arena, note, checking->trust->policy, ret, checking->error);
	if (result)
		return result;
	if (!ret->is_signed)
		return error_cause(checking->error, ERR_INVALID_EVIDENCE,
		                   "a checkpoint of %s is not signed by the key of that log that is given",
		                   log_head_name(ret, name));
	memcpy(checking->verdict->origin, ret->checkpoint.origin, sizeof checking->verdict->origin);
	return OK;
}

/* ---- two checkpoints ---- */

static int judge_notes(struct checking *checking, struct log_head heads[2])
{
	if (checking->proof->note_count != 2)
		return refuse(checking, "it must have two checkpoints");
	for (size_t i = 0; i < 2; i++) {
		int result = judge_note(checking, checking->proof->notes[i], &heads[i]);
		if (result)
			return result;
	}
	return strcmp(heads[0].checkpoint.origin, heads[1].checkpoint.origin) == 0
	           ? OK
	           : refuse(checking, "the checkpoints are of two logs");
}

static int check_two_trees(struct checking *checking)
{
	struct log_head heads[2];
	int result = judge_notes(checking, heads);
	if (result)
		return result;
	const struct checkpoint *a = &heads[0].checkpoint, *b = &heads[1].checkpoint;
	if (a->size != b->size || sha256_equal(&a->root, &b->root))
		return refuse(checking, "the checkpoints do not have one size and two roots");
	say(checking, "the log signed two different trees of %" PRIu64 " entries", a->size);
	return OK;
}

static int check_inconsistent(struct checking *checking)
{
	struct log_head heads[2];
	struct sha256 old_root, root;
	const struct log_proof *proof = checking->proof;
	int result = judge_notes(checking, heads);
	if (result)
		return result;
	const struct checkpoint *old = &heads[0].checkpoint, *now = &heads[1].checkpoint;
	if (old->size == 0 || old->size >= now->size)
		return refuse(checking, "the second checkpoint must be of a larger tree");
	if (!merkle_consistency_roots(old->size, now->size, proof->path, proof->path_count, &old_root,
	                              &root) ||
	    !sha256_equal(&root, &now->root))
		return refuse(checking, "the hashes do not lead to the root of the larger tree");
	if (sha256_equal(&old_root, &old->root))
		return refuse(checking, "the larger tree begins with the smaller one");
	say(checking,
	    "the log signed a tree of %" PRIu64 " entries, and one of %" PRIu64
	    " entries that does not begin with it: entries were changed or removed",
	    old->size, now->size);
	return OK;
}

static int check_shrunken(struct checking *checking)
{
	struct log_head heads[2];
	int result = judge_notes(checking, heads);
	if (result)
		return result;
	const struct log_head *old = &heads[0], *now = &heads[1];
	if (now->checkpoint.size >= old->checkpoint.size)
		return refuse(checking, "the second checkpoint is not of a smaller tree");
	say(checking,
	    "the log signed a tree of %" PRIu64 " entries, and was read with one of %" PRIu64
	    " entries after it",
	    old->checkpoint.size, now->checkpoint.size);
	/* No cosignature can show it: a witness that knew the larger tree refuses the smaller one, and
	 * another one may be behind. */
	lacks(checking, "that the smaller tree was served after the larger one, which only who read "
	                "it then can know");
	return OK;
}

/* ---- entries ---- */

static int judge_entry(struct checking *checking, size_t number, struct tlog_entry *ret,
                       struct entry_proof *ret_proof)
{
	const struct log_proof_entry *item = &checking->proof->entries[number];
	struct log_head head;
	char former[NOTE_NAME_MAX + 1];
	memcpy(former, checking->verdict->origin, sizeof former);
	int result = tlog_entry_read(checking->arena, item->entry, ret, checking->error);
	if (!result)
		result = entry_proof_parse(item->proof, ret_proof, checking->error);
	if (!result)
		result = judge_note(checking, ret_proof->checkpoint, &head);
	if (result)
		return result;
	if (number > 0 && strcmp(former, head.checkpoint.origin) != 0)
		return refuse(checking, "the entries are of two logs");
	const struct sha256 leaf = merkle_leaf(item->entry);
	return merkle_is_included(&leaf, ret_proof->index, head.checkpoint.size, &ret_proof->path,
	                          &head.checkpoint.root)
	           ? OK
	           : refuse(checking, "the path of an entry does not lead to the root");
}

static int check_overlap(struct checking *checking)
{
	struct tlog_entry entries[2];
	struct entry_proof proofs[2];
	if (checking->proof->entry_count != 2)
		return refuse(checking, "it must have two entries");
	for (size_t i = 0; i < 2; i++) {
		int result = judge_entry(checking, i, &entries[i], &proofs[i]);
		if (result)
			return result;
	}
	const struct tlog_entry *a = &entries[0], *b = &entries[1];
	if (!sha256_equal(&a->tag, &b->tag) || proofs[0].index == proofs[1].index)
		return refuse(checking, "the entries are not two of one chain");
	if (a->first_sequence > b->last_sequence || b->first_sequence > a->last_sequence)
		return refuse(checking, "the entries have no events in common");
	say(checking,
	    "entries %" PRIu64 " and %" PRIu64
	    " of the log are of one chain and have events in common: "
	    "%" PRId64 " to %" PRId64 " and %" PRId64 " to %" PRId64,
	    proofs[0].index, proofs[1].index, a->first_sequence, a->last_sequence, b->first_sequence,
	    b->last_sequence);
	return OK;
}

/* ---- receipts ---- */

/* A receipt without a signature may be of anybody's making. */
static int judge_signature(struct checking *checking, const struct receipt *receipt, bool is_valid)
{
	const struct log_trust *trust = checking->trust;
	const struct receipt_signature *signature = receipt->signature;
	if (!signature) {
		lacks(checking, "that the service made the receipt, which is not signed");
		return OK;
	}
	if (!is_valid)
		return refuse(checking, "the signature of the receipt is false");
	if (strcmp(signature->origin, checking->verdict->origin) != 0)
		return refuse(checking, "the receipt is of a service with another log");
	for (size_t i = 0; i < trust->receipt_key_count; i++)
		if (memcmp(trust->receipt_keys[i], signature->key, sizeof signature->key) == 0)
			return OK;
	char key[BASE64_SIZE(RECEIPT_PUBLIC_KEY_SIZE) + 1], what[256];
	base64_encode(signature->key, sizeof signature->key, key);
	snprintf(what, sizeof what,
	         "that the key %s, which signed the receipt, is the service's: its signed list of keys "
	         "would show it (--receipt-key)",
	         key);
	lacks(checking, what);
	return OK;
}

/* Reads the receipt and the tag of its chain. The origin of the verdict is known. */
static int judge_receipt(struct checking *checking, struct owned_receipt *ret,
                         struct sha256 *ret_tag)
{
	struct receipt receipt;
	bool is_valid;
	if (!checking->proof->receipt.data)
		return refuse(checking, "the receipt is missing");
	int result = owned_read_receipt(checking->arena, checking->proof->receipt, &receipt, ret,
	                                &is_valid, checking->error);
	if (result)
		return result;
	if (receipt.event.chain != MODE_LIVE)
		return refuse(checking, "the receipt is of a test chain");
	result = judge_signature(checking, &receipt, is_valid);
	if (!result && !tlog_tag(receipt.event.channel_id, mode_text(MODE_LIVE), ret_tag))
		return refuse(checking, "the receipt's channel_id is too long");
	return result;
}

static int check_receipt_differs(struct checking *checking)
{
	struct owned_receipt receipt;
	struct sha256 tag;
	struct tlog_entry entry;
	struct entry_proof place;
	if (checking->proof->entry_count != 1)
		return refuse(checking, "it must have one entry");
	int result = judge_entry(checking, 0, &entry, &place);
	if (!result)
		result = judge_receipt(checking, &receipt, &tag);
	if (result)
		return result;
	if (!sha256_equal(&tag, &entry.tag))
		return refuse(checking, "the entry is not of the receipt's chain");
	if (entry.last_sequence != receipt.sequence ||
	    sha256_equal(&entry.chain_hash_last, &receipt.chain_hash))
		return refuse(checking, "the entry does not contradict the receipt");
	say(checking,
	    "entry %" PRIu64 " of the log has another chain hash of event %" PRId64
	    " than its receipt: the service has two histories",
	    place.index, receipt.sequence);
	return OK;
}

struct promise {
	struct sha256 tag;
	int64_t sequence;
	int64_t first; /* of the chain's events in the log; INT64_MAX: it has none */
};

/* Returns 1 at an entry that covers the event. */
static int find_cover(void *context, uint64_t index, const struct tlog_entry *entry,
                      struct slice text, struct error *error)
{
	struct promise *promise = context;
	(void)text;
	(void)index;
	(void)error;
	if (!sha256_equal(&entry->tag, &promise->tag))
		return OK;
	if (entry->first_sequence < promise->first)
		promise->first = entry->first_sequence;
	return entry->first_sequence <= promise->sequence && entry->last_sequence >= promise->sequence;
}

static int search_log(struct checking *checking, const struct checkpoint *checkpoint,
                      struct promise *promise)
{
	const struct frontier empty = {0};
	const struct log_scan scan = {.source = checking->source,
	                              .checkpoint = checkpoint,
	                              .take = find_cover,
	                              .context = promise};
	int result = log_scan_run(&scan, &empty, checking->error);
	return result == 1 ? refuse(checking, "an entry of the log covers the event") : result;
}

/* Searches the log as it is now: the checkpoint of the proof may be an old one. */
static int search_now(struct checking *checking, const struct checkpoint *known,
                      struct promise *promise)
{
	struct log_head now;
	int result = log_head_read(checking->arena, checking->source, checking->trust->policy, &now,
	                           checking->error);
	if (result)
		return result;
	if (!now.is_signed || strcmp(now.checkpoint.origin, known->origin) != 0)
		return refuse(checking, "the log that was read is another one");
	if (now.checkpoint.size < known->size)
		lacks(checking, "what the log has now: it was read with a smaller tree");
	return search_log(checking, now.checkpoint.size < known->size ? known : &now.checkpoint,
	                  promise);
}

static int check_promise_broken(struct checking *checking)
{
	struct owned_receipt receipt;
	struct log_head head;
	struct promise promise;
	char until[TIME_TEXT_SIZE];
	if (checking->proof->note_count != 1)
		return refuse(checking, "it must have one checkpoint");
	int result = judge_note(checking, checking->proof->notes[0], &head);
	if (!result)
		result = judge_receipt(checking, &receipt, &promise.tag);
	if (result)
		return result;
	promise.sequence = receipt.sequence;
	promise.first = INT64_MAX;
	if (receipt.seal_by_us == TIME_NONE || receipt.seal_by_us >= checking->proof->observed_us)
		return refuse(checking, "the receipt promised nothing until that time");
	if (checking->source)
		result = search_now(checking, &head.checkpoint, &promise);
	if (result)
		return result;
	time_format(receipt.seal_by_us, until);
	say(checking,
	    "event %" PRId64 " was promised a sealed segment until %s, and the log of %" PRIu64
	    " entries has none: the service withholds it",
	    receipt.sequence, until, head.checkpoint.size);
	if (!checking->source)
		lacks(checking,
		      "that no entry covers the event: the entries of the log would show it (--url "
		      "or --dir)");
	if (promise.first != INT64_MAX && promise.first > promise.sequence)
		lacks(checking,
		      "that the event is not older than the log, whose entries of the chain begin "
		      "after it");
	if (!log_head_is_witnessed_after(&head, checking->trust->policy,
	                                 receipt.seal_by_us + WATCH_GRACE_US))
		lacks(checking, "that the checkpoint is later than the promise: cosignatures after it by a "
		                "quorum of witnesses would show it (--witness, --quorum, --policy)");
	return OK;
}

int log_proof_check(struct arena *arena, const struct log_proof *proof,
                    const struct log_trust *trust, struct log_source *source,
                    struct log_proof_verdict *ret, struct error *error)
{
	static int (*const checks[PROOF_KINDS])(struct checking *) = {
		check_two_trees, check_inconsistent,    check_shrunken,
		check_overlap,   check_receipt_differs, check_promise_broken};
	struct checking checking = {arena, proof, trust, source, ret, error};
	*ret = (struct log_proof_verdict){0};
	int result = checks[proof->kind](&checking);
	ret->is_shown = !result && !ret->missing[0];
	return result;
}
