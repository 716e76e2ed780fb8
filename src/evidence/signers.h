/* Selects the key with which this node signs, and reports expiring certificates. The store names
 * the certificate in force for all nodes (store/evidence/signer_records.h). A node that has its key
 * signs; otherwise the node's certifications wait, while registration continues. */
#ifndef EVIDENCE_SIGNERS_H
#define EVIDENCE_SIGNERS_H

#include "seal/signer.h"
#include "seal/trust.h"
#include "service/service.h"

struct json_writer;

struct signer_candidate;

/* To be called at the start. ERR_REFUSED with a message: this node's keys are not those of the
 * store, or the one in force is not valid now. */
int signers_join(struct service *service, struct error *error) MUST_CHECK;
/* Checks whether signers_join would accept these keys (NULL: absent) without writing anything. */
int signers_check_keys(struct store *store, const struct signer_key *const keys[SIGNER_KEYS],
                       bool development, struct error *error) MUST_CHECK;
/* To be called every few seconds. Follows the store, and brings the next key into force when the
 * present one is about to expire. ERR_* of the store or the signing process: the key in force is
 * kept. */
int signers_follow(struct service *service, struct error *error) MUST_CHECK;
/* Brings this node's next key into force on all nodes. Writes through `store`, a handle of the
 * service's store. */
int signers_rotate(struct service *service, struct store *store, struct slice reason,
                   struct error *error) MUST_CHECK;
/* Returns ERR_UNAVAILABLE with the cause while this node cannot sign. Does not block. */
int signers_check(const struct service *service, struct error *error) MUST_CHECK;

/* Writes the history of signers, oldest first, and the keys of the log and of receipts:
 *  {"data":[{"certificates","development","issuer","not_after","not_before","reason","sha256",
 *  "subject","used_from","used_until"}],"log_keys":[{"key","used_from","used_until"}],
 *  "receipt_keys":[…]} */
int signers_write_json(struct store *store, struct arena *arena, struct json_writer *out,
                       struct error *error) MUST_CHECK;
/* Appends the known roots of all certificates that ever signed, as PEM. */
int signers_add_roots(struct store *store, struct buf *out, struct error *error) MUST_CHECK;

/* ---- expiring certificates ---- */

/* A certificate that this node relies on. */
struct expiring {
	const char *what; /* such as "the signing certificate" */
	char subject[SUBJECT_SIZE];
	int64_t until_us;
	bool near; /* within signer.warn_before of its expiry; for a listener, within 14 days */
};
/* Lists all certificates. Returns their number. */
size_t service_list_expiring(const struct service *service, struct expiring items[EXPIRING_MAX]);
/* Returns the earliest expiry of the authorities' known certificates; 0: none is known. */
int64_t service_authorities_expire_us(const struct service *service);
/* Logs each certificate that is about to expire once a day. Not thread safe. */
void service_watch_expiry(struct service *service);

#endif
