/* What proves an act of administration once it is sealed (event_proof.c, beside what proves an
 * event): evidence records (RFC 4998) by the round of its segment and what renewed that. */
#ifndef EVIDENCE_ACT_PROOF_H
#define EVIDENCE_ACT_PROOF_H

#include "store/audit/acts.h"

struct act_evidence {
	struct buf *act;           /* of the act's document; DER is appended */
	struct buf *seal_document; /* of its segment's seal document */
	struct slice document;     /* the seal document, which names the chain's end; in the arena */
};
struct revocation_client;
/* `act` as the store gives it. `revocation`: as of an event's. ERR_NOT_FOUND: it is not sealed yet.
 */
int act_evidence_records(struct store *store, struct revocation_client *revocation,
                         const struct act_record *act, struct arena *arena,
                         struct act_evidence *evidence, struct error *error) MUST_CHECK;

#endif
