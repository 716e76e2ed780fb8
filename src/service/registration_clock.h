/* The clock of registrations. Internal to src/service; thread safe. */
#ifndef SERVICE_REGISTRATION_CLOCK_H
#define SERVICE_REGISTRATION_CLOCK_H

#include "service/service.h"

/* Returns the minimum lead of this clock over its reference clock: the store's if other nodes share
 * the store, otherwise the time of the last timestamps (authorities_latest_time_us). */
int64_t service_clock_ahead_us(const struct service *service);
/* Returns the clock that the ledger uses for registrations. */
struct ledger_clock service_clock(struct service *service);
/* Returns ERR_CLOCK if seal.strict_clock is set and the clock is not synchronized. Does not access
 * the store. Logs each change once. */
int service_clock_synchronized(struct service *service, struct error *error) MUST_CHECK;
/* Logs a registration that was refused with ERR_CLOCK, at a limited rate. Returns true if the cause
 * is its chain, which was ahead of an accepted clock when the batch was decided. */
bool service_log_clock_refusal(struct service *service, const struct registration *refused);

#endif
