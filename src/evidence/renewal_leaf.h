/* Shared by the files that implement renewals. */
#ifndef EVIDENCE_RENEWAL_LEAF_H
#define EVIDENCE_RENEWAL_LEAF_H

#include <inttypes.h>
#include <stdio.h>

#include "evidence/renewal.h"
#include "store/evidence/evidence.h"

#define RENEWAL_LEAVES_MEMORY_MAX ((size_t)64 << 20)
#define RENEWAL_BLOCKS_MAX 1024 /* maximum blocks of one archive timestamp */

static inline bool renewal_stops(const struct renewal *renewal)
{
	return atomic_load(renewal->stopping) || atomic_load(renewal->lost);
}

static inline void renewal_text(int64_t value, char text[24])
{
	snprintf(text, 24, "%" PRId64, value);
}

/* Records the tokens of new rounds for later renewal (renewal_rounds.c). */
int renewal_record_rounds(const struct renewal *renewal, struct error *error) MUST_CHECK;
/* Obtains one token over everything that is staged, by any node; does nothing if nothing is staged
 * (renewal_stamp.c). Damaged blocks and the blocks after them are unstaged. */
int renewal_close(const struct renewal *renewal, struct error *error) MUST_CHECK;

/* Unstages the staged blocks from that one on, and logs it. */
int renewal_unstage(const struct renewal *renewal, const struct staged_stamp *staged, int64_t from,
                    struct error *error) MUST_CHECK;

struct renewal_leaves {
	struct evidence_leaf *leaves; /* capacity: EVIDENCE_LEAVES_MAX */
	bool of_chains;               /* waiting documents are due by that algorithm */
	size_t count;
	bool full;           /* more may be due */
	struct arena *arena; /* memory of what the leaves point to */
};
/* Creates the leaves that are due by that algorithm (renewal_leaf.c), up to one block. After a
 * gigabyte of documents read the function stops, so that the caller can stage the leaves and does
 * not lose them. */
int renewal_make_leaves(const struct renewal *renewal, enum digest_algorithm algorithm,
                        struct renewal_leaves *made, struct error *error) MUST_CHECK;

/* Individual failures do not delay other leaves (renewal_delay.c). renewal_fails_alone returns
 * whether a failure may concern one leaf only. The other functions then log and count it, and
 * schedule a retry with exponential back-off. *error is the failure on input, and is cleared. */
bool renewal_fails_alone(int failure);
int renewal_delay_waiting(const struct renewal *renewal, const struct evidence_queue_entry *item,
                          int failure, struct error *error) MUST_CHECK;
int renewal_delay_token(const struct renewal *renewal, const struct renewable_token *token,
                        int failure, struct error *error) MUST_CHECK;

#endif
