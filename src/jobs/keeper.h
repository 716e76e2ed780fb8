/* Keeps leases while their jobs run: renews each every few seconds, so that leases can be short and
 * the job of a node that died is soon taken over. */
#ifndef JOBS_KEEPER_H
#define JOBS_KEEPER_H

#include "base/clock.h"
#include "base/error.h"

#define KEPT_LEASE_US (12 * US_PER_SECOND)
#define KEEPER_INTERVAL_US (3 * US_PER_SECOND)
#define KEEPER_HOLDINGS_MAX 8

struct keeper;

/* Renews a lease; ERR_REFUSED: it is lost, and will not be asked for again. */
typedef int keeper_renew_function(void *context);

int keeper_start(struct keeper **ret_keeper, struct error *error) MUST_CHECK;
/* Nothing may be held any more. NULL-safe. */
void keeper_end(struct keeper *keeper);
/* From a lease just taken to its end; afterwards `renew` is not called, nor still running. The
 * number of the holding. */
int keeper_hold(struct keeper *keeper, keeper_renew_function *renew, void *context);
void keeper_release(struct keeper *keeper, int holding);

#endif
