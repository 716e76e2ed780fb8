/* Quarantine of failing chains, so that the work on other chains neither waits for them nor fails
 * with them. The owner of a quarantine retries each chain after a back-off that grows with the
 * consecutive failures. It removes the chain after a success. Kept in memory only. Not thread
 * safe. */
#ifndef SERVICE_QUARANTINE_H
#define SERVICE_QUARANTINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUARANTINE_MAX 256 /* beyond it, the chain with the oldest failure is replaced */

struct quarantine {
	struct quarantined_chain {
		int64_t account;
		int64_t chain;
		unsigned failures;    /* consecutive */
		int64_t failed_at_us; /* last failure, monotonic */
	} chains[QUARANTINE_MAX];
	size_t count;
};

/* Returns whether the chain is in quarantine. */
bool quarantine_has(const struct quarantine *quarantine, int64_t account, int64_t chain);
/* Returns whether the chain is in quarantine and its back-off has not elapsed. */
bool quarantine_is_waiting(const struct quarantine *quarantine, int64_t account, int64_t chain,
                           int64_t monotonic_us);
/* Records a failure. Returns the number of consecutive failures. */
unsigned quarantine_add(struct quarantine *quarantine, int64_t account, int64_t chain,
                        int64_t monotonic_us);
/* Removes the chain after a success. Returns whether it was in quarantine. */
bool quarantine_remove(struct quarantine *quarantine, int64_t account, int64_t chain);
/* Returns the number of chains that failed within the last hour. */
size_t quarantine_count_recent(const struct quarantine *quarantine, int64_t monotonic_us);
/* Returns whether the n-th consecutive failure is to be logged: only powers of two are. */
static inline bool quarantine_is_logged(unsigned failures)
{
	return (failures & (failures - 1)) == 0;
}

#endif
