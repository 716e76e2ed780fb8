/* What a timestamp token needs beside it to show that its certificates were not revoked. Thousands
 * of tokens may share a path, and then what validates one validates the next. Pure. Thread safe. */
#ifndef SEAL_REVOCATION_TOKEN_H
#define SEAL_REVOCATION_TOKEN_H

#include "seal/revocation.h"

enum token_standing {
	TOKEN_LEFT_OPEN, /* nothing shows it, or not of all its certificates */
	TOKEN_GOOD,
	TOKEN_REVOKED,
};

struct token_verdict {
	enum token_standing standing;
	struct certificate_facts certificate; /* which is lacking or revoked; unless TOKEN_GOOD */
	enum revocation_outcome outcome;      /* of it */
	int64_t revoked_us;                   /* TOKEN_REVOKED: of the first that was */
	char cause[REVOCATION_CAUSE_SIZE];
	/* TOKEN_GOOD: for every time up to this one the answer is the same; TIME_NONE: not known. */
	int64_t same_until_us;
};

/* Judges the path (DER, from the authority's certificate to the root) of a token that says the
 * time itself (struct revocation_moment), and takes out of the set whatever is superfluous: what
 * could be missing, and each certificate would still be good, or revoked, or left open, as it is.
 * 0, ERR_INVALID_EVIDENCE: it is no path, or of more than REVOCATION_PATH_MAX; ERR_NO_MEMORY. */
int revocation_judge_token(struct slice path, int64_t gen_time_us, struct validation_set *set,
                           struct token_verdict *ret_verdict, struct error *error) MUST_CHECK;

#endif
