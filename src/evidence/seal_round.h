/* Sealing rounds: the unsealed events of all live chains as segments, one timestamp over all of
 * them. They are staged in blocks, each in a short transaction (store/events/segments.h), and the
 * round is closed with its timestamp. Memory does not grow with the number of chains. Who may seal
 * now, and when, is the caller's affair (jobs). */
#ifndef EVIDENCE_SEAL_ROUND_H
#define EVIDENCE_SEAL_ROUND_H

#include "service/apart.h"
#include "service/service.h"
#include "store/events/segments.h"

/* What is kept from round to round. One thread at a time. */
struct sealing {
	struct service *service;
	size_t block_segments;       /* most in a block; ROUND_BLOCK_SEGMENTS_MAX, less in tests */
	size_t small_block_segments; /* most in one while events are registered, when fewer */
	size_t round_blocks;         /* most in a round; ROUND_BLOCKS_MAX, less in tests */
	int_fast64_t registered;     /* events, when the last block was begun */
	struct sha256 *leaves;       /* of one segment */
	struct apart apart;          /* chains that cannot be sealed */
	size_t newly_apart;          /* of them, in the pass under way */
	bool chain_failed;           /* in the pass under way: one was set apart, anew or again */
	size_t ahead_count;          /* chains too far ahead of the clock, of the pass under way */
	int64_t told_ahead_us;       /* monotonic; 0: never */
};
int sealing_init(struct sealing *sealing, struct service *service) MUST_CHECK;
void sealing_free(struct sealing *sealing);

/* A pass goes once through all unsealed chains, in as many blocks as it takes. */
void sealing_begin_pass(struct sealing *sealing);
/* Stages of these chains, in order, as much as one block holds (*ret_segments of them); the chains
 * move on as far as they are staged. *ret_taken of them were begun; 0: the same are to be gone
 * through again, without one that is set apart now. *ret_backlog is set when one of them has more
 * to seal. Nothing is taken while the round is full. ERR_REFUSED when another node was faster. A
 * chain that is broken is left out, tried again after a pause that grows, and fails no round. */
int seal_stage(struct sealing *sealing, struct unsealed_chain *chains, size_t count,
               size_t *ret_taken, size_t *ret_segments, bool *ret_backlog, struct error *error)
	MUST_CHECK;
/* Whether something is staged, by whomever, and whether no more fits into its round. */
int sealing_room(struct sealing *sealing, bool *ret_staged, bool *ret_full, struct error *error)
	MUST_CHECK;
/* Seals what is staged, by whomever, under one timestamp; nothing when nothing is. ERR_REFUSED when
 * another node was faster. */
int seal_close(struct sealing *sealing, struct error *error) MUST_CHECK;
/* So many chains were found broken in this pass that it had better end. */
bool sealing_doubts(const struct sealing *sealing);
/* Brings the service's counters up to date. */
void sealing_end_pass(struct sealing *sealing);

#endif
