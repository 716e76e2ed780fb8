/* Lists of origins. */
#include "testing.h"
#include "net/origin.h"

#define LIST "https://app.example.org, http://localhost:5173,http://[::1]:8080"

TEST_CASE(test_entries)
{
	static const struct {
		const char *list, *wrong; /* NULL: valid */
	} cases[] = {
		{"", NULL},
		{LIST, NULL},
		{"https://a.example", NULL},
		{"https://a.example:8443", NULL},
		{"https://xn--bcher-kva.example", NULL},
		{"*", "*"},
		{"null", "null"},
		{"https://a.example,*", "*"},
		{"https://a.example,", ""},
		{",https://a.example", ""},
		{"https://a.example,,https://b.example", ""},
		{"https://a.example https://b.example", "https://a.example https://b.example"},
		{"https://a.example/", "https://a.example/"},
		{"https://a.example/x", "https://a.example/x"},
		{"https://a.example?x", "https://a.example?x"},
		{"https://A.example", "https://A.example"},
		{"HTTPS://a.example", "HTTPS://a.example"},
		{"https://a.example:443", "https://a.example:443"},
		{"http://a.example:80", "http://a.example:80"},
		{"http://a.example:", "http://a.example:"},
		{"http://a.example:08", "http://a.example:08"},
		{"http://a.example:65536", "http://a.example:65536"},
		{"http://a.example:123456", "http://a.example:123456"},
		{"http://a.example:8x", "http://a.example:8x"},
		{"https://*.example.org", "https://*.example.org"},
		{"https://b\xc3\xbc.example", "https://b\xc3\xbc.example"},
		{"https://u@a.example", "https://u@a.example"},
		{"https://[::1", "https://[::1"},
		{"https://", "https://"},
		{"capacitor://localhost", "capacitor://localhost"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct slice wrong = slice_of("none");
		assert_int_equal(origin_list_is_valid(cases[i].list, &wrong), !cases[i].wrong);
		assert_true(!cases[i].wrong || slice_is(wrong, cases[i].wrong));
	}
}

TEST_CASE(test_only_the_same_text_is_in_a_list)
{
	static const char *const listed[] = {"https://app.example.org", "http://localhost:5173",
	                                     "http://[::1]:8080"};
	static const char *const others[] = {"",
	                                     "*",
	                                     "null",
	                                     "https://app.example.org:443",
	                                     "https://app.example.or",
	                                     "https://app.example.org ",
	                                     "http://app.example.org",
	                                     "http://localhost",
	                                     "http://localhost:517",
	                                     "https://app.example.org, http"};
	for (size_t i = 0; i < sizeof listed / sizeof *listed; i++)
		assert_true(origin_list_has(LIST, slice_of(listed[i])));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(origin_list_has(LIST, slice_of(others[i])));
	assert_false(origin_list_has("", slice_of("https://app.example.org")));
	/* An entry that no browser sends is ignored, whatever a client sends. */
	assert_false(origin_list_has("*,null", slice_of("*")));
	assert_false(origin_list_has("*,null", slice_of("null")));
}

TEST_MAIN(NULL, NULL)
