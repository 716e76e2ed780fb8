/* The clock as registrations see it. Inside src/service only; thread safe. */
#ifndef SERVICE_CLOCK_H
#define SERVICE_CLOCK_H

#include "service/service.h"

/* By how much this clock is at least ahead of the one that it is compared with: the store's where
 * other nodes share it, else the last timestamps' (authorities_latest_now_us). */
int64_t service_clock_ahead_us(const struct service *service);
/* The clock as registrations see it now. */
struct ledger_clock service_clock(struct service *service);
/* Whether the clock is synchronized where seal.strict_clock asks for that: ERR_CLOCK. Known without
 * the store. Tells the log once. */
int service_clock_synchronized(struct service *service, struct error *error) MUST_CHECK;
/* Tells the log, but not each time, that a registration was refused. True: because of its chain,
 * which is ahead; the clock itself is well. */
bool service_tell_clock_refusal(struct service *service, const struct registration *refused);

#endif
