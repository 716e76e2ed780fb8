/* Reads events as what the index of client_refs (client_refs.h) is made of: all of the embedded
 * store, a part at a time. Events are only ever added, so parts may be read in views of their own.
 */
#ifndef STORE_CLIENT_REF_EVENTS_H
#define STORE_CLIENT_REF_EVENTS_H

#include "db/db.h"

/* The last ones that were read: by their number of those laid out by it, by their place of those in
 * order of arrival. Zeros: none. */
struct ref_events_position {
	int64_t before, arrived;
};
struct ref_event {
	int64_t account, event;
	struct slice client_ref; /* until the function returns */
};
/* Called for each; not OK ends the reading, whose result it is. */
typedef int ref_event_function(void *context, const struct ref_event *event, struct error *error);

/* At most `max` after the position, which advances; *ret_ended: these were the last. */
int ref_events_read(struct db_connection *connection, struct ref_events_position *position,
                    int64_t max, ref_event_function *function, void *context, bool *ret_ended,
                    struct error *error) MUST_CHECK;

#endif
