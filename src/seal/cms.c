#include "seal/cms.h"

#include <openssl/err.h>
#include <openssl/ess.h>
#include <time.h>

#include "base/clock.h"
#include "seal/signed_data.h"
#include "seal/signed_validation.h"
#include "seal/validation_set.h"

#define DAY_SECONDS INT64_C(86400)

static bool set_algorithm(X509_ALGOR *algorithm, int nid, int parameter_type)
{
	return X509_ALGOR_set0(algorithm, OBJ_nid2obj(nid), parameter_type, NULL) == 1;
}

/* ECDSA has no parameters, RSA NULL (RFC 5754 section 3). */
static bool set_signature_algorithm(X509_ALGOR *algorithm, const X509 *certificate)
{
	const EVP_PKEY *key = X509_get0_pubkey(certificate);

	if (key && EVP_PKEY_get_base_id(key) == EVP_PKEY_EC)
		return set_algorithm(algorithm, NID_ecdsa_with_SHA256, V_ASN1_UNDEF);
	return key && EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA &&
	       set_algorithm(algorithm, NID_sha256WithRSAEncryption, V_ASN1_NULL);
}

static bool set_signer_id(PKCS7_ISSUER_AND_SERIAL *sid, const X509 *certificate)
{
	ASN1_INTEGER *serial = ASN1_INTEGER_dup(X509_get0_serialNumber(certificate));

	if (!serial)
		return false;
	ASN1_INTEGER_free(sid->serial);
	sid->serial = serial;
	return X509_NAME_set(&sid->issuer, X509_get_issuer_name(certificate)) == 1;
}

/* signing-certificate-v2 (RFC 5035): SHA-256 is its default and therefore not written. */
static bool add_signing_certificate(STACK_OF(X509_ATTRIBUTE) * *attributes, const X509 *certificate)
{
	ESS_SIGNING_CERT_V2 *reference =
		OSSL_ESS_signing_cert_v2_new_init(EVP_sha256(), certificate, NULL, 1);
	unsigned char *der = NULL;
	int size = reference ? i2d_ESS_SIGNING_CERT_V2(reference, &der) : -1;
	bool added =
		size > 0 && X509at_add1_attr_by_NID(attributes, NID_id_smime_aa_signingCertificateV2,
	                                        V_ASN1_SEQUENCE, der, size);

	OPENSSL_free(der);
	ESS_SIGNING_CERT_V2_free(reference);
	return added;
}

/* UTCTime through 2049, GeneralizedTime after (RFC 5652 section 11.3). */
static ASN1_TIME *make_time(int64_t time_us)
{
	int64_t seconds = time_us / US_PER_SECOND;

	return ASN1_TIME_adj(NULL, 0, (int)(seconds / DAY_SECONDS), (long)(seconds % DAY_SECONDS));
}

static bool add_signing_time(STACK_OF(X509_ATTRIBUTE) * *attributes, int64_t time_us)
{
	if (time_us == TIME_NONE)
		return true;
	ASN1_TIME *time = make_time(time_us);
	bool added =
		time && X509at_add1_attr_by_NID(attributes, NID_pkcs9_signingTime, ASN1_STRING_type(time),
	                                    ASN1_STRING_get0_data(time), ASN1_STRING_length(time));
	ASN1_STRING_free(time);
	return added;
}

static bool add_attributes(SignerInfo *signer, const struct sha256 *digest, int64_t signing_time_us,
                           const X509 *certificate)
{
	STACK_OF(X509_ATTRIBUTE) **attributes = &signer->signed_attributes;

	/* With length -1 the value is the object itself. */
	return X509at_add1_attr_by_NID(attributes, NID_pkcs9_contentType, V_ASN1_OBJECT,
	                               (const unsigned char *)OBJ_nid2obj(NID_pkcs7_data), -1) &&
	       X509at_add1_attr_by_NID(attributes, NID_pkcs9_messageDigest, V_ASN1_OCTET_STRING,
	                               digest->bytes, SHA256_SIZE) &&
	       add_signing_time(attributes, signing_time_us) &&
	       add_signing_certificate(attributes, certificate);
}

static SignerInfo *make_signer(const struct sha256 *digest, int64_t signing_time_us,
                               const X509 *certificate)
{
	SignerInfo *signer = SignerInfo_new();

	if (signer && ASN1_INTEGER_set(signer->version, 1) == 1 &&
	    set_signer_id(signer->sid, certificate) &&
	    set_algorithm(signer->digest_algorithm, NID_sha256, V_ASN1_UNDEF) &&
	    set_signature_algorithm(signer->signature_algorithm, certificate) &&
	    add_attributes(signer, digest, signing_time_us, certificate))
		return signer;
	SignerInfo_free(signer);
	return NULL;
}

static bool add_digest_algorithm(SignedData *data)
{
	X509_ALGOR *algorithm = X509_ALGOR_new();

	if (algorithm && set_algorithm(algorithm, NID_sha256, V_ASN1_UNDEF) &&
	    sk_X509_ALGOR_push(data->digest_algorithms, algorithm))
		return true;
	X509_ALGOR_free(algorithm);
	return false;
}

static int compare_encodings(const X509 *const *a, const X509 *const *b)
{
	unsigned char *der_a = NULL;
	unsigned char *der_b = NULL;
	int size_a = i2d_X509(*a, &der_a);
	int size_b = i2d_X509(*b, &der_b);
	/* Neither is a prefix of the other, since both begin with their length. */
	int order = size_a > 0 && size_b > 0
	                ? memcmp(der_a, der_b, (size_t)(size_a < size_b ? size_a : size_b))
	                : 0;

	OPENSSL_free(der_a);
	OPENSSL_free(der_b);
	return order;
}

/* Builds everything except the signature. Takes the certificates and sorts them in DER order of a
 * SET. */
static SignedContent *make_content(const struct sha256 *digest, int64_t signing_time_us,
                                   STACK_OF(X509) * certificates)
{
	SIGNED_CONTENT_AUTO SignedContent *content = SignedContent_new();

	if (!content)
		return NULL;
	content->type = OBJ_nid2obj(NID_pkcs7_signed);
	content->data->encapsulated->type = OBJ_nid2obj(NID_pkcs7_data);
	SignerInfo *signer = make_signer(digest, signing_time_us, sk_X509_value(certificates, 0));
	if (!signer || !sk_SignerInfo_push(content->data->signers, signer)) {
		SignerInfo_free(signer);
		return NULL;
	}
	if (ASN1_INTEGER_set(content->data->version, 1) != 1 || !add_digest_algorithm(content->data))
		return NULL;
	sk_X509_set_cmp_func(certificates, compare_encodings);
	sk_X509_sort(certificates);
	while (sk_X509_num(certificates) > 0) {
		if (!signed_content_add_certificate(content, sk_X509_value(certificates, 0)))
			return NULL;
		sk_X509_shift(certificates);
	}
	SignedContent *made = content;
	content = NULL;
	return made;
}

static int sign_attributes(SignerInfo *signer, const struct cms_signing *signing,
                           struct error *error)
{
	BUF_AUTO struct buf attributes;
	BUF_AUTO struct buf signature;

	buf_init(&attributes, SIGNER_BYTES_MAX);
	buf_init(&signature, 4096);
	int result = signed_attributes_write(signer->signed_attributes, &attributes);
	if (!result)
		result = signing->sign(signing->sign_context, buf_slice(&attributes), &signature, error);
	if (!result)
		result = buf_check(&signature);
	if (!result && ASN1_STRING_set(signer->signature, signature.data, (int)signature.size) != 1)
		result = ERR_NO_MEMORY;
	return result;
}

/* The signature-time-stamp is over the signature's value (EN 319 122-1 section 5.3). */
static int add_timestamp(SignerInfo *signer, const struct cms_signing *signing, struct error *error)
{
	BUF_AUTO struct buf token;
	struct sha256 imprint = sha256_of(ASN1_STRING_get0_data(signer->signature),
	                                  (size_t)ASN1_STRING_length(signer->signature));

	buf_init(&token, TIMESTAMP_RESPONSE_MAX);
	int result = signing->timestamp(signing->timestamp_context, &imprint, &token, error);
	if (!result)
		result = buf_check(&token);
	if (!result && !X509at_add1_attr_by_NID(&signer->unsigned_attributes,
	                                        NID_id_smime_aa_timeStampToken, V_ASN1_SEQUENCE,
	                                        (const unsigned char *)token.data, (int)token.size))
		result = ERR_NO_MEMORY;
	return result;
}

static int add_validation(SignedContent *content, const struct cms_signing *signing,
                          struct error *error)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};

	int result = signing->collect(signing->collect_context, &set, error);
	if (!result && set.size_bytes > CMS_VALIDATION_SIZE_MAX)
		result = error_cause(error, ERR_TOO_LARGE,
		                     "the validation data of a signature has %zu bytes", set.size_bytes);
	if (!result)
		result = signed_validation_add(content, &set, error);
	return result;
}

static bool attach(SignedContent *content, struct slice bytes)
{
	EncapsulatedContent *encapsulated = content->data->encapsulated;

	encapsulated->content = ASN1_OCTET_STRING_new();
	return encapsulated->content &&
	       ASN1_OCTET_STRING_set(encapsulated->content, (const unsigned char *)bytes.data,
	                             (int)bytes.size) == 1;
}

/* `inside`: the content; NULL: it is detached. */
static int create(const struct sha256 *digest, const struct slice *inside, int64_t signing_time_us,
                  const struct cms_signing *signing, struct buf *out, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = NULL;

	int result = certificates_read(signing->certificates_pem, &certificates, error);
	if (result)
		return result == ERR_VALIDATION ? ERR_REFUSED : result;
	SIGNED_CONTENT_AUTO SignedContent *content =
		make_content(digest, signing_time_us, certificates);
	if (!content && openssl_failure(error, "signature") == ERR_NO_MEMORY)
		return ERR_NO_MEMORY;
	if (!content)
		return error_cause(error, ERR_REFUSED, "this certificate cannot be used for signatures");
	if (inside && !attach(content, *inside))
		return error_cause(error, ERR_NO_MEMORY, "the content of a signature");
	SignerInfo *signer = signed_content_signer(content);
	result = sign_attributes(signer, signing, error);
	if (!result && signing->timestamp)
		result = add_timestamp(signer, signing, error);
	if (!result && signing->collect)
		result = add_validation(content, signing, error);
	return !result ? signed_content_write(content, out) : result;
}

int cms_create(const struct sha256 *digest, int64_t signing_time_us,
               const struct cms_signing *signing, struct buf *out, struct error *error)
{
	return create(digest, NULL, signing_time_us, signing, out, error);
}

int cms_create_attached(struct slice content, int64_t signing_time_us,
                        const struct cms_signing *signing, struct buf *out, struct error *error)
{
	struct sha256 digest = sha256_of(content.data, content.size);

	if (content.size > CMS_CONTENT_SIZE_MAX)
		return error_cause(error, ERR_TOO_LARGE, "the content of a signature has %zu bytes",
		                   content.size);
	return create(&digest, &content, signing_time_us, signing, out, error);
}

/* Reads the only permitted unsigned attribute, signature-time-stamp, if present. */
static int read_timestamp(const SignerInfo *signer, struct slice *ret_token, struct error *error)
{
	const STACK_OF(X509_ATTRIBUTE) *attributes = signer->unsigned_attributes;

	*ret_token = slice_make(NULL, 0);
	if (!attributes)
		return 0;
	X509_ATTRIBUTE *attribute = sk_X509_ATTRIBUTE_value(attributes, 0);
	if (sk_X509_ATTRIBUTE_num(attributes) != 1 || X509_ATTRIBUTE_count(attribute) != 1 ||
	    OBJ_obj2nid(X509_ATTRIBUTE_get0_object(attribute)) != NID_id_smime_aa_timeStampToken)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "other unsigned attributes than one signature timestamp");
	const ASN1_TYPE *value = X509_ATTRIBUTE_get0_type(attribute, 0);
	if (value->type != V_ASN1_SEQUENCE)
		return error_cause(error, ERR_INVALID_EVIDENCE, "the signature timestamp is not a token");
	*ret_token = slice_make(ASN1_STRING_get0_data(value->value.sequence),
	                        (size_t)ASN1_STRING_length(value->value.sequence));
	return 0;
}

static int verify_timestamp(const SignerInfo *signer, const struct trust_roots *roots,
                            struct buf *path, struct cms_facts *facts, struct error *error)
{
	struct slice token;

	int result = read_timestamp(signer, &token, error);
	if (result || !token.data)
		return result;
	struct sha256 imprint = sha256_of(ASN1_STRING_get0_data(signer->signature),
	                                  (size_t)ASN1_STRING_length(signer->signature));
	facts->has_timestamp = true;
	struct timestamp_path along = {.complete = path, .tolerant = roots->tolerant};
	return timestamp_verify_token_path(token, &imprint, roots->timestamps, &along,
	                                   &facts->timestamp, error);
}

/* Accepts only the encoding that make_time writes. */
static int read_signing_time(const SignerInfo *signer, int64_t *ret_us, struct error *error)
{
	const STACK_OF(X509_ATTRIBUTE) *attributes = signer->signed_attributes;
	int at = X509at_get_attr_by_NID(attributes, NID_pkcs9_signingTime, -1);
	struct tm parts = {0};

	*ret_us = TIME_NONE;
	ERR_clear_error();
	if (at < 0)
		return 0;
	const ASN1_TYPE *value = X509_ATTRIBUTE_get0_type(X509at_get_attr(attributes, at), 0);
	bool is_time = value->type == V_ASN1_UTCTIME || value->type == V_ASN1_GENERALIZEDTIME;
	if (is_time && ASN1_TIME_to_tm(value->value.asn1_string, &parts) == 1) {
		int64_t time_us = (int64_t)timegm(&parts) * US_PER_SECOND;
		ASN1_TIME *again = make_time(time_us);
		if (again && ASN1_STRING_cmp(again, value->value.asn1_string) == 0)
			*ret_us = time_us;
		ASN1_STRING_free(again);
	}
	if (*ret_us == TIME_NONE)
		return openssl_failure(error, "the signing-time attribute is malformed");
	return 0;
}

static int read_inside(const SignedContent *content, struct validation_set *set,
                       struct error *error)
{
	if (!content->data->revocations)
		return 0;
	if (!set)
		return error_cause(error, ERR_INVALID_EVIDENCE, "the signed data contains revocation data");
	return signed_validation_read(content, set, error);
}

/* `detached`: the digest of external content; NULL: the content is inside. */
static int verify_content(const SignedContent *content, const struct sha256 *detached,
                          const struct trust_roots *roots, struct cms_paths *paths,
                          struct cms_facts *ret_facts, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *signer_roots = NULL;
	CERTIFICATES_AUTO STACK_OF(X509) *path = NULL;
	struct cms_facts facts = {.trusted = roots->signers.data != NULL};
	X509 *signer;

	int result = read_inside(content, paths ? paths->inside : NULL, error);
	if (!result)
		result = signed_content_verify(content, NID_pkcs7_data, detached, &signer, error);
	if (result)
		return result;
	SignerInfo *info = signed_content_signer(content);
	result = read_signing_time(info, &facts.signing_time_us, error);
	if (!result)
		result = verify_timestamp(info, roots, paths ? &paths->authority : NULL, &facts, error);
	if (!result && roots->signers.data)
		result = certificates_read(roots->signers, &signer_roots, error);
	if (!result)
		result = signed_content_verify_path(content, signer, NULL, signer_roots, PATH_SIGNATURE,
		                                    facts.has_timestamp ? facts.timestamp.gen_time_us
		                                    : roots->has_time   ? roots->at_us
		                                                        : TIME_NONE,
		                                    roots->tolerant ? &facts.trusted : NULL, &path, error);
	if (!result && paths)
		result = certificates_write_der(path, &paths->signer);
	if (!result)
		result = certificate_describe(signer, &facts.signer, error);
	if (!result)
		*ret_facts = facts;
	return result;
}

int cms_verify_paths(struct slice cms, const struct sha256 *digest, const struct trust_roots *roots,
                     struct cms_paths *paths, struct cms_facts *ret_facts, struct error *error)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	int result = signed_content_parse(cms, &content, error);

	return result ? result : verify_content(content, digest, roots, paths, ret_facts, error);
}

int cms_verify_attached(struct slice cms, const struct trust_roots *roots,
                        struct cms_facts *ret_facts, struct buf *content, struct error *error)
{
	SIGNED_CONTENT_AUTO SignedContent *parsed = NULL;
	struct cms_facts facts;
	int result = signed_content_parse(cms, &parsed, error);

	if (!result)
		result = verify_content(parsed, NULL, roots, NULL, &facts, error);
	if (result)
		return result;
	const ASN1_OCTET_STRING *inside = parsed->data->encapsulated->content;
	buf_add(content, ASN1_STRING_get0_data(inside), (size_t)ASN1_STRING_length(inside));
	result = buf_check(content);
	if (result)
		return content->full
		           ? error_cause(error, ERR_INVALID_EVIDENCE, "the signed content is too large")
		           : result;
	*ret_facts = facts;
	return OK;
}

static int write_path_inside(const SignedContent *content, struct buf *out, struct error *error)
{
	X509 *signer = signed_content_certificate(content);
	STACK_OF(X509) *path = NULL; /* its members are the content's */

	if (!signer)
		return error_cause(error, ERR_INVALID_EVIDENCE, "the signer's certificate is not inside");
	int result = certificate_embedded_path(signer, content->data->certificates, &path);
	if (!result)
		result = certificates_write_der(path, out);
	sk_X509_free(path);
	return result;
}

int cms_find_embedded_paths(struct slice cms, struct cms_paths *paths, struct error *error)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	struct slice token = {0};

	int result = signed_content_parse(cms, &content, error);
	if (!result)
		result = write_path_inside(content, &paths->signer, error);
	if (!result)
		result = read_timestamp(signed_content_signer(content), &token, error);
	return !result && token.data ? timestamp_embedded_path(token, &paths->authority, error)
	                             : result;
}

int cms_verify(struct slice cms, const struct sha256 *digest, const struct trust_roots *roots,
               struct cms_facts *ret_facts, struct error *error)
{
	return cms_verify_paths(cms, digest, roots, NULL, ret_facts, error);
}

size_t cms_size(struct slice padded)
{
	const unsigned char *start = (const unsigned char *)padded.data;
	const unsigned char *position = start;
	long size;
	int tag, class;

	if (padded.size == 0 || padded.size > LONG_MAX)
		return 0;
	int form = ASN1_get_object(&position, &size, &tag, &class, (long)padded.size);
	ERR_clear_error();
	if (form != V_ASN1_CONSTRUCTED || tag != V_ASN1_SEQUENCE || class != V_ASN1_UNIVERSAL)
		return 0;
	return (size_t)(position - start) + (size_t)size;
}

int cms_sign_with_signer(void *context, struct slice bytes, struct buf *out, struct error *error)
{
	struct cms_signer *signer = context;

	return signer_sign(signer->signer, signer->purpose, bytes, out, error);
}
