/* Detached CAdES-B, CAdES-T and CAdES-LT signatures (ETSI EN 319 122-1): for PDF
 * (ETSI.CAdES.detached) and for the META-INF p7s files of ASiC-E containers. No I/O of its own.
 * Thread safe.
 *
 * The format is DER CMS SignedData (RFC 5652) with one signer, SHA-256, the signed attributes
 * content-type, message-digest, signing-certificate-v2 and optionally signing-time, and all given
 * certificates. A baseline signature must have signing-time in a container (EN 319 122-1 section
 * 6.3) and must not in a PDF (EN 319 142-1 section 6.3). Optional are a signature-time-stamp
 * attribute, and the CRLs and OCSP responses that validate signature and timestamp.
 *
 * The signing key is accessed through a callback only. */
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

struct validation_set; /* seal/validation_set.h */

#define CMS_SIZE_MAX ((size_t)131072)             /* without validation data */
#define CMS_VALIDATION_SIZE_MAX ((size_t)8 << 20) /* of validation data inside a document */
#define CMS_LT_SIZE_MAX (CMS_SIZE_MAX + CMS_VALIDATION_SIZE_MAX)

/* Signs `bytes` with SHA-256 and the key of the first certificate, and appends the signature value.
 * Returns 0 or ERR_*. */
typedef int (*cms_sign_function)(void *context, struct slice bytes, struct buf *out,
                                 struct error *error);
/* Appends a DER timestamp token over `imprint`. Returns 0 or ERR_*. */
typedef int (*cms_timestamp_function)(void *context, const struct sha256 *imprint, struct buf *out,
                                      struct error *error);

/* Called after signing: adds to the empty set everything that validates the signature and its
 * timestamp, or leaves it empty when that is unavailable. Returns 0 or ERR_*, which aborts the
 * signing. */
typedef int (*cms_collect_function)(void *context, struct validation_set *set, struct error *error);

struct cms_signing {
	struct slice certificates_pem; /* signer first, then its issuers */
	cms_sign_function sign;
	void *sign_context;
	cms_timestamp_function timestamp; /* NULL: CAdES-B */
	void *timestamp_context;
	cms_collect_function collect; /* NULL: no validation data; requires a timestamp */
	void *collect_context;
};

/* Signs content by its SHA-256 `digest` and appends the CMS. signing_time_us is written in whole
 * seconds; TIME_NONE: no such attribute. Returns 0, the error of a callback, ERR_REFUSED for
 * unusable certificates, ERR_TOO_LARGE for more than CMS_VALIDATION_SIZE_MAX of validation data, or
 * ERR_NO_MEMORY. */
int cms_create(const struct sha256 *digest, int64_t signing_time_us,
               const struct cms_signing *signing, struct buf *out, struct error *error) MUST_CHECK;

/* The same with the content inside, so that the CMS is the complete document. ERR_TOO_LARGE: the
 * content exceeds CMS_CONTENT_SIZE_MAX. */
#define CMS_CONTENT_SIZE_MAX ((size_t)6 << 20)
int cms_create_attached(struct slice content, int64_t signing_time_us,
                        const struct cms_signing *signing, struct buf *out, struct error *error)
	MUST_CHECK;

struct cms_facts {
	struct certificate_facts signer;
	bool trusted;            /* the signer's path leads to a root that the caller gave */
	int64_t signing_time_us; /* claimed by the signer; TIME_NONE: absent */
	bool has_timestamp;
	struct timestamp_facts timestamp; /* has a `trusted` of its own */
};

/* Verifies strictly; trailing bytes are an error. Signer and timestamp must each lead to a root of
 * their own kind. The signer's path is checked at the time of the timestamp or, without one, as the
 * roots specify. Without roots of a kind, or with tolerant roots that do not match, the
 * certificates inside are used: integrity only, `trusted` is false. The signer's certificate must
 * allow signing documents (certificate.h). Returns 0, ERR_INVALID_EVIDENCE, or ERR_VALIDATION for
 * unusable roots, with the cause. */
int cms_verify(struct slice cms, const struct sha256 *digest, const struct trust_roots *roots,
               struct cms_facts *ret_facts, struct error *error) MUST_CHECK;

/* The same for a CMS with its content inside and without revocation data; appends the content. */
int cms_verify_attached(struct slice cms, const struct trust_roots *roots,
                        struct cms_facts *ret_facts, struct buf *content, struct error *error)
	MUST_CHECK;

/* The verified paths, as in struct timestamp_path, for further checks by the caller. */
#define CMS_PATH_SIZE_MAX ((size_t)256 << 10)
struct cms_paths {
	struct buf signer;
	struct buf authority; /* of the signature's timestamp; empty without one */
	/* Receives the validation data inside; NULL: revocation data inside is an error. */
	struct validation_set *inside;
};
/* The same as cms_verify; also appends the paths. */
int cms_verify_paths(struct slice cms, const struct sha256 *digest, const struct trust_roots *roots,
                     struct cms_paths *paths, struct cms_facts *ret_facts, struct error *error)
	MUST_CHECK;

/* Appends the unverified paths within the CMS (certificate_embedded_path), independently of trusted
 * roots. Does not use paths->inside. Returns 0, ERR_NO_MEMORY or ERR_INVALID_EVIDENCE. */
int cms_find_embedded_paths(struct slice cms, struct cms_paths *paths, struct error *error)
	MUST_CHECK;

/* Returns the size of the DER element at the start of `padded` (a PDF's /Contents), or 0 if there
 * is none. The caller checks the bytes that follow. */
size_t cms_size(struct slice padded);

/* A cms_sign_function that uses the signing process; the context is a struct cms_signer. */
struct cms_signer {
	struct signer *signer;
	enum signer_purpose purpose;
};
int cms_sign_with_signer(void *context, struct slice bytes, struct buf *out, struct error *error)
	MUST_CHECK;

#endif
