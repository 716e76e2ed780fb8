/* Finds events by their digest, in the index (digest_index.h) and among the events that it does not
 * have yet. */
#include <stdlib.h>
#include <string.h>

#include "base/tuned.h"
#include "store/events/digest_index.h"
#include "store/events/digest_index_internal.h"
#include "store/transaction.h"

/* Largest range of events that is scanned without a lookup in the index. */
#define SCANNED_DIRECTLY 256
/* Maximum number of events that a lookup scans: some ten milliseconds. */
#define SCANNED_MAX 65536
#define ATTEMPTS 5
#define ARRIVALS_FOR_ONE 4

struct finding {
	struct store *store;
	struct db_connection *connection;
	const struct digest_lookup *lookup;
	int64_t first, last; /* the range, within the chain */
	struct digest_key key;
	bool has_key;
	struct digest_series *series;
	int64_t *sequences;
	size_t count;
};

static bool is_full(const struct finding *finding)
{
	return finding->count == finding->lookup->max;
}

/* ---- the events that the index does not have ---- */

#define SCAN(order)                                                                                \
	"SELECT event FROM events WHERE account = $1 AND event BETWEEN $2 AND $3 AND hash = $4"        \
	" ORDER BY event" order " LIMIT $5"
/* The same in the append log itself, between arrivals. */
#define SCAN_ARRIVALS(order)                                                                       \
	"SELECT event FROM events_arrived WHERE arrival BETWEEN $1 AND $5 AND event BETWEEN $2 AND $3" \
	" AND hash = $4 ORDER BY arrival" order " LIMIT $6"

static struct db_query *scan_chain(struct finding *finding, int64_t first, int64_t last)
{
	const struct digest_lookup *lookup = finding->lookup;
	struct db_query *query = lookup->order == ORDER_ASCENDING
	                             ? db_query(finding->connection, SCAN(""))
	                             : db_query(finding->connection, SCAN(" DESC"));
	db_bind(query, lookup->account, event_number(lookup->chain, first),
	        event_number(lookup->chain, last));
	db_bind_blob(query, lookup->digest, lookup->digest_size);
	return query;
}

static struct db_query *scan_arrivals(struct finding *finding, int64_t first, int64_t last,
                                      int64_t begin, int64_t end)
{
	const struct digest_lookup *lookup = finding->lookup;
	struct db_query *query = lookup->order == ORDER_ASCENDING
	                             ? db_query(finding->connection, SCAN_ARRIVALS(""))
	                             : db_query(finding->connection, SCAN_ARRIVALS(" DESC"));
	db_bind(query, begin, event_number(lookup->chain, first), event_number(lookup->chain, last));
	db_bind_blob(query, lookup->digest, lookup->digest_size);
	db_bind_integer(query, end);
	return query;
}

/* Scans a range of sequences within the source `chain`; NULL: of any source. Reading an event by
 * its sequence costs as much as reading several that arrived one after the other. */
static int scan(struct finding *finding, const struct digest_chain *chain, int64_t first,
                int64_t last, struct error *error)
{
	int64_t begin = 0, end = INT64_MAX;
	int result = OK;
	if (first < finding->first)
		first = finding->first;
	if (last > finding->last)
		last = finding->last;
	if (last < first || is_full(finding))
		return OK;
	if (last - first >= tuned("digests_scanned", SCANNED_MAX))
		return error_set(error, ERR_UNAVAILABLE, MSG_STORE_DIGESTS_LATER, NULL);
	if (chain && chain->place.source == DIGEST_ARRIVALS)
		result = digest_chain_position(chain, first, &begin, error)
		             ?: digest_chain_position(chain, last, &end, error);
	if (result)
		return result;
	struct db_query *query = end - begin < ARRIVALS_FOR_ONE * (last - first + 1)
	                             ? scan_arrivals(finding, first, last, begin, end)
	                             : scan_chain(finding, first, last);
	db_bind_integer(query, (int64_t)(finding->lookup->max - finding->count));
	while (!is_full(finding) && db_step(query))
		finding->sequences[finding->count++] = db_integer(query, 0) & EVENT_SEQUENCE_MAX;
	return db_end(query, error);
}

/* ---- the index ---- */

/* Adds the event of an entry, if it has the digest. */
static int take(struct finding *finding, const struct digest_chain *chain, int64_t position,
                struct error *error)
{
	const struct digest_lookup *lookup = finding->lookup;
	struct db_query *query;
	if (chain->place.source == DIGEST_ARRIVALS) {
		query = db_query(finding->connection,
		                 "SELECT event, hash FROM events_arrived WHERE arrival = $1");
		db_bind_integer(query, position);
	} else {
		query = db_query(finding->connection,
		                 "SELECT event, hash FROM events WHERE account = $1 AND event = $2");
		db_bind(query, lookup->account, event_number(lookup->chain, position));
	}
	if (db_step(query)) {
		int64_t event = db_integer(query, 0);
		struct slice digest = db_blob(query, 1);
		if (event >> EVENT_SEQUENCE_BITS == lookup->chain && digest.size == lookup->digest_size &&
		    memcmp(digest.data, lookup->digest, digest.size) == 0)
			finding->sequences[finding->count++] = event & EVENT_SEQUENCE_MAX;
	}
	return db_end(query, error);
}

/* Searches a run for positions of the range, in the order. */
static int search_run(struct finding *finding, const struct digest_chain *chain,
                      const struct digest_run *run, int64_t first, int64_t last,
                      struct error *error)
{
	const bool ascending = finding->lookup->order == ORDER_ASCENDING;
	const uint64_t hash = digest_hash(&finding->key, finding->lookup->chain,
	                                  finding->lookup->digest, finding->lookup->digest_size);
	struct digest_cursor cursor = {
		.connection = finding->connection, .series = finding->series, .run = run, .error = error};
	struct digest_entry from = {hash, first > run->first ? first : run->first};
	struct digest_entry to = {hash, last < run->last ? last : run->last};
	struct digest_entry entry;
	int result = OK;
	if (to.position < from.position)
		return OK;
	if (ascending)
		digest_cursor_seek(&cursor, &from);
	else
		digest_cursor_seek_back(&cursor, &to);
	while (!result && !is_full(finding) && digest_cursor_peek(&cursor, &entry) &&
	       digest_entry_compare(&entry, &from) >= 0 && digest_entry_compare(&entry, &to) <= 0) {
		result = take(finding, chain, entry.position, error);
		if (ascending)
			digest_cursor_next(&cursor);
		else
			digest_cursor_previous(&cursor);
	}
	return result ? result : cursor.result;
}

/* Searches the runs for the sequences of the range, which the index has. */
static int search_runs(struct finding *finding, const struct digest_chain *chain, int64_t first,
                       int64_t last, struct error *error)
{
	const struct digest_series *series = finding->series;
	int64_t begin = 0, end = 0;
	if (first < finding->first)
		first = finding->first;
	if (last > finding->last)
		last = finding->last;
	if (last < first)
		return OK;
	int result = digest_chain_position(chain, first, &begin, error)
	                 ?: digest_chain_position(chain, last, &end, error);
	for (size_t i = 0; i < series->count && !result && !is_full(finding); i++) {
		size_t at = finding->lookup->order == ORDER_ASCENDING ? i : series->count - 1 - i;
		if (series->runs[at].state == DIGEST_RUN_USED)
			result = search_run(finding, chain, &series->runs[at], begin, end, error);
	}
	return result;
}

/* Reads the series of a source. Without a key there is none. */
static int read_series(struct finding *finding, const struct digest_chain *chain,
                       struct error *error)
{
	finding->series->account = chain->place.account;
	finding->series->chain = chain->place.chain;
	finding->series->count = 0;
	finding->series->indexed = 0;
	if (!finding->has_key)
		return OK;
	int result = digest_series_read(finding->connection, &finding->key, finding->series, error);
	return result;
}

static int search_source(struct finding *finding, const struct digest_chain *chain,
                         struct error *error)
{
	if (finding->first > chain->last || finding->last < chain->first || is_full(finding))
		return OK;
	int64_t unindexed = chain->first;
	int result = read_series(finding, chain, error)
	                 ?: digest_chain_after(chain, finding->series->indexed, &unindexed, error);
	const bool ascending = finding->lookup->order == ORDER_ASCENDING;
	if (!result && !ascending)
		result = scan(finding, chain, unindexed, chain->last, error);
	if (!result && !is_full(finding))
		result = search_runs(finding, chain, chain->first, unindexed - 1, error);
	if (!result && ascending)
		result = scan(finding, chain, unindexed, chain->last, error);
	return result;
}

/* Checks that no other process changed the series meanwhile: with distributed tables, statements of
 * one transaction do not see one state. */
static int check_unchanged(struct finding *finding, bool *ret_same, struct error *error)
{
	struct db_query *query = db_query(finding->connection, "SELECT version FROM digest_series"
	                                                       " WHERE account = $1 AND chain = $2");
	db_bind(query, finding->series->account, finding->series->chain);
	int64_t version = db_step(query) ? db_integer(query, 0) : 0;
	*ret_same = version == finding->series->version;
	return db_end(query, error);
}

static int search(struct finding *finding, bool *ret_same, struct error *error)
{
	const struct digest_lookup *lookup = finding->lookup;
	struct digest_chain sources[2];
	size_t count = 0;
	int result = digest_chain_find(finding->connection, !db_is_shared(finding->store->db),
	                               lookup->account, lookup->chain, sources, &count, error);
	*ret_same = true;
	if (result || count == 0)
		return result;
	finding->first = lookup->first > 1 ? lookup->first : 1;
	finding->last = lookup->last < sources[count - 1].last ? lookup->last : sources[count - 1].last;
	if (finding->last - finding->first < tuned("digests_scanned_directly", SCANNED_DIRECTLY))
		return scan(finding, NULL, finding->first, finding->last, error);
	for (size_t i = 0; i < count && !result && *ret_same; i++) {
		size_t at = lookup->order == ORDER_ASCENDING ? i : count - 1 - i;
		result = search_source(finding, &sources[at], error);
		if (result == ERR_CORRUPT && !db_failure(finding->connection)) {
			digest_index_note_damage(finding->store->digests, &sources[at].place,
			                         error ? error->cause : "");
			return error_set(error, ERR_UNAVAILABLE, MSG_STORE_DIGESTS_LATER, NULL);
		}
		if (!result && db_is_sharded(finding->store->db))
			result = check_unchanged(finding, ret_same, error);
	}
	return result;
}

static int attempt(struct finding *finding, bool *ret_same, struct error *error)
{
	finding->count = 0;
	finding->connection = begin_read(finding->store, &error);
	int result = search(finding, ret_same, error);
	return end_read(finding->connection, result);
}

int store_find_digest(struct store *store, const struct digest_lookup *lookup,
                      int64_t *ret_sequences, size_t *ret_count, struct error *error)
{
	struct finding finding = {.store = store, .lookup = lookup, .sequences = ret_sequences};
	struct error cause = {0};
	bool same = false;
	int result = digest_index_find_key(store, &finding.has_key, &finding.key, error);
	if (result)
		return result;
	finding.series = calloc(1, sizeof *finding.series);
	if (!finding.series)
		return ERR_NO_MEMORY;
	for (int i = 0; i < ATTEMPTS && !same && !result; i++)
		result = attempt(&finding, &same, &cause);
	free(finding.series);
	if (!result && !same)
		result = error_set(&cause, ERR_UNAVAILABLE, MSG_STORE_DIGESTS_LATER, NULL);
	if (result && error)
		*error = cause;
	if (!result)
		*ret_count = finding.count;
	return result;
}
