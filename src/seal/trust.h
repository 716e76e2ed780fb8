/* Whom a verifier trusts, and who vouched for what it read. */
#ifndef SEAL_TRUST_H
#define SEAL_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"

#define SUBJECT_SIZE 512

/* PEM texts; data NULL: none given. Roots of one kind do not vouch for the other. */
struct trust_roots {
	struct slice signers;    /* above the certificates that sign archives and reports */
	struct slice timestamps; /* above those of the timestamp authorities */
	bool has_time;           /* else a signature without a timestamp is judged as of now */
	int64_t at_us;           /* as of when it is */
	/* Each certificate given is an anchor, and a path that leads to none of them is no error where
	 * it holds by the certificates inside: its facts are not `trusted` then. */
	bool tolerant;
};

/* What a certificate says. */
struct certificate_facts {
	char subject[SUBJECT_SIZE]; /* RFC 2253, UTF-8 */
	char issuer[SUBJECT_SIZE];
	/* The same as people write them: "Common Name (Organization)", UTF-8, nothing escaped. */
	char name[SUBJECT_SIZE];
	char issuer_name[SUBJECT_SIZE];
	struct sha256 sha256; /* of its DER: the fingerprint */
	int64_t not_before_us;
	int64_t not_after_us;
};

/* A subject (RFC 2253, as in certificate_facts) as people write it, like `name` there; one that is
 * no such text stays as it is. Cut at a character's end. */
void trust_name(const char *subject, char name[SUBJECT_SIZE]);
/* Whether two subjects (RFC 2253) are of one organization (O), or the same where neither names one.
 * Only the issuers of both certificates vouch for that. */
bool trust_same_organization(const char *subject, const char *other);
/* Appends the first certificate of a PEM text as DER. ERR_VALIDATION: there is none. */
int trust_certificate_der(struct slice pem, struct buf *der, struct error *error) MUST_CHECK;
/* Of the first certificate of a PEM text. ERR_VALIDATION: there is none. */
int trust_describe(struct slice pem, struct certificate_facts *ret_facts, struct error *error)
	MUST_CHECK;
/* The same, and when all certificates of the text are valid: from the latest beginning to the
 * earliest end. */
int trust_describe_path(struct slice pem, struct certificate_facts *ret_facts, int64_t *ret_from_us,
                        int64_t *ret_until_us, struct error *error) MUST_CHECK;
/* Appends certificates in DER, one behind the other, as PEM. ERR_INVALID_EVIDENCE, ERR_NO_MEMORY.
 */
int trust_path_to_pem(struct slice path, struct buf *pem, struct error *error) MUST_CHECK;
/* Appends those certificates of a PEM text that are roots, unless they stand in `out`. */
int trust_add_roots(struct slice pem, struct buf *out, struct error *error) MUST_CHECK;

#endif
