/* The list of the certificates that signed for a service, with the periods in which they were in
 * force: the document that `signers.p7m` signs (docs/verify/evidence-format.md, section 15). It is
 * canonical JSON:
 *   {"certificates":[{"certificate","reason"|null,"sha256","used_from","used_until"|null}],
 *    "issued_at","service":{"name","prefix","url"},"v":1}
 * with the oldest certificate first. Since version 2 it also has the Ed25519 keys that sign
 * receipts and checkpoints of the log: "log_keys":[{"key","used_from","used_until"|null}] after
 * "issued_at" and "receipt_keys" of the same form after it. A key of the log is a verifier key
 * (tlog/note.h), one of receipts base64 of its 32 bytes; the latter also has "proof", base64 of a
 * signature by the key itself over SIGNER_LIST_PROOF_PREFIX and a certificate's digest, and
 * "sha256", that digest, between "key" and "used_from", which may both be missing. Neither
 * certificates nor keys are removed from the list, and an ended one never comes into force again. A
 * newer list therefore repeats all of an older one. No I/O. */
#ifndef ARCHIVE_SIGNER_LIST_H
#define ARCHIVE_SIGNER_LIST_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"

#define SIGNER_LIST_ITEMS_MAX 1000
#define SIGNER_LIST_KEYS_MAX 1000 /* of each kind */
#define SIGNER_LIST_TEXT_MAX ((size_t)6 << 20)
#define SIGNER_LIST_CERTIFICATE_MAX 65536
/* A timestamp by a new key may be earlier by this than the key's used_from, which is of the
 * service's own clock. */
#define SIGNER_LIST_TOLERANCE_US (300 * US_PER_SECOND)

struct signer_list_item {
	struct slice certificate; /* DER */
	struct sha256 sha256;     /* digest of the certificate */
	int64_t used_from_us;     /* the time at which it came into force */
	int64_t used_until_us;    /* the time at which it ended; TIME_NONE: in force */
	const char *reason;       /* the reason for its end; NULL: in force */
};
/* Shows that the holder of a key of receipts signs for the service that uses the certificate.
 * Without it, anyone could list a key of another service as its own. */
#define SIGNER_LIST_PROOF_PREFIX "constancia-receipt-key/1\n"
#define SIGNER_LIST_PROOF_SIZE 64 /* Ed25519 (RFC 8032) */
struct signer_list_proof {
	struct sha256 certificate; /* its digest */
	uint8_t signature[SIGNER_LIST_PROOF_SIZE];
};
/* A key that signs without a certificate. */
struct signer_list_key {
	const char *key;                       /* as in the document */
	int64_t used_from_us;                  /* the time at which a node first used it */
	int64_t used_until_us;                 /* TIME_NONE: in use */
	const struct signer_list_proof *proof; /* NULL: none, and always for the log */
};
enum signer_list_kind { SIGNER_LIST_LOG, SIGNER_LIST_RECEIPT };
#define SIGNER_LIST_KINDS 2
struct signer_list {
	const char *service_name, *service_prefix, *service_url;
	int64_t issued_at_us;
	const struct signer_list_item *items;
	size_t count;
	struct {
		const struct signer_list_key *items;
		size_t count;
	} keys[SIGNER_LIST_KINDS]; /* if there are none of both kinds, the list has version 1 */
};

/* Appends the document. The caller checks the buffer for errors. */
void signer_list_write(const struct signer_list *list, struct buf *out);
/* Reads the canonical form of a valid list: 1 to SIGNER_LIST_ITEMS_MAX certificates, each once and
 * with its digest, at most one in force, and a reason exactly for those that were ended; and valid
 * keys, each once. The result
 * points into the arena and the text. Returns 0, ERR_INVALID_EVIDENCE with the cause, or
 * ERR_NO_MEMORY. */
int signer_list_read(struct arena *arena, struct slice text, struct signer_list *ret_list,
                     struct error *error) MUST_CHECK;

/* Returns the item of the certificate with that digest; NULL: not listed. */
const struct signer_list_item *signer_list_find(const struct signer_list *list,
                                                const struct sha256 *sha256);

/* Returns the key of that kind; NULL: not listed. */
const struct signer_list_key *signer_list_find_key(const struct signer_list *list,
                                                   enum signer_list_kind kind, const char *key);

/* Verifies the proof of a key of receipts that has one. Returns 0 or ERR_NO_MEMORY. */
int signer_list_verify_proof(const struct signer_list_key *key, bool *ret_valid) MUST_CHECK;

enum signer_use {
	SIGNER_USE_IN_FORCE,
	SIGNER_USE_TOO_EARLY, /* the key was not yet in force */
	SIGNER_USE_ENDED,     /* the key was no longer in force */
	SIGNER_USE_UNDATED,   /* the key was ended, and it is unknown whether before the signature */
};
/* Judges a signature by that certificate. `signed_us` is the time of the timestamp over it;
 * TIME_NONE: it has none. */
enum signer_use signer_list_judge(const struct signer_list_item *item, int64_t signed_us);
/* Returns whether `newer` repeats all statements of `older`. If not, one of them is false. */
bool signer_list_extends(const struct signer_list *newer, const struct signer_list *older);

#endif
