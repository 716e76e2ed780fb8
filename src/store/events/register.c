/* Registration of a batch of events in one transaction. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/events/ref_index.h"
#include "store/events/register_batch.h"

/* ---- outcomes ---- */

void batch_item_event(const struct batch_item *item, struct event *event)
{
	const struct ledger_request *request = &item->request;
	const struct registration *given = item->registration;
	*event = (struct event){
		.declaration = given->declaration,
		.sequence = request->sequence,
		.received_at_us = request->received_at_us,
		.chain_hash = request->chain_hash,
		.status = request->status,
		.mode = request->chain->mode,
		.config_version = request->config_version,
		.sealed_at_us = TIME_NONE,
		.content_object = given->content_object,
		.file_name = given->file_name,
		.content_bytes = given->content_bytes,
	};
	/* The receipt is of the chain that the key may write to, and of what was declared. */
	assert(request->chain->chain == given->chain);
	assert(request->chain->modality == given->declaration.modality);
	assert(request->sequence >= 1 && request->sequence <= request->chain->last_sequence);
	assert(request->received_at_us <= request->chain->last_received_at_us);
	store_copy_id(event->event_id, slice_of(request->event_id));
	store_copy_id(event->channel_id, slice_of(request->chain->channel_id));
}

/* Returns an empty error in the arena of the registration. NULL: no memory for a message. */
static struct error *hold_error(struct registration *registration)
{
	if (!registration->error) /* a retried batch uses it again */
		registration->error = arena_alloc(registration->arena, sizeof *registration->error);
	error_clear(registration->error);
	return registration->error;
}

void registration_refuse(struct registration *registration, int result, const struct error *error)
{
	assert(result);
	registration->result = result;
	if (hold_error(registration))
		*registration->error = *error;
	if (registration->error)
		registration->error->code = result;
}

void registration_get_error(const struct registration *registration, struct error *ret)
{
	assert(registration->result);
	error_clear(ret);
	ret->code = registration->result;
	if (registration->error)
		*ret = *registration->error;
}

static void wait_for(struct registration *registration, int seconds)
{
	if (registration->error)
		registration->error->retry_after_seconds = seconds;
}

static int test_quota_wait_seconds(int64_t now_us)
{
	return (int)((time_next_day(now_us) - now_us) / US_PER_SECOND + 1);
}

static int limit_wait_seconds(const struct batch *batch, const struct ledger_request *request)
{
	int64_t wait_us = request->blocked_until_us - batch->clock.now_us;
	assert(wait_us > 0);
	return (int)((wait_us + US_PER_SECOND - 1) / US_PER_SECOND);
}

/* Upper limit: the clock may be corrected earlier. */
#define CLOCK_WAIT_MAX_SECONDS 60

static int clock_wait_seconds(const struct batch *batch, const struct ledger_chain *chain)
{
	int64_t off_us = ledger_clock_lag_us(chain->last_received_at_us, batch->clock.now_us);
	if (off_us < batch->clock.ahead_us)
		off_us = batch->clock.ahead_us;
	int64_t wait_us = off_us - batch->clock.bound_us;
	if (wait_us < batch->clock.refused_for_us)
		wait_us = batch->clock.refused_for_us;
	assert(wait_us > 0); /* the ledger refuses by the same comparison */
	int64_t seconds = wait_us / US_PER_SECOND + 1;
	return seconds < CLOCK_WAIT_MAX_SECONDS ? (int)seconds : CLOCK_WAIT_MAX_SECONDS;
}

static void give_conflict(const struct ledger_request *request, struct registration *given)
{
	const struct ledger_chain *chain = request->chain;
	event_id_make(chain->channel_id, chain->mode, request->original, given->original_id);
	error_set(given->error, ERR_CONFLICT, MSG_REGISTER_CONFLICT, given->original_id, NULL);
}

static void give_full(const struct ledger_request *request, struct registration *given)
{
	bool beyond = request->chain->chain > CHAIN_MAX;
	char most[24];
	snprintf(most, sizeof most, "%" PRId64, beyond ? CHANNEL_MAX : EVENT_SEQUENCE_MAX);
	error_set(given->error, ERR_FULL,
	          beyond ? MSG_REGISTER_CHANNEL_BEYOND : MSG_REGISTER_CHAIN_FULL, most, NULL);
}

static void give_beyond_stored(const struct ledger_account *account,
                               const struct ledger_request *request, struct registration *given)
{
	char stored[24], most[24], more[24];
	snprintf(stored, sizeof stored, "%" PRId64, account->stored_bytes);
	snprintf(most, sizeof most, "%" PRId64, account->stored_max);
	snprintf(more, sizeof more, "%" PRId64, request->content_bytes);
	error_set(given->error, ERR_FULL, MSG_REGISTER_STORED_FULL, stored, most, more, NULL);
}

/* Reads the event of a replay without memory of the request, whose client_ref is the same. */
static int read_replayed(struct batch *batch, int64_t account, const struct registration *given,
                         int64_t sequence, struct error *error)
{
	int result = store_read_event(batch->connection, account, given->chain, sequence, false,
	                              batch->arena, given->room, error);
	given->room->declaration.client_ref = given->declaration.client_ref;
	given->room->content_object = given->room->file_name = NULL;
	return result;
}

static int give_outcome(struct batch *batch, const struct ledger_account *account,
                        struct batch_item *item, struct error *error)
{
	struct registration *given = item->registration;
	const struct ledger_request *request = &item->request;
	assert(given->account == account->account);
	assert(request->original >= 1 || (!request->replayed && request->result != ERR_CONFLICT));
	given->result = request->result;
	given->replayed = request->replayed;
	given->chain_is_ahead = request->result == ERR_CLOCK && !ledger_clock_is_refused(&batch->clock);
	if (request->result && hold_error(given))
		given->error->code = request->result;
	if (request->result == ERR_TEST_QUOTA)
		wait_for(given, test_quota_wait_seconds(batch->clock.now_us));
	if (request->result == ERR_LIMIT_BLOCKED)
		wait_for(given, limit_wait_seconds(batch, request));
	if (request->result == ERR_CONFLICT)
		give_conflict(request, given);
	if (request->result == ERR_FULL && request->beyond_stored)
		give_beyond_stored(account, request, given);
	else if (request->result == ERR_FULL)
		give_full(request, given);
	if (request->result == ERR_CLOCK)
		wait_for(given, clock_wait_seconds(batch, request->chain));
	if (request->result)
		return OK;
	assert(given->room);
	given->event = given->room;
	if (request->replayed)
		return read_replayed(batch, account->account, given, request->original, error);
	batch_item_event(item, given->event);
	return OK;
}

/* ---- a batch ---- */

static bool has_room(struct registration *registration)
{
	if (!registration->room)
		registration->room = arena_alloc(registration->arena, sizeof *registration->room);
	return registration->room;
}

/* Items that no longer match the channel's configuration, items whose client_ref could not be
 * looked up, and items without memory for their event are refused before the ledger. Nothing that
 * fails for one item alone may follow it, because the batch has items of other clients. */
static size_t collect_requests(struct account_batch *part, struct ledger_request **requests)
{
	size_t count = 0;
	for (struct batch_item *item = part->first; item; item = item->next) {
		if (item->request.result)
			continue;
		if (!has_room(item->registration))
			item->request.result = ERR_NO_MEMORY;
		else if (item->registration->declaration.modality == item->request.chain->modality)
			requests[count++] = &item->request;
		else
			item->request.result = ERR_VALIDATION;
	}
	assert(count <= part->count);
	return count;
}

static int register_part(struct batch *batch, struct account_batch *part, struct error *error)
{
	int result = register_load(batch, part, error);
	if (result)
		return result;
	struct ledger_request **requests = arena_alloc(batch->arena, part->count * sizeof *requests);
	if (!requests)
		return ERR_NO_MEMORY;
	size_t count = collect_requests(part, requests);
	struct ledger_result decided;
	result =
		ledger_register(&part->account, requests, count, &batch->clock, batch->arena, &decided);
	if (!result)
		result = register_write(batch, part, &decided, error);
	for (struct batch_item *item = part->first; item && !result; item = item->next)
		result = give_outcome(batch, &part->account, item, error);
	return result;
}

/* Returns the account's part of the batch; creates it for its first item. */
static struct account_batch *part_of(struct batch *batch, int64_t account)
{
	struct account_batch **place = &batch->accounts;
	while (*place && (*place)->account.account < account)
		place = &(*place)->next;
	if (*place && (*place)->account.account == account)
		return *place;
	struct account_batch *part = arena_alloc(batch->arena, sizeof *part);
	if (!part)
		return NULL;
	part->account.account = account;
	part->end = &part->first;
	part->next = *place;
	*place = part;
	batch->account_count++;
	return part;
}

/* Adds items to the parts of their accounts. */
static int add_items(struct batch *batch, struct registration **items, size_t count)
{
	struct batch_item *all = arena_alloc(batch->arena, count * sizeof *all);
	if (!all)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < count; i++) {
		assert(items[i]->account > 0 && items[i]->chain > 0);
		struct account_batch *part = part_of(batch, items[i]->account);
		if (!part)
			return ERR_NO_MEMORY;
		all[i].registration = items[i];
		*part->end = &all[i];
		part->end = &all[i].next;
		part->count++;
	}
	return OK;
}

/* Locks and reads the accounts in order of their numbers, which is the lock order. */
static int load_accounts(struct batch *batch, struct error *error)
{
	int result = OK;
	int64_t locked = 0;
	for (struct account_batch *part = batch->accounts; part && !result; part = part->next) {
		assert(part->account.account > locked); /* the lock order */
		locked = part->account.account;
		result = store_load_account(batch->connection, part->account.account, batch->arena,
		                            &part->account, error);
		if (part->account.stored_max == 0)
			part->account.stored_max = batch->stored_max;
	}
	return result;
}

/* Adds the items that arrived for these accounts while the batch waited for them. */
static int grow(struct batch *batch, struct registration_batch *given)
{
	int64_t *accounts = arena_alloc(batch->arena, batch->account_count * sizeof *accounts);
	if (!accounts)
		return ERR_NO_MEMORY;
	size_t count = 0;
	for (struct account_batch *part = batch->accounts; part; part = part->next)
		accounts[count++] = part->account.account;
	size_t before = given->count;
	given->grow(given, accounts, count);
	assert(given->count >= before);
	if (given->count == before)
		return OK;
	int result = add_items(batch, given->items + before, given->count - before);
	assert(batch->account_count == count); /* the batch has no lock on another account */
	return result;
}

static int try_batch(struct store *store, unsigned sequencer, struct registration_batch *given,
                     bool *ret_may_retry, struct error *error)
{
	const struct register_engine *engine = store->register_engine;
	struct batch batch = {
		.engine = engine, .memory = &store->memories[sequencer], .stored_max = given->stored_max};
	batch.arena = &batch.memory->arena;
	arena_reset(batch.arena);
	int result = add_items(&batch, given->items, given->count);
	if (result)
		return result;
	batch.connection = db_take_registrar(store->db, sequencer, batch.accounts->account.account);
	result = db_begin(batch.connection, error);
	if (!result && engine->begin)
		result = engine->begin(&batch, error);
	if (!result)
		result = load_accounts(&batch, error);
	if (!result && given->grow && engine->grows)
		result = grow(&batch, given);
	batch.clock = given->clock;
	period_key(PERIOD_DAY, batch.clock.now_us, batch.day);
	for (struct account_batch *part = batch.accounts; part && !result; part = part->next)
		result = register_part(&batch, part, error);
	if (!result && engine->finish)
		result = engine->finish(&batch, error);
	if (!result && given->decided)
		given->decided(given);
	if (!result)
		result = db_commit(batch.connection, error);
	if (engine->ended)
		engine->ended(&batch, !result);
	*ret_may_retry = result && db_may_retry(batch.connection);
	db_give(batch.connection);
	return result;
}

#define TRIES_MAX 4

int store_register_batch(struct store *store, unsigned sequencer, struct registration_batch *batch,
                         struct error *error)
{
	assert(batch->count > 0 && sequencer < store_sequencer_count(store));
	struct batch_memory *memory = &store->memories[sequencer];
	bool is_used = atomic_exchange(&memory->is_used, true);
	assert(!is_used); /* one thread at a time */
	bool may_retry = true;
	int result = ERR_UNAVAILABLE;
	for (int tries = 0; tries < TRIES_MAX && result && may_retry; tries++) {
		may_retry = false;
		result = try_batch(store, sequencer, batch, &may_retry, error);
	}
	atomic_store(&memory->is_used, false);
	return result;
}

/* ---- memory kept between batches ---- */

#define BATCH_ARENA_MAX ((size_t)256 << 20)
#define BATCH_ARENA_KEPT ((size_t)4 << 20) /* sufficient for most batches */

int register_open(struct store *store, struct error *error)
{
	unsigned count = store_sequencer_count(store);
	store->register_engine = db_is_shared(store->db) ? &register_on_server : &register_embedded;
	store->memories = calloc(count, sizeof *store->memories);
	int result = store->memories ? OK : ERR_NO_MEMORY;
	for (unsigned i = 0; i < count && !result; i++) {
		arena_init(&store->memories[i].arena, BATCH_ARENA_MAX);
		arena_keep(&store->memories[i].arena, BATCH_ARENA_KEPT);
		result = store->register_engine->open(store, &store->memories[i], error);
	}
	return result;
}

void register_close(struct store *store)
{
	unsigned count = store->memories ? store_sequencer_count(store) : 0;
	for (unsigned i = 0; i < count; i++) {
		store->register_engine->close(&store->memories[i]);
		arena_free(&store->memories[i].arena);
	}
	free(store->memories);
}

/* ---- the index of client_refs ---- */

int64_t store_ref_index_damaged(struct store *store, struct error *ret_what)
{
	struct client_refs *refs = store->memories[0].client_refs;
	return refs ? client_refs_damaged(refs, ret_what) : 0;
}

int store_ref_index_repair(struct store *store, const atomic_bool *stopping, int64_t *ret_repaired,
                           struct error *error)
{
	return client_refs_repair(store->memories[0].client_refs, store->db, stopping, ret_repaired,
	                          error);
}
