#include "monitor/owned_chains.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "archive/archive_lines.h"

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

int owned_add_tag(struct owned_chains *owned, const char *channel_id, const struct sha256 *tag,
                  struct error *error)
{
	if (!*channel_id || strlen(channel_id) >= OWNED_CHANNEL_SIZE)
		return error_cause(error, ERR_INVALID_EVIDENCE, "'%.60s' is not the id of a channel",
		                   channel_id);
	if (find_channel(owned, channel_id) || owned_find(owned, tag))
		return error_cause(error, ERR_INVALID_EVIDENCE, "channel %s is given twice", channel_id);
	if (owned->count == OWNED_CHAINS_MAX)
		return error_cause(error, ERR_INVALID_EVIDENCE, "at most %d channels can be watched",
		                   OWNED_CHAINS_MAX);
	struct owned_chain *chain = &owned->chains[owned->count++];
	*chain = (struct owned_chain){.tag = *tag};
	snprintf(chain->channel_id, sizeof chain->channel_id, "%s", channel_id);
	return OK;
}

int owned_add_genesis(struct owned_chains *owned, struct slice document, struct error *error)
{
	struct genesis_facts facts;
	char *copy = arena_copy(owned->arena, document.data, document.size);
	if (!copy)
		return ERR_NO_MEMORY;
	int result = archive_read_genesis(owned->arena, slice_make(copy, document.size), &facts, error);
	if (result)
		return result;
	if (facts.chain != MODE_LIVE)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "it is of a test chain, and the log has live chains only");
	const struct sha256 hash = sha256_of(copy, document.size), tag = tlog_tag(&hash);
	result = owned_add_tag(owned, facts.channel_id, &tag, error);
	if (!result)
		owned->chains[owned->count - 1].genesis = slice_make(copy, document.size);
	return result;
}

/* ---- receipts ---- */

static int read_seal_by(const struct json *json, int64_t *ret_us, struct error *error)
{
	const struct json *receipt = json_member(json, "receipt");
	const struct json *member = receipt ? json_member(receipt, "seal_by") : NULL;
	*ret_us = TIME_NONE;
	if (!member || member->type == JSON_NULL)
		return OK;
	if (member->type != JSON_STRING || time_parse(member->text, "seal_by", ret_us, NULL))
		return error_cause(error, ERR_INVALID_EVIDENCE, "seal_by is no time");
	return OK;
}

int owned_read_receipt(struct arena *arena, struct slice text,
                       char ret_channel_id[OWNED_CHANNEL_SIZE], struct owned_receipt *ret,
                       bool *ret_is_test, struct error *error)
{
	struct json *json;
	struct event_facts event;
	struct error detail = {0};
	int result = json_parse(arena, text, NULL, &json, &detail);
	if (result == ERR_VALIDATION)
		return error_cause(error, ERR_INVALID_EVIDENCE, "a receipt is not JSON: %.*s",
		                   ERROR_CAUSE_MAX / 2, error_message(&detail, LANGUAGE_ENGLISH));
	if (!result)
		result = archive_read_receipt(arena, json, &event, &ret->chain_hash, &detail);
	if (result == ERR_INVALID_EVIDENCE)
		return error_cause(error, result, "a receipt is not a response to a registration: %.*s",
		                   ERROR_CAUSE_MAX / 2, detail.cause);
	if (!result)
		result = read_seal_by(json, &ret->seal_by_us, error);
	if (result)
		return result;
	if (strlen(event.channel_id) >= OWNED_CHANNEL_SIZE)
		return error_cause(error, ERR_INVALID_EVIDENCE, "the channel of a receipt is no id");
	snprintf(ret_channel_id, OWNED_CHANNEL_SIZE, "%s", event.channel_id);
	ret->sequence = event.sequence;
	*ret_is_test = event.chain != MODE_LIVE;
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
	char channel_id[OWNED_CHANNEL_SIZE];
	struct owned_receipt receipt;
	bool is_test;
	arena_init(&arena, RECEIPT_MEMORY_MAX);
	int result = owned_read_receipt(&arena, text, channel_id, &receipt, &is_test, error);
	if (result)
		return result;
	if (is_test) {
		owned->test_receipts++;
		return OK;
	}
	struct owned_chain *chain = find_channel(owned, channel_id);
	if (!chain)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "a receipt is of channel %s; give its genesis document or its tag",
		                   channel_id);
	if (owned->receipt_count == OWNED_RECEIPTS_MAX)
		return error_cause(error, ERR_TOO_LARGE, "there are more than %zu receipts",
		                   OWNED_RECEIPTS_MAX);
	if (!make_room(chain))
		return ERR_NO_MEMORY;
	chain->receipts[chain->receipt_count++] = receipt;
	owned->receipt_count++;
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
