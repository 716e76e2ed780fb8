#include "store/events/client_ref_events.h"

static int read_some(struct db_query *query, int64_t *position, int64_t *left,
                     ref_event_function *function, void *context, struct error *error)
{
	int result = OK;
	for (; !result && db_step(query); --*left) {
		const struct ref_event event = {.account = db_integer(query, 1),
		                                .event = db_integer(query, 2),
		                                .client_ref = db_text(query, 3)};
		*position = db_integer(query, 0);
		result = function(context, &event, error);
	}
	int ended = db_end(query, error);
	return ended ? ended : result;
}

int ref_events_read(struct db_connection *connection, struct ref_events_position *position,
                    int64_t max, ref_event_function *function, void *context, bool *ret_ended,
                    struct error *error)
{
	int64_t left = max;
	struct db_query *query =
		db_query(connection, "SELECT event, account, event, client_ref FROM events_before"
	                         " WHERE event > $1 ORDER BY event LIMIT $2");
	db_bind(query, position->before, left);
	int result = read_some(query, &position->before, &left, function, context, error);
	if (result || left == 0) {
		*ret_ended = false;
		return result;
	}
	query = db_query(connection, "SELECT arrival, account, event, client_ref FROM events_arrived"
	                             " WHERE arrival > $1 ORDER BY arrival LIMIT $2");
	db_bind(query, position->arrived, left);
	result = read_some(query, &position->arrived, &left, function, context, error);
	*ret_ended = left > 0;
	return result;
}
