#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/client_refs.h"
#include "store/internal.h"
#include "store/read_event.h"

/* One item of a batch beside the ledger's request. */
struct batch_item {
	struct registration *registration;
	struct ledger_request request;
	int64_t ref_hash;
	struct batch_item *next; /* of the same account, in order of arrival */
};

/* A chain head as loaded; the ledger sees its first member. */
struct loaded_chain {
	struct ledger_chain ledger;
	bool sealed; /* no live event waits for a seal */
};

/* What a batch holds of one account. */
struct account_batch {
	struct ledger_account account;
	struct batch_item *first;
	struct batch_item **end;
	size_t count;
	struct account_batch *next;
};

struct batch {
	struct db_connection *connection;
	struct client_refs *refs;
	struct arena *arena;
	int64_t now_us;
	char day[PERIOD_KEY_SIZE];
	struct account_batch *accounts;
};

/* ---- loading ---- */

static int load_chain(struct batch *batch, struct loaded_chain *loaded, int64_t account,
                      struct error *error)
{
	struct ledger_chain *chain = &loaded->ledger;
	struct db_query *query = db_query(
	    batch->connection,
	    "SELECT chains.last_sequence, last_received_at, last_chain_hash, channel_id, "
	    "config_version, modality, config_hash, sealed_sequence FROM chains "
	    "JOIN channels ON channels.account = chains.account AND channels.channel = $3 "
	    "JOIN channel_configs ON channel_configs.account = chains.account "
	    "AND channel_configs.channel = channels.channel "
	    "AND channel_configs.version = channels.config_version "
	    "WHERE chains.account = $1 AND chains.chain = $2 FOR UPDATE");
	db_bind_integer(query, account);
	db_bind_integer(query, chain->chain);
	db_bind_integer(query, chain->channel);
	bool found = db_step(query);
	if (found) {
		chain->last_sequence = db_integer(query, 0);
		chain->last_received_at_us = db_integer(query, 1);
		chain->last_chain_hash = store_sha256(db_blob(query, 2));
		struct slice id = db_text(query, 3);
		chain->channel_id = arena_copy(batch->arena, id.data, id.size);
		chain->config_version = db_integer(query, 4);
		found = modality_parse(db_text(query, 5), &chain->modality);
		chain->config_hash = store_sha256(db_blob(query, 6));
		loaded->sealed = chain->mode == MODE_LIVE && db_integer(query, 7) == chain->last_sequence;
	}
	int result = db_end(query, error);
	if (result != OK)
		return result;
	if (!found)
		return error_cause(error, ERR_CORRUPT, "chain %lld is not whole",
		                   (long long)chain->chain);
	return chain->channel_id ? OK : ERR_NO_MEMORY;
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

/* The chains of an account's items, each once, in order of their numbers: the fixed order of
 * locks. */
static int load_chains(struct batch *batch, struct account_batch *part, struct error *error)
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
	qsort(numbers, count, sizeof *numbers, compare_chain_numbers);
	int result = OK;
	for (size_t i = 0; i < count && result == OK; i++) {
		if (i > 0 && numbers[i] == numbers[i - 1])
			continue;
		struct loaded_chain *chain = &chains[account->chain_count];
		chain->ledger.chain = numbers[i];
		chain->ledger.channel = numbers[i] / 2;
		chain->ledger.mode = numbers[i] % 2 ? MODE_TEST : MODE_LIVE;
		account->chains[account->chain_count++] = &chain->ledger;
		result = load_chain(batch, chain, account->account, error);
	}
	for (struct batch_item *item = part->first; item && result == OK; item = item->next) {
		struct ledger_chain wanted = {.chain = item->registration->chain};
		struct ledger_chain *key = &wanted;
		struct ledger_chain **found = bsearch(&key, account->chains, account->chain_count,
		                                      sizeof *account->chains, compare_chains);
		item->request.chain = *found;
	}
	return result;
}

/* Whether an event with this number holds the same client_ref; fills what is known of it. */
static int look_at_candidate(struct batch *batch, int64_t account, const struct registration *item,
                             int64_t sequence, struct ledger_known *known, struct error *error)
{
	struct db_query *query =
	    db_query(batch->connection, "SELECT client_ref, hash, occurred_at FROM events "
	                                "WHERE account = $1 AND event = $2");
	db_bind_integer(query, account);
	db_bind_integer(query, event_number(item->chain, sequence));
	if (db_step(query) && slice_equal(db_text(query, 0), item->client_ref)) {
		struct slice hash = db_blob(query, 1);
		known->sequence = sequence;
		known->hash_algorithm = hash.size == SHA512_SIZE ? HASH_SHA512 : HASH_SHA256;
		memcpy(known->hash, hash.data, hash_algorithm_size(known->hash_algorithm));
		known->occurred_at_us = db_is_null(query, 2) ? TIME_NONE : db_integer(query, 2);
	}
	return db_end(query, error);
}

#define CANDIDATES_MAX 64 /* equal 64-bit hashes of different client_refs */

static int load_known(struct batch *batch, int64_t account, struct batch_item *item,
                      struct error *error)
{
	int64_t candidates[CANDIDATES_MAX];
	size_t count = 0;
	item->ref_hash = client_ref_hash(item->registration->client_ref);
	int result = client_refs_find(batch->refs, batch->connection, account,
	                              item->registration->chain, item->ref_hash, candidates,
	                              CANDIDATES_MAX, &count, error);
	for (size_t i = 0; i < count && result == OK && !item->request.known.sequence; i++)
		result = look_at_candidate(batch, account, item->registration, candidates[i],
		                           &item->request.known, error);
	return result;
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

static int load_limit_use(struct batch *batch, const struct ledger_account *account,
                          struct ledger_limit *limit, struct error *error)
{
	/* '~' is after every digit: "2026-01" to "2026-01~" is the month's days. */
	char first[PERIOD_KEY_SIZE];
	char last[PERIOD_KEY_SIZE + 1];
	period_key(limit->period, batch->now_us, first);
	snprintf(last, sizeof last, "%s~", first);
	struct db_query *query =
	    limit->key ? db_query(batch->connection,
	                          "SELECT COALESCE(sum(events), 0) FROM key_usage WHERE account = $1 "
	                          "AND channel = $2 AND day BETWEEN $3 AND $4 AND key = $5")
	               : db_query(batch->connection,
	                          "SELECT COALESCE(sum(events), 0) FROM key_usage WHERE account = $1 "
	                          "AND channel = $2 AND day BETWEEN $3 AND $4");
	db_bind_integer(query, account->account);
	db_bind_integer(query, limit->channel);
	db_bind_string(query, first);
	db_bind_string(query, last);
	if (limit->key)
		db_bind_integer(query, limit->key);
	if (db_step(query))
		limit->used = db_integer(query, 0);
	return db_end(query, error);
}

static int count_limits(struct batch *batch, int64_t account, size_t *ret_count,
                        struct error *error)
{
	struct db_query *query = db_query(
	    batch->connection, "SELECT count(*) FROM consumption_limits WHERE account = $1");
	db_bind_integer(query, account);
	*ret_count = db_step(query) ? (size_t)db_integer(query, 0) : 0;
	return db_end(query, error);
}

/* The limits of the channels that the batch touches. */
static int load_limits(struct batch *batch, struct ledger_account *account, struct error *error)
{
	size_t count;
	int result = count_limits(batch, account->account, &count, error);
	if (result != OK || count == 0)
		return result;
	account->limits = arena_alloc(batch->arena, count * sizeof *account->limits);
	if (!account->limits)
		return ERR_NO_MEMORY;
	struct db_query *query = db_query(
	    batch->connection,
	    "SELECT limit_id, consumption_limits.channel, consumption_limits.key, period, max_events, "
	    "action, notified_period, key_id FROM consumption_limits "
	    "LEFT JOIN api_keys ON api_keys.key = consumption_limits.key "
	    "WHERE consumption_limits.account = $1");
	db_bind_integer(query, account->account);
	while (account->limit_count < count && db_step(query)) {
		const struct ledger_chain *chain = chain_of_channel(account, db_integer(query, 1));
		if (!chain)
			continue;
		struct ledger_limit *limit = &account->limits[account->limit_count++];
		struct slice id = db_text(query, 0);
		struct slice key_id = db_text(query, 7);
		struct slice notified = db_text(query, 6);
		limit->limit_id = arena_copy(batch->arena, id.data, id.size);
		limit->channel = chain->channel;
		limit->channel_id = chain->channel_id;
		limit->key = db_integer(query, 2);
		limit->key_id = arena_copy(batch->arena, key_id.data, key_id.size);
		period_parse(db_text(query, 3), &limit->period);
		limit->max_events = db_integer(query, 4);
		limit->block = slice_is(db_text(query, 5), "block");
		snprintf(limit->notified_period, sizeof limit->notified_period, "%.*s",
		         (int)notified.size, notified.data);
		if (!limit->limit_id || !limit->key_id)
			result = ERR_NO_MEMORY;
	}
	int ended = db_end(query, error);
	if (ended != OK || result != OK)
		return ended != OK ? ended : result;
	for (size_t i = 0; i < account->limit_count && result == OK; i++)
		result = load_limit_use(batch, account, &account->limits[i], error);
	return result;
}

static bool has_test_chain(const struct ledger_account *account)
{
	for (size_t i = 0; i < account->chain_count; i++)
		if (account->chains[i]->mode == MODE_TEST)
			return true;
	return false;
}

static int load(struct batch *batch, struct account_batch *part, struct error *error)
{
	int64_t account = part->account.account;
	int result =
	    store_load_account(batch->connection, account, batch->arena, &part->account, error);
	if (result == OK)
		result = load_chains(batch, part, error);
	if (result == OK && has_test_chain(&part->account))
		result = store_load_test_usage(batch->connection, batch->day, &part->account, error);
	if (result == OK)
		result = load_limits(batch, &part->account, error);
	for (struct batch_item *item = part->first; item && result == OK; item = item->next) {
		const struct registration *given = item->registration;
		item->request.key = given->key;
		item->request.key_id = given->key_id;
		item->request.client_ref = given->client_ref;
		item->request.occurred_at_us = given->occurred_at_us;
		item->request.hash_algorithm = given->hash_algorithm;
		memcpy(item->request.hash, given->hash, hash_algorithm_size(given->hash_algorithm));
		item->request.content_bytes = given->content_bytes > 0 ? given->content_bytes : 0;
		result = load_known(batch, account, item, error);
	}
	return result;
}

/* ---- writing ---- */

static bool is_new(const struct batch_item *item)
{
	return item->request.result == OK && !item->request.replayed;
}

static int write_event(struct batch *batch, int64_t account, const struct batch_item *item,
                       struct error *error)
{
	const struct registration *given = item->registration;
	const struct ledger_request *request = &item->request;
	struct db_query *query = db_query(
	    batch->connection,
	    "INSERT INTO events(event, account, key, client_ref, received_at, occurred_at, hash, "
	    "config_version, chain_hash, content, file_name, content_object, content_bytes) "
	    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)");
	db_bind_integer(query, event_number(given->chain, request->sequence));
	db_bind_integer(query, account);
	db_bind_integer(query, given->key);
	db_bind_text(query, given->client_ref);
	db_bind_integer(query, request->received_at_us);
	if (given->occurred_at_us == TIME_NONE)
		db_bind_null(query);
	else
		db_bind_integer(query, given->occurred_at_us);
	db_bind_blob(query, given->hash, hash_algorithm_size(given->hash_algorithm));
	db_bind_integer(query, request->config_version);
	db_bind_blob(query, request->chain_hash.bytes, SHA256_SIZE);
	db_bind_blob(query, given->content.size ? given->content.data : NULL, given->content.size);
	db_bind_string(query, given->file_name);
	db_bind_string(query, given->content_object);
	if (given->content_bytes < 0)
		db_bind_null(query);
	else
		db_bind_integer(query, given->content_bytes);
	int result = db_execute(query, NULL, error);
	if (result != OK)
		return result;
	return client_refs_add(batch->refs, account, given->chain, item->ref_hash, request->sequence);
}

static int write_unpaid(struct batch *batch, struct ledger_account *account,
                        const struct batch_item *item, struct error *error)
{
	struct db_query *query = db_query(
	    batch->connection, "INSERT INTO unpaid_events(account, number, event) VALUES ($1, $2, $3)");
	db_bind_integer(query, account->account);
	db_bind_integer(query, ++account->last_unpaid);
	db_bind_integer(query, event_number(item->registration->chain, item->request.sequence));
	return db_execute(query, NULL, error);
}

static int write_chain(struct batch *batch, int64_t account, const struct ledger_chain *chain,
                       struct error *error)
{
	struct db_query *query = db_query(
	    batch->connection, "UPDATE chains SET last_sequence = $3, last_received_at = $4, "
	                       "last_chain_hash = $5 WHERE account = $1 AND chain = $2");
	db_bind_integer(query, account);
	db_bind_integer(query, chain->chain);
	db_bind_integer(query, chain->last_sequence);
	db_bind_integer(query, chain->last_received_at_us);
	db_bind_blob(query, chain->last_chain_hash.bytes, SHA256_SIZE);
	int result = db_execute(query, NULL, error);
	if (result != OK || !((const struct loaded_chain *)chain)->sealed)
		return result;
	query = db_query(batch->connection, "INSERT INTO unsealed_chains(account, chain) "
	                                    "VALUES ($1, $2) ON CONFLICT DO NOTHING");
	db_bind_integer(query, account);
	db_bind_integer(query, chain->chain);
	return db_execute(query, NULL, error);
}

static int compare_keys(const void *a, const void *b)
{
	const struct batch_item *left = *(struct batch_item *const *)a;
	const struct batch_item *right = *(struct batch_item *const *)b;
	return (left->registration->key > right->registration->key) -
	       (left->registration->key < right->registration->key);
}

static int add_usage(struct batch *batch, int64_t account, const struct registration *given,
                     int64_t events, struct error *error)
{
	struct db_query *query = db_query(
	    batch->connection,
	    "INSERT INTO key_usage(account, channel, key, day, events) VALUES ($1, $2, $3, $4, $5) "
	    "ON CONFLICT (account, channel, key, day) DO UPDATE SET events = key_usage.events + "
	    "excluded.events");
	db_bind_integer(query, account);
	db_bind_integer(query, given->channel);
	db_bind_integer(query, given->key);
	db_bind_string(query, batch->day);
	db_bind_integer(query, events);
	return db_execute(query, NULL, error);
}

static int write_usage(struct batch *batch, const struct account_batch *part, struct error *error)
{
	struct batch_item **live = arena_alloc(batch->arena, part->count * sizeof *live);
	if (!live)
		return ERR_NO_MEMORY;
	size_t count = 0;
	for (struct batch_item *item = part->first; item; item = item->next)
		if (is_new(item) && item->request.status != STATUS_TEST)
			live[count++] = item;
	qsort(live, count, sizeof *live, compare_keys);
	int result = OK;
	for (size_t i = 0, first = 0; i < count && result == OK; i++) {
		if (i + 1 < count && compare_keys(&live[i], &live[i + 1]) == 0)
			continue;
		result = add_usage(batch, part->account.account, live[i]->registration,
		                   (int64_t)(i + 1 - first), error);
		first = i + 1;
	}
	return result;
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
	db_bind_integer(query, account);
	db_bind_string(query, batch->day);
	db_bind_integer(query, decided->test_events_added);
	db_bind_integer(query, decided->test_bytes_added);
	return db_execute(query, NULL, error);
}

static int write_limits(struct batch *batch, const struct ledger_account *account,
                        struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < account->limit_count && result == OK; i++) {
		const struct ledger_limit *limit = &account->limits[i];
		if (!limit->changed)
			continue;
		struct db_query *query = db_query(
		    batch->connection, "UPDATE consumption_limits SET notified_period = $4 "
		                       "WHERE account = $1 AND channel = $2 AND limit_id = $3");
		db_bind_integer(query, account->account);
		db_bind_integer(query, limit->channel);
		db_bind_string(query, limit->limit_id);
		db_bind_string(query, limit->notified_period);
		result = db_execute(query, NULL, error);
	}
	return result;
}

static int write_part(struct batch *batch, struct account_batch *part,
                      const struct ledger_result *decided, struct error *error)
{
	struct ledger_account *account = &part->account;
	int result = OK;
	for (struct batch_item *item = part->first; item && result == OK; item = item->next) {
		if (!is_new(item))
			continue;
		result = write_event(batch, account->account, item, error);
		if (result == OK && item->request.status == STATUS_UNPAID)
			result = write_unpaid(batch, account, item, error);
	}
	for (size_t i = 0; i < account->chain_count && result == OK; i++)
		if (account->chains[i]->changed)
			result = write_chain(batch, account->account, account->chains[i], error);
	if (result == OK)
		result = write_usage(batch, part, error);
	if (result == OK)
		result = write_test_usage(batch, account->account, decided, error);
	if (result == OK)
		result = write_limits(batch, account, error);
	if (result == OK)
		result = store_write_entries(batch->connection, account, decided->entries, batch->now_us,
		                             error);
	if (result == OK)
		result = store_write_notices(batch->connection, account->account, decided->notices,
		                             MODE_LIVE, batch->now_us, error);
	if (result == OK && (decided->live_events_added > 0 || decided->test_events_added > 0))
		result = store_save_account(batch->connection, account, batch->now_us, error);
	return result;
}

/* ---- outcomes ---- */

static void new_event(const struct batch_item *item, struct event *event)
{
	const struct ledger_request *request = &item->request;
	const struct registration *given = item->registration;
	*event = (struct event){
	    .client_ref = given->client_ref,
	    .sequence = request->sequence,
	    .received_at_us = request->received_at_us,
	    .occurred_at_us = given->occurred_at_us,
	    .hash_algorithm = given->hash_algorithm,
	    .modality = request->chain->modality,
	    .chain_hash = request->chain_hash,
	    .status = request->status,
	    .mode = request->chain->mode,
	    .config_version = request->config_version,
	    .sealed_at_us = TIME_NONE,
	    .key = given->key,
	    .content_object = given->content_object,
	    .file_name = given->file_name,
	    .content_bytes = given->content_bytes,
	};
	store_copy_id(event->event_id, slice_of(request->event_id));
	store_copy_id(event->channel_id, slice_of(request->chain->channel_id));
	memcpy(event->hash, given->hash, hash_algorithm_size(given->hash_algorithm));
}

static int test_quota_wait_seconds(int64_t now_us)
{
	return (int)((time_next_day(now_us) - now_us) / US_PER_SECOND + 1);
}

static int give_outcome(struct batch *batch, const struct ledger_account *account,
                        struct batch_item *item, struct error *error)
{
	struct registration *given = item->registration;
	const struct ledger_request *request = &item->request;
	given->result = request->result;
	given->replayed = request->replayed;
	given->error.code = request->result;
	if (request->result == ERR_TEST_QUOTA)
		given->error.retry_after_seconds = test_quota_wait_seconds(batch->now_us);
	if (request->result != OK)
		return OK;
	given->event = arena_alloc(given->arena, sizeof *given->event);
	if (!given->event)
		return ERR_NO_MEMORY;
	if (!request->replayed) {
		new_event(item, given->event);
		return OK;
	}
	int64_t sequence = request->same_as ? request->same_as->sequence : request->known.sequence;
	return read_event(batch->connection, account->account, given->chain, sequence, given->arena,
	                  given->event, error);
}

/* ---- a batch ---- */

/* Items whose shape no longer fits the channel's configuration are refused before the ledger. */
static size_t collect_requests(struct account_batch *part, struct ledger_request **requests)
{
	size_t count = 0;
	for (struct batch_item *item = part->first; item; item = item->next) {
		if (item->registration->modality == item->request.chain->modality)
			requests[count++] = &item->request;
		else
			item->request.result = ERR_VALIDATION;
	}
	return count;
}

static int register_part(struct batch *batch, struct account_batch *part, struct error *error)
{
	int result = load(batch, part, error);
	if (result != OK)
		return result;
	struct ledger_request **requests = arena_alloc(batch->arena, part->count * sizeof *requests);
	if (!requests)
		return ERR_NO_MEMORY;
	size_t count = collect_requests(part, requests);
	struct ledger_result decided;
	result = ledger_register(&part->account, requests, count, batch->now_us, batch->arena, &decided);
	if (result == OK)
		result = write_part(batch, part, &decided, error);
	for (struct batch_item *item = part->first; item && result == OK; item = item->next)
		result = give_outcome(batch, &part->account, item, error);
	return result;
}

static int sort_by_account(struct batch *batch, struct registration **items, size_t count)
{
	struct batch_item *all = arena_alloc(batch->arena, count * sizeof *all);
	if (!all)
		return ERR_NO_MEMORY;
	struct account_batch **place;
	for (size_t i = 0; i < count; i++) {
		for (place = &batch->accounts; *place; place = &(*place)->next)
			if ((*place)->account.account >= items[i]->account)
				break;
		if (!*place || (*place)->account.account != items[i]->account) {
			struct account_batch *part = arena_alloc(batch->arena, sizeof *part);
			if (!part)
				return ERR_NO_MEMORY;
			part->account.account = items[i]->account;
			part->end = &part->first;
			part->next = *place;
			*place = part;
		}
		all[i].registration = items[i];
		*(*place)->end = &all[i];
		(*place)->end = &all[i].next;
		(*place)->count++;
	}
	return OK;
}

int store_register(struct store *store, struct registration **items, size_t count,
                   int64_t now_us, struct error *error)
{
	assert(count > 0);
	arena_reset(&store->batch_arena);
	struct batch batch = {.refs = store->client_refs, .arena = &store->batch_arena, .now_us = now_us};
	period_key(PERIOD_DAY, now_us, batch.day);
	int result = sort_by_account(&batch, items, count);
	if (result != OK)
		return result;
	batch.connection = db_take_writer(store->db);
	result = db_begin(batch.connection, error);
	for (struct account_batch *part = batch.accounts; part && result == OK; part = part->next)
		result = register_part(&batch, part, error);
	if (result == OK)
		result = client_refs_write(store->client_refs, batch.connection, error);
	if (result == OK)
		result = db_commit(batch.connection, error);
	if (result == OK)
		client_refs_committed(store->client_refs);
	else
		client_refs_rolled_back(store->client_refs);
	db_give(batch.connection);
	return result;
}
