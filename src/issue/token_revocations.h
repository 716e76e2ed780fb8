/* What says whether the certificates of an archive's timestamps were revoked: got once for each
 * path that they have, when the archive is issued. One thread at a time. */
#ifndef ISSUE_TOKEN_REVOCATIONS_H
#define ISSUE_TOKEN_REVOCATIONS_H

#include "seal/revocation_token.h"
#include "seal/validation.h"

struct issue_work;

#define TOKEN_PATHS_MAX 32
#define TOKEN_REVOCATIONS_BYTES_MAX ((size_t)8 << 20) /* of all paths, each object once */

struct token_revocations {
	const struct issue_work *work;
	struct known_path {
		struct sha256 digest;
		struct validation_set set;     /* what could be had */
		bool unpublished;              /* all that is not in it is published nowhere */
		bool awaited;                  /* some of the rest may come: */
		char cause[ERROR_CAUSE_MAX];   /* why it did not */
		bool is_told;                  /* that it is not waited for */
		struct validation_set minimal; /* of it, for times up to: */
		int64_t minimal_until_us;
	} * paths;
	size_t count;
	size_t size_bytes; /* of their different objects */
	bool too_many_told;
	struct validation_set last;
};

/* What waiting could change for one token. */
struct token_prospect {
	bool suffices;              /* nothing: it is good, or nobody publishes what it lacks */
	struct known_path *awaited; /* what it lacks may come; NULL: it may not */
};

/* What a token of that path (DER, from the authority's certificate up) and time has to name, of
 * CRLs and OCSP answers alone: nothing superfluous, and nothing at all where nothing can be had.
 * Valid until the next call. ERR_NO_MEMORY. May wait for answers. */
int token_revocations_find(struct token_revocations *all, struct slice path, int64_t gen_time_us,
                           const struct validation_set **ret_set,
                           struct token_prospect *ret_prospect, struct error *error) MUST_CHECK;
/* Whether a round of these tokens can go into the archive now. ERR_UNAVAILABLE: none suffices,
 * certification.level asks for more than a timestamp, an authority publishes what is lacking and
 * did not give it, and the certification has not waited for it long enough. */
int token_revocations_check_round(struct token_revocations *all,
                                  const struct token_prospect *tokens, size_t count,
                                  struct error *error) MUST_CHECK;
void token_revocations_free(struct token_revocations *all);

#endif
