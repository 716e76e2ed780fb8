/* Read-only copies of a store (store/nodes/quiet.h, service.quiet).
 *
 * Reading, reports and verification work. Nothing is sent or charged. No background work runs that
 * would send, seal, sign, charge or delete. Nothing is acknowledged, because a copy that accepted
 * events would create a second history of its chains under the same keys. */
#ifndef SERVICE_QUIET_H
#define SERVICE_QUIET_H

#include "service/service.h"

#define QUIET_REST_US US_PER_SECOND /* interval between checks by a job */

/* Reads the mode from the store. Logs each change, and once a minute while the store is a read-only
 * copy. To be called at the start, before anything is sent, and every two seconds. ERR_* of the
 * store: the known mode is kept. */
int quiet_look(struct service *service, struct error *error) MUST_CHECK;
bool quiet_is(const struct service *service);
/* Returns ERR_UNAVAILABLE with a message while the store is a read-only copy. */
int quiet_refuse(const struct service *service, struct error *error) MUST_CHECK;
/* Returns the start of a waiting time that began at `since_us`. In a resumed copy this is not
 * before the resumption. By the store's clock. */
int64_t quiet_counted_from(const struct service *service, int64_t since_us);
/* Writes the reason for /readyz. */
#define QUIET_TEXT_SIZE 400
void quiet_tell(const struct service *service, char text[QUIET_TEXT_SIZE]);

#endif
