/* Requests (PKCS#10) for the certificate of a signing key, and the key itself.
 *
 * The subject is that of a legal person (ETSI EN 319 412-3 section 4.2.1): country, organization,
 * identifier of the organization, common name. The requested key usage is contentCommitment alone
 * (EN 319 412-2, type A), which certificates for seals have and every verification accepts. */
#ifndef SEAL_SIGNING_REQUEST_H
#define SEAL_SIGNING_REQUEST_H

#include "base/buf.h"
#include "base/error.h"

struct signing_subject {
	const char *country;      /* ISO 3166-1: "ES" */
	const char *organization; /* registered name */
	const char *identifier;   /* EN 319 412-1 section 5.1.4: "VATES-B00000000"; NULL: none */
	const char *common_name;  /* NULL: the organization */
};

enum signing_key_kind { SIGNING_KEY_P256, SIGNING_KEY_RSA3072, SIGNING_KEY_KINDS };

struct signing_request {
	struct signing_subject subject;
	const char *key;            /* path of a PEM file, or a "pkcs11:" URI */
	const char *passphrase;     /* file as in key_source; NULL: none */
	enum signing_key_kind kind; /* of a key that is made */
};

/* Returns whether the key is on a token, so that it exists already. */
bool signing_request_is_on_token(const char *key);
/* Parses "p256" or "rsa3072". */
bool signing_key_kind_parse(const char *text, enum signing_key_kind *ret);
/* Checks one member of a subject. Returns NULL, or what it must be. */
const char *signing_subject_check_country(const char *text);
const char *signing_subject_check_identifier(const char *text);
const char *signing_subject_check_name(const char *text);

/* Checks all members. ERR_VALIDATION, with the option of the command line. */
int signing_request_check(const struct signing_subject *subject, struct error *error) MUST_CHECK;

/* Makes the key file of the request (0400, encrypted if there is a passphrase) unless it exists.
 * ERR_REFUSED, ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY. */
int signing_request_make_key(const struct signing_request *request, bool *ret_made,
                             struct error *error) MUST_CHECK;
/* Appends the request in PEM, signed by its key. ERR_VALIDATION: the subject is not valid;
 * otherwise as key_open. */
int signing_request_write(const struct signing_request *request, struct buf *out,
                          struct error *error) MUST_CHECK;

#endif
