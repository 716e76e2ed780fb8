/* Fetches the revocation data of the certificates of a path from the sources that they name: OCSP
 * by POST, or by GET if POST is rejected (RFC 6960 appendix A), and a CRL if there is no OCSP or no
 * usable response. Plain http is accepted, since the data is signed. Only addresses that the guard
 * permits are contacted.
 *
 * Verified data is cached in memory, until its end at most. Failed sources are in back-off: 5 s,
 * doubled by each further failure up to 5 minutes. Thread safe. Calls run concurrently and may
 * block, so they must not be made by threads that poll. */
#ifndef SEAL_REVOCATION_CLIENT_H
#define SEAL_REVOCATION_CLIENT_H

#include "base/buf.h"
#include "base/error.h"
#include "net/address.h"
#include "seal/revocation.h"
#include "seal/signer.h"
#include "seal/validation_set.h"

#define REVOCATION_CACHE_ENTRIES_MAX 64 /* objects, and sources */
#define REVOCATION_CACHE_BYTES_MAX ((size_t)16 << 20)

struct revocation_client_options {
	struct signer *signer; /* answers for development certificates; must outlive the object */
	struct address_guard guard;
	int timeout_ms; /* per request; a path takes at most three times as long; 0: 10,000 */
};

struct revocation_client;
/* NULL without memory. */
struct revocation_client *revocation_client_create(const struct revocation_client_options *options)
	MUST_CHECK;
void revocation_client_free(struct revocation_client *client); /* NULL-safe */

/* Adds to the set the certificates of the path (PEM, as for revocation_judge) and the data
 * available about each of them, and determines the outcomes as of `at`. Prefers data issued at or
 * after that time. Times of data have no fraction, so the caller should wait until the second is
 * over. The cause of a verdict states why it does not suffice. Returns 0 for any outcome;
 * ERR_VALIDATION or ERR_INVALID_EVIDENCE: not a path; ERR_TOO_LARGE: a limit of the set;
 * ERR_NO_MEMORY. */
int revocation_fetch(struct revocation_client *client, struct slice path_pem,
                     const struct revocation_moment *at, struct validation_set *set,
                     struct revocation_verdict ret_verdicts[REVOCATION_PATH_MAX], size_t *ret_count,
                     struct error *error) MUST_CHECK;
/* The same for callers that cannot wait long: at most `wait_ms` in total, and only one such call at
 * a time contacts sources, so that a slow source does not block many threads. Concurrent calls use
 * cached data only. Failures do not cause back-off. The last 64 complete results are returned again
 * for an hour, so that documents made from them stay the same. */
int revocation_fetch_bounded(struct revocation_client *client, struct slice path_pem,
                             const struct revocation_moment *at, int wait_ms,
                             struct validation_set *set,
                             struct revocation_verdict ret_verdicts[REVOCATION_PATH_MAX],
                             size_t *ret_count, struct error *error) MUST_CHECK;

#endif
