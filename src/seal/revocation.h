/* Whether certificates were revoked, as CRLs (RFC 5280) and OCSP answers (RFC 6960) say. Pure: no
 * I/O, no clock. Thread safe.
 *
 * Data counts for a certificate when its issuer vouches for it, by the key above the certificate or
 * a responder that this key certified for it; what is read strictly and what is refused is told in
 * seal/revocation_data.h. */
#ifndef SEAL_REVOCATION_H
#define SEAL_REVOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "seal/trust.h"
#include "seal/validation.h"

#define REVOCATION_PATH_MAX 8 /* certificates of a path, with its root */
#define REVOCATION_CAUSE_SIZE ERROR_CAUSE_MAX
#define REVOCATION_REASON_NONE (-1)

/* From the best to the worst. */
enum revocation_outcome {
	REVOCATION_NOT_NEEDED,   /* a root: nobody is above it to revoke it */
	REVOCATION_GOOD_AFTER,   /* good, said at the time in question or later: nothing can follow */
	REVOCATION_GOOD_CURRENT, /* good, said before and still current then: a request for revocation
	                            may have been under way */
	REVOCATION_TOO_OLD,      /* good once; no longer current at the time */
	REVOCATION_UNKNOWN,      /* its responder does not know the certificate */
	REVOCATION_MISSING,      /* nothing usable is there; the cause says why if anything is known */
	REVOCATION_UNPUBLISHED,  /* nothing is there, and the certificate names no place for it */
	REVOCATION_REVOKED,
};

/* "good", "too old", … for logs and messages; English. */
const char *revocation_outcome_text(enum revocation_outcome outcome);
/* The first three: nothing better is to be had, or needed. */
bool revocation_suffices(enum revocation_outcome outcome);

/* When the signature existed. */
struct revocation_moment {
	int64_t time_us;
	/* The time is the one that the key in question itself wrote (a token's genTime), and nothing
	 * else proves it. Who has the key can write any: then only a certificate that was revoked for
	 * another reason than its key, and says so, leaves what was signed before (RFC 3161 section 4).
	 * False: something else proves the time, and what came later changes nothing (ETSI EN 319 102-1
	 * clause 5.6.2). */
	bool self_dated;
};

struct revocation_verdict {
	enum revocation_outcome outcome;
	struct certificate_facts certificate;
	/* What decided; zeros and TIME_NONE when nothing did. */
	struct sha256 object;
	int64_t issued_us;  /* as of when it speaks: thisUpdate */
	int64_t next_us;    /* nextUpdate; TIME_NONE: there is always a newer one */
	int64_t revoked_us; /* TIME_NONE: not revoked; may be set though the outcome is good */
	int reason;         /* CRLReason, RFC 5280 section 5.3.1, or REVOCATION_REASON_NONE */
	char cause[REVOCATION_CAUSE_SIZE];
};

/* Judges every certificate of a path (PEM: the signer's, those above it, each issued by the next,
 * with the root if it is known) by what is in the set. 0, ERR_VALIDATION: not a PEM text of 1 to
 * REVOCATION_PATH_MAX certificates; ERR_INVALID_EVIDENCE: not a path; ERR_NO_MEMORY. */
int revocation_judge(struct slice path_pem, const struct validation_set *set,
                     const struct revocation_moment *at,
                     struct revocation_verdict ret_verdicts[REVOCATION_PATH_MAX], size_t *ret_count,
                     struct error *error) MUST_CHECK;
/* Whether all of them suffice; which does not: the first that is revoked, else the first. NULL:
 * none. */
const struct revocation_verdict *revocation_lack(const struct revocation_verdict *verdicts,
                                                 size_t count);

#endif
