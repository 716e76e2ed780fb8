/* Loading of the state that a batch needs: accounts, chain heads, limits, events with the same
 * client_ref. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/events/register_batch.h"
#include "store/transaction.h"

int register_read_head(struct batch *batch, struct db_query *query, struct loaded_chain *loaded)
{
	struct ledger_chain *chain = &loaded->ledger;
	chain->last_sequence = db_integer(query, 1);
	chain->last_received_at_us = db_integer(query, 2);
	chain->last_chain_hash = store_sha256(db_blob(query, 3));
	struct slice id = db_text(query, 4);
	chain->channel_id = arena_copy(batch->arena, id.data, id.size);
	chain->config_version = db_integer(query, 5);
	if (chain->last_sequence < 0 || !modality_parse(db_text(query, 6), &chain->modality))
		return ERR_CORRUPT;
	chain->config_hash = store_sha256(db_blob(query, 7));
	loaded->sealed = chain->mode == MODE_LIVE && db_integer(query, 8) == chain->last_sequence;
	return chain->channel_id ? OK : ERR_NO_MEMORY;
}

int register_head_not_whole(int64_t chain, struct error *error)
{
	return error_cause(error, ERR_CORRUPT, "the head of chain %lld is missing or damaged",
	                   (long long)chain);
}

int register_read_known(int64_t sequence, struct slice hash, int64_t occurred_at_us,
                        struct ledger_known *ret, struct error *error)
{
	if (hash.size != SHA256_SIZE && hash.size != SHA512_SIZE)
		return error_cause(error, ERR_UNAVAILABLE, "event %lld: the digest has %zu bytes",
		                   (long long)sequence, hash.size);
	ret->sequence = sequence;
	ret->hash_algorithm = hash.size == SHA512_SIZE ? HASH_SHA512 : HASH_SHA256;
	memcpy(ret->hash, hash.data, hash.size);
	ret->occurred_at_us = occurred_at_us;
	return OK;
}

static int compare_chain_numbers(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a;
	int64_t right = *(const int64_t *)b;
	return (left > right) - (left < right);
}

static int compare_chains(const void *a, const void *b)
{
	const struct ledger_chain *left = *(struct ledger_chain *const *)a;
	const struct ledger_chain *right = *(struct ledger_chain *const *)b;
	return (left->chain > right->chain) - (left->chain < right->chain);
}

/* Lists the chains of an account's items, each once, in order of their numbers, which is the lock
 * order. */
static int list_chains(struct batch *batch, struct account_batch *part,
                       struct loaded_chain **ret_chains)
{
	int64_t *numbers = arena_alloc(batch->arena, part->count * sizeof *numbers);
	struct loaded_chain *chains = arena_alloc(batch->arena, part->count * sizeof *chains);
	struct ledger_account *account = &part->account;
	account->chains = arena_alloc(batch->arena, part->count * sizeof *account->chains);
	if (!numbers || !chains || !account->chains)
		return ERR_NO_MEMORY;
	size_t count = 0;
	for (struct batch_item *item = part->first; item; item = item->next)
		numbers[count++] = item->registration->chain;
	assert(count == part->count); /* the size of all three lists */
	qsort(numbers, count, sizeof *numbers, compare_chain_numbers);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && numbers[i] == numbers[i - 1])
			continue;
		struct loaded_chain *chain = &chains[account->chain_count];
		chain->ledger.chain = numbers[i];
		chain->ledger.channel = numbers[i] / 2;
		chain->ledger.mode = numbers[i] % 2 ? MODE_TEST : MODE_LIVE;
		account->chains[account->chain_count++] = &chain->ledger;
	}
	*ret_chains = chains;
	return OK;
}

static void give_chains_to_items(struct account_batch *part)
{
	struct ledger_account *account = &part->account;
	for (struct batch_item *item = part->first; item; item = item->next) {
		struct ledger_chain wanted = {.chain = item->registration->chain};
		struct ledger_chain *key = &wanted;
		struct ledger_chain **found = bsearch(&key, account->chains, account->chain_count,
		                                      sizeof *account->chains, compare_chains);
		assert(found && (*found)->channel == item->registration->channel);
		item->request.chain = *found;
	}
}

static const struct ledger_chain *chain_of_channel(const struct ledger_account *account,
                                                   int64_t channel)
{
	struct ledger_chain wanted = {.chain = chain_number(channel, MODE_LIVE)};
	struct ledger_chain *key = &wanted;
	struct ledger_chain **found = bsearch(&key, account->chains, account->chain_count,
	                                      sizeof *account->chains, compare_chains);
	return found ? *found : NULL;
}

/* One lookup for each day: the rows of a day for all chains are stored together. */
#define USED_IN_DAYS                                                                               \
	"WITH RECURSIVE days(number) AS (SELECT CAST($3 AS BIGINT) UNION ALL "                         \
	"SELECT number + 1 FROM days WHERE number < $4) "                                              \
	"SELECT COALESCE(sum(events), 0) FROM days CROSS JOIN daily_usage "                            \
	"WHERE account = $1 AND day = number AND chain = $2"

static int load_limit_use(struct batch *batch, const struct ledger_account *account,
                          struct ledger_limit *limit, struct error *error)
{
	/* Periods are determined by received_at, which may be ahead of this clock and in the next
	 * day. */
	const struct ledger_chain *chain = chain_of_channel(account, limit->channel);
	assert(chain); /* load_limits keeps those of the batch's channels */
	int64_t received_at_us = batch->clock.now_us > chain->last_received_at_us
	                             ? batch->clock.now_us
	                             : chain->last_received_at_us;
	int64_t first, last;
	period_days(limit->period, received_at_us, &first, &last);
	struct db_query *query = limit->key ? db_query(batch->connection, USED_IN_DAYS " AND key = $5")
	                                    : db_query(batch->connection, USED_IN_DAYS);
	db_bind(query, account->account, chain->chain, first, last);
	if (limit->key)
		db_bind_integer(query, limit->key);
	if (db_step(query))
		limit->used = db_integer(query, 0);
	return db_end(query, error);
}

static struct db_query *ask_limit_count(struct batch *batch, int64_t account)
{
	struct db_query *query =
		db_query(batch->connection, "SELECT count(*) FROM consumption_limits WHERE account = $1");
	db_bind_integer(query, account);
	db_send(query);
	return query;
}

/* The identifier of a key is stored with the keys, which with shards is not where the limits
 * are. */
#define LIMIT_COLUMNS                                                                              \
	"SELECT limit_id, consumption_limits.channel, consumption_limits.key, period, max_events, "    \
	"action, notified_period, "

static int read_key_id(struct batch *batch, struct ledger_limit *limit, struct error *error)
{
	struct db_connection *unsharded = db_side_connection(batch->connection);
	struct db_query *query = db_query(unsharded, "SELECT key_id FROM api_keys WHERE key = $1");
	db_bind_integer(query, limit->key);
	if (db_step(query)) {
		struct slice key_id = db_text(query, 0);
		limit->key_id = arena_copy(batch->arena, key_id.data, key_id.size);
	}
	int result = db_end(query, error);
	return !result && !limit->key_id ? ERR_NO_MEMORY : result;
}

/* Limits of the same events and period share one count. */
static int count_uses(struct batch *batch, const struct ledger_account *account,
                      struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < account->limit_count && !result; i++) {
		struct ledger_limit *limit = &account->limits[i];
		size_t same = 0;
		while (same < i && (account->limits[same].channel != limit->channel ||
		                    account->limits[same].key != limit->key ||
		                    account->limits[same].period != limit->period))
			same++;
		if (same < i)
			limit->used = account->limits[same].used;
		else
			result = load_limit_use(batch, account, limit, error);
	}
	return result;
}

static bool uses_key(const struct account_batch *part, int64_t key)
{
	for (const struct batch_item *item = part->first; item; item = item->next)
		if (item->registration->key == key)
			return true;
	return false;
}

/* Loads the limits of the channels and keys in the batch. */
static int load_limits(struct batch *batch, struct db_query *count_query,
                       struct account_batch *part, struct error *error)
{
	struct ledger_account *account = &part->account;
	size_t count = db_step(count_query) ? (size_t)db_integer(count_query, 0) : 0;
	int result = db_end(count_query, error);
	if (result || count == 0)
		return result;
	account->limits = arena_alloc(batch->arena, count * sizeof *account->limits);
	if (!account->limits)
		return ERR_NO_MEMORY;
	bool sharded = db_is_sharded(db_of(batch->connection));
	struct db_query *query =
		sharded ? db_query(batch->connection, LIMIT_COLUMNS
	                       "'' FROM consumption_limits WHERE consumption_limits.account = $1")
				: db_query(batch->connection, LIMIT_COLUMNS
	                       "key_id FROM consumption_limits "
	                       "LEFT JOIN api_keys ON api_keys.key = consumption_limits.key "
	                       "WHERE consumption_limits.account = $1");
	db_bind_integer(query, account->account);
	while (account->limit_count < count && !result && db_step(query)) {
		const struct ledger_chain *chain = chain_of_channel(account, db_integer(query, 1));
		const int64_t key = db_integer(query, 2);
		if (!chain || (key && !uses_key(part, key)))
			continue;
		struct ledger_limit *limit = &account->limits[account->limit_count++];
		struct slice id = db_text(query, 0);
		struct slice key_id = db_text(query, 7);
		struct slice notified = db_text(query, 6);
		limit->limit_id = arena_copy(batch->arena, id.data, id.size);
		limit->channel = chain->channel;
		limit->channel_id = chain->channel_id;
		limit->key = key;
		limit->key_id = arena_copy(batch->arena, key_id.data, key_id.size);
		limit->max_events = db_integer(query, 4);
		limit->block = slice_is(db_text(query, 5), "block");
		snprintf(limit->notified_period, sizeof limit->notified_period, "%.*s", (int)notified.size,
		         notified.data);
		if (!limit->limit_id || !limit->key_id)
			result = ERR_NO_MEMORY;
		else if (!period_parse(db_text(query, 3), &limit->period))
			result = unknown_text("period", db_text(query, 3), limit->limit_id, error);
		else if (!limit->block && !slice_is(db_text(query, 5), "warn"))
			result = unknown_text("action", db_text(query, 5), limit->limit_id, error);
	}
	int ended = db_end(query, error);
	if (ended || result)
		return ended ? ended : result;
	for (size_t i = 0; sharded && i < account->limit_count && !result; i++)
		if (account->limits[i].key)
			result = read_key_id(batch, &account->limits[i], error);
	return result ? result : count_uses(batch, account, error);
}

static bool has_test_chain(const struct ledger_account *account)
{
	for (size_t i = 0; i < account->chain_count; i++)
		if (account->chains[i]->mode == MODE_TEST)
			return true;
	return false;
}

static void fill_requests(struct account_batch *part)
{
	for (struct batch_item *item = part->first; item; item = item->next) {
		const struct registration *given = item->registration;
		item->request.key = given->key;
		item->request.declaration = &given->declaration;
		assert(given->content_bytes >= 0 || (!given->content_object && !given->content.size));
		item->request.content_bytes = given->content_bytes > 0 ? given->content_bytes : 0;
	}
}

int register_load(struct batch *batch, struct account_batch *part, struct error *error)
{
	const struct register_engine *engine = batch->engine;
	struct ledger_account *account = &part->account;
	struct loaded_chain *chains;
	int result = list_chains(batch, part, &chains);
	if (result)
		return result;
	struct db_query *limits_query = ask_limit_count(batch, account->account);
	if (engine->ask)
		engine->ask(batch, part);
	result = engine->read_heads(batch, part, chains, error);
	if (result)
		return result;
	give_chains_to_items(part);
	fill_requests(part);
	if (has_test_chain(account))
		result = store_load_test_usage(batch->connection, batch->day, account, error);
	if (!result)
		result = load_limits(batch, limits_query, part, error);
	if (!result)
		result = engine->find_known(batch, part, error);
	return result;
}
