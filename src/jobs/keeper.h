/* Keeps leases (store/nodes/leases.h) while their jobs run: renews each every few seconds, so that
 * leases can be short and the job of a node that died is soon taken over. */
#ifndef JOBS_KEEPER_H
#define JOBS_KEEPER_H

#include <stdatomic.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/nodes/leases.h"

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
int keeper_hold(struct keeper *keeper, keeper_renew_function *renew, void *context) MUST_CHECK;
void keeper_release(struct keeper *keeper, int holding);

/* A lease that is renewed from when it was taken until it rests. Of its holder's thread, but for
 * `lost`. */
struct kept_lease {
	struct store *store;
	struct keeper *keeper;
	enum lease_name name;
	const char *holder; /* borrowed */
	atomic_bool lost;   /* it went to another */
	int holding;
};
/* For KEPT_LEASE_US, and from then on kept, if *ret_taken: else it is another's. */
int kept_lease_take(struct kept_lease *kept, bool *ret_taken, struct error *error) MUST_CHECK;
/* No longer renewed: it can be taken again, ended, or left to run out. */
void kept_lease_rest(struct kept_lease *kept);
int kept_lease_end(struct kept_lease *kept, struct error *error) MUST_CHECK;

#endif
