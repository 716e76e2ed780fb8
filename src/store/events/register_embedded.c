/* Registration on the embedded engine: rows are read and written individually, because a statement
 * costs little. Events are found by client_ref through an index of our own (client_refs.h). */
#include <assert.h>
#include <stdlib.h>

#include "store/events/event_row.h"
#include "store/events/head_cache.h"
#include "store/events/register_batch.h"

static int open_embedded(struct store *store, struct batch_memory *memory, struct error *error)
{
	struct db_connection *reader = db_take_reader(store->db);
	const struct client_refs_shape shape = client_refs_usual_shape();
	int result = client_refs_open(reader, &shape, &memory->client_refs, error);
	db_give(reader);
	memory->head_cache = head_cache_create();
	return result || memory->head_cache ? result : ERR_NO_MEMORY;
}

static void close_embedded(struct batch_memory *memory)
{
	client_refs_close(memory->client_refs);
	head_cache_free(memory->head_cache);
}

static int read_head(struct batch *batch, int64_t account, struct loaded_chain *chain,
                     struct error *error)
{
	struct db_query *query = db_query(
		batch->connection,
		CHAIN_HEADS(", last_run") "WHERE chains.account = $1 AND chains.chain = $2 FOR UPDATE");
	db_bind(query, account, chain->ledger.chain);
	int read = db_step(query) ? register_read_head(batch, query, chain) : ERR_CORRUPT;
	if (!read)
		chain->runs.last.arrival = db_integer(query, CHAIN_HEADS_ADDED);
	int result = db_end(query, error);
	return !result && read ? register_head_not_whole(chain->ledger.chain, error) : result;
}

static int read_heads(struct batch *batch, struct account_batch *part, struct loaded_chain *chains,
                      struct error *error)
{
	int64_t account = part->account.account;
	int result = OK;
	for (size_t i = 0; i < part->account.chain_count && !result; i++)
		if (!head_cache_find(batch->memory->head_cache, account, batch->arena, &chains[i]))
			result = read_head(batch, account, &chains[i], error);
	return result;
}

struct wanted {
	int64_t account, chain;
	struct slice client_ref;
	int64_t ref_hash;
};

/* Reads whether the event has the client_ref, and fills *known. */
static int check_candidate(struct db_connection *connection, const struct wanted *wanted,
                           int64_t sequence, struct ledger_known *known, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT client_ref, hash, occurred_at FROM events "
	                         "WHERE account = $1 AND event = $2");
	db_bind(query, wanted->account, event_number(wanted->chain, sequence));
	int read = OK;
	if (db_step(query) && slice_equal(db_text(query, 0), wanted->client_ref))
		read = register_read_known(sequence, db_blob(query, 1),
		                           db_is_null(query, 2) ? TIME_NONE : db_integer(query, 2), known,
		                           error);
	int result = db_end(query, error);
	return result ? result : read;
}

#define CANDIDATES_MAX 64 /* different client_refs with the same 64-bit hash */

static int read_candidates(struct db_connection *connection, const struct wanted *wanted,
                           const int64_t *candidates, size_t count, struct ledger_known *known,
                           struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < count && !result && !known->sequence; i++)
		result = check_candidate(connection, wanted, candidates[i], known, error);
	return result;
}

static int load_known(struct client_refs *refs, struct db_connection *connection,
                      const struct wanted *wanted, struct ledger_known *known, struct error *error)
{
	int64_t candidates[CANDIDATES_MAX];
	size_t count = 0;
	int result = client_refs_find(refs, connection, wanted->account, wanted->chain,
	                              wanted->ref_hash, candidates, CANDIDATES_MAX, &count, error);
	return result ? result : read_candidates(connection, wanted, candidates, count, known, error);
}

static int find_known(struct batch *batch, struct account_batch *part, struct error *error)
{
	int result = OK;
	for (struct batch_item *item = part->first; item && !result; item = item->next) {
		const struct registration *given = item->registration;
		item->ref_hash = client_ref_hash(given->declaration.client_ref);
		struct wanted wanted = {part->account.account, given->chain, given->declaration.client_ref,
		                        item->ref_hash};
		result = load_known(batch->memory->client_refs, batch->connection, &wanted,
		                    &item->request.known, error);
		/* Damage of the index or of the event concerns only this item. */
		if (result == ERR_UNAVAILABLE && !db_failure(batch->connection)) {
			item->request.result = result;
			result = OK;
		}
	}
	return result;
}

static int look_up(struct store *store, int64_t account, int64_t chain, struct slice client_ref,
                   int64_t *ret_sequence, struct error *error)
{
	struct wanted wanted = {account, chain, client_ref, client_ref_hash(client_ref)};
	struct ledger_known known = {0};
	int64_t candidates[CANDIDATES_MAX];
	size_t count = 0;
	struct db_connection *reader = db_take_reader(store->db);
	int result = client_refs_lookup(store->memories[0].client_refs, reader, account, chain,
	                                wanted.ref_hash, candidates, CANDIDATES_MAX, &count, error);
	if (!result)
		result = read_candidates(reader, &wanted, candidates, count, &known, error);
	db_give(reader);
	if (!result)
		*ret_sequence = known.sequence;
	return result;
}

static int write_event(struct batch *batch, int64_t account, int64_t arrival,
                       const struct batch_item *item, struct error *error)
{
	const struct registration *given = item->registration;
	struct event event;
	batch_item_event(item, &event);
	struct db_query *query =
		db_query(batch->connection, "INSERT INTO events_arrived(arrival, event, account, key, "
	                                "content" EVENT_COLUMN_NAMES
	                                ") VALUES ($1, $2, $3, $4, $5" EVENT_COLUMN_PARAMETERS ")");
	db_bind(query, arrival, batch_item_number(item), account, given->key);
	db_bind_blob(query, given->content.size ? given->content.data : NULL, given->content.size);
	event_row_bind(query, &event);
	int result = db_execute(query, NULL, error);
	if (result)
		return result;
	return client_refs_add(batch->memory->client_refs, account, given->chain, item->ref_hash,
	                       event.sequence);
}

/* Sort order of insertion: the events of a chain in a batch are consecutive. */
static int compare_events(const void *a, const void *b)
{
	const struct batch_item *left = *(struct batch_item *const *)a;
	const struct batch_item *right = *(struct batch_item *const *)b;
	int64_t left_event = batch_item_number(left);
	int64_t right_event = batch_item_number(right);
	return (left_event > right_event) - (left_event < right_event);
}

static struct loaded_chain *chain_of(const struct batch_item *item)
{
	return (struct loaded_chain *)item->request.chain;
}

/* Writes the events of one chain and their run. */
static int write_run(struct batch *batch, int64_t account, int64_t arrival,
                     struct batch_item *const *items, size_t count, struct error *error)
{
	const int64_t first = batch_item_number(items[0]);
	int result = OK;
	for (size_t i = 0; i < count && !result; i++) {
		assert(batch_item_number(items[i]) == first + (int64_t)i); /* a run has no gap */
		result = write_event(batch, account, arrival + (int64_t)i, items[i], error);
	}
	if (result)
		return result;
	return append_log_add_run(batch->connection, arrival, first, (int64_t)count,
	                          &chain_of(items[0])->runs, error);
}

static int write_events(struct batch *batch, struct account_batch *part, struct error *error)
{
	struct batch_item **items = arena_alloc(batch->arena, part->count * sizeof *items);
	if (!items)
		return ERR_NO_MEMORY;
	size_t count = 0;
	for (struct batch_item *item = part->first; item; item = item->next)
		if (batch_item_is_new(item))
			items[count++] = item;
	if (count == 0)
		return OK;
	assert(count <= part->count);
	qsort(items, count, sizeof *items, compare_events);
	int64_t last;
	int result = append_log_last(batch->connection, &last, error);
	for (size_t i = 0, end; i < count && !result; i = end) {
		for (end = i + 1; end < count && chain_of(items[end]) == chain_of(items[i]);)
			end++;
		result = write_run(batch, part->account.account, last + 1 + (int64_t)i, &items[i], end - i,
		                   error);
	}
	return result;
}

static int write_head(struct batch *batch, int64_t account, const struct loaded_chain *loaded,
                      struct error *error)
{
	const struct ledger_chain *chain = &loaded->ledger;
	/* The run that was written ends at the head. */
	assert(append_run_last_key(&loaded->runs.last) ==
	       new_event_number(chain->chain, chain->last_sequence));
	struct db_query *query =
		db_query(batch->connection, "UPDATE chains SET last_sequence = $3, last_received_at = $4, "
	                                "last_chain_hash = $5, last_run = $6 "
	                                "WHERE account = $1 AND chain = $2");
	db_bind(query, account, chain->chain, chain->last_sequence, chain->last_received_at_us,
	        &chain->last_chain_hash, loaded->runs.last.arrival);
	return db_execute(query, NULL, error);
}

static int write_heads(struct batch *batch, const struct account_batch *part, struct error *error)
{
	const struct ledger_account *account = &part->account;
	int result = OK;
	for (size_t i = 0; i < account->chain_count && !result; i++)
		if (account->chains[i]->changed)
			result = write_head(batch, account->account,
			                    (const struct loaded_chain *)account->chains[i], error);
	return result;
}

static int write_entries(struct batch *batch, struct ledger_account *account,
                         const struct ledger_entry *entries, struct error *error)
{
	return store_write_entries(batch->connection, account, entries, batch->clock.now_us, error);
}

static int add_one_usage(struct batch *batch, int64_t account, const struct usage *usage,
                         struct error *error)
{
	struct db_query *query = db_query(
		batch->connection,
		"INSERT INTO daily_usage(account, day, chain, key, events, unpaid_events, content_bytes) "
		"VALUES ($1, $2, $3, $4, $5, $6, $7) "
		"ON CONFLICT (account, day, chain, key) DO UPDATE SET events = events + excluded.events, "
		"unpaid_events = unpaid_events + excluded.unpaid_events, "
		"content_bytes = content_bytes + excluded.content_bytes");
	db_bind(query, account, usage->day, usage->chain, usage->key, usage->events,
	        usage->unpaid_events, usage->content_bytes);
	return db_execute(query, NULL, error);
}

static int add_usage(struct batch *batch, int64_t account, const struct usage *usage, size_t count,
                     struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < count && !result; i++)
		result = add_one_usage(batch, account, &usage[i], error);
	return result;
}

static int begin(struct batch *batch, struct error *error)
{
	return head_cache_begin(batch->memory->head_cache, batch->connection, error);
}

static int finish(struct batch *batch, struct error *error)
{
	int result = client_refs_write(batch->memory->client_refs, batch->connection, error);
	return result ? result : head_cache_finish(batch->memory->head_cache, batch->connection, error);
}

static void keep_heads(struct batch *batch)
{
	for (const struct account_batch *part = batch->accounts; part; part = part->next)
		for (size_t i = 0; i < part->account.chain_count; i++)
			head_cache_put(batch->memory->head_cache, part->account.account,
			               (const struct loaded_chain *)part->account.chains[i]);
}

static void ended(struct batch *batch, bool committed)
{
	if (committed) {
		client_refs_committed(batch->memory->client_refs);
		keep_heads(batch);
	} else {
		client_refs_rolled_back(batch->memory->client_refs);
		head_cache_clear(batch->memory->head_cache);
	}
}

const struct register_engine register_embedded = {
	.open = open_embedded,
	.close = close_embedded,
	.begin = begin,
	.read_heads = read_heads,
	.find_known = find_known,
	.write_events = write_events,
	.write_heads = write_heads,
	.write_entries = write_entries,
	.add_usage = add_usage,
	.finish = finish,
	.ended = ended,
	.look_up = look_up,
};
