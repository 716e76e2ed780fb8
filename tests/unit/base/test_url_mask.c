/* Addresses as the audit log records them. */
#include "testing.h"
#include "base/url_mask.h"

static void expect(const char *url, const char *expected)
{
	BUF_AUTO struct buf out = {.limit = 1024};
	url_mask(slice_of(url), &out);
	assert_int_equal(buf_check(&out), 0);
	assert_string_equal(out.data ? out.data : "", expected);
}

TEST_CASE(test_what_is_no_secret_stays)
{
	expect("", "");
	expect("https://example.org", "https://example.org");
	expect("https://example.org:8443/a@b/c;d=e", "https://example.org:8443/a@b/c;d=e");
	expect("https://[2001:db8::1]/hook", "https://[2001:db8::1]/hook");
	expect("https://example.org/?", "https://example.org/?");
	expect("https://example.org/?a=&b=&", "https://example.org/?a=&b=&");
}

TEST_CASE(test_values_of_the_query)
{
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

TEST_CASE(test_user_and_password)
{
	expect("https://user:s3cret@example.org/h", "https://********@example.org/h");
	expect("https://token@example.org", "https://********@example.org");
	expect("https://user:s3@cret@example.org?a=b", "https://********@example.org?a=********");
	expect("https://@example.org/", "https://@example.org/");
}

TEST_CASE(test_what_is_no_address)
{
	expect("://", "://");
	expect(":", ":");
	expect("?", "?");
	expect("a?b=c", "a?b=********");
}

TEST_MAIN(NULL, NULL)
