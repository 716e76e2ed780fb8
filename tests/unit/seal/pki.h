/* Certificates, CRLs and OCSP answers with any times and faults, made by OpenSSL. Asserts with
 * cmocka. */
#ifndef TESTS_SEAL_PKI_H
#define TESTS_SEAL_PKI_H

#include <openssl/ocsp.h>
#include <openssl/x509v3.h>

#include "base/buf.h"
#include "base/clock.h"

struct pki_extension {
	const char *name;  /* NULL: end of the list */
	const char *value; /* in the syntax of OpenSSL's configuration */
};
extern const struct pki_extension pki_authority[], pki_leaf[];

struct pki_identity {
	X509 *certificate;
	EVP_PKEY *key;
};
struct pki_certificate {
	const char *name;
	const struct pki_identity *issuer; /* NULL: itself */
	const struct pki_extension *extensions;
	int64_t from_us, to_us; /* 0: a hundred years around now */
	EVP_PKEY *key;          /* NULL: a new one of P-256; otherwise ownership is taken */
};
struct pki_identity pki_issue(const struct pki_certificate *wanted);
void pki_free(struct pki_identity *identity);
/* Appends the PEM of each. */
void pki_path(struct buf *out, const struct pki_identity *const *path, size_t count);
/* Appends the DER of each. */
void pki_ders(struct buf *out, const struct pki_identity *const *path, size_t count);

struct pki_crl {
	const struct pki_identity *issuer;
	X509 *revoked; /* NULL: none */
	int64_t revoked_us;
	int64_t invalid_us; /* 0: not stated */
	int reason;         /* -1: not stated */
	int64_t issued_us;
	int64_t next_us; /* TIME_NONE: not stated */
	const struct pki_extension *extensions;
	const struct pki_extension *entry_extensions;
	const EVP_MD *digest; /* NULL: SHA-256 */
	size_t others;        /* number of further revoked certificates */
};
/* Replaces the content by the DER. */
void pki_crl(struct buf *out, const struct pki_crl *wanted);

struct pki_ocsp {
	const struct pki_identity *issuer;
	const struct pki_identity *responder; /* NULL: the issuer */
	X509 *certificate;
	int status; /* V_OCSP_CERTSTATUS_… */
	int reason;
	int64_t revoked_us;
	int64_t issued_us;
	int64_t next_us;         /* TIME_NONE: not stated */
	int64_t produced_us;     /* 0: issued_us */
	const EVP_MD *digest;    /* of the signature; NULL: SHA-256 */
	const EVP_MD *id_digest; /* NULL: SHA-1 */
	bool by_key, without_certificate, twice, critical;
};
void pki_ocsp(struct buf *out, const struct pki_ocsp *wanted);

#endif
