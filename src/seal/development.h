/* Keys and certificates for development, including OCSP responders. For src/seal only; called in
 * the signing process. */
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
	const char *former_roots; /* roots created before responders existed; may be absent */
};
extern const struct development_names development_names[DEVELOPMENT_KINDS];

/* Creates missing files. The private keys of the roots are discarded after signing, so a directory
 * without responders gets new roots and keys; signatures under the previous roots remain verifiable
 * with those. Returns 0, ERR_IO or ERR_INTERNAL. */
int development_create(const char *directory, struct error *error) MUST_CHECK;
/* Appends the former roots as PEM; nothing if there are none. */
int development_append_former_roots(const char *directory, const struct development_names *names,
                                    struct buf *out, struct error *error) MUST_CHECK;

#endif
