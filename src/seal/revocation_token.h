/* The revocation data that shows that a timestamp token's certificates were not revoked. Thousands
 * of tokens may share a path and hence the data. Thread safe. */
#ifndef SEAL_REVOCATION_TOKEN_H
#define SEAL_REVOCATION_TOKEN_H

#include "seal/revocation.h"

enum token_state {
	TOKEN_UNDECIDED, /* not shown for all of its certificates */
	TOKEN_GOOD,
	TOKEN_REVOKED,
};

struct token_verdict {
	enum token_state standing;
	struct certificate_facts
		certificate; /* the certificate that is undecided or revoked; unset for TOKEN_GOOD */
	enum revocation_outcome outcome; /* of that certificate */
	int64_t revoked_us;              /* TOKEN_REVOKED: time of the earliest revocation */
	char cause[REVOCATION_CAUSE_SIZE];
	/* TOKEN_GOOD: the verdict is the same for every token up to this time; TIME_NONE: unknown. */
	int64_t same_until_us;
};

/* Determines the verdict on a token's path (DER, from the authority's certificate to the root); the
 * token states the time itself (struct revocation_moment). Removes from the set every object
 * without which each certificate keeps its state: good, revoked or undecided. Returns 0;
 * ERR_INVALID_EVIDENCE: not a path, or more than REVOCATION_PATH_MAX certificates;
 * ERR_NO_MEMORY. */
int revocation_judge_token(struct slice path, int64_t gen_time_us, struct validation_set *set,
                           struct token_verdict *ret_verdict, struct error *error) MUST_CHECK;

#endif
