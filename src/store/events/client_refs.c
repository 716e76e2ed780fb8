#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/digest.h"
#include "base/tuned.h"
#include "store/events/client_refs_internal.h"

/* Entries moved from the B-tree of an older version, per batch. */
#define TREE_MOVED_MIN 32
#define TREE_MOVED_MAX 256
#define SLOTS_FIRST ((size_t)1 << 10)

struct client_refs_shape client_refs_usual_shape(void)
{
	return (struct client_refs_shape){.gathered = (size_t)tuned("refs_gathered", 97000),
	                                  .runs = {.bucket_entries = tuned("refs_bucket_entries", 40),
	                                           .group_buckets = tuned("refs_group_buckets", 96),
	                                           .moved_per_new = tuned("refs_moved_per_new", 2),
	                                           .moved_at_least = tuned("refs_moved_at_least", 64)}};
}

int64_t client_ref_hash(struct slice client_ref)
{
	struct sha256 hash = sha256_of(client_ref.data, client_ref.size);
	int64_t number;
	memcpy(&number, hash.bytes, sizeof number);
	return number;
}

int client_refs_list_add(struct entry_list *list, const struct entry *entry)
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

static size_t slot_of(const struct client_refs *refs, uint64_t place)
{
	return (size_t)place & (refs->slot_count - 1);
}

static void slot_put(struct client_refs *refs, const struct entry *entry)
{
	assert(refs->gathered < refs->slot_count); /* a search ends at an empty slot */
	size_t at = slot_of(refs, place_of(refs, entry));
	while (refs->slots[at].event)
		at = (at + 1) & (refs->slot_count - 1);
	refs->slots[at] = *entry;
}

/* Reserves slots, so that an addition cannot fail after the commit. */
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

size_t client_refs_moving_from(const struct ref_list *moving, uint64_t place)
{
	size_t low = 0;
	size_t high = moving->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (moving->items[middle].place < place)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Converts the entries to sorted ones in place. */
static struct ref_list sorted_of(const struct client_refs *refs, struct entry *items, size_t count)
{
	_Static_assert(sizeof(struct ref_entry) <= sizeof(struct entry),
	               "an entry is never overwritten before it is read");
	struct ref_list list = {(struct ref_entry *)(void *)items, count, count};
	for (size_t i = 0; i < count; i++) {
		struct entry entry = items[i];
		list.items[i] = (struct ref_entry){place_of(refs, &entry), entry.event};
	}
	ref_list_sort(&list);
	struct ref_entry *fitting = reallocarray(list.items, count, sizeof *list.items);
	if (fitting)
		list.items = fitting;
	return list;
}

/* ---- opening ---- */

static struct db_query *select_table(struct db_connection *connection, int table)
{
	return table == 0 ? db_query(connection, "SELECT entries, checksum FROM fresh_client_refs_0")
	                  : db_query(connection, "SELECT entries, checksum FROM fresh_client_refs_1");
}

static int load_entry(struct client_refs *refs, int table, const struct entry *entry)
{
	if (table != refs->table)
		return client_refs_list_add(&refs->stale, entry);
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
		/* A batch without a checksum remains only until the next run is written. */
		if (entries.size % sizeof(struct entry) ||
		    (!db_is_null(query, 1) &&
		     db_integer(query, 1) != ref_checksum(table, entries.data, entries.size)))
			result = error_cause(error, ERR_CORRUPT, "fresh_client_refs_%d", table);
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

static void write_key_checksum(const struct client_refs *refs, char text[24])
{
	snprintf(text, 24, "%lld", (long long)ref_checksum(0, refs->key.words, sizeof refs->key.words));
}

/* The checksum is written with the first run. */
static int load_key(struct client_refs *refs, struct db_connection *connection, struct error *error)
{
	struct db_query *query = db_query(
		connection, "SELECT value, (SELECT value FROM settings WHERE name ="
					" 'client_ref_key_checksum') FROM settings WHERE name = 'client_ref_key'");
	bool found =
		db_step(query) && hex_decode(db_text(query, 0), refs->key.words, sizeof refs->key.words);
	char checksum[24];
	write_key_checksum(refs, checksum);
	if (found && !db_is_null(query, 1))
		found = slice_is(db_text(query, 1), checksum);
	int result = db_end(query, error);
	return result || found ? result
	                       : error_cause(error, ERR_CORRUPT,
	                                     "client_ref_key is missing or has a wrong checksum");
}

static int load_tables(struct client_refs *refs, struct db_connection *connection,
                       struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT value FROM settings WHERE name = 'fresh_client_refs'");
	if (db_step(query))
		refs->table = slice_is(db_text(query, 0), "1");
	int result = db_end(query, error);
	if (!result)
		result = load_key(refs, connection, error);
	for (int table = 0; table < 2 && !result; table++)
		result = load_table(refs, connection, table, error);
	if (result)
		return result;
	query = db_query(connection, "SELECT 1 FROM client_refs LIMIT 1");
	atomic_store(&refs->tree_left, db_step(query));
	return db_end(query, error);
}

/* Entries of `moving` are not in the tree, except when an older version was moving them into the
 * tree. */
static int sort_moving(struct client_refs *refs)
{
	if (refs->stale.count == 0)
		return OK;
	struct entry *items = reallocarray(NULL, refs->stale.count, sizeof *items);
	if (!items)
		return ERR_NO_MEMORY;
	memcpy(items, refs->stale.items, refs->stale.count * sizeof *items);
	refs->moving = sorted_of(refs, items, refs->stale.count);
	if (ref_runs_is_flushing(refs->runs) || !atomic_load(&refs->tree_left))
		list_free(&refs->stale);
	return OK;
}

static void forget_loaded(struct client_refs *refs)
{
	free(refs->slots);
	refs->slots = NULL;
	refs->slot_count = refs->gathered = 0;
	free(refs->moving.items);
	refs->moving = (struct ref_list){0};
	list_free(&refs->stale);
	list_free(&refs->added);
	ref_runs_close(refs->runs);
	refs->runs = NULL;
}

int client_refs_load(struct client_refs *refs, struct db_connection *connection,
                     struct error *error)
{
	forget_loaded(refs);
	int result = load_tables(refs, connection, error)
		?: ref_runs_open(connection, refs->shape.runs, &refs->runs, error)
		?: sort_moving(refs);
	if (result)
		forget_loaded(refs);
	return result;
}

/* Loads how far a rebuild had come before this start. */
static int load_position(struct client_refs *refs, struct db_connection *connection,
                         struct error *error)
{
	long long before, arrived;
	char text[64] = "";
	struct db_query *query =
		db_query(connection, "SELECT value FROM settings WHERE name = 'client_refs_made_to'");
	if (db_step(query)) {
		struct slice value = db_text(query, 0);
		snprintf(text, sizeof text, "%.*s", (int)value.size, value.data);
		atomic_store(&refs->lost, true);
		snprintf(refs->cause, sizeof refs->cause, "an earlier rebuild was interrupted");
	}
	refs->emptied_all = sscanf(text, "%lld %lld", &before, &arrived) == 2;
	if (refs->emptied_all)
		refs->position = (struct ref_events_position){before, arrived};
	return db_end(query, error);
}

/* Damage that does not concern a single bucket leads to a rebuild from events. */
static int load_or_lose(struct client_refs *refs, struct db_connection *connection,
                        struct error *error)
{
	struct error cause = {0};
	int result = load_position(refs, connection, error);
	if (result)
		return result;
	result = client_refs_load(refs, connection, &cause);
	if (result == ERR_CORRUPT || client_refs_page_failed(connection, result)) {
		refs->unread = db_failure(connection) && !atomic_load(&refs->lost);
		atomic_store(&refs->lost, true);
		refs->emptied_all = false;
		snprintf(refs->cause, sizeof refs->cause, "%s", cause.cause);
		return OK;
	}
	if (result && error)
		*error = cause;
	return result;
}

int client_refs_open(struct db_connection *connection, const struct client_refs_shape *shape,
                     struct client_refs **ret, struct error *error)
{
	struct client_refs *refs = calloc(1, sizeof *refs);
	if (!refs)
		return ERR_NO_MEMORY;
	pthread_mutex_init(&refs->lock, NULL);
	pthread_mutex_init(&refs->taking, NULL);
	pthread_rwlock_init(&refs->in_use, NULL);
	refs->shape = *shape;
	refs->gathered_max = shape->gathered;
	int result = load_or_lose(refs, connection, error);
	if (result) {
		client_refs_close(refs);
		return result;
	}
	*ret = refs;
	return OK;
}

void client_refs_close(struct client_refs *refs)
{
	if (!refs)
		return;
	forget_loaded(refs);
	pthread_rwlock_destroy(&refs->in_use);
	pthread_mutex_destroy(&refs->taking);
	pthread_mutex_destroy(&refs->lock);
	free(refs);
}

/* ---- finding ---- */

/* The search values and the result. */
struct search {
	int64_t account, chain, ref_hash;
	uint64_t place;
	int64_t *sequences;
	size_t max;
	size_t count;
};

static void found(struct search *search, int64_t event)
{
	if (search->count < search->max)
		search->sequences[search->count++] = event & EVENT_SEQUENCE_MAX;
}

static void find_in_memory(const struct client_refs *refs, struct search *search)
{
	if (refs->slot_count) {
		size_t at = slot_of(refs, search->place);
		for (; refs->slots[at].event; at = (at + 1) & (refs->slot_count - 1))
			if (refs->slots[at].ref_hash == search->ref_hash &&
			    chain_of(&refs->slots[at]) == search->chain)
				found(search, refs->slots[at].event);
	}
	for (size_t i = client_refs_moving_from(&refs->moving, search->place);
	     i < refs->moving.count && refs->moving.items[i].place == search->place; i++)
		if (refs->moving.items[i].event >> EVENT_SEQUENCE_BITS == search->chain)
			found(search, refs->moving.items[i].event);
}

static int find_in_tree(struct db_connection *connection, struct search *search,
                        struct error *error)
{
	struct db_query *query = db_query(connection, "SELECT sequence FROM client_refs "
	                                              "WHERE account = $1 AND chain = $2 "
	                                              "AND ref_hash = $3");
	db_bind(query, search->account, search->chain, search->ref_hash);
	while (db_step(query))
		found(search, db_integer(query, 0));
	return db_end(query, error);
}

static int refuse_while_rebuilding(struct error *error)
{
	return error_cause(error, ERR_UNAVAILABLE,
	                   "the client_ref index is being rebuilt from the events");
}

bool client_refs_page_failed(const struct db_connection *connection, int result)
{
	return (result == ERR_CORRUPT || result == ERR_IO) && db_failure(connection) == result;
}

/* SQLite cannot continue with tables that have an unreadable page. */
int client_refs_lose(struct client_refs *refs, struct db_connection *connection,
                     struct error *error)
{
	struct error cause = {0};
	(void)!db_get_failure(connection, &cause);
	pthread_mutex_lock(&refs->lock);
	if (!atomic_load(&refs->lost)) {
		snprintf(refs->cause, sizeof refs->cause, "%s", cause.cause);
		refs->unread = true;
		refs->emptied_all = false;
		atomic_store(&refs->lost, true);
	}
	pthread_mutex_unlock(&refs->lock);
	return error_cause(error, ERR_UNAVAILABLE, "a page of the client_ref index cannot be read: %s",
	                   cause.cause);
}

/* Damage is repaired soon; until then the content is unknown. */
static int convert_damage(struct client_refs *refs, int result, struct db_connection *connection,
                          struct error *error)
{
	if (client_refs_page_failed(connection, result))
		return client_refs_lose(refs, connection, error);
	if (result == ERR_CORRUPT)
		return error_cause(error, ERR_UNAVAILABLE,
		                   "a part of the client_ref index is damaged and is being repaired");
	return result;
}

/* Entries move only from memory to a run and from a run to a higher level, so that this order of
 * searching misses none. */
static int find_once(struct client_refs *refs, struct db_connection *connection, bool others,
                     struct search *search, uint64_t *ret_generation, struct error *error)
{
	struct ref_row rows[CLIENT_REF_RUNS_MAX];
	search->count = 0;
	pthread_mutex_lock(&refs->lock);
	find_in_memory(refs, search);
	size_t row_count = ref_runs_rows(refs->runs, search->place, others, rows);
	*ret_generation = ref_runs_generation(refs->runs);
	pthread_mutex_unlock(&refs->lock);
	int result = OK;
	for (size_t i = 0; i < row_count && !result; i++)
		result = ref_runs_read(refs->runs, connection, &rows[i], search->place, search->chain,
		                       search->sequences, search->max, &search->count, error);
	if (!result && atomic_load(&refs->tree_left))
		result = find_in_tree(connection, search, error);
	if (!result && search->count == search->max)
		result = error_cause(error, ERR_INTERNAL, "too many client_refs have the same hash");
	return result;
}

int client_refs_find(struct client_refs *refs, struct db_connection *connection, int64_t account,
                     int64_t chain, int64_t ref_hash, int64_t *ret_sequences, size_t max,
                     size_t *ret_count, struct error *error)
{
	uint64_t generation;
	struct search search = {account,       chain, ref_hash, ref_place(&refs->key, chain, ref_hash),
	                        ret_sequences, max,   0};
	if (atomic_load(&refs->lost))
		return refuse_while_rebuilding(error);
	int result = find_once(refs, connection, false, &search, &generation, error);
	if (!result)
		*ret_count = search.count;
	return convert_damage(refs, result, connection, error);
}

static bool has_changed(struct client_refs *refs, uint64_t generation)
{
	pthread_mutex_lock(&refs->lock);
	bool another = ref_runs_generation(refs->runs) != generation;
	pthread_mutex_unlock(&refs->lock);
	return another;
}

static int look_up(struct client_refs *refs, struct db_connection *connection,
                   struct search *search, struct error *error)
{
	uint64_t generation;
	search->place = ref_place(&refs->key, search->chain, search->ref_hash);
	bool from_tree = atomic_load(&refs->tree_left);
	if (from_tree)
		pthread_mutex_lock(&refs->taking);
	int result;
	do
		result = find_once(refs, connection, true, search, &generation, error);
	while (!result && has_changed(refs, generation));
	if (from_tree)
		pthread_mutex_unlock(&refs->taking);
	return convert_damage(refs, result, connection, error);
}

int client_refs_lookup(struct client_refs *refs, struct db_connection *connection, int64_t account,
                       int64_t chain, int64_t ref_hash, int64_t *ret_sequences, size_t max,
                       size_t *ret_count, struct error *error)
{
	struct search search = {.account = account,
	                        .chain = chain,
	                        .ref_hash = ref_hash,
	                        .sequences = ret_sequences,
	                        .max = max};
	pthread_rwlock_rdlock(&refs->in_use);
	int result = atomic_load(&refs->lost) ? refuse_while_rebuilding(error)
	                                      : look_up(refs, connection, &search, error);
	pthread_rwlock_unlock(&refs->in_use);
	if (!result)
		*ret_count = search.count;
	return result;
}

/* ---- adding and moving ---- */

int client_refs_add(struct client_refs *refs, int64_t account, int64_t chain, int64_t ref_hash,
                    int64_t sequence)
{
	struct entry entry = {account, new_event_number(chain, sequence), ref_hash};
	assert(chain_of(&entry) == chain && (entry.event & EVENT_SEQUENCE_MAX) == sequence);
	return client_refs_list_add(&refs->added, &entry);
}

static int write_added(struct client_refs *refs, struct db_connection *connection,
                       struct error *error)
{
	if (refs->added.count == 0)
		return OK;
	struct db_query *query =
		refs->table == 0
			? db_query(connection,
	                   "INSERT INTO fresh_client_refs_0(entries, checksum) VALUES ($1, $2)")
			: db_query(connection,
	                   "INSERT INTO fresh_client_refs_1(entries, checksum) VALUES ($1, $2)");
	const size_t size = refs->added.count * sizeof *refs->added.items;
	db_bind_blob(query, refs->added.items, size);
	db_bind_integer(query, ref_checksum(refs->table, refs->added.items, size));
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

static int swap_tables(struct client_refs *refs, struct db_connection *connection,
                       struct error *error)
{
	refs->turned = true;
	struct db_query *query =
		db_query(connection, "INSERT INTO settings(name, value) VALUES ('fresh_client_refs', $1) "
	                         "ON CONFLICT (name) DO UPDATE SET value = excluded.value");
	db_bind_string(query, refs->table == 0 ? "1" : "0");
	int result = db_execute(query, NULL, error);
	if (result)
		return result;
	char checksum[24];
	write_key_checksum(refs, checksum);
	query = db_query(connection, "INSERT INTO settings(name, value) VALUES"
	                             " ('client_ref_key_checksum', $1) ON CONFLICT (name) DO NOTHING");
	db_bind_string(query, checksum);
	result = db_execute(query, NULL, error);
	return result ? result
	              : ref_runs_begin_flush(refs->runs, connection, refs->gathered + refs->added.count,
	                                     error);
}

/* ---- the B-tree of an older version ---- */

static int delete_from_tree(struct db_connection *connection, const struct entry *last,
                            struct error *error)
{
	struct db_query *query =
		db_query(connection, "DELETE FROM client_refs"
	                         " WHERE (account, chain, ref_hash, sequence) <= ($1, $2, $3, $4)");
	db_bind(query, last->account, chain_of(last), last->ref_hash, last->event & EVENT_SEQUENCE_MAX);
	return db_execute(query, NULL, error);
}

static size_t tree_moved_max(const struct client_refs *refs)
{
	size_t max = refs->added.count + TREE_MOVED_MIN;
	return max < TREE_MOVED_MAX ? max : TREE_MOVED_MAX;
}

/* Moves some entries, as if they were new, until the tree is empty. */
static int take_from_tree(struct client_refs *refs, struct db_connection *connection,
                          struct error *error)
{
	const size_t max = tree_moved_max(refs);
	struct db_query *query =
		db_query(connection, "SELECT account, chain, ref_hash, sequence FROM client_refs"
	                         " ORDER BY account, chain, ref_hash, sequence LIMIT $1");
	db_bind_integer(query, (int64_t)max);
	struct entry last = {0};
	size_t taken = 0;
	int result = OK;
	for (; !result && db_step(query); taken++) {
		last = (struct entry){db_integer(query, 0),
		                      event_number(db_integer(query, 1), db_integer(query, 3)),
		                      db_integer(query, 2)};
		result = client_refs_list_add(&refs->added, &last);
	}
	int ended = db_end(query, error);
	result = ended ? ended : result;
	if (!result && taken > 0)
		result = delete_from_tree(connection, &last, error);
	refs->tree_emptied = !result && taken < max;
	return result;
}

/* Deletes from the tree entries that an older version had copied to it from `stale`. After a
 * restart the deletion begins with the first entry again. */
static int clear_stale(struct client_refs *refs, struct db_connection *connection,
                       struct error *error)
{
	size_t end = refs->cleared + tree_moved_max(refs);
	end = end < refs->stale.count ? end : refs->stale.count;
	int result = OK;
	for (size_t i = refs->cleared; i < end && !result; i++) {
		const struct entry *entry = &refs->stale.items[i];
		struct db_query *query =
			db_query(connection, "DELETE FROM client_refs WHERE account = $1 AND chain = $2"
		                         " AND ref_hash = $3 AND sequence = $4");
		db_bind(query, entry->account, chain_of(entry), entry->ref_hash,
		        entry->event & EVENT_SEQUENCE_MAX);
		result = db_execute(query, NULL, error);
	}
	refs->cleared_next = end;
	return result;
}

/* ---- in a batch ---- */

static int flush_moving(struct client_refs *refs, struct db_connection *connection, size_t added,
                        struct error *error)
{
	/* A run that is being written implies that none of its entries is in the tree. */
	if (refs->moving.count == 0 || refs->cleared_next < refs->stale.count)
		return OK;
	if (!ref_runs_is_flushing(refs->runs))
		return ref_runs_begin_flush(refs->runs, connection, refs->moving.count, error);
	bool done;
	int result = ref_runs_flush(refs->runs, connection, refs->moving.items, refs->moving.count,
	                            added, &done, error);
	return !result && done ? empty_other_table(refs, connection, error) : result;
}

int client_refs_write(struct client_refs *refs, struct db_connection *connection,
                      struct error *error)
{
	/* An event whose client_ref cannot be indexed must not be written. */
	if (atomic_load(&refs->lost))
		return refs->added.count > 0 ? refuse_while_rebuilding(error) : OK;
	if (db_failure(connection))
		return db_get_failure(connection, error);
	int result = client_refs_write_all(refs, connection, error);
	return client_refs_page_failed(connection, result) ? client_refs_lose(refs, connection, error)
	                                                   : result;
}

int client_refs_write_all(struct client_refs *refs, struct db_connection *connection,
                          struct error *error)
{
	int result = OK;
	if (atomic_load(&refs->tree_left)) {
		pthread_mutex_lock(&refs->taking);
		refs->takes = true;
		result = refs->stale.count > 0 ? clear_stale(refs, connection, error)
		                               : take_from_tree(refs, connection, error);
	}
	const size_t added = refs->added.count;
	if (!result)
		result = slots_reserve(refs, added);
	if (!result)
		result = write_added(refs, connection, error);
	if (!result)
		result = ref_runs_merge(refs->runs, connection, added, error);
	if (!result)
		result = flush_moving(refs, connection, added, error);
	bool nothing_moves = refs->moving.count == 0 || refs->emptied;
	bool full = refs->gathered + added >= refs->gathered_max;
	if (!result && nothing_moves && full && ref_runs_has_room(refs->runs))
		result = swap_tables(refs, connection, error);
	return result;
}

/* Turns the collected entries into `moving`, in the same memory, so that this cannot fail. */
static void swap_entries(struct client_refs *refs)
{
	assert(!refs->moving.items); /* they are in a run before others take their place */
	size_t count = 0;
	for (size_t i = 0; i < refs->slot_count; i++)
		if (refs->slots[i].event)
			refs->slots[count++] = refs->slots[i];
	refs->moving = sorted_of(refs, refs->slots, count);
	refs->slots = NULL;
	refs->slot_count = 0;
	refs->gathered = 0;
	refs->table = !refs->table;
}

static void forget_transaction(struct client_refs *refs)
{
	refs->added.count = 0;
	refs->emptied = refs->turned = refs->tree_emptied = false;
	refs->cleared_next = refs->cleared;
	if (refs->takes)
		pthread_mutex_unlock(&refs->taking);
	refs->takes = false;
}

void client_refs_committed(struct client_refs *refs)
{
	if (!refs->runs)
		return; /* lost */
	assert((refs->gathered + refs->added.count) * 4 <= refs->slot_count * 3 || !refs->added.count);
	assert(!refs->emptied || refs->moving.count > 0);
	pthread_mutex_lock(&refs->lock);
	for (size_t i = 0; i < refs->added.count; i++)
		slot_put(refs, &refs->added.items[i]);
	refs->gathered += refs->added.count;
	ref_runs_committed(refs->runs);
	if (refs->emptied) {
		free(refs->moving.items);
		refs->moving = (struct ref_list){0};
	}
	if (refs->turned)
		swap_entries(refs);
	if (refs->tree_emptied)
		atomic_store(&refs->tree_left, false);
	pthread_mutex_unlock(&refs->lock);
	refs->cleared = refs->cleared_next;
	if (refs->cleared == refs->stale.count) {
		list_free(&refs->stale);
		refs->cleared = 0;
	}
	forget_transaction(refs);
}

void client_refs_rolled_back(struct client_refs *refs)
{
	if (refs->runs)
		ref_runs_rolled_back(refs->runs);
	forget_transaction(refs);
}

/* ---- checking ---- */

int client_refs_tree_has(struct db_connection *connection, const struct entry *entry, bool *ret,
                         struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT 1 FROM client_refs WHERE account = $1 AND chain = $2 "
	                         "AND ref_hash = $3 AND sequence = $4");
	db_bind(query, entry->account, chain_of(entry), entry->ref_hash,
	        entry->event & EVENT_SEQUENCE_MAX);
	*ret = db_step(query);
	return db_end(query, error);
}

static int count_stale(const struct client_refs *refs, struct db_connection *connection,
                       int64_t *ret_count, struct error *error)
{
	int result = OK;
	*ret_count = 0;
	for (size_t i = 0; i < refs->stale.count && !result; i++) {
		bool has = false;
		result = client_refs_tree_has(connection, &refs->stale.items[i], &has, error);
		*ret_count += has;
	}
	return result;
}

static int count_parts(struct client_refs *refs, struct db_connection *connection,
                       int64_t *ret_count, struct error *error)
{
	struct db_query *query = db_query(connection, "SELECT count(*) FROM client_refs");
	int64_t in_tree = db_step(query) ? db_integer(query, 0) : 0;
	int64_t in_runs = 0, twice = 0;
	int result = db_end(query, error)
		?: ref_runs_count(refs->runs, connection, &in_runs, error)
		?: count_stale(refs, connection, &twice, error);
	/* Entries of `moving` are in memory, and some of them also in the run being written. */
	size_t moved = ref_runs_flushed(refs->runs, refs->moving.items, refs->moving.count);
	*ret_count = (int64_t)(refs->gathered + refs->moving.count - moved) + in_runs + in_tree - twice;
	return result;
}

int client_refs_count(struct client_refs *refs, struct db_connection *connection,
                      int64_t *ret_count, struct error *error)
{
	if (atomic_load(&refs->lost))
		return error_cause(error, ERR_CORRUPT, "the index has to be rebuilt: %s", refs->cause);
	if (db_failure(connection))
		return db_get_failure(connection, error);
	int result = count_parts(refs, connection, ret_count, error);
	return client_refs_page_failed(connection, result) ? client_refs_lose(refs, connection, error)
	                                                   : result;
}
