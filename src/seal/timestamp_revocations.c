/* Addition of revocation data to a timestamp token. */
#include <openssl/err.h>
#include <openssl/ocsp.h>

#include "seal/signed_data.h"
#include "seal/validation_set.h"

/* RevocationValues (ETSI EN 319 122-1, section 5.4.2), as an unsigned attribute. */
typedef struct {
	STACK_OF(ASN1_TYPE) * lists;   /* CertificateList */
	STACK_OF(ASN1_TYPE) * answers; /* BasicOCSPResponse */
} RevocationValues;

/* clang-format off */
DECLARE_ASN1_FUNCTIONS(RevocationValues)
ASN1_SEQUENCE(RevocationValues) = {
	ASN1_EXP_SEQUENCE_OF_OPT(RevocationValues, lists, ASN1_ANY, 0),
	ASN1_EXP_SEQUENCE_OF_OPT(RevocationValues, answers, ASN1_ANY, 1),
} ASN1_SEQUENCE_END(RevocationValues)
IMPLEMENT_ASN1_FUNCTIONS(RevocationValues)
	/* clang-format on */

	static void values_cleanup(RevocationValues * *values)
{
	RevocationValues_free(*values);
}

static bool holds(const STACK_OF(ASN1_TYPE) * list, const unsigned char *der, int size)
{
	for (int i = 0; i < sk_ASN1_TYPE_num(list); i++) {
		const ASN1_TYPE *any = sk_ASN1_TYPE_value(list, i);
		if (any->type == V_ASN1_SEQUENCE && any->value.sequence->length == size &&
		    memcmp(any->value.sequence->data, der, (size_t)size) == 0)
			return true;
	}
	return false;
}

/* Adds a SEQUENCE unless the list contains it. */
static int push_sequence(STACK_OF(ASN1_TYPE) * *list, const unsigned char *der, int size)
{
	if (holds(*list, der, size))
		return OK;
	ASN1_TYPE *any = ASN1_TYPE_new();
	ASN1_STRING *whole = ASN1_STRING_type_new(V_ASN1_SEQUENCE);
	if (!*list)
		*list = sk_ASN1_TYPE_new_null();
	if (any && whole && *list && ASN1_STRING_set(whole, der, size) == 1) {
		ASN1_TYPE_set(any, V_ASN1_SEQUENCE, whole);
		whole = NULL;
		if (sk_ASN1_TYPE_push(*list, any) > 0)
			return OK;
	}
	ASN1_STRING_free(whole);
	ASN1_TYPE_free(any);
	return ERR_NO_MEMORY;
}

/* Adds the BasicOCSPResponse of a response. */
static int push_answer(STACK_OF(ASN1_TYPE) * *list, struct slice response, struct error *error)
{
	const unsigned char *position = (const unsigned char *)response.data;
	unsigned char *der = NULL;
	ERR_clear_error();
	OCSP_RESPONSE *parsed = d2i_OCSP_RESPONSE(NULL, &position, (long)response.size);
	OCSP_BASICRESP *basic = parsed ? OCSP_response_get1_basic(parsed) : NULL;
	int size = basic ? i2d_OCSP_BASICRESP(basic, &der) : -1;
	int result = size > 0 ? push_sequence(list, der, size)
	                      : openssl_failure(error, "an OCSP response does not parse");
	OPENSSL_free(der);
	OCSP_BASICRESP_free(basic);
	OCSP_RESPONSE_free(parsed);
	return result;
}

static int collect_values(const struct validation_set *set, RevocationValues *values,
                          struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < set->count && !result; i++) {
		const struct validation_object *object = &set->objects[i];
		if (object->kind == VALIDATION_CRL)
			result = push_sequence(&values->lists, (const unsigned char *)object->der.data,
			                       (int)object->der.size);
		else if (object->kind == VALIDATION_OCSP)
			result = push_answer(&values->answers, object->der, error);
	}
	return result;
}

/* Removes the existing attribute and returns its values, or empty values. */
static RevocationValues *take_values(SignerInfo *signer)
{
	STACK_OF(X509_ATTRIBUTE) *attributes = signer->unsigned_attributes;
	int place = X509at_get_attr_by_NID(attributes, NID_id_smime_aa_ets_revocationValues, -1);
	X509_ATTRIBUTE *attribute = place < 0 ? NULL : X509at_get_attr(attributes, place);
	const ASN1_TYPE *any = attribute && X509_ATTRIBUTE_count(attribute) == 1
	                           ? X509_ATTRIBUTE_get0_type(attribute, 0)
	                           : NULL;
	if (!any || any->type != V_ASN1_SEQUENCE)
		return RevocationValues_new();
	const unsigned char *der = any->value.sequence->data;
	RevocationValues *values = d2i_RevocationValues(NULL, &der, any->value.sequence->length);
	if (!values)
		return RevocationValues_new();
	X509_ATTRIBUTE_free(X509at_delete_attr(attributes, place));
	return values;
}

static int add_attribute(SignerInfo *signer, RevocationValues *values)
{
	unsigned char *der = NULL;
	int size = i2d_RevocationValues(values, &der);
	bool added = size > 0 && X509at_add1_attr_by_NID(&signer->unsigned_attributes,
	                                                 NID_id_smime_aa_ets_revocationValues,
	                                                 V_ASN1_SEQUENCE, der, size) != NULL;
	OPENSSL_free(der);
	return added ? OK : ERR_NO_MEMORY;
}

int timestamp_token_add_revocations(struct slice token, const struct validation_set *set,
                                    struct buf *out, struct error *error)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	__attribute__((cleanup(values_cleanup))) RevocationValues *values = NULL;
	int result = signed_content_parse_ber(token, &content, error);
	if (!result && !(values = take_values(signed_content_signer(content))))
		result = ERR_NO_MEMORY;
	if (!result)
		result = collect_values(set, values, error);
	if (!result && (values->lists || values->answers))
		result = add_attribute(signed_content_signer(content), values);
	size_t before = out->size;
	if (!result)
		result = signed_content_write(content, out);
	if (!result && out->size - before > SIGNED_DATA_SIZE_MAX)
		result = error_cause(error, ERR_TOO_LARGE, "the token would have more than %zu bytes",
		                     SIGNED_DATA_SIZE_MAX);
	return result;
}
