/* Checks that lists and OCSP responses have in common: signature strength and validity. */
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/rsa.h>

#include "seal/certificate.h"
#include "seal/revocation_data.h"

#define SECURITY_BITS_MIN 112

/* Returns NID_undef if no digest is named or the parameters are unreadable. */
static int pss_digest(const X509_ALGOR *algorithm)
{
	const ASN1_OBJECT *object;
	const void *value;
	int type;
	int digest = NID_undef;

	X509_ALGOR_get0(&object, &type, &value, algorithm);
	if (type != V_ASN1_SEQUENCE)
		return NID_undef;
	RSA_PSS_PARAMS *parameters = ASN1_item_unpack(value, ASN1_ITEM_rptr(RSA_PSS_PARAMS));
	if (parameters && parameters->hashAlgorithm) {
		X509_ALGOR_get0(&object, NULL, NULL, parameters->hashAlgorithm);
		digest = OBJ_obj2nid(object);
	}
	RSA_PSS_PARAMS_free(parameters);
	return digest;
}

int revocation_refuse(struct error *error, const char *what, const char *reason)
{
	return openssl_failure(NULL, what) == ERR_NO_MEMORY
	           ? ERR_NO_MEMORY
	           : error_cause(error, ERR_INVALID_EVIDENCE, "%s %s", what, reason);
}

bool revocation_is_strongly_signed(const X509_ALGOR *algorithm, EVP_PKEY *key)
{
	const ASN1_OBJECT *object;
	int digest_nid = NID_undef;

	X509_ALGOR_get0(&object, NULL, NULL, algorithm);
	int nid = OBJ_obj2nid(object);
	if (nid == NID_rsassaPss)
		digest_nid = pss_digest(algorithm);
	else if (OBJ_find_sigid_algs(nid, &digest_nid, NULL) != 1)
		return false;
	const EVP_MD *digest = EVP_get_digestbynid(digest_nid);
	return digest && EVP_MD_get_size(digest) * 8 / 2 >= SECURITY_BITS_MIN && key &&
	       EVP_PKEY_get_security_bits(key) >= SECURITY_BITS_MIN;
}

bool revocation_is_valid_at(const X509 *certificate, int64_t time_us)
{
	int64_t begin_us;
	int64_t end_us;

	return certificate_time(X509_get0_notBefore(certificate), &begin_us) &&
	       certificate_time(X509_get0_notAfter(certificate), &end_us) && begin_us <= time_us &&
	       time_us <= end_us;
}
