/* Sealing rounds: the unsealed events of many live chains as segments, one timestamp over all of
 * them, written in one transaction. Who may seal now, and when, is the caller's affair (jobs). */
#ifndef SERVICE_SEAL_ROUND_H
#define SERVICE_SEAL_ROUND_H

#include "service/apart.h"
#include "service/service.h"
#include "store/events/segments.h"

#define ROUND_SEGMENTS_MAX 1000

/* What is kept from round to round. One thread at a time. */
struct sealing {
	struct service *service;
	struct sha256 *leaves; /* of one segment */
	struct apart apart;    /* chains that cannot be sealed */
	size_t newly_apart;    /* of them, in the pass under way */
	size_t ahead_count;    /* chains too far ahead of the clock, of the pass under way */
	int64_t told_ahead_us; /* monotonic; 0: never */
};
int sealing_init(struct sealing *sealing, struct service *service) MUST_CHECK;
void sealing_free(struct sealing *sealing);

/* A pass goes once through all unsealed chains, in as many rounds as it takes. */
void sealing_begin_pass(struct sealing *sealing);
/* Seals of these chains, in order, as much as one round holds; the chains move on as far as they
 * are sealed. *ret_taken of them were begun; 0: the same are to be gone through again, without one
 * that is set apart now. *ret_backlog is set when one of them has more to seal. ERR_REFUSED when
 * another node was faster. A chain that is broken is left out, tried again after a pause that
 * grows, and fails no round. */
int seal_round(struct sealing *sealing, struct unsealed_chain *chains, size_t count,
               size_t *ret_taken, bool *ret_backlog, struct error *error) MUST_CHECK;
/* So many chains were found broken in this pass that it had better end. */
bool sealing_doubts(const struct sealing *sealing);
/* Brings the service's counters up to date. */
void sealing_end_pass(struct sealing *sealing);

#endif
