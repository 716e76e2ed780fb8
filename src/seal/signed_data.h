/* CMS SignedData (RFC 5652) in the profile of timestamp tokens and of our own signatures: X.509
 * certificates, and one signer identified by issuer and serial number. Tokens may contain other
 * kinds of certificates, which are not parsed. For src/seal only.
 *
 * OpenSSL's CMS and PKCS#7 types hide version fields and accept much more. The structure is
 * therefore declared here with OpenSSL's templates; anything else does not parse. */
#ifndef SEAL_SIGNED_DATA_H
#define SEAL_SIGNED_DATA_H

#include <openssl/asn1t.h>
#include <openssl/pkcs7.h>
#include <openssl/x509.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"
#include "seal/certificate.h"

#define SIGNED_DATA_SIZE_MAX ((size_t)131072) /* without validation data */

typedef struct {
	ASN1_INTEGER *version;
	PKCS7_ISSUER_AND_SERIAL *sid;
	X509_ALGOR *digest_algorithm;
	STACK_OF(X509_ATTRIBUTE) * signed_attributes;
	X509_ALGOR *signature_algorithm;
	ASN1_OCTET_STRING *signature;
	STACK_OF(X509_ATTRIBUTE) * unsigned_attributes; /* NULL: none */
} SignerInfo;
DEFINE_STACK_OF(SignerInfo)
DECLARE_ASN1_FUNCTIONS(SignerInfo)

typedef struct {
	ASN1_OBJECT *type;
	ASN1_OCTET_STRING *content; /* NULL: detached */
} EncapsulatedContent;

/* CertificateChoices (RFC 5652 section 10.2.2), in the order of its alternatives. */
enum certificate_choice {
	CHOICE_X509,
	CHOICE_EXTENDED,
	CHOICE_ATTRIBUTE_V1,
	CHOICE_ATTRIBUTE_V2,
	CHOICE_OTHER
};
typedef struct {
	int type;
	union {
		X509 *certificate;
		ASN1_STRING *unread; /* its DER, with the tag of the alternative */
	} d;
} CertificateChoice;
DEFINE_STACK_OF(CertificateChoice)
DECLARE_ASN1_ALLOC_FUNCTIONS(CertificateChoice)

typedef struct {
	ASN1_INTEGER *version;
	STACK_OF(X509_ALGOR) * digest_algorithms;
	EncapsulatedContent *encapsulated;
	STACK_OF(CertificateChoice) * choices;
	STACK_OF(X509) * certificates;     /* the X.509 certificates of `choices`, which own them */
	STACK_OF(ASN1_TYPE) * revocations; /* NULL: none; unparsed */
	STACK_OF(SignerInfo) * signers;
} SignedData;

typedef struct {
	ASN1_OBJECT *type;
	SignedData *data;
} SignedContent;
DECLARE_ASN1_FUNCTIONS(SignedContent)

static inline void signed_content_cleanup(SignedContent **content)
{
	SignedContent_free(*content);
}
#define SIGNED_CONTENT_AUTO __attribute__((cleanup(signed_content_cleanup)))

/* Parses a signature of our own: strict DER without trailing bytes, X.509 certificates only. */
int signed_content_parse(struct slice der, SignedContent **ret_content, struct error *error)
	MUST_CHECK;
/* Parses a token: BER without trailing bytes; certificates of other kinds are kept unparsed. */
int signed_content_parse_ber(struct slice ber, SignedContent **ret_content, struct error *error)
	MUST_CHECK;
/* Appends the DER. */
int signed_content_write(const SignedContent *content, struct buf *out) MUST_CHECK;
static inline SignerInfo *signed_content_signer(const SignedContent *content)
{
	return sk_SignerInfo_value(content->data->signers, 0);
}

/* Appends a certificate and takes ownership. Returns false without memory; the caller keeps it
 * then. */
bool signed_content_add_certificate(SignedContent *content, X509 *certificate) MUST_CHECK;

/* Returns the signer's certificate if it is inside; NULL: it is not. */
X509 *signed_content_certificate(const SignedContent *content);

/* Appends the DER SET of signed attributes over which the signature is made (RFC 5652 section
 * 5.4). */
int signed_attributes_write(const STACK_OF(X509_ATTRIBUTE) * attributes, struct buf *out)
	MUST_CHECK;
/* Returns the first value of the first attribute of that kind; NULL: there is none. */
const ASN1_TYPE *signed_attribute(const STACK_OF(X509_ATTRIBUTE) * attributes, int nid);
/* Parses a SET of attributes. Returns NULL on an error; accepts BER and trailing bytes. */
STACK_OF(X509_ATTRIBUTE) * signed_attributes_read(struct slice der);

/* Verifies everything except the path: content type, versions, algorithms, signed attributes,
 * digest and signature. `detached` is the digest of external content; NULL: the content is inside.
 * The signer's certificate belongs to `content`. */
int signed_content_verify(const SignedContent *content, int type_nid, const struct sha256 *detached,
                          X509 **ret_signer, struct error *error) MUST_CHECK;

/* Verifies the path (certificate_path) over the certificates inside and `external` (external
 * certificates; NULL: none), and the signing-certificate attribute against it
 * (signing_certificate.h). The caller owns the path; ret_path may be NULL.
 *
 * With ret_trusted NULL, a path that does not lead to `roots` is an error. Otherwise every
 * certificate of `roots` is a trust anchor, and a path that leads to none of them but is valid with
 * the certificates inside is returned with *ret_trusted false, as without roots. */
int signed_content_verify_path(const SignedContent *content, X509 *signer,
                               const STACK_OF(X509) * external, const STACK_OF(X509) * roots,
                               enum path_purpose purpose, int64_t time_us, bool *ret_trusted,
                               STACK_OF(X509) * *ret_path, struct error *error) MUST_CHECK;

#endif
