#include "ledger/ledger.h"

#include <assert.h>

#include "ledger/invariants.h"
#include "ledger/notice.h"

/* Requests of this batch that were registered, by chain and client_ref, to find repetitions within
 * the batch. Open addressing with at least twice as many slots as requests. */
struct seen_table {
	struct ledger_request **slots;
	size_t mask;
};

struct pass {
	struct ledger_account *account;
	const struct ledger_clock *clock;
	struct arena *arena;
	struct buf record;
	struct seen_table seen;
	struct notice_list notices;
	struct ledger_entry *entries;
	struct ledger_entry **entries_end;
};

static uint64_t seen_hash(const struct ledger_request *request)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)request->chain->chain;
	for (size_t i = 0; i < request->declaration->client_ref.size; i++)
		hash = (hash ^ (uint8_t)request->declaration->client_ref.data[i]) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 29;
}

/* Returns the slot with the same client_ref, or the free slot for it. */
static struct ledger_request **seen_slot(const struct seen_table *table,
                                         const struct ledger_request *request)
{
	size_t at = seen_hash(request) & table->mask;
	while (table->slots[at] && (table->slots[at]->chain != request->chain ||
	                            !slice_equal(table->slots[at]->declaration->client_ref,
	                                         request->declaration->client_ref)))
		at = (at + 1) & table->mask;
	return &table->slots[at];
}

static bool same_declaration(const struct declaration *declaration, enum hash_algorithm algorithm,
                             const uint8_t *hash, int64_t occurred_at_us)
{
	return declaration->hash_algorithm == algorithm &&
	       memcmp(declaration->hash, hash, hash_algorithm_size(algorithm)) == 0 &&
	       declaration->occurred_at_us == occurred_at_us;
}

static bool limit_applies(const struct ledger_limit *limit, const struct ledger_request *request)
{
	return limit->channel == request->chain->channel &&
	       (limit->key == 0 || limit->key == request->key);
}

/* The event would be received in the period of the clock, or of the chain's last event if that is
 * later. */
static int check_limits(const struct pass *pass, struct ledger_request *request)
{
	const struct ledger_account *account = pass->account;
	int64_t last_us = request->chain->last_received_at_us;
	int64_t at_us = last_us > pass->clock->now_us ? last_us : pass->clock->now_us;
	int result = OK;
	for (size_t i = 0; i < account->limit_count; i++) {
		const struct ledger_limit *limit = &account->limits[i];
		if (!limit->block || limit->used < limit->max_events || !limit_applies(limit, request))
			continue;
		int64_t until_us = period_end_us(limit->period, at_us);
		if (!result || until_us > request->blocked_until_us)
			request->blocked_until_us = until_us;
		result = ERR_LIMIT_BLOCKED;
	}
	return result;
}

static int check_live(const struct pass *pass, struct ledger_request *request)
{
	const struct ledger_account *account = pass->account;
	const struct ledger_clock *clock = pass->clock;
	/* An event with a future received_at cannot be sealed, nor can any event after it. */
	if (ledger_clock_is_refused(clock) ||
	    ledger_clock_lag_us(request->chain->last_received_at_us, clock->now_us) > clock->bound_us)
		return ERR_CLOCK;
	if (check_limits(pass, request))
		return ERR_LIMIT_BLOCKED;
	if (account->balance <= 0 && account->unpaid_events >= account->unpaid_limit)
		return ERR_UNPAID_LIMIT;
	return OK;
}

static int check_test(const struct pass *pass, const struct ledger_request *request)
{
	const struct ledger_account *account = pass->account;
	if (account->test_events_today >= TEST_EVENTS_PER_DAY ||
	    account->test_bytes_today + request->content_bytes > TEST_CONTENT_BYTES_PER_DAY)
		return ERR_TEST_QUOTA;
	return OK;
}

static int check_room(const struct ledger_chain *chain)
{
	return chain->chain > CHAIN_MAX || chain->last_sequence >= EVENT_SEQUENCE_MAX ? ERR_FULL : OK;
}

bool ledger_may_store(int64_t stored_bytes, int64_t stored_max, int64_t more)
{
	return stored_max == 0 || more == 0 ||
	       (stored_bytes <= stored_max && more <= stored_max - stored_bytes);
}

static int check_stored(const struct ledger_account *account, struct ledger_request *request)
{
	request->beyond_stored =
		!ledger_may_store(account->stored_bytes, account->stored_max, request->content_bytes);
	return request->beyond_stored ? ERR_FULL : OK;
}

/* One entry pays for a run of events of a chain. Credits run out at most once in a batch, so the
 * paid events of a chain are consecutive. */
static int charge(struct pass *pass, struct ledger_chain *chain, int64_t sequence)
{
	struct ledger_entry *entry = chain->paid;
	if (!entry) {
		assert(chain->mode == MODE_LIVE); /* a test event is free */
		entry = arena_alloc(pass->arena, sizeof *entry);
		if (!entry)
			return ERR_NO_MEMORY;
		entry->kind = "events";
		entry->chain = chain;
		entry->first_sequence = sequence;
		chain->paid = entry;
		*pass->entries_end = entry;
		pass->entries_end = &entry->next;
	} else {
		assert(entry->last_sequence + 1 == sequence);
	}
	assert(entry->chain == chain && pass->account->balance > 0);
	entry->last_sequence = sequence;
	entry->credits--;
	pass->account->balance--;
	return OK;
}

static void count_limits(struct pass *pass, const struct ledger_request *request)
{
	for (size_t i = 0; i < pass->account->limit_count; i++) {
		struct ledger_limit *limit = &pass->account->limits[i];
		if (!limit_applies(limit, request))
			continue;
		limit->used++;
		char key[PERIOD_KEY_SIZE];
		period_key(limit->period, request->received_at_us, key);
		if (limit->used < limit->max_events || strcmp(limit->notified_period, key) == 0)
			continue;
		assert(!limit->changed || strcmp(limit->notified_period, key) < 0); /* once a period */
		notice_consumption_limit(&pass->notices, limit, key);
		memcpy(limit->notified_period, key, PERIOD_KEY_SIZE);
		limit->changed = true;
	}
}

static int account_live(struct pass *pass, struct ledger_request *request)
{
	struct ledger_account *account = pass->account;
	count_limits(pass, request);
	if (account->balance > 0) {
		request->status = STATUS_REGISTERED;
		int result = charge(pass, request->chain, request->sequence);
		if (account->threshold_count > 0)
			notice_thresholds(&pass->notices, account);
		return result;
	}
	request->status = STATUS_UNPAID;
	account->unpaid_events++;
	if (account->unpaid_events == 1)
		notice_exhausted(&pass->notices, request->chain->channel_id);
	if (account->unpaid_events == account->unpaid_limit)
		notice_unpaid_limit(&pass->notices, account);
	return OK;
}

static int append(struct pass *pass, struct ledger_request *request)
{
	struct ledger_chain *chain = request->chain;
	assert(request->declaration->modality == chain->modality);
	assert(chain->chain <= CHAIN_MAX && chain->last_sequence < EVENT_SEQUENCE_MAX);
	request->sequence = ++chain->last_sequence;
	int64_t now_us = pass->clock->now_us;
	request->received_at_us =
		now_us > chain->last_received_at_us ? now_us : chain->last_received_at_us;
	request->config_version = chain->config_version;
	event_id_make(chain->channel_id, chain->mode, request->sequence, request->event_id);
	struct event_facts facts = {
		.channel_id = chain->channel_id,
		.chain = chain->mode,
		.sequence = request->sequence,
		.event_id = slice_of(request->event_id),
		.declaration = *request->declaration,
		.received_at_us = request->received_at_us,
		.config_version = chain->config_version,
		.config_hash = chain->config_hash,
		.previous_chain_hash = chain->last_chain_hash,
	};
	if (event_chain_hash(&facts, &pass->record, &request->chain_hash))
		return ERR_NO_MEMORY;
	chain->last_received_at_us = request->received_at_us;
	chain->last_chain_hash = request->chain_hash;
	chain->changed = true;
	return OK;
}

static int register_new(struct pass *pass, struct ledger_request *request)
{
	if (append(pass, request))
		return ERR_NO_MEMORY;
	assert(request->content_bytes >= 0);
	pass->account->stored_bytes += request->content_bytes;
	if (request->chain->mode == MODE_LIVE)
		return account_live(pass, request);
	request->status = STATUS_TEST;
	pass->account->test_events_today++;
	pass->account->test_bytes_today += request->content_bytes;
	return OK;
}

static int decide(struct pass *pass, struct ledger_request *request)
{
	const struct ledger_values before = ledger_values_of(pass->account, request->chain);
	struct ledger_request **slot = seen_slot(&pass->seen, request);
	struct ledger_request *earlier = *slot;
	const struct ledger_known *known = &request->known;
	if (earlier || known->sequence) {
		const struct declaration *first = earlier ? earlier->declaration : NULL;
		bool same = first ? same_declaration(request->declaration, first->hash_algorithm,
		                                     first->hash, first->occurred_at_us)
		                  : same_declaration(request->declaration, known->hash_algorithm,
		                                     known->hash, known->occurred_at_us);
		request->result = same ? OK : ERR_CONFLICT;
		request->replayed = same;
		request->original = earlier ? earlier->sequence : known->sequence;
		assert_unchanged(&before, pass->account, request);
		return OK;
	}
	bool live = request->chain->mode == MODE_LIVE;
	request->result = live ? check_live(pass, request) : check_test(pass, request);
	if (!request->result)
		request->result = check_room(request->chain);
	if (!request->result)
		request->result = check_stored(pass->account, request);
	if (request->result) {
		assert_unchanged(&before, pass->account, request);
		return OK;
	}
	*slot = request;
	int result = register_new(pass, request);
	if (!result)
		assert_appended(&before, pass->account, request, pass->clock);
	return result;
}

static int pass_init(struct pass *pass, size_t count)
{
	size_t slots = 16;
	while (slots < count * 2)
		slots *= 2;
	pass->seen.slots = arena_alloc(pass->arena, slots * sizeof *pass->seen.slots);
	pass->seen.mask = slots - 1;
	if (!pass->seen.slots)
		return ERR_NO_MEMORY;
	notice_list_init(&pass->notices, pass->arena);
	pass->entries_end = &pass->entries;
	return OK;
}

int ledger_register(struct ledger_account *account, struct ledger_request **requests, size_t count,
                    const struct ledger_clock *clock, struct arena *arena,
                    struct ledger_result *ret_result)
{
	struct pass pass = {.account = account, .clock = clock, .arena = arena};
	const struct ledger_values before = ledger_values_of(account, NULL);
	assert(clock->ahead_us >= 0 && clock->bound_us >= 0 && clock->refused_for_us >= 0);
	int result = pass_init(&pass, count);
	if (result)
		return result;
	buf_init(&pass.record, EVENT_RECORD_MAX);
	for (size_t i = 0; i < count && !result; i++)
		result = decide(&pass, requests[i]);
	buf_free(&pass.record);
	if (result || pass.notices.failed)
		return ERR_NO_MEMORY;

	int64_t live_events = 0;
	int64_t balance = before.balance;
	for (struct ledger_entry *entry = pass.entries; entry; entry = entry->next) {
		balance += entry->credits;
		entry->balance = balance;
	}
	assert_batch(&before, account, requests, count, pass.entries);
	for (size_t i = 0; i < count; i++)
		live_events +=
			!requests[i]->result && !requests[i]->replayed && requests[i]->status != STATUS_TEST;
	*ret_result = (struct ledger_result){
		.entries = pass.entries,
		.notices = pass.notices.first,
		.test_events_added = account->test_events_today - before.test_events_today,
		.test_bytes_added = account->test_bytes_today - before.test_bytes_today,
		.live_events_added = live_events,
	};
	return OK;
}
