/* Checks the client_ref index (events/client_refs.h): its blocks, and that every event is found. */
#include "base/tuned.h"
#include "store/check/checking.h"
#include "store/events/client_ref_events.h"

/* Events per read transaction, so that the WAL can be reset between two. */
#define CHECKED_AT_ONCE 1000000
#define REPORTED_MAX 20
#define FOUND_MAX 64

struct ref_check {
	struct check *check;
	struct client_refs *refs;
	int64_t problems;
};

/* Returns whether to report the problem. Only the first ones are reported, the others are
 * counted. */
static bool is_reported(struct ref_check *refs)
{
	return ++refs->problems <= REPORTED_MAX;
}

static void check_other(struct ref_check *refs, const struct ref_event *event, int64_t sequence)
{
	const int64_t chain = event->event >> EVENT_SEQUENCE_BITS;
	struct db_query *query = db_query(refs->check->reader, "SELECT client_ref FROM events "
	                                                       "WHERE account = $1 AND event = $2");
	db_bind(query, event->account, event_number(chain, sequence));
	const bool same = db_step(query) && slice_equal(db_text(query, 0), event->client_ref);
	db_release(query);
	if (same && is_reported(refs))
		check_problem(refs->check, "chain %lld: events %lld and %lld have the same client_ref",
		              (long long)chain, (long long)sequence,
		              (long long)(event->event & EVENT_SEQUENCE_MAX));
}

static int look_up_event(void *context, const struct ref_event *event, struct error *error)
{
	struct ref_check *refs = context;
	struct db_connection *reader = refs->check->reader;
	const int64_t chain = event->event >> EVENT_SEQUENCE_BITS;
	const int64_t sequence = event->event & EVENT_SEQUENCE_MAX;
	int64_t found[FOUND_MAX];
	size_t count = 0;
	bool known = false;
	int result =
		client_refs_find(refs->refs, reader, event->account, chain,
	                     client_ref_hash(event->client_ref), found, FOUND_MAX, &count, error);
	if (result && (result != ERR_UNAVAILABLE || db_failure(reader)))
		return result;
	for (size_t i = 0; i < count && !result; i++) {
		known = known || found[i] == sequence;
		if (found[i] < sequence)
			check_other(refs, event, found[i]);
	}
	if (!known && is_reported(refs))
		check_problem(refs->check, "chain %lld: the client_ref index does not find event %lld",
		              (long long)chain, (long long)sequence);
	return db_failure(reader);
}

static int64_t count_events(struct db_connection *reader)
{
	struct db_query *query = db_query(reader, "SELECT COALESCE(sum(last_sequence), 0) FROM chains");
	int64_t count = db_step(query) ? db_integer(query, 0) : 0;
	db_release(query);
	return count;
}

/* Checks every block of the index and its number of entries. */
static int check_blocks(struct ref_check *refs, struct error *error)
{
	struct db_connection *reader = refs->check->reader;
	struct error cause = {0};
	int64_t entries = 0;
	int result = client_refs_count(refs->refs, reader, &entries, &cause);
	if (result == ERR_CORRUPT && !db_failure(reader)) {
		check_problem(refs->check, "client_ref index: %s", cause.cause);
		return OK;
	}
	if (result) {
		if (error)
			*error = cause;
		return result;
	}
	const int64_t events = count_events(reader);
	if (entries != events)
		check_problem(refs->check, "the client_ref index has %lld entries for %lld events",
		              (long long)entries, (long long)events);
	return db_failure(reader);
}

static int check_some(struct check *check, struct ref_events_position *position, int64_t *problems,
                      bool first, bool *ret_ended, struct error *error)
{
	const struct client_refs_shape shape = client_refs_usual_shape();
	struct ref_check refs = {.check = check, .problems = *problems};
	struct db_connection *reader = check_take_reader(check);
	int result = db_begin(reader, error) ?: client_refs_open(reader, &shape, &refs.refs, error);
	if (!result && client_refs_is_lost(refs.refs))
		result = db_failure(reader);
	if (!result && first)
		result = check_blocks(&refs, error);
	if (!result && client_refs_is_lost(refs.refs))
		*ret_ended = true;
	else if (!result)
		result = ref_events_read(reader, position, tuned("refs_checked", CHECKED_AT_ONCE),
		                         look_up_event, &refs, ret_ended, error);
	struct error cause = {0};
	const bool page_corrupt =
		result && refs.refs && client_refs_is_lost(refs.refs) && db_failure(reader) == ERR_CORRUPT;
	if (page_corrupt)
		(void)client_refs_damaged(refs.refs, &cause);
	client_refs_close(refs.refs);
	check_give_reader(check);
	if (page_corrupt) {
		check_problem(check, "client_ref index: %s", cause.cause);
		*ret_ended = true;
		result = OK;
	}
	*problems = refs.problems;
	return result;
}

int check_client_refs(struct check *check, struct error *error)
{
	struct ref_events_position position = {0};
	int64_t problems = 0;
	bool ended = false;
	int result = OK;
	for (bool first = true; !result && !ended; first = false)
		result = check_some(check, &position, &problems, first, &ended, error);
	if (!result && problems > REPORTED_MAX)
		check_problem(check, "client_ref index: %lld more problems",
		              (long long)(problems - REPORTED_MAX));
	return result;
}
