/* Parses verification codes and digests as users type and paste them. Pure. */
#ifndef ISSUE_VERIFICATION_CODE_H
#define ISSUE_VERIFICATION_CODE_H

#include "base/buf.h"
#include "base/digest.h"
#include "store/certifications/certifications.h"

#define VERIFICATION_TYPED_MAX 1024 /* bytes; longer texts are not codes */

struct verification_codes {
	size_t count; /* 0: not a code */
	/* Canonical codes. There are two if a prefix ends with "TEST", which without its hyphens looks
	 * like the mark of the test mode. */
	char codes[2][VERIFICATION_CODE_SIZE];
	bool is_certain; /* hyphens or spaces in the input show that it is the first */
};

/* Removes the effects of typing, copying and mail programs from a code: case, full-width
 * characters, spaces and hyphens of any kind, missing hyphens, line breaks with the marks of mail
 * programs, and surrounding punctuation. No other character is ignored: two codes that differ in a
 * letter or digit never match. */
struct verification_codes verification_code_read(struct slice typed);

/* Does the same for a SHA-256 in hexadecimal, which may contain spaces. */
bool verification_digest_read(struct slice typed, struct sha256 *ret_digest) MUST_CHECK;

#endif
