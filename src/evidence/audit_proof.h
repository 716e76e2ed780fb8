/* Evidence records (RFC 4998) for audit records, made of the round of the record's segment and the
 * renewals of that round. Implemented in event_proof.c, next to the proofs of events. */
#ifndef EVIDENCE_AUDIT_PROOF_H
#define EVIDENCE_AUDIT_PROOF_H

#include "store/audit/audit_log.h"

struct audit_evidence {
	struct buf *act;           /* for the document of the record; DER is appended */
	struct buf *seal_document; /* for the seal document of its segment */
	struct slice document; /* the seal document, which contains the last chain hash; in the arena */
};
struct revocation_client;
/* Creates both evidence records of `act`, a record read from the store. `revocation` is used as for
 * events (event_proof.h). ERR_NOT_FOUND: the record is not sealed yet. */
int audit_evidence_records(struct store *store, struct revocation_client *revocation,
                           const struct audit_record *act, struct arena *arena,
                           struct audit_evidence *evidence, struct error *error) MUST_CHECK;

#endif
