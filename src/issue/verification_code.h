/* Verification codes and digests as people type and paste them. Pure. */
#ifndef ISSUE_VERIFICATION_CODE_H
#define ISSUE_VERIFICATION_CODE_H

#include "base/buf.h"
#include "base/digest.h"
#include "store/certifications/certifications.h"

#define VERIFICATION_TYPED_MAX 1024 /* bytes; more is no code */

struct verification_codes {
	size_t count; /* 0: it is no code */
	/* As certifications have them. Two where a prefix ends with "TEST", which without its hyphens
	 * reads like the mark of the test mode. */
	char codes[2][VERIFICATION_CODE_SIZE];
	bool is_certain; /* the hyphens or spaces typed say that it is the first */
};

/* Undoes what typing, copying and mail programs do to a code: its case, full-width characters,
 * spaces and hyphens of any kind, missing hyphens, line breaks and the marks that mail programs put
 * at them, punctuation around it. No other character is passed over: two codes that differ in a
 * letter or digit never become one. */
struct verification_codes verification_code_read(struct slice typed);

/* The same of a SHA-256 in hexadecimal, in which spaces may stand. */
bool verification_digest_read(struct slice typed, struct sha256 *ret_digest) MUST_CHECK;

#endif
