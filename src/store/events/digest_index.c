#include "store/events/digest_index.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tuned.h"
#include "store/events/digest_index_internal.h"
#include "store/shards/shard_work.h"
#include "store/transaction.h"

#define KEY_NAME "digest_index_key"
/* Events of a run of level 0. Until then a lookup scans them, of all chains on the embedded
 * engine, but only those of its chain. */
#define GATHERED_EMBEDDED 16384
#define GATHERED_CHAIN 8192
#define MERGED_BLOCKS 128  /* blocks that a step of a merge writes */
#define DELETED_BLOCKS 512 /* and that a step of a deletion removes */
#define STEPS_AT_ONCE 4    /* such steps for each run of level 0 */
#define RUNS_WAIT                                                                                  \
	(DIGEST_RUNS_MAX - 4 * DIGEST_FANOUT) /* no more are added until runs are merged */
#define CHAINS_AT_ONCE 64

/* ---- memory ---- */

int digest_index_open(struct store *store)
{
	store->digests = calloc(1, sizeof *store->digests);
	if (!store->digests)
		return ERR_NO_MEMORY;
	pthread_mutex_init(&store->digests->mutex, NULL);
	return OK;
}

void digest_index_close(struct store *store)
{
	if (!store->digests)
		return;
	pthread_mutex_destroy(&store->digests->mutex);
	free(store->digests->entries);
	free(store->digests);
	store->digests = NULL;
}

static void take_key(struct digest_index *index, const struct sha256 *secret,
                     struct digest_key *ret)
{
	pthread_mutex_lock(&index->mutex);
	memcpy(index->key.words, secret->bytes, sizeof index->key.words);
	index->has_key = true;
	*ret = index->key;
	pthread_mutex_unlock(&index->mutex);
}

bool digest_index_key(struct digest_index *index, struct digest_key *ret)
{
	pthread_mutex_lock(&index->mutex);
	bool known = index->has_key;
	*ret = index->key;
	pthread_mutex_unlock(&index->mutex);
	return known;
}

int digest_index_find_key(struct store *store, bool *ret_found, struct digest_key *ret,
                          struct error *error)
{
	*ret_found = digest_index_key(store->digests, ret);
	if (*ret_found)
		return OK;
	struct sha256 secret;
	int result = store_find_secret(store, KEY_NAME, ret_found, &secret, error);
	if (!result && *ret_found)
		take_key(store->digests, &secret, ret);
	return result;
}

static int make_key(struct store *store, struct digest_key *ret, struct error *error)
{
	struct sha256 secret;
	if (digest_index_key(store->digests, ret))
		return OK;
	int result = store_get_secret(store, KEY_NAME, &secret, error);
	if (!result)
		take_key(store->digests, &secret, ret);
	return result;
}

void digest_index_note_damage(struct digest_index *index, const struct digest_place *place,
                              const char *what)
{
	pthread_mutex_lock(&index->mutex);
	index->damaged = true;
	index->damaged_place = *place;
	snprintf(index->damage, sizeof index->damage, "%s", what);
	pthread_mutex_unlock(&index->mutex);
}

/* Takes the damaged series, if there is one. */
static bool take_damage(struct digest_index *index, struct digest_place *ret_place,
                        struct digest_progress *ret)
{
	pthread_mutex_lock(&index->mutex);
	bool damaged = index->damaged;
	index->damaged = false;
	*ret_place = index->damaged_place;
	if (damaged && ret_place->source == DIGEST_BEFORE) {
		index->before_done = false; /* its events are added again */
		index->before_chain = index->before_account = 0;
	}
	if (damaged)
		snprintf(ret->damage, sizeof ret->damage, "%s", index->damage);
	pthread_mutex_unlock(&index->mutex);
	return damaged;
}

/* ---- transactions ---- */

static int64_t gathered(const struct digest_place *place)
{
	return place->source == DIGEST_ARRIVALS ? tuned("digests_gathered", GATHERED_EMBEDDED)
	                                        : tuned("digests_of_chain", GATHERED_CHAIN);
}

/* The index may lag behind a fail-over, as the events that it has do. On the embedded engine the
 * freed blocks need not be overwritten (db/sqlite/connection.c): they have no data of clients. */
static struct db_connection *begin_step(struct store *store, const struct digest_place *place,
                                        struct error **error)
{
	if (db_is_shared(store->db)) {
		struct db_connection *connection = begin_local(store, error);
		db_bind_to_shard(connection, place->account);
		return connection;
	}
	return begin_registrar(store, error);
}

static void set_rows(struct digest_series *series, const struct digest_place *place)
{
	series->account = place->account;
	series->chain = place->chain;
}

/* Runs a change of a series in a transaction. It is given up when another process has changed the
 * series. */
struct step {
	struct store *store;
	const struct digest_place *place;
	struct digest_key key;
	struct digest_series *series;
	bool worked;
};
typedef int change_function(struct step *step, struct db_connection *connection,
                            struct error *error);

static int change(struct step *step, change_function *function, struct error *error)
{
	bool same = false;
	struct db_connection *connection = begin_step(step->store, step->place, &error);
	int result = digest_series_lock(connection, &step->key, step->series, &same, error);
	if (!result && !same)
		result = ERR_CONFLICT;
	if (!result)
		result = function(step, connection, error);
	if (!result)
		result = digest_series_write(connection, &step->key, step->series, error);
	result = end_write(connection, result, error);
	step->worked = step->worked || !result;
	return result == ERR_CONFLICT ? OK : result;
}

static int read_series(struct step *step, struct error *error)
{
	set_rows(step->series, step->place);
	struct db_connection *connection = begin_read(step->store, &error);
	return end_read(connection, digest_series_read(connection, &step->key, step->series, error));
}

/* ---- new runs ---- */

struct gathering {
	struct digest_key *key;
	struct digest_entry *entries;
	size_t count;
};

static void gather(void *context, const struct digest_event *event)
{
	struct gathering *gathering = context;
	gathering->entries[gathering->count++] = (struct digest_entry){
		digest_hash(gathering->key, event->event >> EVENT_SEQUENCE_BITS, event->digest.data,
	                event->digest.size & ~(size_t)7),
		event->position,
	};
}

static int write_new_run(struct step *step, struct db_connection *connection, struct error *error)
{
	struct digest_index *index = step->store->digests;
	struct digest_series *series = step->series;
	struct digest_run run = {
		.run = ++series->last_run,
		.first = series->indexed + 1,
		.last = index->entries[index->count - 1].position,
		.entries = (int64_t)index->count,
	};
	series->indexed = run.last;
	digest_entries_sort(index->entries, index->entries + index->room, index->count);
	struct digest_writer writer = digest_writer_make(connection, series, &run, error);
	for (size_t i = 0; i < index->count; i++)
		digest_writer_add(&writer, &index->entries[i]);
	digest_writer_finish(&writer);
	return writer.result ? writer.result : digest_run_write(connection, series, &run, error);
}

/* Reads the next events of a series, without a write transaction. */
static int read_events(struct step *step, int64_t count, struct error *error)
{
	struct digest_index *index = step->store->digests;
	struct gathering gathering = {.key = &step->key, .entries = index->entries};
	struct db_connection *reader = begin_read(step->store, &error);
	int64_t first = step->series->indexed + 1;
	int64_t last = step->place->source == DIGEST_ARRIVALS
	                   ? first + DIGEST_POSITIONS_MAX / DIGEST_FANOUT / DIGEST_FANOUT
	                   : EVENT_SEQUENCE_MAX;
	int result = end_read(reader, digest_source_read(reader, step->place, first, last, count,
	                                                 gather, &gathering, error));
	index->count = gathering.count;
	return result;
}

static int find_last(struct step *step, int64_t *ret_last, struct error *error)
{
	struct db_connection *reader = begin_read(step->store, &error);
	return end_read(reader, digest_source_last(reader, step->place, ret_last, error));
}

static int add_run(struct step *step, struct error *error)
{
	struct digest_index *index = step->store->digests;
	int64_t count = gathered(step->place), last = 0;
	int result = find_last(step, &last, error);
	if (result || last - step->series->indexed < count || step->series->count > RUNS_WAIT)
		return result;
	if (!index->entries || index->room < (size_t)count) {
		free(index->entries);
		index->entries = calloc(2 * (size_t)count, sizeof *index->entries);
		index->room = index->entries ? (size_t)count : 0;
		if (!index->entries)
			return ERR_NO_MEMORY;
	}
	result = read_events(step, count, error);
	if (result || index->count < (size_t)count)
		return result;
	return change(step, write_new_run, error);
}

/* ---- merges and deletions ---- */

static struct digest_run *find_state(struct digest_series *series, enum digest_run_state state)
{
	for (size_t i = 0; i < series->count; i++)
		if (series->runs[i].state == state)
			return &series->runs[i];
	return NULL;
}

static int delete_blocks(struct step *step, struct db_connection *connection, struct error *error)
{
	struct digest_run *run = find_state(step->series, DIGEST_RUN_DELETED);
	return digest_run_delete(connection, step->series, run,
	                         tuned_up_to("digests_deleted", DELETED_BLOCKS), error);
}

/* Puts the merged run in the place of its sources. */
static int replace_sources(struct step *step, struct db_connection *connection,
                           struct digest_run *merged, struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < step->series->count && !result; i++) {
		struct digest_run *run = &step->series->runs[i];
		if (run->state != DIGEST_RUN_USED || run->first < merged->first || run->last > merged->last)
			continue;
		run->state = DIGEST_RUN_DELETED;
		result = digest_run_write(connection, step->series, run, error);
	}
	merged->state = DIGEST_RUN_USED;
	return result;
}

static int merge_blocks(struct step *step, struct db_connection *connection, struct error *error)
{
	struct digest_run *run = find_state(step->series, DIGEST_RUN_MERGING);
	bool done = false;
	int result =
		digest_run_merge(connection, step->series, run,
	                     (size_t)tuned_up_to("digests_merged", MERGED_BLOCKS), &done, error);
	if (!result && done)
		result = replace_sources(step, connection, run, error);
	return result ? result : digest_run_write(connection, step->series, run, error);
}

/* Finds the first level with enough runs and describes their merge. */
static bool find_merge(const struct digest_series *series, struct digest_run *ret)
{
	for (int64_t level = 0; level < DIGEST_LEVELS - 1; level++) {
		*ret = (struct digest_run){.level = level + 1, .state = DIGEST_RUN_MERGING};
		for (size_t i = 0, count = 0; i < series->count; i++) {
			const struct digest_run *run = &series->runs[i];
			if (run->state != DIGEST_RUN_USED || run->level != level)
				continue;
			if (count++ == 0)
				ret->first = run->first;
			ret->last = run->last;
			if (count == DIGEST_FANOUT)
				return ret->last - ret->first < DIGEST_POSITIONS_MAX;
		}
	}
	return false;
}

static int begin_merge(struct step *step, struct db_connection *connection, struct error *error)
{
	struct digest_run run = {0};
	(void)find_merge(step->series, &run);
	run.run = ++step->series->last_run;
	return digest_run_write(connection, step->series, &run, error);
}

/* Does one step of what is due; *ret_due false: nothing was. */
static int tidy(struct step *step, bool *ret_due, struct error *error)
{
	struct digest_run merge;
	change_function *function = find_state(step->series, DIGEST_RUN_DELETED)   ? delete_blocks
	                            : find_state(step->series, DIGEST_RUN_MERGING) ? merge_blocks
	                            : find_merge(step->series, &merge)             ? begin_merge
	                                                                           : NULL;
	*ret_due = function != NULL;
	int result = function ? change(step, function, error) : OK;
	return result || !function ? result : read_series(step, error);
}

/* ---- damage ---- */

/* Makes the series empty. Its events are then added again. */
static int empty(struct step *step, struct db_connection *connection, struct error *error)
{
	int result = OK;
	step->series->indexed = 0;
	for (size_t i = 0; i < step->series->count && !result; i++) {
		struct digest_run *run = &step->series->runs[i];
		if (run->run > step->series->last_run)
			step->series->last_run = run->run;
		run->state = DIGEST_RUN_DELETED;
		result = digest_run_write(connection, step->series, run, error);
	}
	return result;
}

static int rebuild(struct step *step, struct digest_progress *ret, struct error *error)
{
	ret->was_damaged = true;
	int result = read_series(step, NULL);
	return result && result != ERR_CORRUPT ? result : change(step, empty, error);
}

/* ---- one series ---- */

static int visit(struct step *step, struct digest_progress *ret, struct error *error)
{
	struct error cause = {0};
	bool due = true;
	int result = read_series(step, &cause);
	if (!result)
		result = add_run(step, &cause);
	if (!result && step->worked)
		result = read_series(step, &cause);
	for (int i = 0; i < STEPS_AT_ONCE && due && !result; i++)
		result = tidy(step, &due, &cause);
	ret->worked = ret->worked || step->worked;
	if (result == ERR_CORRUPT) {
		snprintf(ret->damage, sizeof ret->damage, "%s", cause.cause);
		return rebuild(step, ret, error);
	}
	if (result && error)
		*error = cause;
	return result;
}

static int visit_place(struct store *store, const struct digest_place *place,
                       const struct digest_key *key, bool damaged, struct digest_progress *ret,
                       struct error *error)
{
	struct digest_series *series = calloc(1, sizeof *series);
	struct step step = {.store = store, .place = place, .key = *key, .series = series};
	if (!series)
		return ERR_NO_MEMORY;
	int result = damaged ? rebuild(&step, ret, error) : visit(&step, ret, error);
	ret->worked = ret->worked || step.worked;
	free(series);
	return result;
}

/* ---- the embedded engine ---- */

/* Gets the next chain of events created by 0.1.0; *ret_chain 0: none. */
static int next_chain_before(struct store *store, int64_t *ret_chain, int64_t *ret_account,
                             struct error *error)
{
	struct db_connection *reader = begin_read(store, &error);
	struct db_query *query =
		db_query(reader, "SELECT event, account FROM events_before WHERE event > $1"
	                     " ORDER BY event LIMIT 1");
	db_bind_integer(query, event_number(*ret_chain, EVENT_SEQUENCE_MAX));
	bool found = db_step(query);
	*ret_chain = found ? db_integer(query, 0) >> EVENT_SEQUENCE_BITS : 0;
	*ret_account = found ? db_integer(query, 1) : 0;
	return end_read(reader, db_end(query, error));
}

static int index_before(struct store *store, const struct digest_key *key,
                        struct digest_progress *ret, struct error *error)
{
	struct digest_index *index = store->digests;
	if (index->before_done)
		return OK;
	struct digest_place place = {.source = DIGEST_BEFORE, .chain = index->before_chain};
	struct digest_progress progress = {0};
	place.account = index->before_account;
	int result = place.chain > 0 ? visit_place(store, &place, key, false, &progress, error) : OK;
	ret->was_damaged = progress.was_damaged;
	memcpy(ret->damage, progress.damage, sizeof ret->damage);
	if (result || progress.worked) {
		ret->worked = true;
		return result;
	}
	result = next_chain_before(store, &index->before_chain, &index->before_account, error);
	index->before_done = !result && index->before_chain == 0;
	ret->worked = ret->worked || !index->before_done;
	return result;
}

static int index_arrivals(struct store *store, const struct digest_key *key,
                          struct digest_progress *ret, struct error *error)
{
	const struct digest_place place = {.source = DIGEST_ARRIVALS};
	int result = visit_place(store, &place, key, false, ret, error);
	if (result)
		return result;
	struct db_connection *reader = begin_read(store, &error);
	int64_t last = 0;
	result = digest_source_last(reader, &place, &last, error);
	struct db_query *query =
		db_query(reader, "SELECT indexed FROM digest_series WHERE account = 0 AND chain = 0");
	int64_t indexed = db_step(query) ? db_integer(query, 0) : 0;
	db_release(query);
	ret->lag = last - indexed;
	ret->lag_known = true;
	return end_read(reader, result);
}

/* ---- servers ---- */

#define LAGGING(of)                                                                                \
	"SELECT c.account, c.chain, c.last_sequence - COALESCE(s.indexed, 0) FROM chains c"            \
	" LEFT JOIN digest_series s ON s.account = c.account AND s.chain = c.chain"                    \
	" WHERE c.last_sequence - COALESCE(s.indexed, 0) >= $1" of " ORDER BY 3 DESC LIMIT $2"

#define LAGGING_ACCOUNTS(events)                                                                   \
	"SELECT DISTINCT c.account FROM {chains} c LEFT JOIN {digest_series} s"                        \
	" ON s.account = c.account AND s.chain = c.chain"                                              \
	" WHERE c.last_sequence - COALESCE(s.indexed, 0) >= " events

static void note_account(void *context, size_t part, int64_t account, bool is_limit)
{
	(void)part;
	(void)is_limit;
	db_array_add_integer(context, account);
}

/* Finds the accounts of such chains on the servers that answer, unless all are on one. The jobs'
 * common query (shard_work.h) is more frequent, and this one reads all chains. */
static int find_accounts(struct store *store, struct work_accounts *ret, struct error *error)
{
	const bool usual = tuned("digests_of_chain", GATHERED_CHAIN) == GATHERED_CHAIN;
	const struct db_shard_part part = {
		.text = usual ? LAGGING_ACCOUNTS("8192") : LAGGING_ACCOUNTS("1"),
		.limit = DB_PART_ACCOUNTS_MAX,
	};
	struct db_shard_query_result queried = {0};
	_Static_assert(GATHERED_CHAIN == 8192, "as in the query");
	*ret = (struct work_accounts){.all = !db_is_sharded(store->db)};
	if (ret->all)
		return OK;
	db_array_init(&ret->accounts, DB_INTEGERS);
	int result =
		db_query_shards(store->db, &part, 1, note_account, &ret->accounts, &queried, error);
	ret->all = !queried.distributed;
	return result ? result : buf_check(&ret->accounts.wire);
}

/* Lists the chains of which most events are missing. */
static int list_lagging(struct store *store, struct digest_progress *ret, struct error *error)
{
	struct digest_index *index = store->digests;
	SHARD_WORK_AUTO struct work_accounts of = {0};
	int result = find_accounts(store, &of, error);
	index->lagging_count = index->lagging_next = 0;
	ret->lag_known = !result;
	if (result || work_is_empty(&of))
		return result;
	struct db_connection *reader = begin_read(store, &error);
	struct db_query *query = of.all ? db_query(reader, LAGGING(""))
	                                : db_query(reader, LAGGING(WORK_ACCOUNTS("c", "$3")));
	db_bind(query, tuned("digests_of_chain", GATHERED_CHAIN), CHAINS_AT_ONCE);
	shard_work_bind(query, &of);
	while (index->lagging_count < DIGEST_LAGGING_MAX && db_step(query)) {
		struct digest_place *place = &index->lagging[index->lagging_count++];
		*place = (struct digest_place){DIGEST_EVENTS, db_integer(query, 0), db_integer(query, 1)};
		if (index->lagging_count == 1)
			ret->lag = db_integer(query, 2);
	}
	return end_read(reader, db_end(query, error));
}

static int index_chains(struct store *store, const struct digest_key *key,
                        struct digest_progress *ret, struct error *error)
{
	struct digest_index *index = store->digests;
	if (index->lagging_next == index->lagging_count) {
		int result = list_lagging(store, ret, error);
		if (result || index->lagging_count == 0)
			return result;
	}
	struct digest_progress progress = {0};
	int result =
		visit_place(store, &index->lagging[index->lagging_next], key, false, &progress, error);
	if (result || !progress.worked)
		index->lagging_next++; /* the chain has no more to do, or the others go first */
	ret->worked = true;
	ret->was_damaged = progress.was_damaged;
	memcpy(ret->damage, progress.damage, sizeof ret->damage);
	return result;
}

int store_index_digests(struct store *store, struct digest_progress *ret, struct error *error)
{
	struct digest_place place;
	struct digest_key key;
	*ret = (struct digest_progress){0};
	int result = make_key(store, &key, error);
	if (result)
		return result;
	if (take_damage(store->digests, &place, ret)) {
		ret->worked = true;
		return visit_place(store, &place, &key, true, ret, error);
	}
	if (db_is_shared(store->db))
		return index_chains(store, &key, ret, error);
	result = index_before(store, &key, ret, error);
	return result ? result : index_arrivals(store, &key, ret, error);
}
