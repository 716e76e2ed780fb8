/* The public verification page's lookup of codes and digests. */
#ifndef ISSUE_VERIFICATION_H
#define ISSUE_VERIFICATION_H

#include "service/service.h"

/* What the public verification page says of a code, as people type and paste it
 * (verification_code.h), or (`digest` not NULL) of a file's SHA-256; JSON, ERR_NOT_FOUND. */
int verification_lookup(struct service *service, struct slice typed, const struct sha256 *digest,
                        struct buf *out, struct error *error) MUST_CHECK;

#endif
