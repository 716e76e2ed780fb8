/* Names in a readable form. */
#include "testing.h"
#include "seal/trust.h"

TEST_CASE(test_organizations)
{
	assert_true(trust_same_organization("CN=A,O=One", "O=One,CN=B"));
	assert_true(trust_same_organization("CN=A,O=One\\, Ltd", "CN=B,O=One\\, Ltd"));
	assert_true(trust_same_organization("CN=A", "CN=A"));
	assert_false(trust_same_organization("CN=A", "CN=B"));
	assert_false(trust_same_organization("CN=A,O=One", "CN=A,O=Two"));
	assert_false(trust_same_organization("CN=A,O=One", "CN=A"));
	assert_false(trust_same_organization("CN=O\\=One", "CN=B,O=One"));
}

TEST_CASE(names_are_read)
{
	static const char *const cases[][2] = {
		{"CN=Unit 3,O=Authority\\, S.A.,C=ES", "Unit 3 (Authority, S.A.)"},
		{"O=Alone", "Alone"},
		{"C=ES,CN=Alone", "Alone"},
		{"CN=Unit of Example,O=Example", "Unit of Example"},
		{"CN=a\\\"b\\+c\\\\d,O=x", "a\"b+c\\d (x)"},
		{"CN=Sello+serialNumber=7,O=\\C3\\91and\\C3\\BA", "Sello (\xc3\x91"
	                                                      "and\xc3\xba)"},
		{"O=One,O=Two,CN=First,CN=Second", "First (One)"},
		/* A name without a readable form is not changed. */
		{"CN=a\\0Ab,O=x", "CN=a\\0Ab,O=x"},
		{"C=ES", "C=ES"},
		{"no name", "no name"},
		{"", ""},
		{"CN=", "CN="},
		{"CN=a\\", "a\\"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char name[SUBJECT_SIZE];
		trust_name(cases[i][0], name);
		assert_string_equal(name, cases[i][1]);
	}
}

TEST_CASE(long_names_end_with_a_character)
{
	char subject[2 * SUBJECT_SIZE] = "CN=x,O=", name[SUBJECT_SIZE];
	for (size_t i = strlen(subject); i + 2 < sizeof subject; i += 2)
		memcpy(subject + i, "\xc3\xb1", 3);
	trust_name(subject, name);
	assert_true(strlen(name) >= SUBJECT_SIZE - 2);
	assert_memory_equal(name, subject, strlen(name));
	assert_int_equal((unsigned char)name[strlen(name) - 1], 0xb1);
}

TEST_MAIN(NULL, NULL)
