#include "store/events/digest_source.h"

#include "db/append_run.h"

/* ---- events of a source ---- */

#define READ(columns, from) "SELECT " columns " FROM " from " LIMIT $3"

static struct db_query *read_query(struct db_connection *connection,
                                   const struct digest_place *place, int64_t first, int64_t last,
                                   int64_t limit)
{
	struct db_query *query = NULL;
	switch (place->source) {
	case DIGEST_ARRIVALS:
		query = db_query_long(
			connection, READ("arrival, event, hash",
		                     "events_arrived WHERE arrival BETWEEN $1 AND $2 ORDER BY arrival"));
		db_bind(query, first, last, limit);
		return query;
	case DIGEST_BEFORE:
		query = db_query_long(connection,
		                      READ("event, event, hash",
		                           "events_before WHERE event BETWEEN $1 AND $2 ORDER BY event"));
		break;
	case DIGEST_EVENTS:
		query = db_query_long(connection,
		                      READ("event, event, hash", "events WHERE event BETWEEN $1 AND $2"
		                                                 " AND account = $4 ORDER BY event"));
		break;
	}
	db_bind(query, event_number(place->chain, first), event_number(place->chain, last), limit);
	if (place->source == DIGEST_EVENTS)
		db_bind_integer(query, place->account);
	return query;
}

int digest_source_read(struct db_connection *connection, const struct digest_place *place,
                       int64_t first, int64_t last, int64_t limit,
                       void (*each)(void *context, const struct digest_event *event), void *context,
                       struct error *error)
{
	struct db_query *query = read_query(connection, place, first, last, limit);
	while (db_step(query)) {
		int64_t position = db_integer(query, 0);
		if (place->source != DIGEST_ARRIVALS)
			position &= EVENT_SEQUENCE_MAX;
		each(context, &(struct digest_event){position, db_integer(query, 1), db_blob(query, 2)});
	}
	return db_end(query, error);
}

static int read_number(struct db_query *query, int64_t *ret, struct error *error)
{
	*ret = db_step(query) && !db_is_null(query, 0) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

int digest_source_last(struct db_connection *connection, const struct digest_place *place,
                       int64_t *ret_position, struct error *error)
{
	struct db_query *query = NULL;
	switch (place->source) {
	case DIGEST_ARRIVALS:
		return read_number(db_query(connection, "SELECT MAX(arrival) FROM events_arrived"),
		                   ret_position, error);
	case DIGEST_BEFORE:
		query = db_query(connection,
		                 "SELECT MAX(event) FROM events_before WHERE event BETWEEN $1 AND $2");
		db_bind(query, event_number(place->chain, 1),
		        event_number(place->chain, EVENT_SEQUENCE_MAX));
		break;
	case DIGEST_EVENTS:
		query = db_query(connection,
		                 "SELECT last_sequence FROM chains WHERE account = $1 AND chain = $2");
		db_bind(query, place->account, place->chain);
		break;
	}
	int result = read_number(query, ret_position, error);
	*ret_position &= EVENT_SEQUENCE_MAX;
	return result;
}

/* ---- positions ---- */

int digest_chain_find(struct db_connection *connection, bool embedded, int64_t account,
                      int64_t chain, struct digest_chain ret[2], size_t *ret_count,
                      struct error *error)
{
	struct digest_chain all = {connection, {DIGEST_EVENTS, account, chain}, account, chain, 1, 0};
	int result = digest_source_last(connection, &all.place, &all.last, error);
	*ret_count = 0;
	if (result || all.last == 0)
		return result;
	if (!embedded) {
		ret[(*ret_count)++] = all;
		return OK;
	}
	struct digest_chain before = all, arrived = all;
	before.place.source = DIGEST_BEFORE;
	arrived.place = (struct digest_place){.source = DIGEST_ARRIVALS};
	result = digest_source_last(connection, &before.place, &before.last, error);
	arrived.first = before.last + 1;
	if (before.last >= before.first)
		ret[(*ret_count)++] = before;
	if (arrived.last >= arrived.first)
		ret[(*ret_count)++] = arrived;
	return result;
}

static int read_run(const struct digest_chain *of, int64_t arrival, struct append_run *ret,
                    struct error *error)
{
	struct db_query *query =
		db_query(of->connection, "SELECT event, count, place, previous, jump, jump_key, jump_place"
	                             " FROM events_runs WHERE arrival = $1");
	db_bind_integer(query, arrival);
	bool found = db_step(query);
	if (found)
		*ret = (struct append_run){arrival,
		                           db_integer(query, 0),
		                           db_integer(query, 1),
		                           db_integer(query, 2),
		                           db_integer(query, 3),
		                           db_integer(query, 4),
		                           db_integer(query, 5),
		                           db_integer(query, 6)};
	int result = db_end(query, error);
	if (!result && !(found && ret->count > 0 && ret->previous < arrival &&
	                 ret->jump <= ret->previous && ret->key >> EVENT_SEQUENCE_BITS == of->chain))
		return error_cause(error, ERR_CORRUPT, "chain %lld: no run of events at %lld",
		                   (long long)of->chain, (long long)arrival);
	return result;
}

static int read_last_run(const struct digest_chain *of, struct append_run *ret, struct error *error)
{
	struct db_query *query =
		db_query(of->connection, "SELECT last_run FROM chains WHERE account = $1 AND chain = $2");
	db_bind(query, of->account, of->chain);
	int64_t arrival;
	int result = read_number(query, &arrival, error);
	return result ? result : read_run(of, arrival, ret, error);
}

int digest_chain_position(const struct digest_chain *of, int64_t sequence, int64_t *ret_position,
                          struct error *error)
{
	assert(sequence >= of->first && sequence <= of->last);
	*ret_position = sequence;
	if (of->place.source != DIGEST_ARRIVALS)
		return OK;
	const int64_t key = event_number(of->chain, sequence);
	struct append_run run;
	int result = read_last_run(of, &run, error);
	while (!result && run.key > key)
		result = read_run(of, append_run_step(&run, key), &run, error);
	if (!result && key > append_run_last_key(&run))
		result = error_cause(error, ERR_CORRUPT, "chain %lld: no run has event %lld",
		                     (long long)of->chain, (long long)sequence);
	if (!result)
		*ret_position = run.arrival + (key - run.key);
	return result;
}

int digest_chain_after(const struct digest_chain *of, int64_t position, int64_t *ret_sequence,
                       struct error *error)
{
	if (of->place.source != DIGEST_ARRIVALS) {
		*ret_sequence = position + 1 > of->first ? position + 1 : of->first;
		if (*ret_sequence > of->last)
			*ret_sequence = of->last + 1;
		return OK;
	}
	struct append_run run;
	int result = read_last_run(of, &run, error);
	/* The first run that begins after the position, then the one before it. */
	while (!result && run.arrival > position && run.previous) {
		int64_t next = run.jump > position ? run.jump : run.previous;
		result = read_run(of, next, &run, error);
	}
	if (result)
		return result;
	/* `run` begins at or before the position, or is the first. */
	int64_t key = run.key;
	if (run.arrival <= position)
		key += position - run.arrival < run.count ? position - run.arrival + 1 : run.count;
	*ret_sequence = key & EVENT_SEQUENCE_MAX;
	return OK;
}
