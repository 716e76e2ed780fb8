/* Shared by the files of renewals alone. */
#ifndef EVIDENCE_RENEWAL_LEAF_H
#define EVIDENCE_RENEWAL_LEAF_H

#include <inttypes.h>
#include <stdio.h>

#include "evidence/renewal.h"
#include "store/evidence/evidence.h"

#define RENEWAL_LEAVES_MEMORY_MAX ((size_t)64 << 20)
#define RENEWAL_BLOCKS_MAX 1024 /* of one archive timestamp */

static inline bool renewal_stops(const struct renewal *renewal)
{
	return atomic_load(renewal->stopping) || atomic_load(renewal->lost);
}

static inline void renewal_text(int64_t value, char text[24])
{
	snprintf(text, 24, "%" PRId64, value);
}

/* The tokens of rounds that were written since (renewal_rounds.c). */
int renewal_set_rounds_to_rest(const struct renewal *renewal, struct error *error) MUST_CHECK;
/* One token over what is staged, by whomever; nothing when nothing is (renewal_stamp.c). Blocks
 * that are damaged, and those behind them, are taken back. */
int renewal_close(const struct renewal *renewal, struct error *error) MUST_CHECK;

/* Takes back the blocks that are staged, from that one on, and tells it. */
int renewal_take_back(const struct renewal *renewal, const struct staged_stamp *staged,
                      int64_t from, struct error *error) MUST_CHECK;

struct renewal_leaves {
	struct evidence_leaf *leaves; /* room for EVIDENCE_LEAVES_MAX */
	bool of_chains;               /* documents that wait are due by that algorithm */
	size_t count;
	bool full;           /* there may be more */
	struct arena *arena; /* of what they point to */
};
/* What is due by that algorithm (renewal_leaf.c), as many as fit into one block or are worth one
 * transaction: after a gigabyte of documents read what is made is to be staged, so that it is not
 * lost. */
int renewal_make_leaves(const struct renewal *renewal, enum digest_algorithm algorithm,
                        struct renewal_leaves *made, struct error *error) MUST_CHECK;

/* What fails for one of them alone holds up no other (renewal_delay.c): whether a failure may be
 * one of these; then it is told, counted, and tried again after a pause that grows. *error is what
 * was met, and zeroed. */
bool renewal_fails_alone(int failure);
int renewal_delay_waiting(const struct renewal *renewal, const struct evidence_waiting *item,
                          int failure, struct error *error) MUST_CHECK;
int renewal_delay_token(const struct renewal *renewal, const struct token_at_rest *token,
                        int failure, struct error *error) MUST_CHECK;

#endif
