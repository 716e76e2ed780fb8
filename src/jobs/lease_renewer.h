/* Lease renewer. Renews the leases of running jobs (store/nodes/leases.h) every few seconds, so
 * that leases can be short and another node soon takes over the job of a crashed node. */
#ifndef JOBS_LEASE_RENEWER_H
#define JOBS_LEASE_RENEWER_H

#include <stdatomic.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/nodes/leases.h"

#define RENEWED_LEASE_US (12 * US_PER_SECOND)
#define LEASE_RENEWER_INTERVAL_US (3 * US_PER_SECOND)
#define LEASE_RENEWER_LEASES_MAX 8

/* Returns RENEWED_LEASE_US, or less in tests. */
int64_t renewed_lease_us(void);

struct lease_renewer;

/* Renews a lease. ERR_REFUSED: it is lost and will not be renewed again. */
typedef int lease_renew_function(void *context);

int lease_renewer_start(struct lease_renewer **ret_renewer, struct error *error) MUST_CHECK;
/* Stops the renewer. No lease may be registered. NULL-safe. */
void lease_renewer_stop(struct lease_renewer *lease_renewer);
/* Registers a lease that was just taken and returns its number. After lease_renewer_remove, `renew`
 * is not running and is not called again. */
int lease_renewer_add(struct lease_renewer *lease_renewer, lease_renew_function *renew,
                      void *context) MUST_CHECK;
void lease_renewer_remove(struct lease_renewer *lease_renewer, int holding);

/* A lease that is renewed from renewed_lease_take to renewed_lease_pause. Used by the holder's
 * thread only, except `lost`. */
struct renewed_lease {
	struct store *store;
	struct lease_renewer *lease_renewer;
	enum lease_name name;
	const char *holder; /* borrowed */
	atomic_bool lost;   /* another node holds the lease */
	int holding;
};
/* Takes the lease for RENEWED_LEASE_US and renews it from then on. *ret_taken false: another node
 * holds it. */
int renewed_lease_take(struct renewed_lease *kept, bool *ret_taken, struct error *error) MUST_CHECK;
/* Stops renewing the lease: it can be taken again, ended, or left to expire. */
void renewed_lease_pause(struct renewed_lease *kept);
int renewed_lease_end(struct renewed_lease *kept, struct error *error) MUST_CHECK;

#endif
