/* Compares the event runs of the embedded store (events/append_log.h) with the rows of events. */
#include "store/check/checking.h"
#include "store/events/append_log.h"

/* Checks that the rows of the run are exactly its events. */
static void check_rows(struct check *check, const struct append_run *run)
{
	struct db_query *query = db_query(
		check->reader, "SELECT count(*), COALESCE(min(event), 0), COALESCE(max(event), 0)"
					   " FROM events_arrived WHERE arrival BETWEEN $1 AND $2 AND account = $3");
	db_bind(query, run->arrival, run->arrival + run->count - 1, check->account);
	if (db_step(query) && (db_integer(query, 0) != run->count || db_integer(query, 1) != run->key ||
	                       db_integer(query, 2) != append_run_last_key(run)))
		check_problem(check, "chain %lld: the rows of event run %lld do not match its range",
		              (long long)check->chain, (long long)run->arrival);
	db_release(query);
}

/* Checks the links of the run. *ret_previous is the previous run. */
static int check_links(struct check *check, const struct append_run *run,
                       struct append_run *ret_previous, struct error *error)
{
	struct append_run beyond, expected = *run;
	int result = append_log_read_run(check->reader, run->previous, ret_previous, error);
	if (!result)
		result = append_log_read_run(check->reader, ret_previous->jump, &beyond, error);
	if (result)
		return result;
	append_run_link(&expected, ret_previous, &beyond);
	if (run->place != expected.place || run->jump != expected.jump ||
	    run->jump_key != expected.jump_key || run->jump_place != expected.jump_place)
		check_problem(check, "chain %lld: event run %lld has wrong links", (long long)check->chain,
		              (long long)run->arrival);
	return OK;
}

/* Checks that the chain's events in the older table end where its runs begin. */
static void check_before(struct check *check, int64_t last)
{
	struct db_query *query =
		db_query(check->reader, "SELECT COALESCE(max(event), $1) FROM events_before"
	                            " WHERE event BETWEEN $1 AND $2");
	db_bind(query, event_number(check->chain, 0), event_number(check->chain, EVENT_SEQUENCE_MAX));
	if (db_step(query) && db_integer(query, 0) != last)
		check_problem(check,
		              "chain %lld: its event runs begin after event %lld, but the earlier"
		              " events end at %lld",
		              (long long)check->chain, (long long)(last & EVENT_SEQUENCE_MAX),
		              (long long)(db_integer(query, 0) & EVENT_SEQUENCE_MAX));
	db_release(query);
}

static int check_runs(struct check *check, int64_t last_run, int64_t last, struct error *error)
{
	struct append_run run, previous;
	int result = append_log_read_run(check->reader, last_run, &run, error);
	for (; !result && run.arrival; run = previous) {
		if (append_run_last_key(&run) != last || run.count < 1 || run.previous >= run.arrival) {
			check_problem(check, "chain %lld: event run %lld is out of order",
			              (long long)check->chain, (long long)run.arrival);
			return OK;
		}
		last = run.key - 1;
		check_rows(check, &run);
		result = check_links(check, &run, &previous, error);
	}
	if (!result)
		check_before(check, last);
	return result;
}

static int check_chain(struct check *check, struct error *error)
{
	struct db_query *query =
		db_query(check->reader,
	             "SELECT last_run, last_sequence FROM chains WHERE account = $1 AND chain = $2");
	db_bind(query, check->account, check->chain);
	bool found = db_step(query);
	int64_t last_run = found ? db_integer(query, 0) : 0;
	int64_t last = event_number(check->chain, found ? db_integer(query, 1) : 0);
	int result = db_end(query, error);
	struct error cause;
	error_clear(&cause);
	if (!result)
		result = check_runs(check, last_run, last, &cause);
	if (result != ERR_CORRUPT || db_failure(check->reader)) {
		if (result && error)
			*error = cause;
		return result;
	}
	check_problem(check, "chain %lld: %s", (long long)check->chain, cause.cause);
	return OK;
}

int check_chain_runs(struct check *check, struct error *error)
{
	struct db_connection *reader = check_take_reader(check);
	int result = db_begin(reader, error) ?: check_chain(check, error) ?: db_failure(reader);
	check_give_reader(check);
	return result;
}

void check_run_total(struct check *check)
{
	struct db_query *query = db_query_long(
		check->reader, "SELECT (SELECT COALESCE(max(arrival), 0) FROM events_arrived),"
					   " (SELECT COALESCE(sum(count), 0) FROM events_runs)");
	if (db_step(query) && db_integer(query, 0) != db_integer(query, 1))
		check_problem(check, "the append log has %lld events, but the event runs cover %lld",
		              (long long)db_integer(query, 0), (long long)db_integer(query, 1));
	db_release(query);
}
