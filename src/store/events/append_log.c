#include "store/events/append_log.h"

#include <assert.h>

#include "store/events/event_row.h"
#include "store/schema/store_schemas.h"

const struct schema_append_log event_arrivals = {
	.name = "events",
	.columns = "event, account, key, content" EVENT_COLUMN_NAMES,
	.types = "event INTEGER, account INTEGER, key INTEGER, content BLOB" EVENT_COLUMN_TYPES,
	.large = "content",
	.named = "content_object",
	.key = "event",
	.place_bits = EVENT_SEQUENCE_BITS,
	.last_run = "SELECT last_run FROM main.chains WHERE account = ?1 AND chain = ?2",
};

int append_log_last(struct db_connection *connection, int64_t *ret, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT COALESCE(max(arrival), 0) FROM events_arrived");
	*ret = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

int append_log_read_run(struct db_connection *connection, int64_t arrival, struct append_run *ret,
                        struct error *error)
{
	*ret = (struct append_run){0};
	if (arrival == 0)
		return OK;
	struct db_query *query =
		db_query(connection, "SELECT event, count, place, previous, jump, jump_key, jump_place "
	                         "FROM events_runs WHERE arrival = $1");
	db_bind_integer(query, arrival);
	bool found = db_step(query);
	if (found)
		*ret = (struct append_run){.arrival = arrival,
		                           .key = db_integer(query, 0),
		                           .count = db_integer(query, 1),
		                           .place = db_integer(query, 2),
		                           .previous = db_integer(query, 3),
		                           .jump = db_integer(query, 4),
		                           .jump_key = db_integer(query, 5),
		                           .jump_place = db_integer(query, 6)};
	int result = db_end(query, error);
	return result || found ? result
	                       : error_cause(error, ERR_CORRUPT, "event run %lld does not exist",
	                                     (long long)arrival);
}

/* Completes a run of which only the number is known. */
static int complete_run(struct db_connection *connection, int64_t arrival, struct append_run *run,
                        struct error *error)
{
	return run->count && run->arrival == arrival
	           ? OK
	           : append_log_read_run(connection, arrival, run, error);
}

int append_log_add_run(struct db_connection *connection, int64_t arrival, int64_t event,
                       int64_t count, struct arrival_runs_end *end, struct error *error)
{
	assert(arrival >= 1 && event >= 1 && count >= 1);
	/* A run stays within its chain. */
	assert(count - 1 <= EVENT_SEQUENCE_MAX - (event & EVENT_SEQUENCE_MAX));
	struct append_run run = {.arrival = arrival, .key = event, .count = count};
	struct append_run *previous = &end->last;
	int result = complete_run(connection, previous->arrival, previous, error);
	if (!result)
		result = complete_run(connection, previous->jump, &end->beyond, error);
	if (result)
		return result;
	if (previous->arrival && append_run_last_key(previous) != event - 1)
		return error_cause(error, ERR_CORRUPT, "event run %lld is not the last run of its chain",
		                   (long long)previous->arrival);
	append_run_link(&run, previous, &end->beyond);
	struct db_query *query =
		db_query(connection, "INSERT INTO events_runs(arrival, event, count, place, previous, "
	                         "jump, jump_key, jump_place) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
	db_bind(query, run.arrival, run.key, run.count, run.place, run.previous, run.jump, run.jump_key,
	        run.jump_place);
	if (run.jump == previous->arrival)
		end->beyond = *previous;
	end->last = run;
	return db_execute(query, NULL, error);
}
