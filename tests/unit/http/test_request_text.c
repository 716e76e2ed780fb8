/* Paths and queries in the request log: without keys, printable, of a limited size. */
#include "testing.h"
#include "http/request_text.h"

static const char *const names[] = {"client_ref", "limit", NULL};

static const char *path_of(const char *path, size_t size)
{
	static char text[512];
	request_path_write("svc", slice_of(path), text, size);
	assert_true(strlen(text) < size);
	return text;
}

static const char *query_of(const char *query, size_t size)
{
	static char text[512];
	request_query_write("svc", slice_of(query), names, text, size);
	assert_true(strlen(text) < size);
	return text;
}

TEST_CASE(paths_are_as_sent)
{
	static const char *const paths[] = {
		"", "/", "/v1/events", "/v1//events/", "/v1/a%2Fb%zz%", "/v1/svc_live", "/v1/other_live_x"};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		assert_string_equal(path_of(paths[i], 200), paths[i]);
}

TEST_CASE(keys_in_paths_are_hidden)
{
	assert_string_equal(path_of("/v1/events/svc_live_secret/content", 200),
	                    "/v1/events/***/content");
	assert_string_equal(path_of("/v1/xsvc_test_secret", 200), "/v1/***");
	assert_string_equal(path_of("/v1/svc%5Flive%5fsecret", 200), "/v1/***");
	assert_string_equal(path_of("/v1/%73vc%255Flive%255fsecret", 200), "/v1/***");
	assert_string_equal(path_of("/v1/%2525252573vc_live_secret", 200), "/v1/***");
	assert_string_equal(path_of("/v1/SVC_Live_secret", 200), "/v1/***");
	assert_string_equal(path_of("/v1/expires=1%26mac%3Dab/x", 200), "/v1/***/x");
	assert_string_equal(path_of("svc_live_secret", 200), "***");
}

TEST_CASE(long_paths_are_cut)
{
	assert_string_equal(path_of("/123456789", 16), "/123456789");
	assert_string_equal(path_of("/1234567890123456", 16), "/12345678901…");
	assert_string_equal(path_of("/1/2/3/4/5/6/7/8/9/0/1/2", 16), "/1/2/3/4/5/6…");
	assert_string_equal(path_of("/12345678901/", 16), "/12345678901…");
	/* No secret part of a key is in what is cut. */
	char path[700];
	memset(path, 'a', sizeof path);
	snprintf(path + 490, sizeof path - 490, "/svc_live_secret");
	assert_null(strstr(path_of(path, 512), "secret"));
}

TEST_CASE(what_is_not_printable_is_replaced)
{
	assert_string_equal(path_of("/a\xc3\xa9\x01\x7f b", 200), "/a?????b");
	assert_string_equal(query_of("limit=\xff\t", 200), "limit=??");
}

TEST_CASE(known_parameters_are_shown)
{
	assert_string_equal(query_of("", 200), "");
	assert_string_equal(query_of("limit=2&client_ref=a%20b", 200), "limit=2&client_ref=a%20b");
	assert_string_equal(query_of("limit&&client_ref=&", 200), "limit&&client_ref=&");
	assert_string_equal(query_of("client_ref=a=b", 200), "client_ref=a=b");
	assert_string_equal(query_of("limit=12345678901234567", 16), "limit=123456…");
}

TEST_CASE(other_parameters_are_hidden)
{
	assert_string_equal(query_of("password=x&limit=2&Limit=3", 200),
	                    "password=***&limit=2&Limit=***");
	assert_string_equal(query_of("client_ref=svc_live_secret&limit=1", 200),
	                    "client_ref=***&limit=1");
	assert_string_equal(query_of("client_ref=svc%5flive_secret", 200), "client_ref=***");
	assert_string_equal(query_of("svc_test_secret=1&limit=1", 200), "***&limit=1");
	char text[100];
	request_query_write("svc", slice_of("limit=2"), NULL, text, sizeof text);
	assert_string_equal(text, "limit=***");
}

int main(void)
{
	return tests_run(NULL, NULL, NULL, NULL);
}
