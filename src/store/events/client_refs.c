#include "store/events/client_refs.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/digest.h"
#include "store/internal.h"

/* Of gathered entries, this many are moved for each one that comes, and so many in any batch: the
 * moving ends well before the next turn. */
#define MOVED_PER_NEW 2
#define MOVED_AT_LEAST 32
#define SLOTS_FIRST ((size_t)1 << 10)

/* As it also stands in the small tables, many in a row. */
struct entry {
	int64_t account;
	int64_t event; /* chain and sequence; 0: an empty slot */
	int64_t ref_hash;
};
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the store's files are little-endian");

struct entry_list {
	struct entry *items;
	size_t count;
	size_t capacity;
};

struct client_refs {
	size_t gathered_max;
	int table; /* which of the two takes new entries */
	/* What is found in memory, slots and `moving`, changes under it; whoever changes it, the
	 * sequencer alone, reads it without. */
	pthread_mutex_t lock;
	struct entry *slots; /* its entries: open addressing, at most three quarters full */
	size_t slot_count;   /* a power of two */
	size_t gathered;
	struct entry_list moving; /* the other table's, sorted as the tree is */
	size_t moved;             /* of them, committed */
	/* Of the transaction under way. */
	struct entry_list added;
	size_t move_to; /* `moved` once it commits */
	bool emptied;   /* the other table was emptied */
	bool turned;    /* the tables change places */
};

int64_t client_ref_hash(struct slice client_ref)
{
	struct sha256 hash = sha256_of(client_ref.data, client_ref.size);
	int64_t number;
	memcpy(&number, hash.bytes, sizeof number);
	return number;
}

static int64_t chain_of(const struct entry *entry)
{
	return entry->event >> EVENT_SEQUENCE_BITS;
}

/* The order of the tree's key. */
static int compare_entries(const void *a, const void *b)
{
	const struct entry *left = a;
	const struct entry *right = b;
	if (left->account != right->account)
		return left->account < right->account ? -1 : 1;
	if (chain_of(left) != chain_of(right))
		return chain_of(left) < chain_of(right) ? -1 : 1;
	if (left->ref_hash != right->ref_hash)
		return left->ref_hash < right->ref_hash ? -1 : 1;
	return (left->event > right->event) - (left->event < right->event);
}

static int list_add(struct entry_list *list, const struct entry *entry)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 256;
		struct entry *items = reallocarray(list->items, capacity, sizeof *items);
		if (!items)
			return ERR_NO_MEMORY;
		list->items = items;
		list->capacity = capacity;
	}
	list->items[list->count++] = *entry;
	return OK;
}

static void list_free(struct entry_list *list)
{
	free(list->items);
	*list = (struct entry_list){0};
}

/* ---- the entries in memory ---- */

static size_t slot_of(const struct client_refs *refs, int64_t chain, int64_t ref_hash)
{
	uint64_t mixed = ((uint64_t)ref_hash ^ (uint64_t)chain) * UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(mixed >> 20) & (refs->slot_count - 1);
}

static void slot_put(struct client_refs *refs, const struct entry *entry)
{
	size_t at = slot_of(refs, chain_of(entry), entry->ref_hash);
	while (refs->slots[at].event)
		at = (at + 1) & (refs->slot_count - 1);
	refs->slots[at] = *entry;
}

/* Room for one more, so that a committed addition cannot fail. */
static int slots_reserve(struct client_refs *refs, size_t more)
{
	size_t count = refs->slot_count ? refs->slot_count : SLOTS_FIRST;
	while (count * 3 < (refs->gathered + more) * 4)
		count *= 2;
	if (count == refs->slot_count)
		return OK;
	struct entry *old = refs->slots;
	size_t old_count = refs->slot_count;
	struct entry *slots = calloc(count, sizeof *slots);
	if (!slots)
		return ERR_NO_MEMORY;
	pthread_mutex_lock(&refs->lock);
	refs->slots = slots;
	refs->slot_count = count;
	for (size_t i = 0; i < old_count; i++)
		if (old[i].event)
			slot_put(refs, &old[i]);
	pthread_mutex_unlock(&refs->lock);
	free(old);
	return OK;
}

/* The first of `moving` that is not before the key. */
static size_t moving_from(const struct entry_list *moving, const struct entry *key)
{
	size_t low = 0;
	size_t high = moving->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_entries(&moving->items[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- opening ---- */

static struct db_query *select_table(struct db_connection *connection, int table)
{
	return table == 0 ? db_query(connection, "SELECT entries FROM fresh_client_refs_0")
	                  : db_query(connection, "SELECT entries FROM fresh_client_refs_1");
}

static int load_entry(struct client_refs *refs, int table, const struct entry *entry)
{
	if (table != refs->table)
		return list_add(&refs->moving, entry);
	int result = slots_reserve(refs, 1);
	if (result)
		return result;
	slot_put(refs, entry);
	refs->gathered++;
	return OK;
}

static int load_table(struct client_refs *refs, struct db_connection *connection, int table,
                      struct error *error)
{
	int result = OK;
	struct db_query *query = select_table(connection, table);
	while (!result && db_step(query)) {
		struct slice entries = db_blob(query, 0);
		for (size_t at = 0; at + sizeof(struct entry) <= entries.size && !result;
		     at += sizeof(struct entry)) {
			struct entry entry;
			memcpy(&entry, entries.data + at, sizeof entry);
			result = entry.event ? load_entry(refs, table, &entry) : ERR_CORRUPT;
		}
	}
	int ended = db_end(query, error);
	return ended ? ended : result;
}

int client_refs_open(struct db_connection *connection, size_t gathered_max,
                     struct client_refs **ret, struct error *error)
{
	struct client_refs *refs = calloc(1, sizeof *refs);
	if (!refs)
		return ERR_NO_MEMORY;
	pthread_mutex_init(&refs->lock, NULL);
	refs->gathered_max = gathered_max;
	struct db_query *query =
		db_query(connection, "SELECT value FROM settings WHERE name = 'fresh_client_refs'");
	if (db_step(query))
		refs->table = slice_is(db_text(query, 0), "1");
	int result = db_end(query, error);
	for (int table = 0; table < 2 && !result; table++)
		result = load_table(refs, connection, table, error);
	if (result) {
		client_refs_close(refs);
		return result;
	}
	if (refs->moving.count > 0)
		qsort(refs->moving.items, refs->moving.count, sizeof *refs->moving.items, compare_entries);
	*ret = refs;
	return OK;
}

void client_refs_close(struct client_refs *refs)
{
	if (!refs)
		return;
	free(refs->slots);
	list_free(&refs->moving);
	list_free(&refs->added);
	pthread_mutex_destroy(&refs->lock);
	free(refs);
}

/* ---- finding ---- */

static void find_in_memory(struct client_refs *refs, const struct entry *key, int64_t *sequences,
                           size_t max, size_t *count)
{
	pthread_mutex_lock(&refs->lock);
	if (refs->slot_count) {
		size_t at = slot_of(refs, chain_of(key), key->ref_hash);
		for (; refs->slots[at].event; at = (at + 1) & (refs->slot_count - 1))
			if (refs->slots[at].ref_hash == key->ref_hash &&
			    chain_of(&refs->slots[at]) == chain_of(key) && *count < max)
				sequences[(*count)++] = refs->slots[at].event & EVENT_SEQUENCE_MAX;
	}
	for (size_t i = moving_from(&refs->moving, key); i < refs->moving.count && *count < max; i++) {
		const struct entry *entry = &refs->moving.items[i];
		if (entry->ref_hash != key->ref_hash || chain_of(entry) != chain_of(key))
			break;
		sequences[(*count)++] = entry->event & EVENT_SEQUENCE_MAX;
	}
	pthread_mutex_unlock(&refs->lock);
}

int client_refs_find(struct client_refs *refs, struct db_connection *connection, int64_t account,
                     int64_t chain, int64_t ref_hash, int64_t *ret_sequences, size_t max,
                     size_t *ret_count, struct error *error)
{
	struct entry key = {account, event_number(chain, 0), ref_hash};
	size_t count = 0;
	find_in_memory(refs, &key, ret_sequences, max, &count);
	struct db_query *query = db_query(connection, "SELECT sequence FROM client_refs "
	                                              "WHERE account = $1 AND chain = $2 "
	                                              "AND ref_hash = $3");
	db_bind_integer(query, account);
	db_bind_integer(query, chain);
	db_bind_integer(query, ref_hash);
	while (count < max && db_step(query))
		ret_sequences[count++] = db_integer(query, 0);
	int result = db_end(query, error);
	if (result)
		return result;
	if (count == max)
		return error_cause(error, ERR_INTERNAL, "too many equal hashes of client_refs");
	*ret_count = count;
	return OK;
}

/* ---- adding and moving ---- */

int client_refs_add(struct client_refs *refs, int64_t account, int64_t chain, int64_t ref_hash,
                    int64_t sequence)
{
	struct entry entry = {account, event_number(chain, sequence), ref_hash};
	return list_add(&refs->added, &entry);
}

static int write_added(struct client_refs *refs, struct db_connection *connection,
                       struct error *error)
{
	if (refs->added.count == 0)
		return OK;
	struct db_query *query =
		refs->table == 0
			? db_query(connection, "INSERT INTO fresh_client_refs_0(entries) VALUES ($1)")
			: db_query(connection, "INSERT INTO fresh_client_refs_1(entries) VALUES ($1)");
	db_bind_blob(query, refs->added.items, refs->added.count * sizeof *refs->added.items);
	return db_execute(query, NULL, error);
}

static int move_entry(struct db_connection *connection, const struct entry *entry,
                      struct error *error)
{
	struct db_query *query =
		db_query(connection, "INSERT INTO client_refs(account, chain, ref_hash, sequence) "
	                         "VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING");
	db_bind_integer(query, entry->account);
	db_bind_integer(query, chain_of(entry));
	db_bind_integer(query, entry->ref_hash);
	db_bind_integer(query, entry->event & EVENT_SEQUENCE_MAX);
	return db_execute(query, NULL, error);
}

static int empty_other_table(struct client_refs *refs, struct db_connection *connection,
                             struct error *error)
{
	refs->emptied = true;
	return db_execute(refs->table == 0 ? db_query(connection, "DELETE FROM fresh_client_refs_1")
	                                   : db_query(connection, "DELETE FROM fresh_client_refs_0"),
	                  NULL, error);
}

static int turn_tables(struct client_refs *refs, struct db_connection *connection,
                       struct error *error)
{
	refs->turned = true;
	struct db_query *query =
		db_query(connection, "INSERT INTO settings(name, value) VALUES ('fresh_client_refs', $1) "
	                         "ON CONFLICT (name) DO UPDATE SET value = excluded.value");
	db_bind_string(query, refs->table == 0 ? "1" : "0");
	return db_execute(query, NULL, error);
}

int client_refs_write(struct client_refs *refs, struct db_connection *connection,
                      struct error *error)
{
	int result = slots_reserve(refs, refs->added.count);
	if (!result)
		result = write_added(refs, connection, error);
	size_t left = refs->moving.count - refs->moved;
	size_t count = refs->added.count * MOVED_PER_NEW + MOVED_AT_LEAST;
	refs->move_to = refs->moved + (count < left ? count : left);
	for (size_t i = refs->moved; i < refs->move_to && !result; i++)
		result = move_entry(connection, &refs->moving.items[i], error);
	if (!result && refs->moving.count > 0 && refs->move_to == refs->moving.count)
		result = empty_other_table(refs, connection, error);
	bool nothing_moves = refs->moving.count == 0 || refs->emptied;
	if (!result && nothing_moves && refs->gathered + refs->added.count >= refs->gathered_max)
		result = turn_tables(refs, connection, error);
	return result;
}

/* What was gathered becomes what is moved, in the same memory, so that this cannot fail. */
static void turn(struct client_refs *refs)
{
	refs->moving.items = refs->slots;
	refs->moving.capacity = refs->slot_count;
	refs->moving.count = 0;
	for (size_t i = 0; i < refs->slot_count; i++)
		if (refs->slots[i].event)
			refs->moving.items[refs->moving.count++] = refs->slots[i];
	qsort(refs->moving.items, refs->moving.count, sizeof *refs->moving.items, compare_entries);
	struct entry *fitting =
		reallocarray(refs->moving.items, refs->moving.count, sizeof *refs->moving.items);
	if (fitting) {
		refs->moving.items = fitting;
		refs->moving.capacity = refs->moving.count;
	}
	refs->slots = NULL;
	refs->slot_count = 0;
	refs->gathered = 0;
	refs->table = !refs->table;
}

static void forget_transaction(struct client_refs *refs)
{
	refs->added.count = 0;
	refs->move_to = refs->moved;
	refs->emptied = false;
	refs->turned = false;
}

void client_refs_committed(struct client_refs *refs)
{
	assert((refs->gathered + refs->added.count) * 4 <= refs->slot_count * 3 || !refs->added.count);
	pthread_mutex_lock(&refs->lock);
	for (size_t i = 0; i < refs->added.count; i++)
		slot_put(refs, &refs->added.items[i]);
	refs->gathered += refs->added.count;
	refs->moved = refs->move_to;
	if (refs->emptied) {
		list_free(&refs->moving);
		refs->moved = 0;
	}
	if (refs->turned)
		turn(refs);
	pthread_mutex_unlock(&refs->lock);
	forget_transaction(refs);
}

void client_refs_rolled_back(struct client_refs *refs)
{
	forget_transaction(refs);
}

int client_refs_count(struct db_connection *connection, int64_t *ret_count, struct error *error)
{
	struct client_refs *refs;
	int result = client_refs_open(connection, CLIENT_REFS_GATHERED, &refs, error);
	if (result)
		return result;
	struct db_query *query = db_query(connection, "SELECT count(*) FROM client_refs");
	*ret_count = db_step(query) ? db_integer(query, 0) : 0;
	result = db_end(query, error);
	/* Gathered entries are never in the tree; of those that move, the tree has some already. */
	*ret_count += (int64_t)refs->gathered;
	for (size_t i = 0; i < refs->moving.count && !result; i++) {
		const struct entry *entry = &refs->moving.items[i];
		query = db_query(connection, "SELECT 1 FROM client_refs WHERE account = $1 AND chain = $2 "
		                             "AND ref_hash = $3 AND sequence = $4");
		db_bind_integer(query, entry->account);
		db_bind_integer(query, chain_of(entry));
		db_bind_integer(query, entry->ref_hash);
		db_bind_integer(query, entry->event & EVENT_SEQUENCE_MAX);
		*ret_count += !db_step(query);
		result = db_end(query, error);
	}
	client_refs_close(refs);
	return result;
}
