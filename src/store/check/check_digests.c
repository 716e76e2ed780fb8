/* Checks the index of digests (events/digest_index.h): that each run has exactly the entries of the
 * events of its range. */
#include <stdlib.h>

#include "base/tuned.h"
#include "store/check/checking.h"
#include "store/events/digest_index_internal.h"

/* Events of a read transaction, so that the WAL can be reset between two. */
#define EVENTS_AT_ONCE 1000000

/* Entries without their order. Both sums agree only for the same entries, as good as certainly. */
struct sums {
	int64_t entries;
	uint64_t plain, keyed;
};
struct digest_check {
	struct check *check;
	struct digest_key key;
	struct digest_place place;
	struct digest_series *series;
	struct sums *of_runs;
	struct sums of_events;
	int64_t last_position;
};

static void add(const struct digest_key *key, struct sums *sums, const struct digest_entry *entry)
{
	sums->entries++;
	sums->plain += digest_hash(key, entry->position, &entry->hash, sizeof entry->hash);
	sums->keyed ^= digest_hash(key, ~entry->position, &entry->hash, sizeof entry->hash) << 16;
}

static void add_event(void *context, const struct digest_event *event)
{
	struct digest_check *digests = context;
	const struct digest_entry entry = {
		digest_hash(&digests->key, event->event >> EVENT_SEQUENCE_BITS, event->digest.data,
	                event->digest.size & ~(size_t)7),
		event->position,
	};
	add(&digests->key, &digests->of_events, &entry);
	digests->last_position = event->position;
}

/* Reads the series and the entries of all runs in one view, because runs are merged meanwhile. */
static int read_runs(struct digest_check *digests, struct error *error)
{
	struct digest_series *series = digests->series;
	struct db_connection *reader = check_take_reader(digests->check);
	int result =
		db_begin(reader, error) ?: digest_series_read(reader, &digests->key, series, error);
	for (size_t i = 0; i < series->count && !result; i++) {
		struct digest_cursor cursor = {
			.connection = reader, .series = series, .run = &series->runs[i], .error = error};
		struct digest_entry entry = {.position = series->runs[i].first};
		digests->of_runs[i] = (struct sums){0};
		if (series->runs[i].state != DIGEST_RUN_USED)
			continue;
		digest_cursor_seek(&cursor, &entry);
		for (; digest_cursor_peek(&cursor, &entry); digest_cursor_next(&cursor))
			add(&digests->key, &digests->of_runs[i], &entry);
		result = cursor.result;
	}
	result = db_failure(reader) ?: result;
	check_give_reader(digests->check);
	return result;
}

static int read_events(struct digest_check *digests, const struct digest_run *run,
                       struct error *error)
{
	const int64_t at_once = tuned("refs_checked", EVENTS_AT_ONCE);
	int64_t first = run->first, before;
	int result = OK;
	digests->of_events = (struct sums){0};
	do {
		before = digests->of_events.entries;
		struct db_connection *reader = check_take_reader(digests->check);
		result = db_begin(reader, error)
		             ?: digest_source_read(reader, &digests->place, first, run->last, at_once,
		                                   add_event, digests, error);
		check_give_reader(digests->check);
		first = digests->last_position + 1;
	} while (!result && digests->of_events.entries - before == at_once);
	return result;
}

static int check_run(struct digest_check *digests, size_t number, struct error *error)
{
	const struct digest_run *run = &digests->series->runs[number];
	const struct sums *of_run = &digests->of_runs[number];
	if (run->state != DIGEST_RUN_USED)
		return OK;
	int result = read_events(digests, run, error);
	const struct sums *of_events = &digests->of_events;
	if (!result && (of_run->entries != run->entries || of_run->entries != of_events->entries ||
	                of_run->plain != of_events->plain || of_run->keyed != of_events->keyed))
		check_problem(
			digests->check,
			"index of digests, series %lld/%lld, run %lld: its %lld entries are not those "
			"of the %lld events from position %lld to %lld",
			(long long)digests->place.account, (long long)digests->place.chain, (long long)run->run,
			(long long)of_run->entries, (long long)of_events->entries, (long long)run->first,
			(long long)run->last);
	return result;
}

static int check_series(struct digest_check *digests, struct error *error)
{
	struct error cause = {0};
	digests->series->account = digests->place.account;
	digests->series->chain = digests->place.chain;
	int result = read_runs(digests, &cause);
	for (size_t i = 0; i < digests->series->count && !result; i++)
		result = check_run(digests, i, &cause);
	if (result == ERR_CORRUPT) {
		check_problem(digests->check, "%s", cause.cause);
		return OK;
	}
	if (result && error)
		*error = cause;
	return result;
}

#define NEXT_OF(table)                                                                             \
	"SELECT account, chain FROM " table " WHERE account > $1 OR account = $1 AND chain > $2"       \
	" ORDER BY account, chain LIMIT 1"

/* Takes the next series of a query, if it is before the one of `next`. */
static int take_next(struct db_query *query, const struct digest_place *after,
                     struct digest_place *next, bool *found, struct error *error)
{
	db_bind(query, after->account, after->chain);
	if (db_step(query)) {
		struct digest_place place = {.account = db_integer(query, 0),
		                             .chain = db_integer(query, 1)};
		if (!*found || place.account < next->account ||
		    (place.account == next->account && place.chain < next->chain))
			*next = place;
		*found = true;
	}
	return db_end(query, error);
}

/* Gets the next series after the one of `place`. A damaged one has runs without its row. */
static int next_series(struct digest_check *digests, bool *ret_found, struct error *error)
{
	struct digest_place *place = &digests->place, next = {0};
	struct db_connection *reader = check_take_reader(digests->check);
	*ret_found = false;
	int result =
		take_next(db_query(reader, NEXT_OF("digest_series")), place, &next, ret_found, error)
			?: take_next(db_query(reader, NEXT_OF("digest_runs")), place, &next, ret_found, error);
	check_give_reader(digests->check);
	*place = next;
	place->source = db_is_shared(digests->check->store->db) ? DIGEST_EVENTS
	                : place->chain == 0                     ? DIGEST_ARRIVALS
	                                                        : DIGEST_BEFORE;
	return result;
}

int check_digests(struct check *check, struct error *error)
{
	struct digest_check digests = {.check = check, .place = {.account = -1}};
	bool found = true, has_key = false;
	int result = digest_index_find_key(check->store, &has_key, &digests.key, error);
	digests.series = calloc(1, sizeof *digests.series);
	digests.of_runs = calloc(DIGEST_RUNS_MAX, sizeof *digests.of_runs);
	if (!result && (!digests.series || !digests.of_runs))
		result = ERR_NO_MEMORY;
	while (!result && found) {
		result = next_series(&digests, &found, error);
		if (!result && found && !has_key)
			check_problem(check, "index of digests: its key does not exist");
		if (!has_key)
			break;
		if (!result && found)
			result = check_series(&digests, error);
	}
	free(digests.of_runs);
	free(digests.series);
	return result;
}
