/* Certificates, signatures and timestamps made by a party that is not the one it claims to be. */
#ifndef TEST_FORGER_H
#define TEST_FORGER_H

#include <openssl/x509.h>

#include "seal/cms.h"

#define CA "basicConstraints=critical,CA:TRUE"
#define CA_USAGE "keyUsage=critical,keyCertSign"
#define LEAF "basicConstraints=critical,CA:FALSE"
#define SIGNS "keyUsage=critical,digitalSignature"
#define STAMPS "extendedKeyUsage=critical,timeStamping"

struct forger_plan {
	const char *name;
	const char *organization; /* NULL: none */
	int rsa_bits;             /* 0: P-256 */
	const EVP_MD *digest;     /* its issuer signs with; NULL: SHA-256 */
	int from_days, to_days;   /* from now; both 0: -1 to 30 */
	/* Extensions as in openssl.cnf, "name=value" each; NULL ends the list. */
	const char *extensions[5];
};

struct forger_holder {
	X509 *certificate;
	EVP_PKEY *key;
	const struct forger_holder *issuer; /* NULL: itself */
};

void forger_issue(const struct forger_plan *plan, const struct forger_holder *issuer,
                  struct forger_holder *ret_holder);
void forger_free(struct forger_holder *holder);
/* The holder's certificate, then those above it without the root; or the root alone. */
void forger_chain(const struct forger_holder *holder, struct buf *out);
void forger_root(const struct forger_holder *holder, struct buf *out);
/* Writes `others` and the holder's root to the buf, and returns them as roots for every purpose,
 * valid as long as the buf. */
struct trust_roots forger_trust(const struct forger_holder *holder, struct slice others,
                                struct buf *ret_pem);
void forger_certificate(const struct forger_holder *holder, struct buf *out); /* its own alone */
/* A cms_sign_function; the context is the holder. */
int forger_sign(void *context, struct slice bytes, struct buf *out, struct error *error);

/* A cms_timestamp_function; the context is a struct forger_authority. */
struct forger_authority {
	const struct forger_holder *holder;
	int64_t offset_us; /* of its clock */
	int accuracy_seconds;
	bool alone;            /* it puts no issuer's certificate into its tokens */
	const char *name;      /* a common name for tsa; NULL: no tsa */
	const char *extension; /* of the TSTInfo, as in openssl.cnf, "name=value"; NULL: none */
};
int forger_stamp(void *context, const struct sha256 *imprint, struct buf *out, struct error *error);

#endif
