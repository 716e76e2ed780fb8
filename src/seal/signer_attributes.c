#include "seal/signer_attributes.h"

#include <openssl/err.h>
#include <openssl/ess.h>

#include "base/digest.h"
#include "seal/signed_data.h"

typedef STACK_OF(X509_ATTRIBUTE) Attributes;

static bool is_content_type(const ASN1_TYPE *value)
{
	return value->type == V_ASN1_OBJECT && OBJ_obj2nid(value->value.object) == NID_pkcs7_data;
}

static bool is_digest(const ASN1_TYPE *value)
{
	return value->type == V_ASN1_OCTET_STRING &&
	       ASN1_STRING_length(value->value.octet_string) == SHA256_SIZE;
}

static bool is_time(const ASN1_TYPE *value)
{
	return (value->type == V_ASN1_UTCTIME || value->type == V_ASN1_GENERALIZEDTIME) &&
	       ASN1_TIME_check(value->value.asn1_string) == 1;
}

/* Compares the reference with that of cms_create, byte for byte. */
static bool names_certificate(const ASN1_TYPE *value, const X509 *certificate)
{
	ESS_SIGNING_CERT_V2 *reference =
		OSSL_ESS_signing_cert_v2_new_init(EVP_sha256(), certificate, NULL, 1);
	unsigned char *der = NULL;
	int size = reference ? i2d_ESS_SIGNING_CERT_V2(reference, &der) : -1;
	bool same = size > 0 && value->type == V_ASN1_SEQUENCE &&
	            slice_equal(slice_make(der, (size_t)size),
	                        slice_make(ASN1_STRING_get0_data(value->value.sequence),
	                                   (size_t)ASN1_STRING_length(value->value.sequence)));

	OPENSSL_free(der);
	ESS_SIGNING_CERT_V2_free(reference);
	return same;
}

static bool is_ours(X509_ATTRIBUTE *attribute, const X509 *certificate)
{
	const ASN1_TYPE *value = X509_ATTRIBUTE_get0_type(attribute, 0);

	if (!value || X509_ATTRIBUTE_count(attribute) != 1)
		return false;
	switch (OBJ_obj2nid(X509_ATTRIBUTE_get0_object(attribute))) {
	case NID_pkcs9_contentType: return is_content_type(value);
	case NID_pkcs9_messageDigest: return is_digest(value);
	case NID_pkcs9_signingTime: return is_time(value);
	case NID_id_smime_aa_signingCertificateV2: return names_certificate(value, certificate);
	default: return false;
	}
}

static const char *problem(const Attributes *attributes, const X509 *certificate)
{
	static const int required[] = {NID_pkcs9_contentType, NID_pkcs9_messageDigest,
	                               NID_id_smime_aa_signingCertificateV2};

	for (int i = 0; i < sk_X509_ATTRIBUTE_num(attributes); i++) {
		X509_ATTRIBUTE *attribute = sk_X509_ATTRIBUTE_value(attributes, i);
		if (!is_ours(attribute, certificate))
			return "a signed attribute is not one of those that are signed here";
		if (X509at_get_attr_by_OBJ(attributes, X509_ATTRIBUTE_get0_object(attribute), i) >= 0)
			return "a signed attribute is repeated";
	}
	for (size_t i = 0; i < sizeof required / sizeof *required; i++)
		if (X509at_get_attr_by_NID(attributes, required[i], -1) < 0)
			return "a required signed attribute is missing";
	return NULL;
}

const char *signer_attributes_problem(struct slice bytes, const X509 *certificate)
{
	BUF_AUTO struct buf again;
	Attributes *attributes = signed_attributes_read(bytes);
	const char *reason = "not a DER SET of signed attributes";

	buf_init(&again, bytes.size);
	if (attributes && signed_attributes_write(attributes, &again) == 0 &&
	    slice_equal(buf_slice(&again), bytes))
		reason = problem(attributes, certificate);
	sk_X509_ATTRIBUTE_pop_free(attributes, X509_ATTRIBUTE_free);
	ERR_clear_error();
	return reason;
}
