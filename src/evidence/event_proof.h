/* The proof of one event, as JSON and as an evidence record (RFC 4998). */
#ifndef EVIDENCE_EVENT_PROOF_H
#define EVIDENCE_EVENT_PROOF_H

#include "service/service.h"

struct json_writer;
/* Writes the `proof` member of one event: previous_chain_hash and, once sealed, the segment, its
 * seal document, the path to the round's root, the token (base64) and its authority. */
int event_proof_json(struct store *store, int64_t account, int64_t chain, const struct event *event,
                     struct arena *arena, struct json_writer *writer, struct error *error)
	MUST_CHECK;
/* Appends the event's evidence record (RFC 4998, DER), whose data object is the event's record,
 * including validation data. If `revocation` is not NULL, that data is fetched, which may take
 * seconds. ERR_NOT_FOUND: a test event, which has no record, or an event that is not sealed yet. */
int event_evidence_record(struct store *store, struct revocation_client *revocation,
                          int64_t account, int64_t chain, const struct event *event,
                          struct arena *arena, struct buf *out, struct error *error) MUST_CHECK;

#endif
