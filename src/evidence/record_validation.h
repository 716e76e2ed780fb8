/* Adds validation data to the first token of an event's evidence record, for relying parties who
 * have only the record and trust roots. Thread safe. */
#ifndef EVIDENCE_RECORD_VALIDATION_H
#define EVIDENCE_RECORD_VALIDATION_H

#include "seal/evidence_record.h"
#include "store/store.h"

struct revocation_client;

/* Adds to the record's newest token the certificates stored for `token`, the first one, and
 * revocation data for these and its own (evidence_record_complete). `revocation` may be NULL:
 * nothing is fetched. Blocks briefly on responses. Unavailable data is omitted; the record is valid
 * without it. Returns 0, or an error of the store. */
int record_validation_add(struct store *store, struct revocation_client *revocation,
                          struct slice token, struct evidence_record *record, struct error *error)
	MUST_CHECK;

#endif
