/* The public verification page's lookup of codes and digests. */
#ifndef ISSUE_VERIFICATION_H
#define ISSUE_VERIFICATION_H

#include "service/service.h"

/* Finds the certification of a verification code, as typed or pasted (verification_code.h), or
 * (`digest` not NULL) of a file's SHA-256, for the public verification page. Appends JSON.
 * ERR_NOT_FOUND. */
int verification_lookup(struct service *service, struct slice typed, const struct sha256 *digest,
                        struct buf *out, struct error *error) MUST_CHECK;

#endif
