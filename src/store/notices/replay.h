/* Notices delivered again because somebody asked for it. Each keeps its identifier, begins a fresh
 * schedule and takes turns with what is new for the endpoint (deliveries.h). Thread safe. */
#ifndef STORE_REPLAY_H
#define STORE_REPLAY_H

#include "store/store.h"

/* Has a notice of the endpoint's account delivered (again), now, whether or not the endpoint wants
 * its type. ERR_NOT_FOUND names what does not exist, ERR_REFUSED while the endpoint is disabled. */
int store_replay_notice(struct store *store, struct slice notice_id, struct slice endpoint_id,
                        int64_t now_us, struct error *error) MUST_CHECK;

enum replay_what {
	REPLAY_FAILED, /* what used up its schedule */
	REPLAY_MISSED, /* that, and what the endpoint wants and never was queued for it */
};
struct replay_range {
	enum replay_what what;
	int64_t since_us; /* of the notices' creation, inclusive */
	int64_t until_us; /* exclusive */
};
struct replay_place {
	int64_t behind; /* number of a notice: those up to it are done; 0 at the start */
	int64_t due_us; /* when the last one queued is due */
	int64_t queued; /* so far */
	bool more;
};
/* Looks at the next 500 notices of the account and queues those of the range, in their order, in
 * one short transaction, and moves *place on; to be called with the same range until !place->more.
 * What waits already is left as it is, so that a replay that was cut short is simply asked for
 * again. Errors as above. */
int store_replay_piece(struct store *store, struct slice endpoint_id,
                       const struct replay_range *range, int64_t now_us, struct replay_place *place,
                       struct error *error) MUST_CHECK;

#endif
