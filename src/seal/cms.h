/* Detached CAdES-B, CAdES-T and CAdES-LT signatures (ETSI EN 319 122-1): for PDF
 * (ETSI.CAdES.detached) and for the META-INF p7s files of ASiC-E containers. No I/O of its own.
 * Thread safe.
 *
 * DER CMS SignedData (RFC 5652) with one signer, SHA-256, the signed attributes content-type,
 * message-digest, signing-certificate-v2 and, when asked for, signing-time (a baseline signature
 * must have it in a container, EN 319 122-1 section 6.3, and must not in a PDF, EN 319 142-1
 * section 6.3), all certificates given, and, when asked for, one signature-time-stamp attribute and
 * the CRLs and OCSP responses that validate signature and timestamp.
 * The key stays behind a function. */
#ifndef SEAL_CMS_H
#define SEAL_CMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"
#include "seal/signer.h"
#include "seal/timestamp.h"

struct validation_set; /* seal/validation.h */

#define CMS_SIZE_MAX ((size_t)131072)         /* without validation data */
#define CMS_INSIDE_SIZE_MAX ((size_t)8 << 20) /* of what validates one document and is in it */
#define CMS_LASTING_SIZE_MAX (CMS_SIZE_MAX + CMS_INSIDE_SIZE_MAX)

/* Signs `bytes` with SHA-256 by the first certificate's key and appends the signature value. 0 or
 * ERR_*. */
typedef int (*cms_sign_function)(void *context, struct slice bytes, struct buf *out,
                                 struct error *error);
/* Appends a DER timestamp token over `imprint`. 0 or ERR_*. */
typedef int (*cms_timestamp_function)(void *context, const struct sha256 *imprint, struct buf *out,
                                      struct error *error);

/* Called once the signature is made: puts into the empty set all that validates it and its
 * timestamp; leaves it empty where that cannot be had. 0 or ERR_*, which ends the signing. */
typedef int (*cms_collect_function)(void *context, struct validation_set *set, struct error *error);

struct cms_signing {
	struct slice certificates_pem; /* signer first, then its issuers */
	cms_sign_function sign;
	void *sign_context;
	cms_timestamp_function timestamp; /* NULL: CAdES-B */
	void *timestamp_context;
	cms_collect_function collect; /* NULL: nothing of the kind goes inside; needs a timestamp */
	void *collect_context;
};

/* Signs content whose SHA-256 is `digest` (a caller streams it with digest_add) and appends the
 * CMS. signing_time_us is written in whole seconds; TIME_NONE: no such attribute. 0, what the
 * callbacks answered, ERR_REFUSED for unusable certificates, ERR_TOO_LARGE for more validation data
 * than CMS_INSIDE_SIZE_MAX, ERR_NO_MEMORY. */
int cms_create(const struct sha256 *digest, int64_t signing_time_us,
               const struct cms_signing *signing, struct buf *out, struct error *error) MUST_CHECK;

/* The same over content that is inside, so that the CMS is the whole document. ERR_TOO_LARGE: more
 * than CMS_CONTENT_SIZE_MAX. */
#define CMS_CONTENT_SIZE_MAX ((size_t)6 << 20)
int cms_create_attached(struct slice content, int64_t signing_time_us,
                        const struct cms_signing *signing, struct buf *out, struct error *error)
	MUST_CHECK;

struct cms_facts {
	struct certificate_facts signer;
	bool trusted;            /* the signer leads to a root the caller gave */
	int64_t signing_time_us; /* as the signer states it; TIME_NONE: not stated */
	bool has_timestamp;
	struct timestamp_facts timestamp; /* has its own `trusted` */
};

/* Verifies strictly; bytes after the DER are refused. Signer and timestamp must each chain to a
 * root of their own kind, the signer as of the timestamp's time or, without one, as the roots say.
 * Where no roots of a kind are given, or tolerant ones do not fit: against the certificates inside,
 * integrity alone, `trusted` false. The signer's certificate must be one for signing documents
 * (certificate.h). 0 or ERR_INVALID_EVIDENCE, or ERR_VALIDATION for unusable roots, with the cause.
 */
int cms_verify(struct slice cms, const struct sha256 *digest, const struct trust_roots *roots,
               struct cms_facts *ret_facts, struct error *error) MUST_CHECK;

/* The same of a CMS with its content inside, without revocation data; appends the content. */
int cms_verify_attached(struct slice cms, const struct trust_roots *roots,
                        struct cms_facts *ret_facts, struct buf *content, struct error *error)
	MUST_CHECK;

/* Where the paths went that were verified, as struct timestamp_path has them: for who judges them
 * further. */
#define CMS_PATH_SIZE_MAX ((size_t)256 << 10)
struct cms_paths {
	struct buf signer;
	struct buf authority; /* of the signature's timestamp; stays empty without one */
	/* Takes what validates both and is inside; NULL: nothing about revocation may be. */
	struct validation_set *inside;
};
/* The same, and appends to the paths. */
int cms_verify_along(struct slice cms, const struct sha256 *digest, const struct trust_roots *roots,
                     struct cms_paths *paths, struct cms_facts *ret_facts, struct error *error)
	MUST_CHECK;

/* Appends the paths inside (certificate_path_inside), which are the same whomever one trusts:
 * unverified. Leaves paths->inside alone. 0, ERR_NO_MEMORY or ERR_INVALID_EVIDENCE. */
int cms_find_paths_inside(struct slice cms, struct cms_paths *paths, struct error *error)
	MUST_CHECK;

/* Size of the DER element that `padded` (a PDF's /Contents) begins with; 0 when it is none. What
 * follows is for the caller to judge. */
size_t cms_size(struct slice padded);

/* A ready cms_sign_function over the signer process: context is a struct cms_signer. */
struct cms_signer {
	struct signer *signer;
	enum signer_purpose purpose;
};
int cms_sign_with_signer(void *context, struct slice bytes, struct buf *out, struct error *error)
	MUST_CHECK;

#endif
