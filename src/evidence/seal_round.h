/* Sealing rounds. A round seals the unsealed events of all live chains as segments under one
 * timestamp. Segments are staged in blocks, each in a short transaction (store/events/segments.h),
 * and the round is closed with its timestamp. The memory used does not depend on the number of
 * chains. The caller holds the lease and schedules the rounds (jobs). */
#ifndef EVIDENCE_SEAL_ROUND_H
#define EVIDENCE_SEAL_ROUND_H

#include "service/quarantine.h"
#include "service/service.h"
#include "store/events/segments.h"

/* State that is kept between rounds. Not thread safe. */
struct sealing {
	struct service *service;
	int64_t segment_events;       /* maximum per segment; SEGMENT_EVENTS_MAX, less in tests */
	int64_t chain_segments;       /* maximum of a chain per block */
	int64_t block_events;         /* events after which a block is full */
	size_t block_segments;        /* maximum per block; ROUND_BLOCK_SEGMENTS_MAX, less in tests */
	size_t small_block_segments;  /* maximum while events are registered, if smaller */
	size_t round_blocks;          /* maximum per round; ROUND_BLOCKS_MAX, less in tests */
	int_fast64_t registered;      /* events registered when the last block was started */
	struct sha256 *leaves;        /* leaves of one segment */
	struct quarantine quarantine; /* quarantine of chains that cannot be sealed */
	size_t new_quarantined;       /* chains added in the current pass */
	bool chain_failed;       /* a chain failed in the current pass, for the first time or again */
	size_t ahead_count;      /* chains too far ahead of the clock in the current pass */
	int64_t logged_ahead_us; /* last log message; monotonic; 0: never */
};
int sealing_init(struct sealing *sealing, struct service *service) MUST_CHECK;
void sealing_free(struct sealing *sealing);

/* Starts a pass. A pass visits all unsealed chains once, in as many blocks as necessary. */
void sealing_begin_pass(struct sealing *sealing);
/* Stages the next segments of these chains, in order, up to the capacity of one block
 * (*ret_segments of them), and advances the chains accordingly. *ret_taken: number of chains
 * visited; 0: the caller must pass the same chains again, because one was quarantined now.
 * *ret_backlog is set if a visited chain has more to seal. Nothing is staged while the round is
 * full. ERR_REFUSED: another node was faster. A broken chain is quarantined with a back-off and
 * does not fail the round. */
int seal_stage(struct sealing *sealing, struct unsealed_chain *chains, size_t count,
               size_t *ret_taken, size_t *ret_segments, bool *ret_backlog, struct error *error)
	MUST_CHECK;
/* Returns whether anything is staged, by any node, and whether the staged round is full. */
int sealing_get_capacity(struct sealing *sealing, bool *ret_staged, bool *ret_full,
                         struct error *error) MUST_CHECK;
/* Seals everything that is staged, by any node, under one timestamp; does nothing if nothing is
 * staged. Blocks that a version without the log staged are unstaged instead. ERR_REFUSED: another
 * node was faster. */
int seal_close(struct sealing *sealing, struct error *error) MUST_CHECK;
/* Returns whether the pass should end because the number of chains that failed in it makes a common
 * cause likely. */
bool sealing_is_suspect(const struct sealing *sealing);
/* Updates the service's counters. */
void sealing_end_pass(struct sealing *sealing);

#endif
