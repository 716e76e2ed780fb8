/* The client of the interface: addresses, keys, pauses; the prefix and the secret of notices. */
#include "testing.h"
#include "base/clock.h"
#include "tools/notice_feed.h"

static void check(const char *url, const char *key, int expected, const char *base)
{
	struct api api;
	int result = api_open(&api, &(struct api_access){.url = url, .key = key}, NULL);
	assert_int_equal(result, expected);
	if (!result)
		assert_string_equal(api.base, base);
	api_close(&api);
	assert_int_equal(api.key[0], 0);
}

TEST_CASE(addresses_end_in_the_version)
{
	check("https://a.example/v1", "k", 0, "https://a.example/v1");
	check("https://a.example/v1//", NULL, 0, "https://a.example/v1");
	check("http://a.example:8080", "k", 0, "http://a.example:8080/v1");
	check("https://a.example/path/v1", "k", 0, "https://a.example/path/v1");
	check("https://a.example/v10", "k", 0, "https://a.example/v10/v1");
	check("ftp://a.example/v1", "k", ERR_VALIDATION, NULL);
	check("https://a.example/v1?x", "k", ERR_VALIDATION, NULL);
	check("https://u@a.example/v1", "k", ERR_VALIDATION, NULL);
	check("", "k", ERR_VALIDATION, NULL);
}

TEST_CASE(keys_are_visible_text)
{
	char longest[API_KEY_MAX + 1];
	memset(longest, 'k', sizeof longest);
	longest[API_KEY_MAX] = '\0';
	check("http://a.example", longest, ERR_VALIDATION, NULL);
	longest[API_KEY_MAX - 1] = '\0';
	check("http://a.example", longest, 0, "http://a.example/v1");
	check("http://a.example", "", ERR_VALIDATION, NULL);
	check("http://a.example", "a b", ERR_VALIDATION, NULL);
	check("http://a.example", "a\r\nX: y", ERR_VALIDATION, NULL);
}

TEST_CASE(pauses_grow_and_are_bounded)
{
	for (int i = 0; i < 100; i++) {
		assert_in_range(api_pause_us(0, 0), US_PER_SECOND / 4, US_PER_SECOND / 2);
		assert_in_range(api_pause_us(1, 0), US_PER_SECOND / 4, US_PER_SECOND / 2);
		assert_in_range(api_pause_us(3, 0), US_PER_SECOND, 2 * US_PER_SECOND);
		assert_in_range(api_pause_us(1000, 0), 16 * US_PER_SECOND, 32 * US_PER_SECOND);
		assert_in_range(api_pause_us(1000, 8 * US_PER_SECOND), 8 * US_PER_SECOND,
		                10 * US_PER_SECOND);
	}
}

TEST_CASE(the_key_has_the_prefix_of_headers)
{
	char prefix[16];
	notice_prefix("svc_test_abc", prefix);
	assert_string_equal(prefix, "SVC");
	notice_prefix("acme2_test_abc_test_", prefix);
	assert_string_equal(prefix, "ACME2");
	notice_prefix("abc", prefix);
	assert_string_equal(prefix, "SVC");
	notice_prefix("_test_", prefix);
	assert_string_equal(prefix, "SVC");
	notice_prefix("sixteen-letters-_test_", prefix);
	assert_string_equal(prefix, "SVC");
}

TEST_CASE(secrets_differ)
{
	char one[NOTICE_SECRET_MAX], other[NOTICE_SECRET_MAX];
	notice_secret(one);
	notice_secret(other);
	assert_int_equal(strlen(one), 70);
	assert_memory_equal(one, "whsec_", 6);
	assert_string_not_equal(one, other);
}

TEST_MAIN(NULL, NULL)
