/* What validates the token that an event's evidence record begins with, for a reader who has the
 * record and roots alone. Thread safe. */
#ifndef EVIDENCE_RECORD_VALIDATION_H
#define EVIDENCE_RECORD_VALIDATION_H

#include "seal/evidence_record.h"
#include "store/store.h"

struct revocation_client;

/* Puts into the record's newest token the certificates that the store keeps beside `token`, the
 * first one, and what says that these and its own were not revoked (evidence_record_complete).
 * `revocation` may be NULL: nothing is fetched. Waits for answers, but not for long; what cannot be
 * had is left out, and the record is good as it is. 0, or a failure of the store. */
int record_validation_add(struct store *store, struct revocation_client *revocation,
                          struct slice token, struct evidence_record *record, struct error *error)
	MUST_CHECK;

#endif
