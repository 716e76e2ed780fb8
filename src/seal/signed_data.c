#include "seal/signed_data.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "seal/ber.h"
#include "seal/cms.h"
#include "seal/signed_validation.h"
#include "seal/signing_certificate.h"

#define SIGNED_DATA_CERTIFICATES_MAX 16
#define SIGNED_DATA_ATTRIBUTES_MAX 16
#define RSA_BYTES_MAX 2048

/* clang-format off */
ASN1_SEQUENCE(SignerInfo) = {
	ASN1_SIMPLE(SignerInfo, version, ASN1_INTEGER),
	ASN1_SIMPLE(SignerInfo, sid, PKCS7_ISSUER_AND_SERIAL),
	ASN1_SIMPLE(SignerInfo, digest_algorithm, X509_ALGOR),
	ASN1_IMP_SET_OF(SignerInfo, signed_attributes, X509_ATTRIBUTE, 0),
	ASN1_SIMPLE(SignerInfo, signature_algorithm, X509_ALGOR),
	ASN1_SIMPLE(SignerInfo, signature, ASN1_OCTET_STRING),
	ASN1_IMP_SET_OF_OPT(SignerInfo, unsigned_attributes, X509_ATTRIBUTE, 1),
} ASN1_SEQUENCE_END(SignerInfo)
IMPLEMENT_ASN1_FUNCTIONS(SignerInfo)

DECLARE_ASN1_ITEM(EncapsulatedContent)
ASN1_SEQUENCE(EncapsulatedContent) = {
	ASN1_SIMPLE(EncapsulatedContent, type, ASN1_OBJECT),
	ASN1_EXP_OPT(EncapsulatedContent, content, ASN1_OCTET_STRING, 0),
} ASN1_SEQUENCE_END(EncapsulatedContent)

/* A SEQUENCE with an implicit tag keeps its bytes unparsed. */
DECLARE_ASN1_ITEM(CertificateChoice)
ASN1_CHOICE(CertificateChoice) = {
	ASN1_SIMPLE(CertificateChoice, d.certificate, X509),
	ASN1_IMP(CertificateChoice, d.unread, ASN1_SEQUENCE, 0),
	ASN1_IMP(CertificateChoice, d.unread, ASN1_SEQUENCE, 1),
	ASN1_IMP(CertificateChoice, d.unread, ASN1_SEQUENCE, 2),
	ASN1_IMP(CertificateChoice, d.unread, ASN1_SEQUENCE, 3),
} ASN1_CHOICE_END(CertificateChoice)
IMPLEMENT_ASN1_ALLOC_FUNCTIONS(CertificateChoice)

static ASN1_aux_cb keep_certificates;
/* Authorities list certificates in path order, not in the DER order of a SET; the order is
 * preserved. */
DECLARE_ASN1_ITEM(SignedData)
ASN1_SEQUENCE_cb(SignedData, keep_certificates) = {
	ASN1_SIMPLE(SignedData, version, ASN1_INTEGER),
	ASN1_SET_OF(SignedData, digest_algorithms, X509_ALGOR),
	ASN1_SIMPLE(SignedData, encapsulated, EncapsulatedContent),
	ASN1_IMP_SEQUENCE_OF(SignedData, choices, CertificateChoice, 0),
	ASN1_IMP_SET_OF_OPT(SignedData, revocations, ASN1_ANY, 1),
	ASN1_SET_OF(SignedData, signers, SignerInfo),
} ASN1_SEQUENCE_END_cb(SignedData, SignedData)

ASN1_SEQUENCE(SignedContent) = {
	ASN1_SIMPLE(SignedContent, type, ASN1_OBJECT),
	ASN1_EXP(SignedContent, data, SignedData, 0),
} ASN1_SEQUENCE_END(SignedContent)
IMPLEMENT_ASN1_FUNCTIONS(SignedContent)

ASN1_ITEM_TEMPLATE(SignedAttributes) =
	ASN1_EX_TEMPLATE_TYPE(ASN1_TFLG_SET_OF, 0, SignedAttributes, X509_ATTRIBUTE)
static_ASN1_ITEM_TEMPLATE_END(SignedAttributes)
	/* clang-format on */

	static int invalid(struct error * error, const char *reason)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "%s", reason);
}

/* Maintains `certificates`, which is not part of the encoding. */
static int keep_certificates(int operation, ASN1_VALUE **value, const ASN1_ITEM *item,
                             void *argument)
{
	SignedData *data = (SignedData *)*value;
	bool kept = true;

	(void)item, (void)argument;
	if (operation == ASN1_OP_FREE_PRE)
		sk_X509_free(data->certificates);
	if (operation == ASN1_OP_NEW_POST)
		kept = (data->certificates = sk_X509_new_null()) != NULL;
	for (int i = 0; operation == ASN1_OP_D2I_POST && i < sk_CertificateChoice_num(data->choices);
	     i++) {
		const CertificateChoice *choice = sk_CertificateChoice_value(data->choices, i);
		if (choice->type == CHOICE_X509)
			kept &= sk_X509_push(data->certificates, choice->d.certificate) > 0;
	}
	if (!kept)
		ERR_raise(ERR_LIB_ASN1, ERR_R_MALLOC_FAILURE);
	return kept;
}

int signed_content_write(const SignedContent *content, struct buf *out)
{
	unsigned char *der = NULL;
	int size = i2d_SignedContent(content, &der);

	if (size <= 0)
		return ERR_NO_MEMORY;
	buf_add(out, der, (size_t)size);
	OPENSSL_free(der);
	return buf_check(out);
}

STACK_OF(X509_ATTRIBUTE) * signed_attributes_read(struct slice der)
{
	const unsigned char *position = (const unsigned char *)der.data;

	return (STACK_OF(X509_ATTRIBUTE) *)ASN1_item_d2i(NULL, &position, (long)der.size,
	                                                 ASN1_ITEM_rptr(SignedAttributes));
}

int signed_attributes_write(const STACK_OF(X509_ATTRIBUTE) * attributes, struct buf *out)
{
	unsigned char *der = NULL;
	int size =
		ASN1_item_i2d((const ASN1_VALUE *)attributes, &der, ASN1_ITEM_rptr(SignedAttributes));

	if (size <= 0)
		return ERR_NO_MEMORY;
	buf_add(out, der, (size_t)size);
	OPENSSL_free(der);
	return buf_check(out);
}

static int check_encoding(const SignedContent *content, struct slice der, struct error *error)
{
	BUF_AUTO struct buf again;

	buf_init(&again, der.size);
	int result = signed_content_write(content, &again);
	if (result && !again.full)
		return result;
	if (result || !slice_equal(buf_slice(&again), der))
		return invalid(error, "the signed data is not DER, or is followed by other bytes");
	return 0;
}

static int parse(struct slice der, size_t size_max, SignedContent **ret_content,
                 struct error *error)
{
	const unsigned char *position = (const unsigned char *)der.data;

	if (der.size == 0 || der.size > size_max)
		return invalid(error, "the signed data is empty or too large");
	ERR_clear_error();
	SIGNED_CONTENT_AUTO SignedContent *content = d2i_SignedContent(NULL, &position, (long)der.size);
	if (!content)
		return openssl_failure(error, "the signed data does not parse");
	if (OBJ_obj2nid(content->type) != NID_pkcs7_signed)
		return invalid(error, "not a SignedData");
	if (sk_SignerInfo_num(content->data->signers) != 1)
		return invalid(error, "not exactly one signer");
	if (sk_X509_num(content->data->certificates) < 1 ||
	    sk_CertificateChoice_num(content->data->choices) > SIGNED_DATA_CERTIFICATES_MAX)
		return invalid(error, "no certificate inside, or too many");
	*ret_content = content;
	content = NULL;
	return 0;
}

int signed_content_parse(struct slice der, SignedContent **ret_content, struct error *error)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;

	int result = parse(der, SIGNED_DATA_SIZE_MAX + CMS_VALIDATION_SIZE_MAX, &content, error);
	if (!result && sk_CertificateChoice_num(content->data->choices) !=
	                   sk_X509_num(content->data->certificates))
		result = invalid(error, "an embedded certificate is not an X.509 certificate");
	if (!result)
		result = check_encoding(content, der, error);
	if (result)
		return result;
	*ret_content = content;
	content = NULL;
	return 0;
}

/* OpenSSL's parser accepts more than BER. */
static int check_ber(const SignedContent *content, struct slice ber, struct error *error)
{
	BUF_AUTO struct buf again;
	BUF_AUTO struct buf one;
	BUF_AUTO struct buf other;

	buf_init(&again, SIGNED_DATA_SIZE_MAX);
	buf_init(&one, SIGNED_DATA_SIZE_MAX);
	buf_init(&other, SIGNED_DATA_SIZE_MAX);
	int result = signed_content_write(content, &again);
	if (!result)
		result = ber_to_der(buf_slice(&again), BER_ORDER_SORTED, &one);
	if (!result)
		result = ber_to_der(ber, BER_ORDER_SORTED, &other);
	if (result == ERR_NO_MEMORY && !again.full && !one.full && !other.full)
		return result;
	if (result || !slice_equal(buf_slice(&one), buf_slice(&other)))
		return invalid(error, "the signed data is not BER");
	return 0;
}

int signed_content_parse_ber(struct slice ber, SignedContent **ret_content, struct error *error)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	BUF_AUTO struct buf der;

	if (ber.size == 0 || ber.size > SIGNED_DATA_SIZE_MAX)
		return invalid(error, "the signed data is empty or too large");
	/* The signature is over DER (RFC 5652 section 5.4), whatever encoding was sent. */
	buf_init(&der, SIGNED_DATA_SIZE_MAX);
	int result = ber_to_der(ber, BER_ORDER_KEPT, &der);
	if (result == ERR_INVALID_EVIDENCE || der.full)
		return invalid(error, "the signed data does not parse, or is followed by other bytes");
	if (!result)
		result = parse(buf_slice(&der), SIGNED_DATA_SIZE_MAX, &content, error);
	if (!result)
		result = check_ber(content, ber, error);
	if (!result) {
		*ret_content = content;
		content = NULL;
	}
	return result;
}

/* "Absent or NULL" (RFC 5754 section 2, RFC 3279 section 2.2.1). */
static bool without_parameters(const X509_ALGOR *algorithm)
{
	int type;

	X509_ALGOR_get0(NULL, &type, NULL, algorithm);
	return type == V_ASN1_UNDEF || type == V_ASN1_NULL;
}

static int algorithm_nid(const X509_ALGOR *algorithm)
{
	const ASN1_OBJECT *object;

	X509_ALGOR_get0(&object, NULL, NULL, algorithm);
	return OBJ_obj2nid(object);
}

static const EVP_MD *accepted_digest(int nid)
{
	switch (nid) {
	case NID_sha256: return EVP_sha256();
	case NID_sha384: return EVP_sha384();
	case NID_sha512: return EVP_sha512();
	default: return NULL;
	}
}

/* Reads the parameters of RFC 4055 section 3.1 and requires a single digest algorithm. Negative
 * salt lengths are refused: OpenSSL gives them special meanings, so that the signature would be
 * checked less strictly. */
static bool read_pss(const X509_ALGOR *algorithm, int digest_nid, int *ret_salt_size)
{
	const void *value;
	int type;
	X509_ALGOR_get0(NULL, &type, &value, algorithm);
	if (type != V_ASN1_SEQUENCE)
		return false;
	const ASN1_STRING *sequence = value;
	const unsigned char *position = ASN1_STRING_get0_data(sequence);
	RSA_PSS_PARAMS *pss = d2i_RSA_PSS_PARAMS(NULL, &position, ASN1_STRING_length(sequence));
	int64_t salt_size = 20, trailer = 1;
	/* Absent fields mean SHA-1. */
	bool fits = pss && pss->hashAlgorithm && pss->maskGenAlgorithm &&
	            algorithm_nid(pss->hashAlgorithm) == digest_nid &&
	            without_parameters(pss->hashAlgorithm) &&
	            algorithm_nid(pss->maskGenAlgorithm) == NID_mgf1;
	if (fits) {
		X509_ALGOR_get0(NULL, &type, &value, pss->maskGenAlgorithm);
		X509_ALGOR *mask =
			type == V_ASN1_SEQUENCE ? ASN1_item_unpack(value, ASN1_ITEM_rptr(X509_ALGOR)) : NULL;
		fits = mask && algorithm_nid(mask) == digest_nid && without_parameters(mask);
		X509_ALGOR_free(mask);
	}
	if (fits && pss->saltLength)
		fits = ASN1_INTEGER_get_int64(&salt_size, pss->saltLength) == 1 && salt_size >= 0 &&
		       salt_size <= RSA_BYTES_MAX;
	if (fits && pss->trailerField)
		fits = ASN1_INTEGER_get_int64(&trailer, pss->trailerField) == 1 && trailer == 1;
	RSA_PSS_PARAMS_free(pss);
	*ret_salt_size = (int)salt_size;
	return fits;
}

/* Checks that the signature algorithm matches digest and key; verification itself does not check
 * this. */
static bool algorithm_fits(const X509_ALGOR *algorithm, int digest_nid, const EVP_PKEY *key)
{
	int nid = algorithm_nid(algorithm);
	int key_nid = EVP_PKEY_get_base_id(key);
	int said_digest = NID_undef;
	int said_key = NID_undef;

	if (nid == NID_rsassaPss) {
		int salt_size;
		return (key_nid == EVP_PKEY_RSA || key_nid == EVP_PKEY_RSA_PSS) &&
		       read_pss(algorithm, digest_nid, &salt_size);
	}
	if (!without_parameters(algorithm))
		return false;
	if (nid == NID_rsaEncryption)
		return key_nid == EVP_PKEY_RSA;
	if (!OBJ_find_sigid_algs(nid, &said_digest, &said_key) || said_digest != digest_nid)
		return false;
	if (said_key == NID_rsaEncryption)
		return key_nid == EVP_PKEY_RSA;
	int type;
	X509_ALGOR_get0(NULL, &type, NULL, algorithm);
	return said_key == NID_X9_62_id_ecPublicKey && key_nid == EVP_PKEY_EC && type == V_ASN1_UNDEF;
}

static bool holds_choice(const SignedContent *content, enum certificate_choice kind)
{
	const STACK_OF(CertificateChoice) *choices = content->data->choices;

	for (int i = 0; i < sk_CertificateChoice_num(choices); i++)
		if (sk_CertificateChoice_value(choices, i)->type == (int)kind)
			return true;
	return false;
}

/* Checks the version of RFC 5652 section 5.1. Some authorities always write 3, as RFC 2630
 * required, or keep it when they add revocation data to a token. */
static bool version_fits(const SignedContent *content, int type_nid)
{
	bool is_foreign = type_nid != NID_pkcs7_data;
	int64_t least = is_foreign ? 3 : 1, wanted = least, found;

	if (holds_choice(content, CHOICE_ATTRIBUTE_V2))
		wanted = 4;
	if (holds_choice(content, CHOICE_OTHER) || signed_validation_has_other(content))
		wanted = 5;
	return ASN1_INTEGER_get_int64(&found, content->data->version) == 1 &&
	       (found == wanted || (is_foreign && found == least));
}

static int check_form(const SignedContent *content, int type_nid, bool detached,
                      struct error *error)
{
	const SignedData *data = content->data;
	const SignerInfo *signer = signed_content_signer(content);
	int64_t found = 0;

	if (OBJ_obj2nid(data->encapsulated->type) != type_nid)
		return invalid(error, "another content type than expected");
	if ((data->encapsulated->content == NULL) != detached)
		return invalid(error, "the content is detached but must be embedded, or the reverse");
	if (!version_fits(content, type_nid))
		return invalid(error, "wrong version of the SignedData");
	if (ASN1_INTEGER_get_int64(&found, signer->version) != 1 || found != 1)
		return invalid(error, "wrong version of the SignerInfo");
	if (sk_X509_ALGOR_num(data->digest_algorithms) != 1)
		return invalid(error, "not exactly one digest algorithm");
	const X509_ALGOR *digest = sk_X509_ALGOR_value(data->digest_algorithms, 0);
	if (algorithm_nid(digest) != algorithm_nid(signer->digest_algorithm) ||
	    !without_parameters(digest) || !without_parameters(signer->digest_algorithm) ||
	    !accepted_digest(algorithm_nid(digest)))
		return invalid(error, "digest algorithm not accepted");
	/* Signatures of our own use SHA-256 only. */
	if (type_nid == NID_pkcs7_data && algorithm_nid(digest) != NID_sha256)
		return invalid(error, "the digest algorithm is not SHA-256");
	return 0;
}

/* Compares every byte; OpenSSL ignores case and white space. */
static bool same_name(const X509_NAME *a, const X509_NAME *b)
{
	const unsigned char *der_a, *der_b;
	size_t size_a, size_b;

	if (X509_NAME_get0_der(a, &der_a, &size_a) != 1 || X509_NAME_get0_der(b, &der_b, &size_b) != 1)
		return false;
	return slice_equal(slice_make(der_a, size_a), slice_make(der_b, size_b));
}

bool signed_content_add_certificate(SignedContent *content, X509 *certificate)
{
	CertificateChoice *choice = CertificateChoice_new();

	if (!choice || !sk_X509_push(content->data->certificates, certificate)) {
		CertificateChoice_free(choice);
		return false;
	}
	choice->type = CHOICE_X509;
	choice->d.certificate = certificate;
	if (sk_CertificateChoice_push(content->data->choices, choice) > 0)
		return true;
	choice->d.certificate = NULL;
	CertificateChoice_free(choice);
	sk_X509_pop(content->data->certificates);
	return false;
}

X509 *signed_content_certificate(const SignedContent *content)
{
	const PKCS7_ISSUER_AND_SERIAL *sid = signed_content_signer(content)->sid;

	for (int i = 0; i < sk_X509_num(content->data->certificates); i++) {
		X509 *certificate = sk_X509_value(content->data->certificates, i);
		if (same_name(sid->issuer, X509_get_issuer_name(certificate)) &&
		    ASN1_INTEGER_cmp(sid->serial, X509_get0_serialNumber(certificate)) == 0)
			return certificate;
	}
	return NULL;
}

const ASN1_TYPE *signed_attribute(const STACK_OF(X509_ATTRIBUTE) * attributes, int nid)
{
	int at = X509at_get_attr_by_NID(attributes, nid, -1);

	return at < 0 ? NULL : X509_ATTRIBUTE_get0_type(X509at_get_attr(attributes, at), 0);
}

static int check_attribute_form(const STACK_OF(X509_ATTRIBUTE) * attributes, struct error *error)
{
	int count = sk_X509_ATTRIBUTE_num(attributes);

	if (count > SIGNED_DATA_ATTRIBUTES_MAX)
		return invalid(error, "too many signed attributes");
	for (int i = 0; i < count; i++) {
		X509_ATTRIBUTE *attribute = sk_X509_ATTRIBUTE_value(attributes, i);
		if (X509_ATTRIBUTE_count(attribute) != 1)
			return invalid(error, "a signed attribute has not exactly one value");
		if (X509at_get_attr_by_OBJ(attributes, X509_ATTRIBUTE_get0_object(attribute), i) >= 0)
			return invalid(error, "a signed attribute is repeated");
	}
	return 0;
}

static int check_attributes(const SignedContent *content, struct slice digest, struct error *error)
{
	const STACK_OF(X509_ATTRIBUTE) *attributes = signed_content_signer(content)->signed_attributes;
	int result = check_attribute_form(attributes, error);

	if (result)
		return result;
	const ASN1_TYPE *type = signed_attribute(attributes, NID_pkcs9_contentType);
	if (!type || type->type != V_ASN1_OBJECT ||
	    OBJ_cmp(type->value.object, content->data->encapsulated->type) != 0)
		return invalid(error, "the content-type attribute is missing or differs");
	const ASN1_TYPE *found = signed_attribute(attributes, NID_pkcs9_messageDigest);
	if (!found || found->type != V_ASN1_OCTET_STRING ||
	    !slice_equal(slice_make(ASN1_STRING_get0_data(found->value.octet_string),
	                            (size_t)ASN1_STRING_length(found->value.octet_string)),
	                 digest))
		return invalid(error, "the message digest differs: the content was altered");
	return 0;
}

/* Prepares the verification with the algorithm that algorithm_fits has checked. */
static bool start_verifying(EVP_MD_CTX *context, const SignerInfo *signer, const EVP_MD *digest,
                            EVP_PKEY *key)
{
	EVP_PKEY_CTX *options;
	int salt_size;

	if (EVP_DigestVerifyInit(context, &options, digest, NULL, key) != 1)
		return false;
	if (algorithm_nid(signer->signature_algorithm) != NID_rsassaPss)
		return true;
	return read_pss(signer->signature_algorithm, EVP_MD_get_type(digest), &salt_size) &&
	       EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) == 1 &&
	       EVP_PKEY_CTX_set_rsa_mgf1_md(options, digest) == 1 &&
	       EVP_PKEY_CTX_set_rsa_pss_saltlen(options, salt_size) == 1;
}

static int check_signature(const SignerInfo *signer, const EVP_MD *digest, EVP_PKEY *key,
                           struct error *error)
{
	BUF_AUTO struct buf attributes;
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	int verified = 0;

	buf_init(&attributes, SIGNED_DATA_SIZE_MAX);
	ERR_clear_error();
	int result = signed_attributes_write(signer->signed_attributes, &attributes);
	if (!result && !context)
		result = ERR_NO_MEMORY;
	if (!result && start_verifying(context, signer, digest, key))
		verified = EVP_DigestVerify(context, ASN1_STRING_get0_data(signer->signature),
		                            (size_t)ASN1_STRING_length(signer->signature),
		                            (const unsigned char *)attributes.data, attributes.size);
	EVP_MD_CTX_free(context);
	if (!result && verified != 1)
		result = openssl_failure(error, "the signature does not fit the signed attributes");
	return result;
}

int signed_content_verify(const SignedContent *content, int type_nid, const struct sha256 *detached,
                          X509 **ret_signer, struct error *error)
{
	const SignerInfo *signer = signed_content_signer(content);
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int size = SHA256_SIZE;

	int result = check_form(content, type_nid, detached != NULL, error);
	if (result)
		return result;
	X509 *certificate = signed_content_certificate(content);
	EVP_PKEY *key = certificate ? X509_get0_pubkey(certificate) : NULL;
	if (!key)
		return invalid(error, "the signer's certificate is not inside, or has no usable key");
	int digest_nid = algorithm_nid(signer->digest_algorithm);
	/* Signatures of our own never use RSA-PSS. */
	bool is_foreign = type_nid != NID_pkcs7_data;
	if (!algorithm_fits(signer->signature_algorithm, digest_nid, key) ||
	    (!is_foreign && algorithm_nid(signer->signature_algorithm) == NID_rsassaPss))
		return invalid(error, "signature algorithm not accepted");
	const EVP_MD *algorithm = accepted_digest(digest_nid);
	if (detached) {
		memcpy(digest, detached->bytes, SHA256_SIZE);
	} else {
		const ASN1_OCTET_STRING *inside = content->data->encapsulated->content;
		if (EVP_Digest(ASN1_STRING_get0_data(inside), (size_t)ASN1_STRING_length(inside), digest,
		               &size, algorithm, NULL) != 1)
			return ERR_NO_MEMORY;
	}
	result = check_attributes(content, slice_make(digest, size), error);
	if (!result)
		result = check_signature(signer, algorithm, key, error);
	if (!result)
		*ret_signer = certificate;
	return result;
}

struct path_question {
	const SignedContent *content;
	X509 *signer;
	STACK_OF(X509) * known;
	enum path_purpose purpose;
	int64_t time_us;
};

static int verify_path(const struct path_question *question, const STACK_OF(X509) * roots,
                       bool any_anchor, STACK_OF(X509) * *ret_path, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *path = NULL;
	const SignerInfo *signer = signed_content_signer(question->content);
	int result = certificate_path(question->signer, question->known, roots, any_anchor,
	                              question->purpose, question->time_us, &path, error);

	if (!result)
		result =
			signing_certificate_check(signer, path, question->purpose, roots && !any_anchor, error);
	if (!result && ret_path) {
		*ret_path = path;
		path = NULL;
	}
	return result;
}

/* Tries the roots as strict roots first, because then the path extends to a root; then as trust
 * anchors; then without roots. */
static int find_path(const struct path_question *question, const STACK_OF(X509) * roots,
                     bool *ret_trusted, STACK_OF(X509) * *ret_path, struct error *error)
{
	int result = verify_path(question, roots, false, ret_path, error);

	if (result == ERR_NOT_FOUND && !ret_trusted) {
		if (error)
			error->code = ERR_INVALID_EVIDENCE;
		return ERR_INVALID_EVIDENCE;
	}
	if (result == ERR_NOT_FOUND) {
		error_clear(error);
		result = verify_path(question, roots, true, ret_path, error);
	}
	if (ret_trusted)
		*ret_trusted = roots && result != ERR_NOT_FOUND;
	if (result != ERR_NOT_FOUND)
		return result;
	error_clear(error);
	return verify_path(question, NULL, false, ret_path, error);
}

int signed_content_verify_path(const SignedContent *content, X509 *signer,
                               const STACK_OF(X509) * external, const STACK_OF(X509) * roots,
                               enum path_purpose purpose, int64_t time_us, bool *ret_trusted,
                               STACK_OF(X509) * *ret_path, struct error *error)
{
	STACK_OF(X509) *known = sk_X509_dup(content->data->certificates);
	int result = known ? 0 : ERR_NO_MEMORY;

	for (int i = 0; !result && external && i < sk_X509_num(external); i++)
		if (!sk_X509_push(known, sk_X509_value(external, i)))
			result = ERR_NO_MEMORY;
	struct path_question question = {content, signer, known, purpose, time_us};
	if (!result)
		result = find_path(&question, roots, ret_trusted, ret_path, error);
	sk_X509_free(known);
	return result;
}
