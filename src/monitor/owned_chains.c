#include "monitor/owned_chains.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "archive/archive_lines.h"

#define ID_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
#define RECEIPT_MEMORY_MAX ((size_t)8 << 20)

static struct owned_chain *find_channel(struct owned_chains *owned, const char *channel_id)
{
	for (size_t i = 0; i < owned->count; i++)
		if (strcmp(owned->chains[i].channel_id, channel_id) == 0)
			return &owned->chains[i];
	return NULL;
}

struct owned_chain *owned_find(struct owned_chains *owned, const struct sha256 *tag)
{
	for (size_t i = 0; i < owned->count; i++)
		if (sha256_equal(&owned->chains[i].tag, tag))
			return &owned->chains[i];
	return NULL;
}

/* ---- chains ---- */

/* Receipts have the text from the service, and findings print it. */
static int check_channel(const char *channel_id, struct error *error)
{
	const size_t size = strlen(channel_id);
	return size >= 1 && size <= TLOG_CHAIN_NAME_MAX && strspn(channel_id, ID_CHARACTERS) == size
	           ? OK
	           : error_cause(error, ERR_INVALID_EVIDENCE,
	                         "the id of a channel must have 1 to %d letters, digits, _ and -",
	                         TLOG_CHAIN_NAME_MAX);
}

int owned_add_channel(struct owned_chains *owned, const char *channel_id, struct error *error)
{
	struct owned_chain chain = {0};
	int result = check_channel(channel_id, error);
	if (result)
		return result;
	bool has_tag = tlog_tag(channel_id, mode_text(MODE_LIVE), &chain.tag);
	assert(has_tag);
	(void)has_tag;
	if (owned_find(owned, &chain.tag))
		return OK;
	if (owned->count == OWNED_CHAINS_MAX)
		return error_cause(error, ERR_INVALID_EVIDENCE, "at most %d channels can be watched",
		                   OWNED_CHAINS_MAX);
	snprintf(chain.channel_id, sizeof chain.channel_id, "%s", channel_id);
	owned->chains[owned->count++] = chain;
	return OK;
}

/* ---- receipts ---- */

int owned_read_receipt(struct arena *arena, struct slice text, struct receipt *ret,
                       struct owned_receipt *ret_kept, bool *ret_is_valid, struct error *error)
{
	struct receipt *items;
	size_t count;
	int result = receipts_read(arena, text, &items, &count, error);
	if (!result && count != 1)
		return error_cause(error, ERR_INVALID_EVIDENCE, "there must be one receipt in each line");
	*ret_is_valid = false;
	if (!result)
		result = check_channel(items[0].event.channel_id, error);
	if (!result && items[0].signature)
		result = receipt_verify(&items[0], ret_is_valid);
	if (result)
		return result;
	*ret = items[0];
	int64_t seal_by_us = *ret_is_valid ? ret->signature->seal_by_us : TIME_NONE;
	*ret_kept = (struct owned_receipt){
		.sequence = ret->event.sequence,
		.chain_hash = ret->chain_hash,
		.seal_by_us = seal_by_us,
		.is_signed = *ret_is_valid,
		.is_far =
			seal_by_us != TIME_NONE && seal_by_us - ret->event.received_at_us > PROMISE_MAX_US,
	};
	return OK;
}

/* Returns whether there is room for one more; it doubles at each power of two. */
static bool make_room(struct owned_chain *chain)
{
	size_t count = chain->receipt_count;
	if (count > 0 && (count < 64 || (count & (count - 1)) != 0))
		return true;
	struct owned_receipt *items =
		realloc(chain->receipts, (count > 0 ? 2 * count : 64) * sizeof *items);
	if (items)
		chain->receipts = items;
	return items;
}

int owned_add_receipt(struct owned_chains *owned, struct slice text, struct error *error)
{
	ARENA_AUTO struct arena arena;
	struct receipt receipt;
	struct owned_receipt kept;
	bool is_valid;
	arena_init(&arena, RECEIPT_MEMORY_MAX);
	int result = owned_read_receipt(&arena, text, &receipt, &kept, &is_valid, error);
	if (result == ERR_INVALID_EVIDENCE) {
		owned->unusable_receipts++;
		return OK;
	}
	if (result)
		return result;
	if (receipt.event.chain != MODE_LIVE) {
		owned->test_receipts++;
		return OK;
	}
	struct owned_chain *chain = find_channel(owned, receipt.event.channel_id);
	if (!chain) {
		result = owned_add_channel(owned, receipt.event.channel_id, error);
		if (result)
			return result;
		chain = &owned->chains[owned->count - 1];
	}
	kept.is_of_other_log =
		is_valid && owned->origin && strcmp(receipt.signature->origin, owned->origin) != 0;
	if (owned->receipt_count == OWNED_RECEIPTS_MAX)
		return error_cause(error, ERR_TOO_LARGE, "there are more than %zu receipts",
		                   OWNED_RECEIPTS_MAX);
	if (!make_room(chain))
		return ERR_NO_MEMORY;
	chain->receipts[chain->receipt_count++] = kept;
	owned->receipt_count++;
	owned->false_receipts += receipt.signature && !is_valid;
	return OK;
}

static int compare_receipts(const void *a, const void *b)
{
	const struct owned_receipt *x = a, *y = b;
	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	int order = memcmp(x->chain_hash.bytes, y->chain_hash.bytes, SHA256_SIZE);
	if (order != 0)
		return order;
	if (x->is_signed != y->is_signed)
		return x->is_signed ? -1 : 1;
	if (x->is_of_other_log != y->is_of_other_log)
		return x->is_of_other_log ? 1 : -1;
	/* The earliest promise first, and no promise last: TIME_NONE is the lowest number. */
	uint64_t p = (uint64_t)x->seal_by_us - 1, q = (uint64_t)y->seal_by_us - 1;
	return p < q ? -1 : p > q;
}

void owned_sort_receipts(struct owned_chains *owned)
{
	for (size_t i = 0; i < owned->count; i++) {
		struct owned_chain *chain = &owned->chains[i];
		size_t kept = 0;
		if (chain->receipt_count > 1)
			qsort(chain->receipts, chain->receipt_count, sizeof *chain->receipts, compare_receipts);
		for (size_t n = 0; n < chain->receipt_count; n++) {
			const struct owned_receipt *item = &chain->receipts[n];
			if (kept == 0 || chain->receipts[kept - 1].sequence != item->sequence ||
			    !sha256_equal(&chain->receipts[kept - 1].chain_hash, &item->chain_hash))
				chain->receipts[kept++] = *item;
		}
		owned->receipt_count -= chain->receipt_count - kept;
		chain->receipt_count = kept;
	}
}

void owned_clear_receipts(struct owned_chains *owned)
{
	for (size_t i = 0; i < owned->count; i++) {
		free(owned->chains[i].receipts);
		owned->chains[i].receipts = NULL;
		owned->chains[i].receipt_count = 0;
	}
	owned->receipt_count = 0;
	owned->test_receipts = 0;
	owned->false_receipts = 0;
	owned->unusable_receipts = 0;
}

size_t owned_first_receipt(const struct owned_chain *chain, int64_t sequence)
{
	size_t low = 0, high = chain->receipt_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (chain->receipts[middle].sequence < sequence)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
