/* Quiet mode: a copy of a store that is served to be looked at (store/nodes/quiet.h,
 * service.quiet).
 *
 * Reading, reports and verification go on. Nothing is sent or charged, no background work runs that
 * would send, seal, sign, charge or delete, and nothing is acknowledged: a copy that took events
 * would make a second history of its chains under the same keys. */
#ifndef SERVICE_QUIET_H
#define SERVICE_QUIET_H

#include "service/service.h"

#define QUIET_REST_US US_PER_SECOND /* until a job looks again */

/* Looks in the store whether it is quiet, tells the log when that changes, and again each minute
 * while it is; to be called at the start, before anything is sent, and every two seconds. ERR_*
 * of the store: what was known stays. */
int quiet_look(struct service *service, struct error *error) MUST_CHECK;
bool quiet_is(const struct service *service);
/* ERR_UNAVAILABLE, with a sentence that says so, while it is quiet. */
int quiet_refuse(const struct service *service, struct error *error) MUST_CHECK;
/* From when it counts how long something has waited that waits since `since_us`: in a copy that was
 * woken, not before that. By the store's clock. */
int64_t quiet_counted_from(const struct service *service, int64_t since_us);
/* Why, for /readyz. */
#define QUIET_TEXT_SIZE 400
void quiet_tell(const struct service *service, char text[QUIET_TEXT_SIZE]);

#endif
