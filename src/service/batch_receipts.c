#include "service/batch_receipts.h"

#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_throttle.h"
#include "ledger/receipt_statement.h"
#include "seal/receipt_signer.h"

_Static_assert(RECEIPT_TREE_MAX == BATCH_TREE_LEAVES_MAX &&
                   RECEIPT_TREE_PATH_MAX == BATCH_TREE_PATH_MAX &&
                   RECEIPT_PUBLIC_KEY_SIZE == RECEIPT_KEY_SIZE &&
                   RECEIPT_SIGNED_SIZE == RECEIPT_SIGNATURE_SIZE,
               "a receipt holds what the tree and the signer make");

void batch_receipts_init(struct batch_receipts *receipts, struct service *service, unsigned lane)
{
	receipts->service = service;
	receipts->lane = lane;
	buf_init(&receipts->statement, RECEIPT_STATEMENT_MAX);
}

void batch_receipts_free(struct batch_receipts *receipts)
{
	buf_free(&receipts->statement);
}

static bool has_receipt(const struct registration *item)
{
	return !item->result && item->event;
}

static int64_t later_of(int64_t a_us, int64_t b_us)
{
	return a_us > b_us ? a_us : b_us;
}

/* An event that is acknowledged again may be of before seal.promise was reduced, or of before the
 * log began. Its receipt promises nothing that is no longer possible: an event that was sealed
 * before the log began never gets an entry. */
static int64_t seal_by_us(const struct batch_receipts *receipts, const struct registration *item)
{
	const struct event *event = item->event;
	if (event->mode == MODE_TEST)
		return TIME_NONE;
	int64_t promised_us = event->received_at_us + receipts->promise_us;
	if (!item->replayed)
		return promised_us;
	if (event->sealed_at_us != TIME_NONE)
		return event->is_logged ? later_of(promised_us, event->sealed_at_us) : TIME_NONE;
	return promised_us >= receipts->next_us ? promised_us : receipts->possible_us;
}

/* Returns false if there is no memory. */
static bool make_leaf(struct batch_receipts *receipts, const struct registration *item,
                      struct sha256 *ret_leaf)
{
	const struct event *event = item->event;
	const struct receipt_facts facts = {
		.channel_id = event->channel_id,
		.chain = event->mode,
		.sequence = event->sequence,
		.declaration = &event->declaration,
		.received_at_us = event->received_at_us,
		.chain_hash = event->chain_hash,
		.origin = receipts->service->log_origin,
		.seal_by_us = seal_by_us(receipts, item),
	};
	buf_clear(&receipts->statement);
	receipt_statement(&facts, &receipts->statement);
	if (buf_check(&receipts->statement))
		return false;
	*ret_leaf = merkle_leaf(buf_slice(&receipts->statement));
	return true;
}

void batch_receipts_begin(struct batch_receipts *receipts, const struct registration_batch *batch)
{
	struct receipt_signer *signer = receipts->service->receipt_signer;
	struct batch_tree *tree = &receipts->tree;
	tree->count = 0;
	if (!signer)
		return;
	assert(batch->count <= BATCH_TREE_LEAVES_MAX);
	const int64_t now_us = clock_now_us(), interval_us = receipts->service->settings->seal_interval;
	receipts->promise_us = settings_promise_us(receipts->service->settings);
	receipts->next_us = now_us + interval_us;
	receipts->possible_us = now_us + 2 * interval_us;
	for (size_t i = 0; i < batch->count; i++) {
		const struct registration *item = batch->items[i];
		if (!has_receipt(item))
			continue;
		if (!make_leaf(receipts, item, &tree->nodes[tree->count])) {
			tree->count = 0;
			return;
		}
		tree->count++;
	}
	if (tree->count == 0)
		return;
	const struct sha256 root = batch_tree_build(tree);
	receipt_signer_begin(signer, receipts->lane, &root);
}

/* ---- after the commit ---- */

static void note_unsigned(struct service *service, size_t count)
{
	static struct log_throttle pace = LOG_THROTTLE(1, 60);
	char number[24], omitted[LOG_THROTTLE_NUMBER_SIZE];
	atomic_fetch_add_explicit(&service->counters.receipts_unsigned, (int_fast64_t)count,
	                          memory_order_relaxed);
	if (!log_throttle_take(&pace, clock_monotonic_us(), omitted))
		return;
	snprintf(number, sizeof number, "%zu", count);
	log_warning("receipts_unsigned", "receipts", number, "omitted", omitted, "consequence",
	            "events are registered and acknowledged, with a receipt that is null");
}

static struct receipt_signature *make_receipt(const struct batch_receipts *receipts, size_t index,
                                              const struct registration *item,
                                              const uint8_t signature[RECEIPT_SIGNATURE_SIZE])
{
	struct receipt_signature *made = arena_alloc(item->arena, sizeof *made);
	if (!made)
		return NULL;
	*made = (struct receipt_signature){
		.origin = receipts->service->log_origin,
		.seal_by_us = seal_by_us(receipts, item),
		.index = (int64_t)index,
		.tree_size = (int64_t)receipts->tree.count,
	};
	made->path_count = batch_tree_path(&receipts->tree, index, made->path);
	memcpy(made->key, receipt_signer_key(receipts->service->receipt_signer), sizeof made->key);
	memcpy(made->signature, signature, sizeof made->signature);
	return made;
}

void batch_receipts_end(struct batch_receipts *receipts, const struct registration_batch *batch)
{
	struct service *service = receipts->service;
	uint8_t signature[RECEIPT_SIGNATURE_SIZE];
	size_t index = 0, missing = 0;
	if (!service->receipt_signer)
		return;
	bool is_signed = receipts->tree.count > 0 &&
	                 receipt_signer_end(service->receipt_signer, receipts->lane, signature);
	for (size_t i = 0; i < batch->count; i++) {
		struct registration *item = batch->items[i];
		if (!has_receipt(item))
			continue;
		if (is_signed)
			item->receipt = make_receipt(receipts, index++, item, signature);
		missing += !item->receipt;
	}
	assert(!is_signed || index == receipts->tree.count);
	if (missing > 0)
		note_unsigned(service, missing);
}
