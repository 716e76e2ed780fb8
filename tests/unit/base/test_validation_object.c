#include "testing.h"
#include "base/validation_object.h"

TEST_CASE(kinds_have_texts_that_lead_back)
{
	static const char *const texts[] = {"certificate", "crl", "ocsp"};
	for (int kind = VALIDATION_CERTIFICATE; kind <= VALIDATION_OCSP; kind++) {
		enum validation_kind found = (enum validation_kind)((kind + 1) % 3);
		assert_string_equal(validation_kind_text((enum validation_kind)kind), texts[kind]);
		assert_true(validation_kind_parse(slice_of(texts[kind]), &found));
		assert_int_equal(found, kind);
	}
}

TEST_CASE(other_texts_are_none)
{
	static const char *const others[] = {"", "CRL", "crl ", "certificat", "ocsps"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		enum validation_kind found = VALIDATION_OCSP;
		assert_false(validation_kind_parse(slice_of(others[i]), &found));
		assert_int_equal(found, VALIDATION_OCSP);
	}
}

TEST_MAIN(NULL, NULL)
