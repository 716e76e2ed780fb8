/* Keys and certificates for development, and who says that they were not revoked. Inside src/seal
 * only; called in the signer process. */
#ifndef SEAL_DEVELOPMENT_H
#define SEAL_DEVELOPMENT_H

#include "base/buf.h"
#include "base/error.h"

enum { DEVELOPMENT_REPORT, DEVELOPMENT_TIMESTAMP, DEVELOPMENT_KINDS };

/* Files in the directory. */
struct development_names {
	const char *root;
	const char *signer;       /* certificate and key */
	const char *responder;    /* certificate and key of the root's OCSP responder (responder.h) */
	const char *former_roots; /* of the time before there were responders; may be absent */
};
extern const struct development_names development_names[DEVELOPMENT_KINDS];

/* Makes what is missing in the directory. The roots' keys are forgotten once they have signed: a
 * directory without responders gets new roots and new keys, and what its former roots vouched for
 * stays verifiable by them. 0, ERR_IO or ERR_INTERNAL. */
int development_create(const char *directory, struct error *error) MUST_CHECK;
/* Appends them, as PEM; nothing when there are none. */
int development_former_roots(const char *directory, const struct development_names *names,
                             struct buf *out, struct error *error) MUST_CHECK;

#endif
