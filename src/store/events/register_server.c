/* Registration on a server: one statement for all rows of a batch, with arrays as parameters,
 * because a round trip costs more than an event. */
#include <assert.h>
#include <stdlib.h>

#include "store/events/event_row.h"
#include "store/events/register_batch.h"

#define USED_COLUMNS 6
#define ENTRY_COLUMNS 6

/* Parameters of the statements; their memory is kept between batches. */
struct event_columns {
	struct db_array chain, ref_hash;                                  /* search values */
	struct db_array last_sequence, last_received_at, last_chain_hash; /* of `chain` */
	struct db_array used[USED_COLUMNS];                               /* as in struct usage */
	struct db_array entry[ENTRY_COLUMNS];
	struct db_array event, key, new_ref_hash, content; /* of new events */
	struct db_array row[EVENT_COLUMN_COUNT];           /* the rest of them */
};

static int open_columns(struct store *store, struct batch_memory *memory, struct error *error)
{
	struct event_columns *columns = calloc(1, sizeof *columns);
	if (!columns)
		return ERR_NO_MEMORY;
	db_array_init(&columns->chain, DB_INTEGERS);
	db_array_init(&columns->ref_hash, DB_INTEGERS);
	db_array_init(&columns->last_sequence, DB_INTEGERS);
	db_array_init(&columns->last_received_at, DB_INTEGERS);
	db_array_init(&columns->last_chain_hash, DB_BLOBS);
	for (size_t i = 0; i < USED_COLUMNS; i++)
		db_array_init(&columns->used[i], DB_INTEGERS);
	for (size_t i = 0; i < ENTRY_COLUMNS; i++)
		db_array_init(&columns->entry[i], DB_INTEGERS);
	db_array_init(&columns->event, DB_INTEGERS);
	db_array_init(&columns->key, DB_INTEGERS);
	db_array_init(&columns->new_ref_hash, DB_INTEGERS);
	db_array_init(&columns->content, DB_BLOBS);
	event_row_init_arrays(columns->row);
	memory->columns = columns;
	return OK;
}

static void close_columns(struct batch_memory *memory)
{
	struct event_columns *columns = memory->columns;
	if (!columns)
		return;
	db_array_free(&columns->chain);
	db_array_free(&columns->ref_hash);
	db_array_free(&columns->last_sequence);
	db_array_free(&columns->last_received_at);
	db_array_free(&columns->last_chain_hash);
	for (size_t i = 0; i < USED_COLUMNS; i++)
		db_array_free(&columns->used[i]);
	for (size_t i = 0; i < ENTRY_COLUMNS; i++)
		db_array_free(&columns->entry[i]);
	db_array_free(&columns->event);
	db_array_free(&columns->key);
	db_array_free(&columns->new_ref_hash);
	db_array_free(&columns->content);
	for (size_t i = 0; i < EVENT_COLUMN_COUNT; i++)
		db_array_free(&columns->row[i]);
	free(columns);
}

/* ---- heads of chains ---- */

static struct db_query *ask_heads(struct batch *batch, const struct ledger_account *account)
{
	struct db_array *numbers = &batch->memory->columns->chain;
	db_array_clear(numbers);
	for (size_t i = 0; i < account->chain_count; i++)
		db_array_add_integer(numbers, account->chains[i]->chain);
	struct db_query *query = db_query(
		batch->connection,
		"SELECT heads.* FROM unnest($2::bigint[]) AS wanted(number) CROSS JOIN LATERAL (" CHAIN_HEADS(
			"") "WHERE chains.account = $1 AND chains.chain = wanted.number "
				"FOR UPDATE OF chains) AS heads");
	db_bind_integer(query, account->account);
	db_bind_array(query, numbers);
	db_send(query);
	return query;
}

/* Rows are usually in the requested order, which is not guaranteed. Returns NULL for a chain that
 * was not requested. */
static struct loaded_chain *chain_of_row(struct loaded_chain *chains, size_t count, size_t row,
                                         int64_t number)
{
	for (size_t i = 0; i < count; i++)
		if (chains[(row + i) % count].ledger.chain == number)
			return &chains[(row + i) % count];
	return NULL;
}

static int read_heads(struct batch *batch, struct account_batch *part, struct loaded_chain *chains,
                      struct error *error)
{
	struct db_query *query = part->heads;
	size_t count = part->account.chain_count;
	size_t found = 0;
	int read = OK;
	while (!read && db_step(query)) {
		struct loaded_chain *chain = chain_of_row(chains, count, found++, db_integer(query, 0));
		read = chain ? register_read_head(batch, query, chain) : ERR_CORRUPT;
	}
	int result = db_end(query, error);
	if (!result && (read || found < count))
		return register_head_not_whole(chains[0].ledger.chain, error);
	return result;
}

/* ---- events that hold given client_refs ---- */

static void fill_known(struct db_query *query, struct batch_item *item)
{
	if (!slice_equal(db_text(query, 2), item->registration->declaration.client_ref))
		return; /* another client_ref with the same 64-bit hash */
	item->request.result = register_read_known(
		db_integer(query, 1) & EVENT_SEQUENCE_MAX, db_blob(query, 3),
		db_is_null(query, 4) ? TIME_NONE : db_integer(query, 4), &item->request.known, NULL);
}

/* OFFSET 0 prevents the planner from reversing the join, which would read all events. */
static struct db_query *ask_known(struct batch *batch, struct account_batch *part)
{
	struct event_columns *columns = batch->memory->columns;
	db_array_clear(&columns->chain);
	db_array_clear(&columns->ref_hash);
	for (struct batch_item *item = part->first; item; item = item->next) {
		item->ref_hash = client_ref_hash(item->registration->declaration.client_ref);
		db_array_add_integer(&columns->chain, item->registration->chain);
		db_array_add_integer(&columns->ref_hash, item->ref_hash);
	}
	struct db_query *query =
		db_query(batch->connection,
	             "SELECT wanted.number, event, client_ref, hash, occurred_at "
	             "FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY "
	             "AS wanted(chain, ref_hash, number) "
	             "CROSS JOIN LATERAL (SELECT event, client_ref, hash, occurred_at FROM events "
	             "WHERE account = $1 AND events.ref_hash = wanted.ref_hash "
	             "AND event >> 40 = wanted.chain OFFSET 0) AS found");
	db_bind_integer(query, part->account.account);
	db_bind_array(query, &columns->chain);
	db_bind_array(query, &columns->ref_hash);
	db_send(query);
	return query;
}

static int read_known(struct batch *batch, struct account_batch *part, struct error *error)
{
	struct db_query *query = part->known;
	struct batch_item **items = arena_alloc(batch->arena, part->count * sizeof *items);
	if (!items)
		return ERR_NO_MEMORY;
	size_t count = 0;
	for (struct batch_item *item = part->first; item; item = item->next)
		items[count++] = item;
	while (db_step(query)) {
		size_t number = (size_t)db_integer(query, 0);
		if (number >= 1 && number <= count)
			fill_known(query, items[number - 1]);
	}
	return db_end(query, error);
}

static int look_up(struct store *store, int64_t account, int64_t chain, struct slice client_ref,
                   int64_t *ret_sequence, struct error *error)
{
	int64_t sequence = 0;
	struct db_connection *reader = db_take_reader(store->db);
	struct db_query *query =
		db_query(reader, "SELECT event, client_ref FROM events WHERE account = $1 "
	                     "AND ref_hash = $2 AND event >> 40 = $3");
	db_bind(query, account, client_ref_hash(client_ref), chain);
	while (db_step(query))
		if (slice_equal(db_text(query, 1), client_ref))
			sequence = db_integer(query, 0) & EVENT_SEQUENCE_MAX;
	int result = db_end(query, error);
	db_give(reader);
	if (!result)
		*ret_sequence = sequence;
	return result;
}

static void ask(struct batch *batch, struct account_batch *part)
{
	part->heads = ask_heads(batch, &part->account);
	part->known = ask_known(batch, part);
}

/* ---- new events ---- */

static void clear_events(struct event_columns *columns)
{
	db_array_clear(&columns->event);
	db_array_clear(&columns->key);
	db_array_clear(&columns->new_ref_hash);
	db_array_clear(&columns->content);
	for (size_t i = 0; i < EVENT_COLUMN_COUNT; i++)
		db_array_clear(&columns->row[i]);
}

static void add_event(struct event_columns *columns, const struct batch_item *item)
{
	const struct registration *given = item->registration;
	const struct ledger_request *request = &item->request;
	struct event event;
	assert(request->sequence <= request->chain->last_sequence);
	batch_item_event(item, &event);
	db_array_add_integer(&columns->event, batch_item_number(item));
	db_array_add_integer(&columns->key, given->key);
	db_array_add_integer(&columns->new_ref_hash, item->ref_hash);
	db_array_add_bytes(&columns->content, given->content.size ? given->content.data : NULL,
	                   given->content.size);
	event_row_add(columns->row, &event);
}

#define NEW_EVENTS                                                                                 \
	"INSERT INTO events(account, event, key, ref_hash, content" EVENT_COLUMN_NAMES ") "
/* The arrays have the same length. unnest in the select list returns their values in step. In FROM,
 * each would first be materialized, which costs a microsecond per event. */
#define EVENT_VALUES                                                                               \
	"SELECT $1, unnest($2::bigint[]), unnest($3::bigint[]), unnest($4::bigint[]), "                \
	"unnest($5::bytea[])" EVENT_COLUMN_ARRAYS

static int write_events(struct batch *batch, struct account_batch *part, struct error *error)
{
	struct event_columns *columns = batch->memory->columns;
	clear_events(columns);
	for (struct batch_item *item = part->first; item; item = item->next)
		if (batch_item_is_new(item))
			add_event(columns, item);
	if (columns->event.count == 0)
		return OK;
	struct db_query *query = db_query(batch->connection, NEW_EVENTS EVENT_VALUES);
	db_bind_integer(query, part->account.account);
	db_bind_array(query, &columns->event);
	db_bind_array(query, &columns->key);
	db_bind_array(query, &columns->new_ref_hash);
	db_bind_array(query, &columns->content);
	for (size_t i = 0; i < EVENT_COLUMN_COUNT; i++) {
		assert(columns->row[i].count == columns->event.count); /* unnest would add NULLs */
		db_bind_array(query, &columns->row[i]);
	}
	return db_execute(query, NULL, error);
}

/* The condition on chains is repeated, so that every plan reads only these chains. */
static int write_heads(struct batch *batch, const struct account_batch *part, struct error *error)
{
	const struct ledger_account *account = &part->account;
	struct event_columns *columns = batch->memory->columns;
	db_array_clear(&columns->chain);
	db_array_clear(&columns->last_sequence);
	db_array_clear(&columns->last_received_at);
	db_array_clear(&columns->last_chain_hash);
	for (size_t i = 0; i < account->chain_count; i++) {
		const struct ledger_chain *chain = account->chains[i];
		if (!chain->changed)
			continue;
		db_array_add_integer(&columns->chain, chain->chain);
		db_array_add_integer(&columns->last_sequence, chain->last_sequence);
		db_array_add_integer(&columns->last_received_at, chain->last_received_at_us);
		db_array_add_bytes(&columns->last_chain_hash, chain->last_chain_hash.bytes, SHA256_SIZE);
	}
	assert(columns->last_sequence.count == columns->chain.count);
	assert(columns->last_received_at.count == columns->chain.count);
	assert(columns->last_chain_hash.count == columns->chain.count);
	if (columns->chain.count == 0)
		return OK;
	struct db_query *query =
		db_query(batch->connection,
	             "UPDATE chains SET last_sequence = head.last_sequence, "
	             "last_received_at = head.last_received_at, last_chain_hash = head.last_chain_hash "
	             "FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[]) "
	             "AS head(chain, last_sequence, last_received_at, last_chain_hash) "
	             "WHERE chains.account = $1 AND chains.chain = ANY($2::bigint[]) "
	             "AND chains.chain = head.chain");
	db_bind_integer(query, account->account);
	db_bind_array(query, &columns->chain);
	db_bind_array(query, &columns->last_sequence);
	db_bind_array(query, &columns->last_received_at);
	db_bind_array(query, &columns->last_chain_hash);
	return db_execute(query, NULL, error);
}

/* ---- credits ---- */

static int write_entries(struct batch *batch, struct ledger_account *account,
                         const struct ledger_entry *entries, struct error *error)
{
	struct db_array *columns = batch->memory->columns->entry;
	for (size_t i = 0; i < ENTRY_COLUMNS; i++)
		db_array_clear(&columns[i]);
	for (const struct ledger_entry *entry = entries; entry; entry = entry->next) {
		assert(entry->chain);
		assert(entry->first_sequence >= 1 && entry->first_sequence <= entry->last_sequence);
		assert(entry->credits == entry->first_sequence - entry->last_sequence - 1);
		db_array_add_integer(&columns[0], ++account->last_entry);
		db_array_add_integer(&columns[1], entry->credits);
		db_array_add_integer(&columns[2], entry->balance);
		db_array_add_integer(&columns[3], entry->chain->chain);
		db_array_add_integer(&columns[4], entry->first_sequence);
		db_array_add_integer(&columns[5], entry->last_sequence);
	}
	if (!entries)
		return OK;
	struct db_query *query =
		db_query(batch->connection,
	             "INSERT INTO credit_entries(account, at, kind, number, credits, balance, chain, "
	             "first_sequence, last_sequence) SELECT $1, $2, 'events', unnest($3::bigint[]), "
	             "unnest($4::bigint[]), unnest($5::bigint[]), unnest($6::bigint[]), "
	             "unnest($7::bigint[]), unnest($8::bigint[])");
	db_bind(query, account->account, batch->clock.now_us);
	for (size_t i = 0; i < ENTRY_COLUMNS; i++) {
		assert(columns[i].count == columns[0].count);
		db_bind_array(query, &columns[i]);
	}
	return db_execute(query, NULL, error);
}

/* ---- usage ---- */

#define USED                                                                                       \
	"INSERT INTO daily_usage AS u(account, day, chain, key, events, unpaid_events, content_bytes) "
#define USED_VALUES                                                                                \
	"SELECT $1, unnest($2::bigint[]), unnest($3::bigint[]), unnest($4::bigint[]), "                \
	"unnest($5::bigint[]), unnest($6::bigint[]), unnest($7::bigint[])"
#define USED_MORE                                                                                  \
	" ON CONFLICT (account, day, chain, key) DO UPDATE SET events = u.events + excluded.events, "  \
	"unpaid_events = u.unpaid_events + excluded.unpaid_events, "                                   \
	"content_bytes = u.content_bytes + excluded.content_bytes"

static int add_usage(struct batch *batch, int64_t account, const struct usage *usage, size_t count,
                     struct error *error)
{
	struct db_array *used = batch->memory->columns->used;
	for (size_t i = 0; i < USED_COLUMNS; i++)
		db_array_clear(&used[i]);
	for (size_t i = 0; i < count; i++) {
		db_array_add_integer(&used[0], usage[i].day);
		db_array_add_integer(&used[1], usage[i].chain);
		db_array_add_integer(&used[2], usage[i].key);
		db_array_add_integer(&used[3], usage[i].events);
		db_array_add_integer(&used[4], usage[i].unpaid_events);
		db_array_add_integer(&used[5], usage[i].content_bytes);
	}
	struct db_query *query = db_query(batch->connection, USED USED_VALUES USED_MORE);
	db_bind_integer(query, account);
	for (size_t i = 0; i < USED_COLUMNS; i++) {
		assert(used[i].count == count);
		db_bind_array(query, &used[i]);
	}
	return db_execute(query, NULL, error);
}

const struct register_engine register_on_server = {
	.grows = true,
	.open = open_columns,
	.close = close_columns,
	.ask = ask,
	.read_heads = read_heads,
	.find_known = read_known,
	.write_events = write_events,
	.write_heads = write_heads,
	.write_entries = write_entries,
	.add_usage = add_usage,
	.look_up = look_up,
};
