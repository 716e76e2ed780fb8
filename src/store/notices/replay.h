/* Replay: repeated delivery of notices on request. A replayed notice keeps its identifier, starts a
 * new schedule and alternates with new notices of the endpoint (deliveries.h). Thread safe. */
#ifndef STORE_REPLAY_H
#define STORE_REPLAY_H

#include "store/store.h"

/* Queues a notice of the endpoint's account for immediate delivery, whether or not the endpoint
 * receives its type. Returns ERR_NOT_FOUND with the unknown identifier, and ERR_REFUSED while the
 * endpoint is disabled. */
int store_replay_notice(struct store *store, struct slice notice_id, struct slice endpoint_id,
                        int64_t now_us, struct error *error) MUST_CHECK;

enum replay_what {
	REPLAY_FAILED, /* deliveries that failed in all attempts of their schedule */
	REPLAY_MISSED, /* these, and notices that the endpoint receives but that were never queued for
	                  it */
};
struct replay_range {
	enum replay_what what;
	int64_t since_us; /* creation of the notice, inclusive */
	int64_t until_us; /* exclusive */
};
struct replay_place {
	int64_t behind; /* number of the last notice done; 0 at the start */
	int64_t due_us; /* when the last queued delivery is due */
	int64_t queued; /* so far */
	bool more;
};
/* Replays a batch: examines the next 500 notices of the account and queues those in the range, in
 * order, in one short transaction; advances *place. Call it with the same range until !place->more.
 * Deliveries that already wait are not changed, so that an interrupted replay can be requested
 * again. Errors as above. */
int store_replay_batch(struct store *store, struct slice endpoint_id,
                       const struct replay_range *range, int64_t now_us, struct replay_place *place,
                       struct error *error) MUST_CHECK;

#endif
