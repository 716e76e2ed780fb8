#include "base/validation_object.h"

static const char *const texts[] = {
	[VALIDATION_CERTIFICATE] = "certificate",
	[VALIDATION_CRL] = "crl",
	[VALIDATION_OCSP] = "ocsp",
};

const char *validation_kind_text(enum validation_kind kind)
{
	return texts[kind];
}

bool validation_kind_parse(struct slice text, enum validation_kind *ret_kind)
{
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (slice_is(text, texts[i])) {
			*ret_kind = (enum validation_kind)i;
			return true;
		}
	return false;
}
