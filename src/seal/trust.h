/* The certificates that a verifier trusts, and facts about certificates. */
#ifndef SEAL_TRUST_H
#define SEAL_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"

#define SUBJECT_SIZE 512

/* Trusted certificates as PEM texts; data NULL: none given. Each kind is used only for its own
 * purpose. */
struct trust_roots {
	struct slice signers;    /* for the certificates that sign archives and reports */
	struct slice timestamps; /* for the certificates of timestamp authorities */
	bool has_time;           /* false: a signature without a timestamp is checked as of now */
	int64_t at_us;           /* time at which it is checked */
	/* Every certificate given is a trust anchor. A path that leads to none of them but is valid
	 * with the certificates inside is not an error; its facts are then not `trusted`. */
	bool tolerant;
};

/* Facts from a certificate. */
struct certificate_facts {
	char subject[SUBJECT_SIZE]; /* RFC 2253, UTF-8 */
	char issuer[SUBJECT_SIZE];
	/* The same in readable form: "Common Name (Organization)", UTF-8, without escapes. */
	char name[SUBJECT_SIZE];
	char issuer_name[SUBJECT_SIZE];
	struct sha256 sha256; /* of its DER: the fingerprint */
	int64_t not_before_us;
	int64_t not_after_us;
};

/* Converts a subject (RFC 2253, as in certificate_facts) into the readable form of `name`; any
 * other text is copied. Truncates at a character boundary. */
void trust_name(const char *subject, char name[SUBJECT_SIZE]);
/* Returns whether two subjects (RFC 2253) have the same organization (O), or are equal. The claim
 * is only as trustworthy as the issuers of both certificates. */
bool trust_same_organization(const char *subject, const char *other);
/* Appends the first certificate of a PEM text as DER. ERR_VALIDATION: there is none. */
int trust_certificate_der(struct slice pem, struct buf *der, struct error *error) MUST_CHECK;
/* Describes the first certificate of a PEM text. ERR_VALIDATION: there is none. */
int trust_describe(struct slice pem, struct certificate_facts *ret_facts, struct error *error)
	MUST_CHECK;
/* The same, with the period in which all certificates of the text are valid: from the latest start
 * to the earliest end. */
int trust_describe_path(struct slice pem, struct certificate_facts *ret_facts, int64_t *ret_from_us,
                        int64_t *ret_until_us, struct error *error) MUST_CHECK;
/* Appends concatenated DER certificates as PEM. Returns ERR_INVALID_EVIDENCE or ERR_NO_MEMORY. */
int trust_path_to_pem(struct slice path, struct buf *pem, struct error *error) MUST_CHECK;
/* Appends the self-signed certificates of a PEM text that `out` does not contain yet. */
int trust_add_roots(struct slice pem, struct buf *out, struct error *error) MUST_CHECK;

#endif
