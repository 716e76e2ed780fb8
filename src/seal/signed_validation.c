#include "seal/signed_validation.h"

#include <openssl/err.h>

/* RevocationInfoChoice: a CertificateList, or [1] with a format identifier. The only supported
 * format is OCSPResponse (RFC 5940 section 2). */
#define OCSP_FORMAT "1.3.6.1.5.5.7.16.2"
#define OTHER_TAG 1

typedef struct {
	ASN1_OBJECT *format;
	ASN1_TYPE *value;
} OtherRevocation;
DECLARE_ASN1_FUNCTIONS(OtherRevocation)
ASN1_SEQUENCE(OtherRevocation) =
	{
		ASN1_SIMPLE(OtherRevocation, format, ASN1_OBJECT),
		ASN1_SIMPLE(OtherRevocation, value, ASN1_ANY),
} ASN1_SEQUENCE_END(OtherRevocation) IMPLEMENT_ASN1_FUNCTIONS(OtherRevocation)

		static int invalid(struct error * error, const char *reason)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "%s", reason);
}

/* ---- writing ---- */

/* Keeps an element unparsed; one that is not of a universal class is kept with its tag. */
static ASN1_TYPE *parse_any(const unsigned char *der, long size)
{
	return d2i_ASN1_TYPE(NULL, &der, size);
}

static ASN1_TYPE *make_other(struct slice der)
{
	OtherRevocation *other = OtherRevocation_new();
	unsigned char *encoded = NULL;
	ASN1_TYPE *made = NULL;
	if (other) {
		ASN1_TYPE_free(other->value);
		other->value = parse_any((const unsigned char *)der.data, (long)der.size);
		ASN1_OBJECT_free(other->format);
		other->format = OBJ_txt2obj(OCSP_FORMAT, 1);
	}
	int size = other && other->value && other->format ? i2d_OtherRevocation(other, &encoded) : -1;
	if (size > 0) {
		encoded[0] = V_ASN1_CONTEXT_SPECIFIC | V_ASN1_CONSTRUCTED | OTHER_TAG; /* IMPLICIT */
		made = parse_any(encoded, size);
	}
	OPENSSL_free(encoded);
	OtherRevocation_free(other);
	return made;
}

static bool add_revocation(SignedContent *content, const struct validation_object *object)
{
	SignedData *data = content->data;
	if (!data->revocations)
		data->revocations = sk_ASN1_TYPE_new_null();
	ASN1_TYPE *element =
		object->kind == VALIDATION_OCSP
			? make_other(object->der)
			: parse_any((const unsigned char *)object->der.data, (long)object->der.size);
	if (element && data->revocations && sk_ASN1_TYPE_push(data->revocations, element))
		return true;
	ASN1_TYPE_free(element);
	return false;
}

int signed_validation_add(SignedContent *content, const struct validation_set *set,
                          struct error *error)
{
	ERR_clear_error();
	for (size_t i = 0; i < set->count; i++) {
		const struct validation_object *object = &set->objects[i];
		bool added = object->kind == VALIDATION_CERTIFICATE || add_revocation(content, object);
		if (!added && openssl_failure(error, "validation data") == ERR_NO_MEMORY)
			return ERR_NO_MEMORY;
		if (!added)
			return error_cause(error, ERR_CORRUPT, "the validation data is not DER");
	}
	/* RFC 5652 section 5.1 */
	if (signed_validation_has_other(content) && ASN1_INTEGER_set(content->data->version, 5) != 1)
		return ERR_NO_MEMORY;
	return OK;
}

/* ---- reading ---- */

bool signed_validation_has_other(const SignedContent *content)
{
	const STACK_OF(ASN1_TYPE) *revocations = content->data->revocations;
	for (int i = 0; i < (revocations ? sk_ASN1_TYPE_num(revocations) : 0); i++)
		if (ASN1_TYPE_get(sk_ASN1_TYPE_value(revocations, i)) == V_ASN1_OTHER)
			return true;
	return false;
}

static struct slice string_slice(const ASN1_STRING *string)
{
	return slice_make(ASN1_STRING_get0_data(string), (size_t)ASN1_STRING_length(string));
}

static int add_once(struct validation_set *set, enum validation_kind kind, struct slice der,
                    struct error *error)
{
	struct sha256 sha256 = sha256_of(der.data, der.size);
	if (validation_set_find(set, &sha256))
		return invalid(error, "the same validation data is inside twice");
	return validation_set_add(set, kind, der, error);
}

static int refuse_format(struct error *error)
{
	return invalid(error, "revocation data inside that is neither a CRL nor an OCSP response");
}

static int read_other(const ASN1_STRING *element, struct validation_set *set, struct error *error)
{
	BUF_AUTO struct buf sequence;
	const unsigned char *data = ASN1_STRING_get0_data(element);
	size_t size = (size_t)ASN1_STRING_length(element);
	char format[sizeof OCSP_FORMAT + 1] = "";

	if (size < 2 || data[0] != (V_ASN1_CONTEXT_SPECIFIC | V_ASN1_CONSTRUCTED | OTHER_TAG))
		return refuse_format(error);
	buf_init(&sequence, size);
	buf_add(&sequence, data, size);
	if (buf_check(&sequence))
		return ERR_NO_MEMORY;
	sequence.data[0] = V_ASN1_SEQUENCE | V_ASN1_CONSTRUCTED;
	const unsigned char *position = (const unsigned char *)sequence.data;
	OtherRevocation *other = d2i_OtherRevocation(NULL, &position, (long)size);
	if (!other)
		return openssl_failure(error, "revocation data inside that does not parse");
	int result;
	if (OBJ_obj2txt(format, sizeof format, other->format, 1) > 0 &&
	    strcmp(format, OCSP_FORMAT) == 0 && other->value->type == V_ASN1_SEQUENCE)
		result = add_once(set, VALIDATION_OCSP, string_slice(other->value->value.sequence), error);
	else
		result = refuse_format(error);
	OtherRevocation_free(other);
	return result;
}

static int read_revocation(const ASN1_TYPE *element, struct validation_set *set,
                           struct error *error)
{
	switch (element->type) {
	case V_ASN1_SEQUENCE:
		return add_once(set, VALIDATION_CRL, string_slice(element->value.sequence), error);
	case V_ASN1_OTHER: return read_other(element->value.asn1_string, set, error);
	default: return refuse_format(error);
	}
}

int signed_validation_read(const SignedContent *content, struct validation_set *set,
                           struct error *error)
{
	const STACK_OF(ASN1_TYPE) *revocations = content->data->revocations;
	ERR_clear_error();
	int result = OK;
	if (revocations && sk_ASN1_TYPE_num(revocations) == 0)
		return invalid(error, "an empty set of revocation data is inside");
	for (int i = 0; i < (revocations ? sk_ASN1_TYPE_num(revocations) : 0) && !result; i++)
		result = read_revocation(sk_ASN1_TYPE_value(revocations, i), set, error);
	return result;
}
