/* Reads the events of the embedded store, in batches, to build the client_ref index
 * (client_refs.h). Events are never changed or removed, so each batch may be read in a view of its
 * own. */
#ifndef STORE_CLIENT_REF_EVENTS_H
#define STORE_CLIENT_REF_EVENTS_H

#include "db/db.h"

/* The last events that were read: by event number in the older table, by position in the append
 * log. Zeros: none. */
struct ref_events_position {
	int64_t before, arrived;
};
struct ref_event {
	int64_t account, event;
	struct slice client_ref; /* valid until the function returns */
};
/* Called for each event; a result other than OK ends the read and is returned. */
typedef int ref_event_function(void *context, const struct ref_event *event, struct error *error);

/* Reads at most `max` events after the position, which advances. *ret_ended is true when the end is
 * reached. */
int ref_events_read(struct db_connection *connection, struct ref_events_position *position,
                    int64_t max, ref_event_function *function, void *context, bool *ret_ended,
                    struct error *error) MUST_CHECK;

#endif
