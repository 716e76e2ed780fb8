/* Which of this node's keys signs, and which certificates come to their end. The store names the
 * certificate in force for all nodes (store/evidence/signers.h); a node signs when that is one of
 * its own, and else its certifications wait, while registration goes on. */
#ifndef EVIDENCE_SIGNERS_H
#define EVIDENCE_SIGNERS_H

#include "seal/signer.h"
#include "seal/trust.h"
#include "service/service.h"

struct json_writer;

struct signer_candidate;

/* At a start: ERR_REFUSED with the sentence where this node's keys are not the store's, or the one
 * in force is not valid now. */
int signers_join(struct service *service, struct error *error) MUST_CHECK;
/* Whether signers_join would let a node start with these keys, NULL for one that is not there:
 * nothing is written or comes into force. */
int signers_try(struct store *store, const struct signer_key *const keys[SIGNER_KEYS],
                bool development, struct error *error) MUST_CHECK;
/* To be called every few seconds: follows the store, and takes the next key when the present one's
 * end is near. ERR_* of the store or the signing process: what was in force stays. */
int signers_follow(struct service *service, struct error *error) MUST_CHECK;
/* Brings this node's next key into force, at all nodes; written through `store`, the service's. */
int signers_rotate(struct service *service, struct store *store, struct slice reason,
                   struct error *error) MUST_CHECK;
/* ERR_UNAVAILABLE with the cause while this node cannot sign. Waits for nothing. */
int signers_check(const struct service *service, struct error *error) MUST_CHECK;

/* {"data":[{"certificates","development","issuer","not_after","not_before","reason","sha256",
 * "subject","used_from","used_until"}]}, oldest first. */
int signers_write_json(struct store *store, struct arena *arena, struct json_writer *out,
                       struct error *error) MUST_CHECK;
/* PEM: the roots of all certificates that ever signed, as far as they were given. */
int signers_add_roots(struct store *store, struct buf *out, struct error *error) MUST_CHECK;

/* ---- what comes to its end ---- */

/* A certificate that this node relies on. */
struct expiring {
	const char *what; /* "the signing certificate" */
	char subject[SUBJECT_SIZE];
	int64_t until_us;
	bool near; /* signer.warn_before has begun, or of a listener's its last fortnight */
};
/* All of them; how many. */
size_t service_list_expiring(const struct service *service, struct expiring items[EXPIRING_MAX]);
/* When the first of the authorities' certificates that were seen ends; 0: none was. */
int64_t service_authorities_expire_us(const struct service *service);
/* Tells the log of those that are near their end, of each once a day. One thread at a time. */
void service_watch_expiry(struct service *service);

#endif
