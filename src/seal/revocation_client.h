/* Gets what says whether the certificates of a path were revoked, from where they name it: OCSP by
 * POST, or by GET where POST is not taken (RFC 6960 appendix A), and a CRL where there is no OCSP
 * or it gives nothing usable. Over http and https alike, as what comes is signed; only to addresses
 * that the guard permits.
 *
 * What was verified is kept in memory until half of its life is over, or its end; what fails is
 * left alone for a while: 5 s, then twice as long each time, 5 minutes at most. Thread safe; calls
 * run side by side, and may wait: not for a thread that polls. */
#ifndef SEAL_REVOCATION_CLIENT_H
#define SEAL_REVOCATION_CLIENT_H

#include "base/buf.h"
#include "base/error.h"
#include "net/address.h"
#include "seal/revocation.h"
#include "seal/signer.h"
#include "seal/validation.h"

#define REVOCATION_KEPT_MAX 64 /* objects and places */
#define REVOCATION_KEPT_BYTES_MAX ((size_t)16 << 20)

struct revocation_client_options {
	struct signer *signer; /* answers for its development certificates; outlives the object */
	struct address_guard guard;
	int timeout_ms; /* of a request; a whole path takes at most three times as long; 0: 10,000 */
};

struct revocation_client;
/* NULL without memory. */
struct revocation_client *revocation_client_create(const struct revocation_client_options *options)
	MUST_CHECK;
void revocation_client_free(struct revocation_client *client); /* NULL-safe */

/* Adds to the set the certificates of the path (PEM, as revocation_judge takes it) and what can be
 * had about each of them, and judges them by the set as of `at`. Data that was issued at that time
 * or later is got where it can be; times of signatures have fractions and those of data have none,
 * so a second has to pass first. A verdict that does not suffice says why in its cause. 0, whatever
 * the verdicts; ERR_VALIDATION, ERR_INVALID_EVIDENCE: it is no path; ERR_TOO_LARGE: a bound of the
 * set; ERR_NO_MEMORY. */
int revocation_fetch(struct revocation_client *client, struct slice path_pem,
                     const struct revocation_moment *at, struct validation_set *set,
                     struct revocation_verdict ret_verdicts[REVOCATION_PATH_MAX], size_t *ret_count,
                     struct error *error) MUST_CHECK;
/* The same for whoever cannot wait for long: `wait_ms` in all, and only one at a time, so that no
 * slow place holds up many. Other callers meanwhile get what is kept. A place that did not answer
 * in that time is not left alone for it. What was had whole is given again for an hour, the last 64
 * answers, so that what is made of it stays the same. */
int revocation_fetch_hurried(struct revocation_client *client, struct slice path_pem,
                             const struct revocation_moment *at, int wait_ms,
                             struct validation_set *set,
                             struct revocation_verdict ret_verdicts[REVOCATION_PATH_MAX],
                             size_t *ret_count, struct error *error) MUST_CHECK;

#endif
