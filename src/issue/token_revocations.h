/* Revocation data for the certificates of an archive's timestamps, fetched once for each
 * certificate path when the archive is issued. Not thread safe. */
#ifndef ISSUE_TOKEN_REVOCATIONS_H
#define ISSUE_TOKEN_REVOCATIONS_H

#include "seal/revocation_token.h"
#include "seal/validation_set.h"

struct issue_job;

#define TOKEN_PATHS_MAX 32
#define TOKEN_REVOCATIONS_BYTES_MAX ((size_t)8 << 20) /* total, each object once */

struct token_revocations {
	const struct issue_job *work;
	struct known_path {
		struct sha256 digest;
		struct validation_set set;     /* the available data */
		bool unpublished;              /* all missing data is not published anywhere */
		bool awaited;                  /* some missing data may become available */
		char cause[ERROR_CAUSE_MAX];   /* why it is missing */
		bool is_told;                  /* it was logged that the data is not waited for */
		struct validation_set minimal; /* sufficient subset for times up to minimal_until_us */
		int64_t minimal_until_us;
	} * paths;
	size_t count;
	size_t size_bytes; /* of the distinct objects */
	bool too_many_logged;
	struct validation_set last;
};

/* Effect of waiting for one token. */
struct token_prospect {
	bool suffices;              /* none: the token is valid, or the missing data is not published */
	struct known_path *awaited; /* path whose missing data may become available; NULL: none */
};

/* Finds the revocation data (CRLs and OCSP responses only) for a token with that path (DER, from
 * the authority's certificate up) and time: a minimal set, or an empty one if nothing is available.
 * Valid until the next call. ERR_NO_MEMORY. May block on responses. */
int token_revocations_find(struct token_revocations *all, struct slice path, int64_t gen_time_us,
                           const struct validation_set **ret_set,
                           struct token_prospect *ret_prospect, struct error *error) MUST_CHECK;
/* Checks whether a round with these tokens can go into the archive now. ERR_UNAVAILABLE: no token
 * suffices, certification.level requires more than a timestamp, an authority publishes the missing
 * data but did not deliver it, and the certification has not waited long enough for it. */
int token_revocations_check_round(struct token_revocations *all,
                                  const struct token_prospect *tokens, size_t count,
                                  struct error *error) MUST_CHECK;
void token_revocations_free(struct token_revocations *all);

#endif
