/* The signature of a trusted list (ETSI TS 119 612, annex B: XAdES, enveloped). */
#include <assert.h>
#include <libxml/parser.h>
#include <libxml/xmlerror.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <xmlsec/crypto.h>
#include <xmlsec/errors.h>
#include <xmlsec/openssl/x509.h>
#include <xmlsec/xmldsig.h>
#include <xmlsec/xmlsec.h>
#include <xmlsec/xmltree.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "trustlist/trusted_list_xml.h"

#define SIGNATURE "http://www.w3.org/2000/09/xmldsig#"
#define PROPERTIES_TYPE "http://uri.etsi.org/01903#SignedProperties"
#define PROPERTIES "http://uri.etsi.org/01903/v1.3.2#"
#define EXCLUSIVE "http://www.w3.org/2001/10/xml-exc-c14n#"
#define ENVELOPED "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
#define SIGNING_LISTS "0.4.0.2231.3.0" /* id-tsl-kp-tslSigning */
#define REFERENCES_MAX 8
#define SECURITY_LEVEL 2 /* 112 bits */

static int invalid(struct error *error, const char *why)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "the trusted list %s", why);
}

/* ---- libraries ---- */

static void ignore_xml_error(void *context, const char *format, ...)
{
}

static void ignore_xmlsec_error(const char *file, int line, const char *function,
                                const char *object, const char *subject, int reason,
                                const char *message)
{
}

int list_libraries_begin(struct error *error)
{
	xmlInitParser();
	xmlSetGenericErrorFunc(NULL, ignore_xml_error);
	if (xmlSecInit() < 0 || xmlSecCryptoAppInit(NULL) < 0 || xmlSecCryptoInit() < 0)
		return error_cause(error, ERR_UNAVAILABLE, "xmlsec cannot be used");
	xmlSecErrorsSetCallback(ignore_xmlsec_error);
	return OK;
}

/* ---- the signer ---- */

static X509_STORE *make_store(struct slice roots_pem, int64_t time_us)
{
	assert(roots_pem.size <= INT_MAX);
	X509_STORE *store = X509_STORE_new();
	X509_VERIFY_PARAM *parameters = store ? X509_STORE_get0_param(store) : NULL;
	BIO *bio = BIO_new_mem_buf(roots_pem.data, (int)roots_pem.size);
	X509 *root;
	while (store && bio && (root = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
		X509_STORE_add_cert(store, root);
		X509_free(root);
	}
	BIO_free(bio);
	if (!store)
		return NULL;
	/* Scheme operators publish their certificates themselves, self-signed or not. */
	X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_PARTIAL_CHAIN);
	X509_VERIFY_PARAM_set_auth_level(parameters, SECURITY_LEVEL);
	X509_VERIFY_PARAM_set_time(parameters, (time_t)(time_us / US_PER_SECOND));
	return store;
}

/* The first certificate is that of the signer, the others are possible issuers. */
static bool is_trusted(STACK_OF(X509) * certificates, X509_STORE *store)
{
	assert(sk_X509_num(certificates) > 0);
	X509_STORE_CTX *context = X509_STORE_CTX_new();
	bool trusted =
		store && context &&
		X509_STORE_CTX_init(context, store, sk_X509_value(certificates, 0), certificates) == 1 &&
		X509_verify_cert(context) == 1;
	X509_STORE_CTX_free(context);
	return trusted;
}

static bool is_given(X509 *certificate, X509_STORE *store)
{
	STACK_OF(X509) *given = X509_STORE_get1_all_certs(store);
	bool found = false;
	for (int i = 0; i < sk_X509_num(given); i++)
		found |= X509_cmp(sk_X509_value(given, i), certificate) == 0;
	sk_X509_pop_free(given, X509_free);
	return found;
}

static bool is_for_lists(X509 *certificate)
{
	EXTENDED_KEY_USAGE *usages = X509_get_ext_d2i(certificate, NID_ext_key_usage, NULL, NULL);
	ASN1_OBJECT *wanted = OBJ_txt2obj(SIGNING_LISTS, 1);
	bool found = false;
	for (int i = 0; i < sk_ASN1_OBJECT_num(usages); i++)
		found |= wanted && OBJ_cmp(sk_ASN1_OBJECT_value(usages, i), wanted) == 0;
	ASN1_OBJECT_free(wanted);
	sk_ASN1_OBJECT_pop_free(usages, ASN1_OBJECT_free);
	return found;
}

/* ETSI TS 119 612 section 5.7.1. A root may have issued certificates to anyone. So a signer needs a
 * certificate with the purpose of signing lists, or one that was given itself. */
static bool may_sign(X509 *signer, X509_STORE *store)
{
	return X509_check_ca(signer) == 0 && X509_get_extension_flags(signer) & EXFLAG_KUSAGE &&
	       X509_get_key_usage(signer) & (KU_DIGITAL_SIGNATURE | KU_NON_REPUDIATION) &&
	       (is_given(signer, store) || is_for_lists(signer));
}

static STACK_OF(X509) * read_certificates(const xmlNode *signature)
{
	STACK_OF(X509) *found = sk_X509_new_null();
	const xmlNode *info = node_child(signature, SIGNATURE, "KeyInfo");
	for (const xmlNode *data = node_child(info, SIGNATURE, "X509Data"); data && found;
	     data = node_next(data, SIGNATURE, "X509Data"))
		for (const xmlNode *at = node_child(data, SIGNATURE, "X509Certificate");
		     at && sk_X509_num(found) < LIST_PATH_MAX;
		     at = node_next(at, SIGNATURE, "X509Certificate")) {
			X509 *certificate = node_certificate(at);
			if (certificate && !sk_X509_push(found, certificate))
				X509_free(certificate);
		}
	return found;
}

/* Copies the name in UTF-8 from any string type: T61String, BMPString, … */
static void name_signer(X509 *signer, struct list_facts *facts)
{
	X509_NAME *name = X509_get_subject_name(signer);
	int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
	unsigned char *text = NULL;
	int size =
		at < 0
			? -1
			: ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
	if (size > 0 && strlen((const char *)text) == (size_t)size)
		snprintf(facts->signer, sizeof facts->signer, "%s", (const char *)text);
	else
		X509_NAME_oneline(name, facts->signer, sizeof facts->signer);
	utf8_replace_invalid(facts->signer);
	OPENSSL_free(text);
}

/* ---- the signed data ---- */

/* Registers the "Id" attributes of all elements. Returns false if two elements have the same one.
 */
static bool name_elements(xmlDoc *document, xmlNode *node)
{
	for (xmlNode *at = node; at;) {
		xmlAttr *id =
			at->type == XML_ELEMENT_NODE ? xmlHasNsProp(at, (const xmlChar *)"Id", NULL) : NULL;
		xmlChar *value = id ? xmlNodeListGetString(document, id->children, 1) : NULL;
		bool taken = value && (xmlGetID(document, value) || !xmlAddID(NULL, document, value, id));
		xmlFree(value);
		if (taken)
			return false;
		if (at->children && at->type == XML_ELEMENT_NODE) {
			at = at->children;
			continue;
		}
		while (at && !at->next)
			at = at->parent == (xmlNode *)document ? NULL : at->parent;
		at = at ? at->next : NULL;
	}
	return true;
}

static bool attribute_is(const xmlNode *node, const char *name, const char *wanted)
{
	xmlChar *value = xmlGetNoNsProp(node, (const xmlChar *)name);
	bool same = value && strcmp((const char *)value, wanted) == 0;
	xmlFree(value);
	return same;
}

/* Returns whether a reference covers the whole list: exactly the two transforms that exclude only
 * the signature. */
static bool covers_all(const xmlNode *reference, const xmlNode *root)
{
	char own[TRUSTED_LIST_TEXT_SIZE] = "#";
	xmlChar *id = xmlGetNoNsProp(root, (const xmlChar *)"Id");
	const xmlNode *transforms = node_child(reference, SIGNATURE, "Transforms");
	const xmlNode *first = node_first(transforms), *second = node_following(first);
	if (id)
		snprintf(own + 1, sizeof own - 1, "%s", (const char *)id);
	bool whole = attribute_is(reference, "URI", "") || (id && attribute_is(reference, "URI", own));
	xmlFree(id);
	return whole && attribute_is(first, "Algorithm", ENVELOPED) &&
	       attribute_is(second, "Algorithm", EXCLUSIVE) && !node_following(second);
}

static bool covers_properties(const xmlNode *reference, const xmlNode *signature)
{
	const xmlNode *object = node_child(signature, SIGNATURE, "Object");
	const xmlNode *all = node_child(object, PROPERTIES, "QualifyingProperties");
	const xmlNode *properties = node_child(all, PROPERTIES, "SignedProperties");
	char own[TRUSTED_LIST_TEXT_SIZE] = "#";
	xmlChar *id = properties ? xmlGetNoNsProp(properties, (const xmlChar *)"Id") : NULL;
	if (id)
		snprintf(own + 1, sizeof own - 1, "%s", (const char *)id);
	bool same = id && attribute_is(reference, "Type", PROPERTIES_TYPE) &&
	            attribute_is(reference, "URI", own);
	xmlFree(id);
	return same;
}

static bool covers_required_parts(const xmlNode *signature, const xmlNode *root)
{
	const xmlNode *info = node_child(signature, SIGNATURE, "SignedInfo");
	bool all = false, properties = false;
	int count = 0;
	for (const xmlNode *at = node_child(info, SIGNATURE, "Reference"); at;
	     at = node_next(at, SIGNATURE, "Reference"), count++) {
		all |= covers_all(at, root);
		properties |= covers_properties(at, signature);
	}
	return all && properties && count <= REFERENCES_MAX;
}

/* ---- the signature ---- */

static bool allow_algorithms(xmlSecDSigCtxPtr context)
{
	const xmlSecTransformId digests[] = {xmlSecTransformSha256Id, xmlSecTransformSha384Id,
	                                     xmlSecTransformSha512Id, xmlSecTransformEnvelopedId,
	                                     xmlSecTransformExclC14NId};
	const xmlSecTransformId signatures[] = {
		xmlSecTransformRsaSha256Id,   xmlSecTransformRsaSha384Id,   xmlSecTransformRsaSha512Id,
		xmlSecTransformEcdsaSha256Id, xmlSecTransformEcdsaSha384Id, xmlSecTransformEcdsaSha512Id,
		xmlSecTransformExclC14NId};
	bool allowed = true;
	for (size_t i = 0; i < sizeof digests / sizeof *digests; i++)
		allowed &= xmlSecDSigCtxEnableReferenceTransform(context, digests[i]) == 0;
	for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++)
		allowed &= xmlSecDSigCtxEnableSignatureTransform(context, signatures[i]) == 0;
	context->enabledReferenceUris =
		xmlSecTransformUriTypeEmpty | xmlSecTransformUriTypeSameDocument;
	return allowed;
}

/* Verifies the signature with the key of that certificate, ignoring keys in the signature. */
static bool verify_by(X509 *signer, xmlNode *signature)
{
	unsigned char *der = NULL;
	int size = i2d_X509(signer, &der);
	xmlSecDSigCtxPtr context = xmlSecDSigCtxCreate(NULL);
	bool verified = false;
	if (context && size > 0) {
		context->signKey = xmlSecCryptoAppKeyLoadMemory(
			der, (xmlSecSize)size, xmlSecKeyDataFormatCertDer, NULL, NULL, NULL);
		verified = context->signKey && allow_algorithms(context) &&
		           xmlSecDSigCtxVerify(context, signature) == 0 &&
		           context->status == xmlSecDSigStatusSucceeded;
	}
	if (context)
		xmlSecDSigCtxDestroy(context);
	OPENSSL_free(der);
	return verified;
}

static int verify_signer(struct list *list, xmlNode *signature, struct slice roots_pem,
                         struct error *error)
{
	STACK_OF(X509) *certificates = read_certificates(signature);
	X509_STORE *store = make_store(roots_pem, list->facts.issued_us);
	X509 *signer = certificates ? sk_X509_value(certificates, 0) : NULL;
	int result = OK;
	if (!store)
		result = ERR_NO_MEMORY;
	else if (!signer)
		result = invalid(error, "has no certificate in its signature");
	else if (!is_trusted(certificates, store))
		result = invalid(error, "has a signer who does not chain to any of the roots given for it");
	else if (!may_sign(signer, store))
		result = invalid(error, "has a signing certificate that is not for signing trusted lists");
	else if (!verify_by(signer, signature))
		result =
			invalid(error, "has an invalid signature: the list was changed, or was signed in a "
		                   "way that is not supported");
	if (!result)
		name_signer(signer, &list->facts);
	X509_STORE_free(store);
	sk_X509_pop_free(certificates, X509_free);
	return result;
}

int list_verify(struct list *list, struct slice roots_pem, struct error *error)
{
	assert(list->document);
	xmlNode *root = xmlDocGetRootElement(list->document);
	xmlNode *signature = node_child(root, SIGNATURE, "Signature");
	if (!signature || node_next(signature, SIGNATURE, "Signature"))
		return invalid(error, "has no signature, or more than one");
	if (!name_elements(list->document, root))
		return invalid(error, "has a duplicate identifier");
	if (!covers_required_parts(signature, root))
		return invalid(error, "has a signature that does not cover all of it");
	return verify_signer(list, signature, roots_pem, error);
}
