/* Lease renewer. Renews the leases of running jobs (store/nodes/leases.h) every few seconds, so
 * that leases can be short and another node soon takes over the job of a crashed node. */
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

/* Renews a lease. ERR_REFUSED: it is lost and will not be renewed again. */
typedef int keeper_renew_function(void *context);

int keeper_start(struct keeper **ret_keeper, struct error *error) MUST_CHECK;
/* Stops the renewer. No lease may be registered. NULL-safe. */
void keeper_end(struct keeper *keeper);
/* Registers a lease that was just taken and returns its number. After keeper_release, `renew` is
 * not running and is not called again. */
int keeper_hold(struct keeper *keeper, keeper_renew_function *renew, void *context) MUST_CHECK;
void keeper_release(struct keeper *keeper, int holding);

/* A lease that is renewed from kept_lease_take to kept_lease_rest. Used by the holder's thread
 * only, except `lost`. */
struct kept_lease {
	struct store *store;
	struct keeper *keeper;
	enum lease_name name;
	const char *holder; /* borrowed */
	atomic_bool lost;   /* another node holds the lease */
	int holding;
};
/* Takes the lease for KEPT_LEASE_US and renews it from then on. *ret_taken false: another node
 * holds it. */
int kept_lease_take(struct kept_lease *kept, bool *ret_taken, struct error *error) MUST_CHECK;
/* Stops renewing the lease: it can be taken again, ended, or left to expire. */
void kept_lease_rest(struct kept_lease *kept);
int kept_lease_end(struct kept_lease *kept, struct error *error) MUST_CHECK;

#endif
