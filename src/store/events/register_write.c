/* Writing of what the ledger decided for a batch. */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/events/register_batch.h"

static int write_unpaid(struct batch *batch, struct ledger_account *account,
                        const struct batch_item *item, struct error *error)
{
	assert(item->request.chain->mode == MODE_LIVE);
	struct db_query *query = db_query(
		batch->connection, "INSERT INTO unpaid_events(account, number, event) VALUES ($1, $2, $3)");
	db_bind(query, account->account, ++account->last_unpaid, batch_item_number(item));
	return db_execute(query, NULL, error);
}

static int write_unsealed(struct batch *batch, int64_t account, const struct loaded_chain *chain,
                          struct error *error)
{
	assert(chain->ledger.mode == MODE_LIVE); /* test events are never sealed */
	struct db_query *query =
		db_query(batch->connection, "INSERT INTO unsealed_chains(account, chain) "
	                                "VALUES ($1, $2) ON CONFLICT DO NOTHING");
	db_bind(query, account, chain->ledger.chain);
	return db_execute(query, NULL, error);
}

/* Sort order of daily_usage within a day. */
static int compare_keys(const void *a, const void *b)
{
	const struct registration *left = (*(struct batch_item *const *)a)->registration;
	const struct registration *right = (*(struct batch_item *const *)b)->registration;
	int chains = (left->chain > right->chain) - (left->chain < right->chain);
	return chains ? chains : (left->key > right->key) - (left->key < right->key);
}

/* Groups events by key: `runs` has one element for each key in `items`. The events of a key belong
 * to one chain and therefore have the same received_at. */
static size_t count_runs(struct batch_item **items, size_t count, struct usage *runs)
{
	size_t found = 0;
	qsort(items, count, sizeof *items, compare_keys);
	for (size_t i = 0; i < count; i++) {
		const struct ledger_request *request = &items[i]->request;
		if (i == 0 || compare_keys(&items[i - 1], &items[i]) != 0)
			runs[found++] = (struct usage){.day = time_day(request->received_at_us),
			                               .chain = items[i]->registration->chain,
			                               .key = items[i]->registration->key};
		assert(runs[found - 1].day == time_day(request->received_at_us));
		runs[found - 1].events++;
		runs[found - 1].unpaid_events += request->status == STATUS_UNPAID;
		runs[found - 1].content_bytes += request->content_bytes;
	}
	return found;
}

static int write_usage(struct batch *batch, const struct account_batch *part, struct error *error)
{
	struct batch_item **items = arena_alloc(batch->arena, part->count * sizeof *items);
	struct usage *runs = arena_alloc(batch->arena, part->count * sizeof *runs);
	if (!items || !runs)
		return ERR_NO_MEMORY;
	size_t count = 0;
	for (struct batch_item *item = part->first; item; item = item->next)
		if (batch_item_is_new(item))
			items[count++] = item;
	if (count == 0)
		return OK;
	assert(count <= part->count);
	count = count_runs(items, count, runs);
	return batch->engine->add_usage(batch, part->account.account, runs, count, error);
}

static int write_test_usage(struct batch *batch, int64_t account,
                            const struct ledger_result *decided, struct error *error)
{
	if (decided->test_events_added == 0)
		return OK;
	struct db_query *query = db_query(
		batch->connection,
		"INSERT INTO test_usage(account, day, events, content_bytes) VALUES ($1, $2, $3, $4) "
		"ON CONFLICT (account, day) DO UPDATE SET events = test_usage.events + excluded.events, "
		"content_bytes = test_usage.content_bytes + excluded.content_bytes");
	db_bind(query, account, batch->day, decided->test_events_added, decided->test_bytes_added);
	return db_execute(query, NULL, error);
}

static int write_limits(struct batch *batch, const struct ledger_account *account,
                        struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < account->limit_count && !result; i++) {
		const struct ledger_limit *limit = &account->limits[i];
		if (!limit->changed)
			continue;
		struct db_query *query =
			db_query(batch->connection, "UPDATE consumption_limits SET notified_period = $4 "
		                                "WHERE account = $1 AND channel = $2 AND limit_id = $3");
		db_bind(query, account->account, limit->channel, limit->limit_id, limit->notified_period);
		result = db_execute(query, NULL, error);
	}
	return result;
}

int register_write(struct batch *batch, struct account_batch *part,
                   const struct ledger_result *decided, struct error *error)
{
	struct ledger_account *account = &part->account;
	assert(decided->live_events_added >= 0 && decided->test_events_added >= 0);
	assert(decided->test_bytes_added >= 0);
	assert(!decided->entries || decided->live_events_added > 0); /* test events are free */
	int result = batch->engine->write_events(batch, part, error);
	for (struct batch_item *item = part->first; item && !result; item = item->next)
		if (batch_item_is_new(item) && item->request.status == STATUS_UNPAID)
			result = write_unpaid(batch, account, item, error);
	if (!result)
		result = batch->engine->write_heads(batch, part, error);
	for (size_t i = 0; i < account->chain_count && !result; i++) {
		const struct loaded_chain *chain = (const struct loaded_chain *)account->chains[i];
		if (chain->ledger.changed && chain->sealed)
			result = write_unsealed(batch, account->account, chain, error);
	}
	if (!result)
		result = write_usage(batch, part, error);
	if (!result)
		result = write_test_usage(batch, account->account, decided, error);
	if (!result)
		result = write_limits(batch, account, error);
	if (!result)
		result = batch->engine->write_entries(batch, account, decided->entries, error);
	if (!result)
		result = store_write_notices(batch->connection, account->account, decided->notices,
		                             MODE_LIVE, batch->clock.now_us, error);
	if (!result && (decided->live_events_added > 0 || decided->test_events_added > 0))
		result = store_save_account(batch->connection, account, batch->clock.now_us, error);
	return result;
}
