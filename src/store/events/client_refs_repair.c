/* Repair of the client_ref index from the events. */
#include <stdio.h>
#include <stdlib.h>

#include "base/tuned.h"
#include "store/events/client_refs_internal.h"

#define REPAIRED_AT_ONCE 16 /* number of buckets that are repaired in one pass over the events */
#define REF_EVENTS_AT_ONCE 10000

int64_t client_refs_damaged(struct client_refs *refs, struct error *ret_what)
{
	struct ref_bad bad[CLIENT_REF_BAD_MAX];
	size_t count = 0;
	bool filters = false;
	pthread_rwlock_rdlock(&refs->in_use);
	pthread_mutex_lock(&refs->lock);
	const bool lost = atomic_load(&refs->lost);
	if (lost) {
		error_cause(ret_what, ERR_CORRUPT, "%s", refs->cause);
	} else {
		count = ref_runs_bad(refs->runs, bad, CLIENT_REF_BAD_MAX);
		filters = ref_runs_filters_lost(refs->runs);
	}
	pthread_mutex_unlock(&refs->lock);
	pthread_rwlock_unlock(&refs->in_use);
	if (lost)
		return 1;
	if (count > 0)
		error_cause(ret_what, ERR_CORRUPT, "run %lld, bucket %lld", (long long)(bad[0].row >> 32),
		            (long long)(bad[0].row & UINT32_MAX));
	else if (filters)
		error_cause(ret_what, ERR_CORRUPT, "filters");
	return (int64_t)count + filters;
}

bool client_refs_is_lost(const struct client_refs *refs)
{
	return atomic_load(&refs->lost);
}

static struct entry entry_of(const struct ref_event *event)
{
	return (struct entry){event->account, event->event, client_ref_hash(event->client_ref)};
}

/* ---- buckets ---- */

/* The buckets to repair, and the events with places in them. */
struct bucket_search {
	const struct client_refs *refs;
	struct ref_bad bad[REPAIRED_AT_ONCE];
	size_t bad_count;
	struct entry_list events;
};

static int note_bucket_event(void *context, const struct ref_event *event, struct error *error)
{
	struct bucket_search *search = context;
	const struct entry entry = entry_of(event);
	const uint64_t place = place_of(search->refs, &entry);
	(void)error;
	for (size_t i = 0; i < search->bad_count; i++)
		if (place >= search->bad[i].first && place <= search->bad[i].last)
			return client_refs_list_add(&search->events, &entry);
	return OK;
}

/* Each batch is read in a view of its own. Later events are never in an older bucket. */
static int search_events(struct bucket_search *search, struct db *db, const atomic_bool *stopping,
                         bool *ret_ended, struct error *error)
{
	struct ref_events_position position = {0};
	bool ended = false;
	int result = OK;
	while (!result && !ended && !atomic_load(stopping)) {
		struct db_connection *reader = db_take_reader(db);
		result = ref_events_read(reader, &position, tuned("refs_read", REF_EVENTS_AT_ONCE),
		                         note_bucket_event, search, &ended, error);
		db_give(reader);
	}
	*ret_ended = ended;
	return result;
}

/* Lists the entries in memory and in the runs with places in the bucket. */
static int list_others(struct client_refs *refs, struct db_connection *writer,
                       const struct ref_bad *bad, struct ref_list *others, struct error *error)
{
	int result = ref_runs_read_range(refs->runs, writer, bad->first, bad->last, others, error);
	for (size_t i = 0; i < refs->slot_count && !result; i++) {
		const struct entry *entry = &refs->slots[i];
		const uint64_t place = entry->event ? place_of(refs, entry) : 0;
		if (entry->event && place >= bad->first && place <= bad->last)
			result = ref_list_add(others, &(struct ref_entry){place, entry->event});
	}
	/* The flushed part of `moving` is already in its run. */
	const size_t flushed = ref_runs_flushed(refs->runs, refs->moving.items, refs->moving.count);
	size_t from = client_refs_moving_from(&refs->moving, bad->first);
	from = from > flushed ? from : flushed;
	for (size_t i = from; i < refs->moving.count && !result; i++) {
		if (refs->moving.items[i].place > bad->last)
			break;
		result = ref_list_add(others, &refs->moving.items[i]);
	}
	ref_list_sort(others);
	return result;
}

/* Lists the entries of the bucket: events with places in it that are stored nowhere else. */
static int list_missing(struct client_refs *refs, struct db_connection *writer,
                        const struct bucket_search *search, const struct ref_bad *bad,
                        const struct ref_list *others, struct ref_list *missing,
                        struct error *error)
{
	const bool tree_left = atomic_load(&refs->tree_left);
	int result = OK;
	for (size_t i = 0; i < search->events.count && !result; i++) {
		const struct entry *event = &search->events.items[i];
		const struct ref_entry entry = {place_of(refs, event), event->event};
		if (entry.place < bad->first || entry.place > bad->last ||
		    (others->count > 0 &&
		     bsearch(&entry, others->items, others->count, sizeof entry, ref_compare)))
			continue;
		bool in_tree = false;
		if (tree_left)
			result = client_refs_tree_has(writer, event, &in_tree, error);
		if (!result && !in_tree)
			result = ref_list_add(missing, &entry);
	}
	ref_list_sort(missing);
	return result;
}

static int repair_bucket(struct client_refs *refs, struct db_connection *writer,
                         const struct bucket_search *search, const struct ref_bad *bad,
                         struct error *error)
{
	struct ref_list others = {0}, missing = {0};
	int result = db_begin(writer, error)
		?: list_others(refs, writer, bad, &others, error)
		?: list_missing(refs, writer, search, bad, &others, &missing, error)
		?: ref_runs_repair(refs->runs, writer, bad->row, missing.items, missing.count, error);
	if (client_refs_page_failed(writer, result))
		result = client_refs_lose(refs, writer, error);
	else if (!result)
		result = db_commit(writer, error);
	pthread_mutex_lock(&refs->lock);
	ref_runs_repair_ended(refs->runs, !result);
	pthread_mutex_unlock(&refs->lock);
	free(others.items);
	free(missing.items);
	return result;
}

static int repair_buckets(struct client_refs *refs, struct db *db, const atomic_bool *stopping,
                          int64_t *repaired, struct error *error)
{
	struct bucket_search search = {.refs = refs};
	bool ended = true;
	pthread_mutex_lock(&refs->lock);
	search.bad_count = ref_runs_bad(refs->runs, search.bad, REPAIRED_AT_ONCE);
	pthread_mutex_unlock(&refs->lock);
	int result = search.bad_count > 0 ? search_events(&search, db, stopping, &ended, error) : OK;
	for (size_t i = 0; i < search.bad_count && !result && ended; i++) {
		struct db_connection *writer = db_take_writer(db);
		result = repair_bucket(refs, writer, &search, &search.bad[i], error);
		db_give(writer);
		*repaired += !result;
	}
	free(search.events.items);
	return result;
}

/* ---- filters ---- */

static int repair_filters(struct client_refs *refs, struct db *db, int64_t *repaired,
                          struct error *error)
{
	int64_t run = 0;
	struct db_connection *writer = db_take_writer(db);
	int result = db_begin(writer, error);
	if (!result)
		result = ref_runs_write_filters(refs->runs, writer, &run, error);
	if (client_refs_page_failed(writer, result))
		result = client_refs_lose(refs, writer, error);
	else if (!result)
		result = db_commit(writer, error);
	if (!result) {
		pthread_mutex_lock(&refs->lock);
		ref_runs_filters_written(refs->runs, run);
		pthread_mutex_unlock(&refs->lock);
	}
	db_give(writer);
	*repaired += !result && run;
	return result;
}

/* ---- rebuild ---- */

static int write_position(struct client_refs *refs, struct db_connection *writer,
                          const struct ref_events_position *position, struct error *error)
{
	char text[64];
	snprintf(text, sizeof text, "%lld %lld", (long long)position->before,
	         (long long)position->arrived);
	struct db_query *query =
		db_query(writer, "INSERT INTO settings(name, value) VALUES ('client_refs_made_to', $1) "
	                     "ON CONFLICT (name) DO UPDATE SET value = excluded.value");
	db_bind_string(query, text);
	return db_execute(query, NULL, error);
}

static int load_again(struct client_refs *refs, struct db_connection *writer, struct error *error)
{
	pthread_rwlock_wrlock(&refs->in_use);
	int result = client_refs_load(refs, writer, error);
	pthread_rwlock_unlock(&refs->in_use);
	return result;
}

/* Loads the index again, because the read failure may have been temporary. Nothing was registered
 * in the meantime. */
static int reload(struct client_refs *refs, struct db_connection *writer, bool *ret_whole,
                  struct error *error)
{
	int64_t count;
	int result = db_begin(writer, error);
	if (result)
		return result;
	struct error cause = {0};
	result = load_again(refs, writer, &cause);
	if (!result)
		result = ref_runs_count(refs->runs, writer, &count, &cause);
	*ret_whole = !result;
	(void)!db_commit(writer, NULL); /* nothing was written */
	return OK;
}

/* Keeps the old table under another name with all its pages, because an unreadable page cannot be
 * freed. */
static int replace_table(struct db_connection *writer, const char *name, struct error *error)
{
	char rename[128], create[1024] = "";
	int result = db_begin(writer, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(writer, "SELECT sql, (SELECT count(*) FROM sqlite_schema WHERE name LIKE"
	                     " 'unreadable%') FROM sqlite_schema WHERE type = 'table' AND name = $1");
	db_bind_string(query, name);
	bool found = db_step(query);
	if (found) {
		struct slice sql = db_text(query, 0);
		snprintf(create, sizeof create, "%.*s", (int)sql.size, sql.data);
		snprintf(rename, sizeof rename, "ALTER TABLE %s RENAME TO unreadable_%lld_%s", name,
		         (long long)db_integer(query, 1) + 1, name);
	}
	result = db_end(query, error);
	if (!result && !found)
		return error_cause(error, ERR_CORRUPT, "table %s does not exist", name);
	if (!result)
		result = db_run(writer, rename, error);
	if (!result)
		result = db_run(writer, create, error);
	int ended = db_commit(writer, error);
	return result ? result : ended;
}

static int empty_table(struct db_connection *writer, const char *name, struct error *error)
{
	char empty[64];
	struct error cause = {0};
	snprintf(empty, sizeof empty, "DELETE FROM %s", name);
	int result = db_begin(writer, error);
	if (result)
		return result;
	result = db_run(writer, empty, &cause);
	bool page_failed = client_refs_page_failed(writer, result);
	int ended = db_commit(writer, error);
	if (page_failed)
		return replace_table(writer, name, error);
	return result ? result : ended;
}

/* Each table is emptied individually; after a restart the procedure begins with the first. */
static int empty_tables(struct db_connection *writer, struct error *error)
{
	static const char *const tables[] = {"client_ref_runs",     "client_ref_buckets",
	                                     "client_ref_filters",  "client_refs",
	                                     "fresh_client_refs_0", "fresh_client_refs_1"};
	int result = db_begin(writer, error);
	if (!result)
		result = db_run(writer,
		                "INSERT INTO settings(name, value) VALUES ('client_refs_made_to', 'begun')"
		                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
		                error);
	if (!result)
		result = db_commit(writer, error);
	for (size_t i = 0; i < sizeof tables / sizeof *tables && !result; i++)
		result = empty_table(writer, tables[i], error);
	return result;
}

/* Creates a new key, because the former one may be damaged. */
static int empty_all(struct client_refs *refs, struct db_connection *writer, struct error *error)
{
	int result = empty_tables(writer, error);
	if (!result)
		result = db_begin(writer, error);
	if (!result)
		result = db_run(writer,
		                "DELETE FROM settings WHERE name IN ('fresh_client_refs',"
		                " 'client_ref_key', 'client_ref_key_checksum');"
		                "INSERT INTO settings(name, value)"
		                " VALUES ('client_ref_key', lower(hex(randomblob(16))))",
		                error);
	refs->position = (struct ref_events_position){0};
	if (!result)
		result = write_position(refs, writer, &refs->position, error);
	if (!result)
		result = load_again(refs, writer, error);
	if (!result)
		result = db_commit(writer, error);
	refs->emptied_all = !result;
	return result;
}

static int add_event(void *context, const struct ref_event *event, struct error *error)
{
	struct client_refs *refs = context;
	const struct entry entry = entry_of(event);
	(void)error;
	return client_refs_list_add(&refs->added, &entry);
}

static int add_batch(struct client_refs *refs, struct db_connection *writer, bool *ret_ended,
                     struct error *error)
{
	struct ref_events_position position = refs->position;
	bool ended = false;
	int result = db_begin(writer, error)
	                 ?: ref_events_read(writer, &position, tuned("refs_read", REF_EVENTS_AT_ONCE),
	                                    add_event, refs, &ended, error);
	if (!result) {
		result = client_refs_write_all(refs, writer, error);
		refs->emptied_all = !client_refs_page_failed(writer, result);
	}
	if (!result)
		result =
			ended ? db_run(writer, "DELETE FROM settings WHERE name = 'client_refs_made_to'", error)
				  : write_position(refs, writer, &position, error);
	if (!result)
		result = db_commit(writer, error);
	if (result) {
		client_refs_rolled_back(refs);
		return result;
	}
	client_refs_committed(refs);
	refs->position = position;
	*ret_ended = ended;
	if (ended)
		atomic_store(&refs->lost, false);
	return OK;
}

static int reload_if_complete(struct client_refs *refs, struct db *db, bool *ret_whole,
                              struct error *error)
{
	struct db_connection *writer = db_take_writer(db);
	int result = reload(refs, writer, ret_whole, error);
	if (!result) {
		pthread_mutex_lock(&refs->lock);
		refs->unread = false;
		atomic_store(&refs->lost, !*ret_whole);
		pthread_mutex_unlock(&refs->lock);
	}
	db_give(writer);
	return result;
}

/* Adds the events as if they were new. Nothing is registered in the meantime, so the last batch is
 * complete. */
static int rebuild_all(struct client_refs *refs, struct db *db, const atomic_bool *stopping,
                       int64_t *repaired, struct error *error)
{
	bool ended = false;
	int result = OK;
	if (refs->unread)
		result = reload_if_complete(refs, db, &ended, error);
	while (!result && !ended && !atomic_load(stopping)) {
		/* Like the sequencer: freed pages are not overwritten. */
		struct db_connection *writer = db_take_registrar(db, 0, 0);
		result = refs->emptied_all ? add_batch(refs, writer, &ended, error)
		                           : empty_all(refs, writer, error);
		db_give(writer);
		if (!result && !ended)
			result = db_maintain(db, error);
	}
	*repaired += ended;
	return result;
}

int client_refs_repair(struct client_refs *refs, struct db *db, const atomic_bool *stopping,
                       int64_t *ret_repaired, struct error *error)
{
	*ret_repaired = 0;
	if (atomic_load(&refs->lost))
		return rebuild_all(refs, db, stopping, ret_repaired, error);
	int result = repair_buckets(refs, db, stopping, ret_repaired, error);
	while (!result && ref_runs_filters_lost(refs->runs))
		result = repair_filters(refs, db, ret_repaired, error);
	return result;
}
