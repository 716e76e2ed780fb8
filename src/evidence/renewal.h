/* Keeping provable what was issued and sealed, for longer than any certificate or digest lasts
 * (RFC 4998): a first archive timestamp over the documents of certifications, and renewals of every
 * token, of rounds and of archive timestamps, before its certificates end (evidence.renew_before).
 * One token covers whatever is due, however much that is; memory does not grow with it. Who may do
 * it now, and when, is the caller's affair (jobs). */
#ifndef EVIDENCE_RENEWAL_H
#define EVIDENCE_RENEWAL_H

#include "service/service.h"

struct renewal {
	struct service *service;
	const atomic_bool *stopping;
	const atomic_bool *lost; /* the lease went to another */
};
/* Does all that is due now. What ended unrenewed is told, and documents that led to it get a new
 * record. Documents that cannot be read wait, each by itself. ERR_REFUSED: another node was faster,
 * or it is to stop; ERR_AUTHORITY: no token is to be had, and what is staged waits for one. */
int renewal_pass(const struct renewal *renewal, struct error *error) MUST_CHECK;
/* Has those completed live certifications wait for a record that neither have one nor wait: a
 * program of before, which still ran after the store was migrated, completed them. Reads all. */
int renewal_queue_forgotten(const struct renewal *renewal, struct error *error) MUST_CHECK;

#endif
