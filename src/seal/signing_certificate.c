#include "seal/signing_certificate.h"

#include <openssl/err.h>
#include <openssl/ess.h>

#include "seal/ber.h"

/* ESSCertID and ESSCertIDv2 (RFC 5035). */
struct references {
	ESS_SIGNING_CERT *first;
	ESS_SIGNING_CERT_V2 *second;
};

static void references_cleanup(struct references *references)
{
	ESS_SIGNING_CERT_free(references->first);
	ESS_SIGNING_CERT_V2_free(references->second);
}
#define REFERENCES_AUTO __attribute__((cleanup(references_cleanup)))

static bool read_references(int nid, struct slice der, struct references *references)
{
	const unsigned char *position = (const unsigned char *)der.data;

	if (nid == NID_id_smime_aa_signingCertificate)
		return (references->first = d2i_ESS_SIGNING_CERT(NULL, &position, (long)der.size)) != NULL;
	return (references->second = d2i_ESS_SIGNING_CERT_V2(NULL, &position, (long)der.size)) != NULL;
}

/* Finds out whether an ESSCertID or ESSCertIDv2 names a certificate of the path. Returns 0 or
 * ERR_NO_MEMORY. */
static int is_reference_to(int nid, struct slice id, const STACK_OF(X509) * path, bool *ret_found)
{
	BUF_AUTO struct buf list, whole;
	int result = 0;

	buf_init(&list, id.size + 16);
	buf_init(&whole, id.size + 32);
	ber_write(BER_SEQUENCE, id, &list);
	ber_write(BER_SEQUENCE, buf_slice(&list), &whole);
	*ret_found = false;
	for (int i = 0; !result && !*ret_found && i < sk_X509_num(path); i++) {
		REFERENCES_AUTO struct references one = {0};
		STACK_OF(X509) *certificate = sk_X509_new_null();
		ERR_clear_error();
		*ret_found = certificate && sk_X509_push(certificate, sk_X509_value(path, i)) &&
		             read_references(nid, buf_slice(&whole), &one) &&
		             OSSL_ESS_check_signing_certs(one.first, one.second, certificate, 1) == 1;
		if (!*ret_found && openssl_failure(NULL, "") == ERR_NO_MEMORY)
			result = ERR_NO_MEMORY;
		sk_X509_free(certificate);
	}
	return result ? result : buf_check(&whole);
}

/* Finds out whether the ids name every certificate of the path. */
static int are_named(int nid, struct slice ids, const STACK_OF(X509) * path, bool *ret_named)
{
	int result = 0;

	*ret_named = true;
	for (int i = 0; !result && *ret_named && i < sk_X509_num(path); i++) {
		STACK_OF(X509) *one = sk_X509_new_null();
		struct slice rest = ids;
		struct ber_element id;
		bool found = false;
		if (!one || !sk_X509_push(one, sk_X509_value(path, i)))
			result = ERR_NO_MEMORY;
		while (!result && !found && ber_next(&rest, &id))
			result = is_reference_to(nid, id.whole, one, &found);
		sk_X509_free(one);
		*ret_named = found;
	}
	return result;
}

/* Writes the attribute without those certificates after the first that are not on the path. */
static int write_present(int nid, struct slice ids, struct slice policies,
                         const STACK_OF(X509) * path, struct buf *out)
{
	BUF_AUTO struct buf kept, parts;
	struct ber_element id;
	int result = 0;

	buf_init(&kept, SIGNED_DATA_SIZE_MAX);
	buf_init(&parts, SIGNED_DATA_SIZE_MAX);
	for (bool is_first = true; !result && ber_next(&ids, &id); is_first = false) {
		bool found = true;
		if (!is_first)
			result = is_reference_to(nid, id.whole, path, &found);
		if (found)
			buf_add_slice(&kept, id.whole);
	}
	ber_write(BER_SEQUENCE, buf_slice(&kept), &parts);
	buf_add_slice(&parts, policies);
	ber_write(BER_SEQUENCE, buf_slice(&parts), out);
	return result ? result : buf_check(out);
}

/* Reads an attribute, which may be absent. If the path does not end at a root, named certificates
 * above its end may be missing, provided that all of the path are named. */
static int take_references(const SignerInfo *signer, int nid, const STACK_OF(X509) * path,
                           bool is_rooted, struct references *references, bool *ret_readable)
{
	const ASN1_TYPE *value = signed_attribute(signer->signed_attributes, nid);
	BUF_AUTO struct buf present;
	struct ber_element whole, list;
	bool is_named = false;
	int result = 0;

	*ret_readable = !value;
	if (!value || value->type != V_ASN1_SEQUENCE)
		return 0;
	struct slice der = slice_make(ASN1_STRING_get0_data(value->value.sequence),
	                              (size_t)ASN1_STRING_length(value->value.sequence));
	struct slice rest = der;
	buf_init(&present, SIGNED_DATA_SIZE_MAX);
	if (!is_rooted && ber_next(&rest, &whole) && ber_next(&whole.inside, &list))
		result = are_named(nid, list.inside, path, &is_named);
	if (!result && is_named)
		result = write_present(nid, list.inside, whole.inside, path, &present);
	if (!result)
		*ret_readable = read_references(nid, is_named ? buf_slice(&present) : der, references);
	return result;
}

/* ESSCertID uses SHA-1, which some authorities still use. Signatures of our own never did. */
int signing_certificate_check(const SignerInfo *signer, const STACK_OF(X509) * path,
                              enum path_purpose purpose, bool is_rooted, struct error *error)
{
	REFERENCES_AUTO struct references references = {0};
	bool first = false, second = false;

	ERR_clear_error();
	int result = take_references(signer, NID_id_smime_aa_signingCertificate, path, is_rooted,
	                             &references, &first);
	if (!result)
		result = take_references(signer, NID_id_smime_aa_signingCertificateV2, path, is_rooted,
		                         &references, &second);
	if (result)
		return result;
	bool is_readable = first && second && (references.second || purpose == PATH_TIMESTAMP);
	if (is_readable &&
	    OSSL_ESS_check_signing_certs(references.first, references.second, path, 1) == 1)
		return 0;
	return openssl_failure(error, "the signing-certificate attribute is missing or names another");
}
