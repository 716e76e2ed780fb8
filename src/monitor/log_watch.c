#include "monitor/log_watch.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "monitor/watch_state.h"
#include "tlog/entry_proof.h"

#define SHRUNKEN_READS 3 /* a cache may still serve an earlier checkpoint */

/* An entry that is wrong, until the scan has shown that it is in the log. */
struct wrong_entry {
	size_t chain;
	uint64_t index;
	struct tlog_entry entry;
	char text[TLOG_ENTRY_MAX];
	size_t text_size;
	enum span_verdict verdict;    /* SPAN_FOLLOWS: a receipt differs */
	struct owned_receipt receipt; /* that one */
	/* The entry that it overlaps. */
	bool has_earlier;
	uint64_t earlier_index;
	struct tlog_entry earlier;
	char earlier_text[TLOG_ENTRY_MAX];
	size_t earlier_size;
};

struct watch {
	struct log_source *source;
	struct owned_chains *owned;
	const struct watch_options *options;
	struct arena *arena;
	struct watch_result *result;
	struct watch_state before, after; /* chains of `after` in the order of owned->chains */
	struct log_head old;              /* of `before` */
	struct tile_reader reader;
	struct merkle_source tree; /* of the new checkpoint */
	int64_t begun_us;
	struct wrong_entry wrong[WATCH_FINDINGS_MAX];
	size_t wrong_count;
	bool cannot_prove; /* the log does not serve what proofs need */
};

/* ---- findings ---- */

/* Counts a finding, and keeps it if there are not too many. */
__attribute__((format(printf, 4, 5))) static void add_finding(struct watch *watch, const char *kind,
                                                              bool is_proved, const char *format,
                                                              ...)
{
	struct watch_result *result = watch->result;
	if (result->finding_count++ >= WATCH_FINDINGS_MAX)
		return;
	struct watch_finding *finding = &result->findings[result->finding_count - 1];
	finding->kind = kind;
	finding->is_proved = is_proved;
	va_list list;
	va_start(list, format);
	vsnprintf(finding->what, sizeof finding->what, format, list);
	va_end(list);
}

/* What does not fit is left out: the first proofs suffice. */
static void add_proof(struct watch *watch, struct log_proof *proof)
{
	struct buf *proofs = &watch->result->proofs;
	BUF_AUTO struct buf text;
	buf_init(&text, LOG_PROOF_MAX);
	if (watch->result->finding_count >= WATCH_FINDINGS_MAX)
		return;
	proof->observed_us = watch->begun_us;
	log_proof_write(proof, &text);
	buf_add_byte(&text, '\n');
	if (!buf_check(&text) && text.size <= WATCH_PROOFS_MAX - proofs->size)
		buf_add_slice(proofs, buf_slice(&text));
}

/* ---- the checkpoint ---- */

static int read_old_head(struct watch *watch, struct error *error)
{
	struct error detail = {0};
	watch->result->is_first = watch->before.note.size == 0;
	if (watch->result->is_first)
		return OK;
	int result = log_head_judge(watch->arena, watch->before.note, watch->options->policy,
	                            &watch->old, &detail);
	if (result == ERR_NO_MEMORY)
		return result;
	if (result || !watch->old.is_signed)
		return error_cause(error, ERR_CORRUPT,
		                   "the checkpoint in %s is not signed by the given key of the log%s%s",
		                   watch->options->state, result ? ": " : "", result ? detail.cause : "");
	return OK;
}

/* Reads the checkpoint; an earlier one than the last, which caches may serve, some more times. */
static int read_head(struct watch *watch, struct error *error)
{
	struct log_head *head = &watch->result->head;
	int result = OK;
	for (int i = 0; i < SHRUNKEN_READS && !result; i++) {
		if (i > 0)
			(void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
		result = log_head_read(watch->arena, watch->source, watch->options->policy, head, error);
		if (watch->result->is_first || head->checkpoint.size >= watch->old.checkpoint.size)
			break;
	}
	if (result || watch->result->is_first || !head->is_signed)
		return result;
	return strcmp(head->checkpoint.origin, watch->old.checkpoint.origin) == 0
	           ? OK
	           : error_cause(error, ERR_INVALID_EVIDENCE,
	                         "the checkpoint is of the log %s, and the state of %s",
	                         head->checkpoint.origin, watch->old.checkpoint.origin);
}

static void add_head_finding(struct watch *watch, enum log_proof_kind kind, struct log_proof *proof)
{
	const struct log_head *old = &watch->old, *now = &watch->result->head;
	static const char *const texts[] = {
		[PROOF_TWO_TREES] = "the log signed two different trees of one size",
		[PROOF_INCONSISTENT] = "the log was rewritten: its tree does not begin with the one before",
		[PROOF_SHRUNKEN] = "the log lost entries",
	};
	proof->kind = kind;
	proof->notes[0] = old->note;
	proof->notes[1] = now->note;
	proof->note_count = 2;
	add_proof(watch, proof);
	add_finding(watch, log_proof_kind_text(kind), true,
	            "%s (%" PRIu64 " entries before, %" PRIu64 " now)", texts[kind],
	            old->checkpoint.size, now->checkpoint.size);
}

/* Reads the hashes of a consistency proof from the tiles, with the old tree's root if it is a node.
 */
static int read_path(struct watch *watch, struct log_proof *proof, struct error *error)
{
	const uint64_t old_size = watch->old.checkpoint.size;
	struct merkle_path path;
	bool is_node = (old_size & (old_size - 1)) == 0;
	int result = merkle_prove_consistency(&watch->tree, old_size,
	                                      watch->result->head.checkpoint.size, &path, error);
	if (!result && is_node)
		result = watch->tree.read(watch->tree.context, 63 - (unsigned)__builtin_clzll(old_size), 0,
		                          &proof->path[0], error);
	if (result)
		return result;
	memcpy(proof->path + is_node, path.hashes, path.count * sizeof *path.hashes);
	proof->path_count = path.count + is_node;
	return OK;
}

static int compare_trees(struct watch *watch, struct error *error)
{
	const struct checkpoint *old = &watch->old.checkpoint, *now = &watch->result->head.checkpoint;
	struct log_proof proof = {0};
	struct sha256 old_root, root;
	if (watch->result->is_first || old->size == 0)
		return OK;
	if (now->size < old->size) {
		add_head_finding(watch, PROOF_SHRUNKEN, &proof);
		return OK;
	}
	if (now->size == old->size) {
		if (!sha256_equal(&now->root, &old->root))
			add_head_finding(watch, PROOF_TWO_TREES, &proof);
		return OK;
	}
	int result = read_path(watch, &proof, error);
	if (result)
		return result;
	if (!merkle_consistency_roots(old->size, now->size, proof.path, proof.path_count, &old_root,
	                              &root) ||
	    !sha256_equal(&root, &now->root))
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "the tiles of the log do not lead to the root of its checkpoint of "
		                   "%" PRIu64 " entries",
		                   now->size);
	if (!sha256_equal(&old_root, &old->root))
		add_head_finding(watch, PROOF_INCONSISTENT, &proof);
	return OK;
}

/* ---- entries ---- */

static void keep_wrong(struct watch *watch, size_t chain, uint64_t index,
                       const struct tlog_entry *entry, struct slice text, enum span_verdict verdict,
                       const struct owned_receipt *receipt)
{
	if (watch->wrong_count == WATCH_FINDINGS_MAX)
		return;
	struct wrong_entry *wrong = &watch->wrong[watch->wrong_count++];
	*wrong = (struct wrong_entry){.chain = chain,
	                              .index = index,
	                              .entry = *entry,
	                              .text_size = text.size,
	                              .verdict = verdict};
	memcpy(wrong->text, text.data, text.size);
	if (receipt)
		wrong->receipt = *receipt;
}

static int take_entry(void *context, uint64_t index, const struct tlog_entry *entry,
                      struct slice text, struct error *error)
{
	struct watch *watch = context;
	(void)error;
	watch->result->new_entries += watch->result->is_first || index >= watch->old.checkpoint.size;
	const struct owned_chain *chain = owned_find(watch->owned, &entry->tag);
	if (!chain)
		return OK;
	size_t number = (size_t)(chain - watch->owned->chains);
	enum span_verdict verdict = chain_span_add(&watch->after.chains[number].span, entry);
	if (verdict != SPAN_FOLLOWS)
		keep_wrong(watch, number, index, entry, text, verdict, NULL);
	for (size_t i = owned_first_receipt(chain, entry->last_sequence);
	     i < chain->receipt_count && chain->receipts[i].sequence == entry->last_sequence; i++)
		if (!sha256_equal(&chain->receipts[i].chain_hash, &entry->chain_hash_last))
			keep_wrong(watch, number, index, entry, text, SPAN_FOLLOWS, &chain->receipts[i]);
	return OK;
}

/* Returns whether everything that was compared before need not be compared again: no chain and no
 * receipt of a covered event is new. */
static bool may_continue(struct watch *watch)
{
	if (!watch->before.is_comparable)
		return false;
	for (size_t i = 0; i < watch->owned->count; i++) {
		const struct owned_chain *chain = &watch->owned->chains[i];
		const struct watched_chain *known = watch_state_find(&watch->before, &chain->tag);
		if (!known)
			return false;
		const struct sha256 digest = watch_receipts_digest(chain, known->span.last);
		if (!sha256_equal(&digest, &known->compared))
			return false;
		watch->after.chains[i] = *known;
	}
	return !watch->result->is_first;
}

static int scan_entries(struct watch *watch, struct error *error)
{
	struct frontier begin = {0};
	const struct log_scan scan = {
		.source = watch->source,
		.checkpoint = &watch->result->head.checkpoint,
		.take = take_entry,
		.context = watch,
		.progress = watch->options->progress,
		.progress_context = watch->options->progress_context,
	};
	watch->after.count = watch->owned->count;
	if (may_continue(watch)) {
		int result = frontier_read(&watch->tree, watch->old.checkpoint.size, &begin, error);
		if (result)
			return result;
		const struct sha256 root = frontier_root(&begin);
		if (!sha256_equal(&root, &watch->old.checkpoint.root))
			return error_cause(error, ERR_INVALID_EVIDENCE,
			                   "the tiles of the log do not lead to the root of its checkpoint");
	} else {
		for (size_t i = 0; i < watch->owned->count; i++)
			watch->after.chains[i] = (struct watched_chain){.tag = watch->owned->chains[i].tag};
	}
	return log_scan_run(&scan, &begin, error);
}

/* ---- proofs of entries ---- */

/* Writes the proof that an entry is in the tree of the checkpoint. The texts are in the arena.
 * Returns false if the log does not serve its tiles: the finding remains. */
static bool prove_entry(struct watch *watch, uint64_t index, struct slice text,
                        struct log_proof_entry *ret)
{
	const struct checkpoint *checkpoint = &watch->result->head.checkpoint;
	BUF_AUTO struct buf written;
	struct error error = {0};
	struct entry_proof proof = {.index = index, .checkpoint = watch->result->head.note};
	buf_init(&written, ENTRY_PROOF_MAX);
	/* One try: a log that does not answer would otherwise delay the findings for hours. */
	if (watch->cannot_prove)
		return false;
	watch->cannot_prove =
		merkle_prove_inclusion(&watch->tree, index, checkpoint->size, &proof.path, &error) != 0;
	if (watch->cannot_prove)
		return false;
	const struct sha256 leaf = merkle_leaf(text);
	if (!merkle_is_included(&leaf, index, checkpoint->size, &proof.path, &checkpoint->root))
		return false;
	entry_proof_write(&proof, &written);
	char *entry = arena_copy(watch->arena, text.data, text.size);
	char *copy = buf_check(&written) ? NULL : arena_copy(watch->arena, written.data, written.size);
	*ret = (struct log_proof_entry){slice_make(entry, text.size), slice_make(copy, written.size)};
	return entry && copy;
}

static void add_gap(struct watch *watch, const struct wrong_entry *wrong)
{
	add_finding(watch, "gap", false,
	            "channel %s: entry %" PRIu64 " of the log has the events %" PRId64 " to %" PRId64
	            ", which do not follow those of the entry before it",
	            watch->owned->chains[wrong->chain].channel_id, wrong->index,
	            wrong->entry.first_sequence, wrong->entry.last_sequence);
}

static bool overlaps(const struct tlog_entry *a, const struct tlog_entry *b)
{
	return sha256_equal(&a->tag, &b->tag) && a->first_sequence <= b->last_sequence &&
	       b->first_sequence <= a->last_sequence;
}

/* Returns 1 when no wrong entry is left whose earlier one is not known. */
static int find_earlier(void *context, uint64_t index, const struct tlog_entry *entry,
                        struct slice text, struct error *error)
{
	struct watch *watch = context;
	bool is_searched = false;
	(void)error;
	for (size_t i = 0; i < watch->wrong_count; i++) {
		struct wrong_entry *wrong = &watch->wrong[i];
		if (wrong->verdict != SPAN_OVERLAPS || wrong->has_earlier || index >= wrong->index)
			continue;
		wrong->has_earlier = overlaps(entry, &wrong->entry);
		is_searched |= !wrong->has_earlier;
		if (!wrong->has_earlier)
			continue;
		wrong->earlier_index = index;
		wrong->earlier = *entry;
		wrong->earlier_size = text.size;
		memcpy(wrong->earlier_text, text.data, text.size);
	}
	return !is_searched;
}

static void describe_overlap(const struct watch *watch, const struct wrong_entry *wrong, char *what,
                             size_t size)
{
	snprintf(what, size,
	         "channel %s: entry %" PRIu64 " of the log has the events %" PRId64 " to %" PRId64
	         ", of which entries before it have some",
	         watch->owned->chains[wrong->chain].channel_id, wrong->index,
	         wrong->entry.first_sequence, wrong->entry.last_sequence);
}

/* Searches the log once for the entries that others overlap. A log that does not serve them again
 * hides nothing: the findings remain. */
static int find_overlapped(struct watch *watch, bool *ret_searched, struct error *error)
{
	const struct frontier empty = {0};
	const struct watch_options *options = watch->options;
	const struct log_scan scan = {.source = watch->source,
	                              .checkpoint = &watch->result->head.checkpoint,
	                              .take = find_earlier,
	                              .context = watch,
	                              .progress = options->progress,
	                              .progress_context = options->progress_context};
	char what[sizeof watch->result->findings->what];
	struct error ignored = {0};
	size_t first = 0;
	*ret_searched = true;
	while (first < watch->wrong_count && watch->wrong[first].verdict != SPAN_OVERLAPS)
		first++;
	if (first == watch->wrong_count)
		return OK;
	if (options->notice) {
		describe_overlap(watch, &watch->wrong[first], what, sizeof what);
		options->notice(options->notice_context, what);
	}
	int result = log_scan_run(&scan, &empty, &ignored);
	*ret_searched = result >= 0;
	return result == ERR_NO_MEMORY ? error_cause(error, result, "the search for proof") : OK;
}

static void prove_overlap(struct watch *watch, const struct wrong_entry *wrong)
{
	struct log_proof proof = {.kind = PROOF_OVERLAP, .entry_count = 2};
	bool is_proved =
		prove_entry(watch, wrong->earlier_index,
	                slice_make(wrong->earlier_text, wrong->earlier_size), &proof.entries[0]) &&
		prove_entry(watch, wrong->index, slice_make(wrong->text, wrong->text_size),
	                &proof.entries[1]);
	if (is_proved)
		add_proof(watch, &proof);
	add_finding(watch, log_proof_kind_text(PROOF_OVERLAP), is_proved,
	            "channel %s: entries %" PRIu64 " and %" PRIu64
	            " of the log have events in common: %" PRId64 " to %" PRId64 " and %" PRId64
	            " to %" PRId64,
	            watch->owned->chains[wrong->chain].channel_id, wrong->earlier_index, wrong->index,
	            wrong->earlier.first_sequence, wrong->earlier.last_sequence,
	            wrong->entry.first_sequence, wrong->entry.last_sequence);
}

static void report_overlap(struct watch *watch, const struct wrong_entry *wrong, bool searched)
{
	char what[sizeof watch->result->findings->what];
	if (wrong->has_earlier) {
		prove_overlap(watch, wrong);
	} else if (searched) {
		add_gap(watch, wrong);
	} else {
		describe_overlap(watch, wrong, what, sizeof what);
		add_finding(watch, log_proof_kind_text(PROOF_OVERLAP), false, "%s", what);
	}
}

/* ---- receipts ---- */

struct receipt_search {
	struct arena *arena; /* of the result */
	const char *channel_id, *origin;
	const struct owned_receipt *wanted;
	struct slice found;
};

/* Returns 1 at the receipt. */
static int find_receipt(void *context, struct slice text, struct error *error)
{
	struct receipt_search *search = context;
	ARENA_AUTO struct arena arena;
	struct receipt receipt;
	struct owned_receipt kept;
	bool is_valid;
	arena_init(&arena, (size_t)8 << 20);
	int result = owned_read_receipt(&arena, text, &receipt, &kept, &is_valid, error);
	if (result == ERR_INVALID_EVIDENCE)
		return OK;
	if (result || receipt.event.chain != MODE_LIVE ||
	    strcmp(receipt.event.channel_id, search->channel_id) != 0 ||
	    kept.sequence != search->wanted->sequence || kept.is_signed != search->wanted->is_signed ||
	    (is_valid && (strcmp(receipt.signature->origin, search->origin) != 0) !=
	                     search->wanted->is_of_other_log) ||
	    kept.seal_by_us != search->wanted->seal_by_us ||
	    !sha256_equal(&kept.chain_hash, &search->wanted->chain_hash))
		return result;
	char *copy = arena_copy(search->arena, text.data, text.size);
	if (!copy)
		return ERR_NO_MEMORY;
	search->found = slice_make(copy, text.size);
	return 1;
}

/* Sets what a proof says about a receipt. */
static int describe_receipt(struct watch *watch, const struct owned_chain *chain,
                            const struct owned_receipt *receipt, struct log_proof *proof,
                            struct error *error)
{
	struct receipt_search search = {
		watch->arena, chain->channel_id, watch->owned->origin, receipt, {0}};
	int result = watch->options->read_receipts(watch->options->receipts_context, find_receipt,
	                                           &search, error);
	if (result < 0)
		return result;
	proof->receipt = search.found;
	return OK;
}

static int prove_difference(struct watch *watch, const struct wrong_entry *wrong,
                            struct error *error)
{
	const struct owned_chain *chain = &watch->owned->chains[wrong->chain];
	struct log_proof proof = {.kind = PROOF_RECEIPT_DIFFERS, .entry_count = 1};
	int result = describe_receipt(watch, chain, &wrong->receipt, &proof, error);
	if (result)
		return result;
	bool is_shown = prove_entry(watch, wrong->index, slice_make(wrong->text, wrong->text_size),
	                            &proof.entries[0]);
	/* Anybody can write a receipt that is not signed. */
	bool binds = wrong->receipt.is_signed && !wrong->receipt.is_of_other_log;
	if (is_shown)
		add_proof(watch, &proof);
	add_finding(watch, log_proof_kind_text(PROOF_RECEIPT_DIFFERS), is_shown && binds,
	            "channel %s: entry %" PRIu64 " of the log has another chain hash of event %" PRId64
	            " than your receipt, %s",
	            chain->channel_id, wrong->index, wrong->receipt.sequence,
	            binds ? "whose key is not checked here: the service has two histories"
	                  : "which is not signed for this log: if it is genuine, the service has two "
	                    "histories");
	return OK;
}

static int prove_promise(struct watch *watch, const struct owned_chain *chain,
                         const struct owned_receipt *receipt, bool is_witnessed,
                         struct error *error)
{
	struct log_proof proof = {
		.kind = PROOF_PROMISE_BROKEN, .notes = {watch->result->head.note}, .note_count = 1};
	char until[TIME_TEXT_SIZE];
	if (watch->result->finding_count < WATCH_FINDINGS_MAX) {
		int result = describe_receipt(watch, chain, receipt, &proof, error);
		if (result)
			return result;
	}
	add_proof(watch, &proof);
	time_format(receipt->seal_by_us, until);
	add_finding(
		watch, log_proof_kind_text(PROOF_PROMISE_BROKEN), is_witnessed,
		"channel %s: event %" PRId64 " was promised a sealed segment until %s, and the log%s "
		"has none%s",
		chain->channel_id, receipt->sequence, until, is_witnessed ? "" : ", as it is served now,",
		is_witnessed ? ": the service withholds it" : "");
	return OK;
}

/* Judges a receipt of an event that no entry covers. Only witnesses show others that the checkpoint
 * is later than the promise: an old copy of the log looks the same. */
static int judge_uncovered(struct watch *watch, const struct owned_chain *chain,
                           const struct owned_receipt *receipt, struct error *error)
{
	struct watch_result *result = watch->result;
	if (receipt->seal_by_us == TIME_NONE ||
	    receipt->seal_by_us + WATCH_GRACE_US >= watch->begun_us) {
		bool is_promised = receipt->seal_by_us != TIME_NONE && !receipt->is_far;
		result->waiting += is_promised;
		result->without_promise += !is_promised;
		return OK;
	}
	if (receipt->is_of_other_log) {
		result->other_log++;
		return OK;
	}
	bool is_witnessed = log_head_is_witnessed_after(&result->head, watch->options->policy,
	                                                receipt->seal_by_us + WATCH_GRACE_US);
	result->overdue += !is_witnessed;
	return prove_promise(watch, chain, receipt, is_witnessed, error);
}

/* Notes that the log has no first events of a chain, unless an earlier run did. Returns whether it
 * noted it. */
static bool note_begin(struct watch *watch, const struct owned_chain *chain,
                       const struct chain_span *span)
{
	struct watch_result *result = watch->result;
	const struct watched_chain *known = watch_state_find(&watch->before, &chain->tag);
	if (span->entries == 0 || span->first <= 1 ||
	    (known && known->span.entries > 0 && known->span.first == span->first))
		return false;
	if (result->begun_later++ == 0) {
		memcpy(result->begun_channel, chain->channel_id, sizeof result->begun_channel);
		result->begun_sequence = span->first;
	}
	return true;
}

static int check_receipts(struct watch *watch, struct error *error)
{
	struct watch_result *result = watch->result;
	for (size_t i = 0; i < watch->owned->count; i++) {
		const struct owned_chain *chain = &watch->owned->chains[i];
		const struct chain_span *span = &watch->after.chains[i].span;
		result->own_entries += span->entries;
		bool is_new = note_begin(watch, chain, span);
		result->receipts += chain->receipt_count;
		for (size_t n = 0; n < chain->receipt_count; n++) {
			const struct owned_receipt *receipt = &chain->receipts[n];
			int failed = OK;
			if (span->entries == 0 || receipt->sequence > span->last)
				failed = judge_uncovered(watch, chain, receipt, error);
			else if (receipt->sequence >= span->first)
				result->covered++;
			else
				result->before_log += is_new || receipt->seal_by_us != TIME_NONE;
			if (failed)
				return failed;
		}
		watch->after.chains[i].compared = watch_receipts_digest(chain, span->last);
	}
	return OK;
}

/* ---- the whole ---- */

static int add_receipt(void *context, struct slice text, struct error *error)
{
	return owned_add_receipt(context, text, error);
}

/* Receipts are read after the checkpoint, so that it covers few events without a receipt. */
static int read_receipts(struct watch *watch, struct error *error)
{
	owned_clear_receipts(watch->owned);
	watch->owned->origin = watch->result->head.checkpoint.origin;
	int result = watch->options->read_receipts(watch->options->receipts_context, add_receipt,
	                                           watch->owned, error);
	owned_sort_receipts(watch->owned);
	watch->result->test_receipts = watch->owned->test_receipts;
	watch->result->unusable_receipts = watch->owned->unusable_receipts;
	watch->result->false_receipts = watch->owned->false_receipts;
	if (!result && watch->owned->count == 0)
		return error_cause(error, ERR_USAGE,
		                   "no receipt is of a live channel, and no channel is named: no entry is "
		                   "known to be yours");
	return result;
}

static int compare_entries(struct watch *watch, struct error *error)
{
	bool searched;
	int result = scan_entries(watch, error);
	if (!result)
		result = find_overlapped(watch, &searched, error);
	for (size_t i = 0; i < watch->wrong_count && !result; i++) {
		const struct wrong_entry *wrong = &watch->wrong[i];
		if (wrong->verdict == SPAN_OVERLAPS)
			report_overlap(watch, wrong, searched);
		else if (wrong->verdict == SPAN_GAP)
			add_gap(watch, wrong);
		else
			result = prove_difference(watch, wrong, error);
	}
	return result ? result : check_receipts(watch, error);
}

static int run(struct watch *watch, struct error *error)
{
	struct watch_result *found = watch->result;
	watch->begun_us = clock_now_us();
	int result = watch_state_read(watch->options->state, watch->arena, &watch->before, error);
	if (!result)
		result = read_old_head(watch, error);
	if (!result)
		result = read_head(watch, error);
	if (result || !found->head.is_signed)
		return result;
	watch->tree =
		tile_reader_init(&watch->reader, &watch->source->tiles, found->head.checkpoint.size);
	result = read_receipts(watch, error);
	if (!result)
		result = compare_trees(watch, error);
	if (result || found->finding_count > 0)
		return result;
	result = compare_entries(watch, error);
	if (result)
		return result;
	found->is_complete = true;
	if (found->finding_count > 0)
		return OK;
	watch->after.note = found->head.note;
	return watch_state_write(watch->options->state, &watch->after, watch->owned, error);
}

int log_watch(struct log_source *source, struct owned_chains *owned,
              const struct watch_options *options, struct arena *arena, struct watch_result *ret,
              struct error *error)
{
	*ret = (struct watch_result){0};
	buf_init(&ret->proofs, WATCH_PROOFS_MAX + 1);
	struct watch *watch = calloc(1, sizeof *watch);
	if (!watch)
		return ERR_NO_MEMORY;
	watch->source = source;
	watch->owned = owned;
	watch->options = options;
	watch->arena = arena;
	watch->result = ret;
	int result = run(watch, error);
	free(watch);
	return result;
}
