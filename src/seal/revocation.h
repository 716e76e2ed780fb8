/* Determines whether certificates were revoked, from CRLs (RFC 5280) and OCSP responses (RFC 6960).
 * No I/O and no clock. Thread safe.
 *
 * Data counts for a certificate only if its issuer vouches for it: signed by the issuer's key or by
 * a responder that this key certified. seal/revocation_data.h states the format rules. */
#ifndef SEAL_REVOCATION_H
#define SEAL_REVOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "seal/trust.h"
#include "seal/validation_set.h"

#define REVOCATION_PATH_MAX 8 /* certificates of a path, including the root */
#define REVOCATION_CAUSE_SIZE ERROR_CAUSE_MAX
#define REVOCATION_REASON_NONE (-1)

/* From the best to the worst. */
enum revocation_outcome {
	REVOCATION_NOT_NEEDED,   /* a root: it has no issuer that could revoke it */
	REVOCATION_GOOD_AFTER,   /* good, stated at the time in question or later: final */
	REVOCATION_GOOD_CURRENT, /* good, stated before and still current then: a revocation may have
	                            been in progress */
	REVOCATION_TOO_OLD,      /* good once, but no longer current at the time */
	REVOCATION_UNKNOWN,      /* the responder does not know the certificate */
	REVOCATION_MISSING,      /* no usable data; the cause states why, if known */
	REVOCATION_UNPUBLISHED,  /* no data, and the certificate names no source of it */
	REVOCATION_REVOKED,
};

/* Returns an English text for logs and messages: "good", "too old", … */
const char *revocation_outcome_text(enum revocation_outcome outcome);
/* Returns whether the outcome suffices: one of the first three. */
bool revocation_is_sufficient(enum revocation_outcome outcome);

/* The time at which the signature existed. */
struct revocation_moment {
	int64_t time_us;
	/* True: the time was written by the key in question (a token's genTime) and has no other proof.
	 * An attacker with the key could write any time, so a revoked certificate remains valid for
	 * earlier signatures only if a reason is given that excludes key compromise (RFC 3161 section
	 * 4). False: the time is proved otherwise, and later revocations have no effect (ETSI EN 319
	 * 102-1 clause 5.6.2). */
	bool is_self_dated;
};

struct revocation_verdict {
	enum revocation_outcome outcome;
	struct certificate_facts certificate;
	/* The deciding data; zeros and TIME_NONE if there is none. */
	struct sha256 object;
	int64_t issued_us;  /* thisUpdate */
	int64_t next_us;    /* nextUpdate; TIME_NONE: newer data is always available */
	int64_t revoked_us; /* TIME_NONE: not revoked; may be set although the outcome is good */
	int reason;         /* CRLReason, RFC 5280 section 5.3.1, or REVOCATION_REASON_NONE */
	char cause[REVOCATION_CAUSE_SIZE];
};

/* Determines the outcome of every certificate of a path from the set. The path is PEM: the signer's
 * certificate and its issuers, each issued by the next, with the root if known. Returns 0;
 * ERR_VALIDATION: not a PEM text of 1 to REVOCATION_PATH_MAX certificates; ERR_INVALID_EVIDENCE:
 * not a path; ERR_NO_MEMORY. */
int revocation_judge(struct slice path_pem, const struct validation_set *set,
                     const struct revocation_moment *at,
                     struct revocation_verdict ret_verdicts[REVOCATION_PATH_MAX], size_t *ret_count,
                     struct error *error) MUST_CHECK;
/* Returns the first revoked certificate, otherwise the first whose outcome does not suffice; NULL:
 * all suffice. */
const struct revocation_verdict *revocation_find_insufficient(
	const struct revocation_verdict *verdicts, size_t count);

#endif
