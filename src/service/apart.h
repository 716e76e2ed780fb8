/* Chains that are set apart because work on them fails: nobody else's work may wait for them or
 * fail with them. Who keeps a list tries each of its chains again after a pause that grows with
 * every failure in a row, and forgets it once that went well. In memory only, for one thread at a
 * time. */
#ifndef SERVICE_APART_H
#define SERVICE_APART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define APART_MAX 256 /* beyond that the one that failed longest ago makes room */

struct apart {
	struct apart_chain {
		int64_t account;
		int64_t chain;
		unsigned failures;    /* in a row */
		int64_t failed_at_us; /* monotonic, the last */
	} chains[APART_MAX];
	size_t count;
};

/* Whether it is listed. */
bool apart_has(const struct apart *apart, int64_t account, int64_t chain);
/* Whether it is listed and its pause is not over. */
bool apart_waits(const struct apart *apart, int64_t account, int64_t chain, int64_t monotonic_us);
/* It failed: how often in a row by now. */
unsigned apart_add(struct apart *apart, int64_t account, int64_t chain, int64_t monotonic_us);
/* It went well. True when it was listed. */
bool apart_remove(struct apart *apart, int64_t account, int64_t chain);
/* How many failed within the last hour. */
size_t apart_count(const struct apart *apart, int64_t monotonic_us);
/* Whether a failure, the so manyth in a row, is worth a line in the log: fewer and fewer are. */
static inline bool apart_tells(unsigned failures)
{
	return (failures & (failures - 1)) == 0;
}

#endif
