/* Addresses as the record of acts keeps them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/url_mask.h"

static void expect(const char *url, const char *expected)
{
	BUF_AUTO struct buf out;
	buf_init(&out, 1024);
	url_mask(slice_of(url), &out);
	assert_int_equal(buf_check(&out), 0);
	assert_string_equal(out.data ? out.data : "", expected);
}

static void test_what_is_no_secret_stays(void **state)
{
	(void)state;
	expect("", "");
	expect("https://example.org", "https://example.org");
	expect("https://example.org:8443/a@b/c;d=e", "https://example.org:8443/a@b/c;d=e");
	expect("https://[2001:db8::1]/hook", "https://[2001:db8::1]/hook");
	expect("https://example.org/?", "https://example.org/?");
	expect("https://example.org/?a=&b=&", "https://example.org/?a=&b=&");
}

static void test_values_of_the_query(void **state)
{
	(void)state;
	expect("https://example.org/h?token=s3cret", "https://example.org/h?token=********");
	expect("https://example.org?a=1&token=x=y?z&&b=",
	       "https://example.org?a=********&token=********&&b=");
	expect("https://example.org/h?a=1;b=2", "https://example.org/h?a=********;b=********");
	expect("https://example.org/h?s3cret", "https://example.org/h?********");
	expect("https://example.org/h?s3cret&a", "https://example.org/h?********&********");
	expect("https://example.org/h?a=http://u:p@x/", "https://example.org/h?a=********");
	expect("https://example.org/h?a=1#s3cret", "https://example.org/h?a=********#********");
	expect("https://example.org/h#s3cret?a=b", "https://example.org/h#********");
}

static void test_user_and_password(void **state)
{
	(void)state;
	expect("https://user:s3cret@example.org/h", "https://********@example.org/h");
	expect("https://token@example.org", "https://********@example.org");
	expect("https://user:s3@cret@example.org?a=b", "https://********@example.org?a=********");
	expect("https://@example.org/", "https://@example.org/");
}

static void test_what_is_no_address(void **state)
{
	(void)state;
	expect("://", "://");
	expect(":", ":");
	expect("?", "?");
	expect("a?b=c", "a?b=********");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_no_secret_stays),
		cmocka_unit_test(test_values_of_the_query),
		cmocka_unit_test(test_user_and_password),
		cmocka_unit_test(test_what_is_no_address),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
