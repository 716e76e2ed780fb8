/* Read-only copies of a store (store/nodes/read_only_copy.h, service.quiet).
 *
 * Reading, reports and verification work. Nothing is sent or charged. No background work runs that
 * would send, seal, sign, charge or delete. Nothing is acknowledged, because a copy that accepted
 * events would create a second history of its chains under the same keys. */
#ifndef SERVICE_READ_ONLY_H
#define SERVICE_READ_ONLY_H

#include "service/service.h"

#define READ_ONLY_POLL_US US_PER_SECOND /* interval between checks by a job */

/* Reads the mode from the store. Logs each change, and once a minute while the store is a read-only
 * copy. To be called at the start, before anything is sent, and every two seconds. ERR_* of the
 * store: the known mode is kept. */
int read_only_refresh(struct service *service, struct error *error) MUST_CHECK;
bool read_only_is_active(const struct service *service);
/* Returns ERR_UNAVAILABLE with a message while the store is a read-only copy. */
int read_only_refuse(const struct service *service, struct error *error) MUST_CHECK;
/* Returns the start of a waiting time that began at `since_us`. In a resumed copy this is not
 * before the resumption. By the store's clock. */
int64_t read_only_waiting_since(const struct service *service, int64_t since_us);
/* Writes the reason for /readyz. */
#define READ_ONLY_TEXT_SIZE 400
void read_only_describe(const struct service *service, char text[READ_ONLY_TEXT_SIZE]);

#endif
