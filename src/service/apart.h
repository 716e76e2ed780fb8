/* Quarantine of failing chains, so that the work on other chains neither waits for them nor fails
 * with them. The owner of a quarantine retries each chain after a back-off that grows with the
 * consecutive failures. It removes the chain after a success. Kept in memory only. Not thread
 * safe. */
#ifndef SERVICE_APART_H
#define SERVICE_APART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define APART_MAX 256 /* beyond it, the chain with the oldest failure is replaced */

struct apart {
	struct apart_chain {
		int64_t account;
		int64_t chain;
		unsigned failures;    /* consecutive */
		int64_t failed_at_us; /* last failure, monotonic */
	} chains[APART_MAX];
	size_t count;
};

/* Returns whether the chain is in quarantine. */
bool apart_has(const struct apart *apart, int64_t account, int64_t chain);
/* Returns whether the chain is in quarantine and its back-off has not elapsed. */
bool apart_waits(const struct apart *apart, int64_t account, int64_t chain, int64_t monotonic_us);
/* Records a failure. Returns the number of consecutive failures. */
unsigned apart_add(struct apart *apart, int64_t account, int64_t chain, int64_t monotonic_us);
/* Removes the chain after a success. Returns whether it was in quarantine. */
bool apart_remove(struct apart *apart, int64_t account, int64_t chain);
/* Returns the number of chains that failed within the last hour. */
size_t apart_count(const struct apart *apart, int64_t monotonic_us);
/* Returns whether the n-th consecutive failure is to be logged: only powers of two are. */
static inline bool apart_tells(unsigned failures)
{
	return (failures & (failures - 1)) == 0;
}

#endif
