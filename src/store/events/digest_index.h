/* The index of digests: which events of a chain have a given digest.
 *
 * A job builds it from events, after their registration, so registration does not wait for it. A
 * lookup reads the index and scans the events that are not in it yet, in one view of the store. So
 * it finds every event that was committed before it began. When more events would have to be
 * scanned than the limit, it returns ERR_UNAVAILABLE, never an incomplete result.
 *
 * The index consists of series. A series has events in the order of their positions:
 *   embedded engine  one series for all events in insertion order (append_run.h), by arrival; and
 *                    one for each chain of events created by 0.1.0, by sequence
 *   server           one series for each chain, by sequence
 * A series is divided into runs (digest_runs.h), each of which has the entries of a range of
 * positions. Events never change, so entries are never removed. */
#ifndef STORE_DIGEST_INDEX_H
#define STORE_DIGEST_INDEX_H

#include <stdatomic.h>

#include "store/store.h"

/* One step of the job: adds events to the index and merges runs. */
struct digest_progress {
	bool worked;    /* there may be more to do */
	int64_t lag;    /* events that are not in the index: of the embedded engine; on a server, of the
	                   chain with most of them */
	bool lag_known; /* the step determined the lag */
	bool was_damaged; /* a part of the index was damaged and is built again from the events */
	char damage[ERROR_CAUSE_MAX];
};
/* Does one step. One thread at a time in a process; a second process does no harm. */
int store_index_digests(struct store *store, struct digest_progress *ret, struct error *error)
	MUST_CHECK;

struct digest_lookup {
	int64_t account, chain;
	const uint8_t *digest;
	size_t digest_size;  /* of its algorithm (hash_algorithm_size) */
	int64_t first, last; /* range of sequences */
	enum list_order order;
	size_t max; /* number of results */
};
/* Finds the sequences of events with the digest, in the order, at most `max`. With fewer there are
 * no more. ERR_UNAVAILABLE: too many events are not in the index yet, or a part of it is damaged;
 * the job repairs it. */
int store_find_digest(struct store *store, const struct digest_lookup *lookup,
                      int64_t *ret_sequences, size_t *ret_count, struct error *error) MUST_CHECK;

#endif
