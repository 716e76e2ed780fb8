/* The statements of a certificate about itself, and the criteria by which qualifiers of a list
 * apply to it. */
#include "trustlist/trusted_list_xml.h"

#include <assert.h>
#include <openssl/asn1t.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#define QUALIFICATIONS "http://uri.etsi.org/TrstSvc/SvcInfoExt/eSigDir-1999-93-EC-TrustedList/#"
#define XADES "http://uri.etsi.org/01903/v1.3.2#"
#define OID_SIZE 128
#define DEPTH_MAX 8

/* ---- QcStatements ---- */

static ASN1_SEQUENCE_ANY *open_sequence(const ASN1_TYPE *value)
{
	if (!value || value->type != V_ASN1_SEQUENCE)
		return NULL;
	const unsigned char *at = value->value.sequence->data;
	return d2i_ASN1_SEQUENCE_ANY(NULL, &at, value->value.sequence->length);
}

static void close_sequence(ASN1_SEQUENCE_ANY *sequence)
{
	sk_ASN1_TYPE_pop_free(sequence, ASN1_TYPE_free);
}

static bool is_object(const ASN1_TYPE *value, const char *oid)
{
	char text[OID_SIZE];
	return value && value->type == V_ASN1_OBJECT &&
	       OBJ_obj2txt(text, sizeof text, value->value.object, 1) > 0 && strcmp(text, oid) == 0;
}

static void read_types(const ASN1_TYPE *value, struct certificate_statements *found)
{
	ASN1_SEQUENCE_ANY *types = open_sequence(value);
	found->typed = true;
	for (int i = 0; types && i < sk_ASN1_TYPE_num(types); i++)
		found->seal |= is_object(sk_ASN1_TYPE_value(types, i), "0.4.0.1862.1.6.2");
	close_sequence(types);
}

struct certificate_statements certificate_statements(const X509 *certificate)
{
	struct certificate_statements found = {0};
	int at = X509_get_ext_by_NID(certificate, NID_qcStatements, -1);
	const ASN1_OCTET_STRING *value =
		at >= 0 ? X509_EXTENSION_get_data(X509_get_ext(certificate, at)) : NULL;
	const unsigned char *position = value ? ASN1_STRING_get0_data(value) : NULL;
	ASN1_SEQUENCE_ANY *statements =
		value ? d2i_ASN1_SEQUENCE_ANY(NULL, &position, ASN1_STRING_length(value)) : NULL;
	for (int i = 0; statements && i < sk_ASN1_TYPE_num(statements); i++) {
		ASN1_SEQUENCE_ANY *statement = open_sequence(sk_ASN1_TYPE_value(statements, i));
		const ASN1_TYPE *id = statement ? sk_ASN1_TYPE_value(statement, 0) : NULL;
		found.compliant |= is_object(id, "0.4.0.1862.1.1");
		found.device |= is_object(id, "0.4.0.1862.1.4");
		if (is_object(id, "0.4.0.1862.1.6"))
			read_types(sk_ASN1_TYPE_value(statement, 1), &found);
		close_sequence(statement);
	}
	close_sequence(statements);
	return found;
}

/* ---- criteria ---- */

static enum ternary key_usage_met(const xmlNode *criterion, X509 *certificate)
{
	static const char *const names[] = {"digitalSignature", "nonRepudiation", "keyEncipherment",
	                                    "dataEncipherment", "keyAgreement",   "keyCertSign",
	                                    "crlSign",          "encipherOnly",   "decipherOnly"};
	static const uint32_t bits[] = {KU_DIGITAL_SIGNATURE, KU_NON_REPUDIATION, KU_KEY_ENCIPHERMENT,
	                                KU_DATA_ENCIPHERMENT, KU_KEY_AGREEMENT,   KU_KEY_CERT_SIGN,
	                                KU_CRL_SIGN,          KU_ENCIPHER_ONLY,   KU_DECIPHER_ONLY};
	uint32_t usage =
		X509_get_extension_flags(certificate) & EXFLAG_KUSAGE ? X509_get_key_usage(certificate) : 0;
	for (const xmlNode *bit = node_child(criterion, QUALIFICATIONS, "KeyUsageBit"); bit;
	     bit = node_next(bit, QUALIFICATIONS, "KeyUsageBit")) {
		xmlChar *name = xmlGetNoNsProp(bit, (const xmlChar *)"name");
		uint32_t found = 0;
		for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
			if (strcmp((const char *)name, names[i]) == 0)
				found = bits[i];
		xmlFree(name);
		if (!found)
			return UNSURE;
		bool wanted = node_text_is(bit, "true") || node_text_is(bit, "1");
		if (((usage & found) != 0) != wanted)
			return NO;
	}
	return YES;
}

static bool has_policy(const CERTIFICATEPOLICIES *policies, const char *wanted)
{
	char text[OID_SIZE];
	for (int i = 0; policies && i < sk_POLICYINFO_num(policies); i++)
		if (OBJ_obj2txt(text, sizeof text, sk_POLICYINFO_value(policies, i)->policyid, 1) > 0 &&
		    strcmp(text, wanted) == 0)
			return true;
	return false;
}

static enum ternary policies_met(const xmlNode *criterion, const X509 *certificate)
{
	CERTIFICATEPOLICIES *policies =
		X509_get_ext_d2i(certificate, NID_certificate_policies, NULL, NULL);
	enum ternary met = YES;
	for (const xmlNode *policy = node_child(criterion, QUALIFICATIONS, "PolicyIdentifier"); policy;
	     policy = node_next(policy, QUALIFICATIONS, "PolicyIdentifier")) {
		char text[OID_SIZE];
		node_copy_text(node_child(policy, XADES, "Identifier"), text, sizeof text);
		if (!has_policy(policies, strncmp(text, "urn:oid:", 8) == 0 ? text + 8 : text))
			met = NO;
	}
	CERTIFICATEPOLICIES_free(policies);
	return met;
}

static enum ternary list_met(const xmlNode *list, X509 *certificate, int depth);

static enum ternary criterion_met(const xmlNode *criterion, X509 *certificate, int depth)
{
	if (node_is(criterion, QUALIFICATIONS, "KeyUsage"))
		return key_usage_met(criterion, certificate);
	if (node_is(criterion, QUALIFICATIONS, "PolicySet"))
		return policies_met(criterion, certificate);
	if (node_is(criterion, QUALIFICATIONS, "CriteriaList"))
		return list_met(criterion, certificate, depth + 1);
	return UNSURE;
}

static enum ternary list_met(const xmlNode *list, X509 *certificate, int depth)
{
	assert(depth >= 0 && depth <= DEPTH_MAX + 1);
	size_t counts[3] = {0}, all = 0;
	xmlChar *asserted = xmlGetNoNsProp(list, (const xmlChar *)"assert");
	const char *how = asserted ? (const char *)asserted : "all";
	bool none = strcmp(how, "none") == 0, some = strcmp(how, "atLeastOne") == 0;
	bool known = none || some || strcmp(how, "all") == 0;
	xmlFree(asserted);
	if (!known || depth > DEPTH_MAX)
		return UNSURE;
	for (const xmlNode *at = node_first(list); at; at = node_following(at)) {
		if (node_is(at, QUALIFICATIONS, "Description"))
			continue;
		counts[criterion_met(at, certificate, depth)]++;
		all++;
	}
	if (none)
		return counts[YES] > 0 ? NO : counts[UNSURE] > 0 ? UNSURE : YES;
	if (some)
		return counts[YES] > 0 ? YES : counts[UNSURE] > 0 ? UNSURE : NO;
	return counts[NO] > 0 ? NO : counts[YES] == all ? YES : UNSURE;
}

enum ternary criteria_met(const xmlNode *list, X509 *certificate)
{
	return list ? list_met(list, certificate, 0) : UNSURE;
}
