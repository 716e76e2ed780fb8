/* The checks before a body is read. */
#include <arpa/inet.h>
#include <unistd.h>

#include "harness.h"
#include "http/http_internal.h"
#include "service/keys.h"

static struct harness harness;
#define LIVE harness.key[MODALITY_CONTENT][MODE_LIVE]
#define TEST harness.key[MODALITY_CONTENT][MODE_TEST]

static void ask(struct reply *reply, const char *method, const char *path, const char *key,
                const char *headers)
{
	harness_ask(&harness, reply, method, path, key, headers, NULL, 0);
}

/* An answer that is sent while the body is still arriving has the same text as one after it. */
TEST_CASE(test_said_early)
{
	static const struct {
		const char *path, *headers;
		bool with_key;
		int status;
		const char *reason;
	} cases[] = {
		{"/v1/events", "Content-Type: text/plain\r\n", true, 400, "Bad Request"},
		{"/v1/events", "", false, 401, "Unauthorized"},
		{"/nothing", "", true, 404, "Not Found"},
		{"/v1/channel", "", true, 405, "Method Not Allowed"},
		{"/v1/certifications", "", true, 413, "Content Too Large"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char request[512], line[64], authorization[128] = "";
		struct reply reply;
		if (cases[i].with_key)
			snprintf(authorization, sizeof authorization, "Authorization: Bearer %s\r\n", LIVE);
		snprintf(request, sizeof request,
		         "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n%s%s%s\r\n",
		         cases[i].path, cases[i].status == 413 ? "Content-Type: application/json\r\n" : "",
		         cases[i].headers, authorization);
		int descriptor = harness_connect(&harness);
		harness_send(descriptor, request, strlen(request));
		harness_read(descriptor, false, &reply);
		snprintf(line, sizeof line, "HTTP/1.1 %d %s\r\n", cases[i].status, cases[i].reason);
		assert_memory_equal(reply.head, line, strlen(line));
		assert_true(reply.closed && *reply_header(&reply, "X-Request-Id"));
		reply_expect(&reply, cases[i].status, NULL);
		close(descriptor);
	}
}

/* What needs a key is for listed origins; of what needs none, all of the interface, /verify and
 * /log are for every origin, and pages and the console only for their own. */
TEST_CASE(test_each_route_is_for_the_right_origins)
{
	size_t of_interface = 0;
	for (const struct route *route = public_routes; route->pattern; route++) {
		const struct operation *operation = route->operations[METHOD_GET]
		                                        ? route->operations[METHOD_GET]
		                                        : route->operations[METHOD_POST];
		bool in_interface = strncmp(route->pattern, "/v1", 3) == 0;
		bool verifies =
			strncmp(route->pattern, "/verify", 7) == 0 || strncmp(route->pattern, "/log/", 5) == 0;
		enum cors wanted = in_interface && !operation->open ? CORS_LISTED
		                   : in_interface || verifies       ? CORS_ANY
		                                                    : CORS_NEVER;
		assert_int_equal(route->cors, wanted);
		of_interface += in_interface;
	}
	assert_true(of_interface > 10);
}

TEST_CASE(test_two_keys)
{
	struct reply reply;
	char header[256];
	snprintf(header, sizeof header, "Authorization: Bearer %s\r\nAuthorization: Bearer %s\r\n",
	         LIVE, TEST);
	ask(&reply, "GET", "/v1/channel", NULL, header);
	reply_expect(&reply, 401, "invalid_key");
}

static void check_repeated(const char *method, const char *path, const char *key, bool with_body,
                           const char *header, const char *values[2])
{
	struct reply reply;
	char headers[512], expected[128];
	snprintf(headers, sizeof headers, "%s: %s\r\n%s: %s\r\n", header, values[0], header, values[1]);
	harness_ask(&harness, &reply, method, path, key, headers, with_body ? "{}" : NULL,
	            with_body ? 2 : 0);
	snprintf(expected, sizeof expected, "The header %s is repeated", header);
	assert_non_null(strstr(reply.body, expected));
	assert_false(reply.closed);
	reply_expect(&reply, 400, "validation_error");
}

/* Neither the first nor the last value applies, even if both are the same. */
TEST_CASE(test_repeated_headers)
{
	const char *keys[] = {LIVE, LIVE}, *types[] = {"application/json", "text/plain"},
			   *codings[] = {"identity", "identity"}, *scenarios[] = {"unpaid", "rate_limited"};
	static const char *const paths[] = {"/v1/events", "/v1/certifications"};
	check_repeated("GET", "/v1/channel", NULL, false, "X-SVC-Api-Key", keys);
	check_repeated("GET", "/v1/channel", LIVE, false, "X-SVC-Api-Key", keys);
	check_repeated("GET", "/v1/channel", TEST, false, "X-SVC-Test-Scenario", scenarios);
	for (int i = 0; i < 2; i++) {
		check_repeated("POST", paths[i], LIVE, true, "Content-Type", types);
		check_repeated("POST", paths[i], LIVE, true, "Content-Encoding", codings);
	}
	struct reply reply;
	ask(&reply, "GET", "/v1/channel", LIVE,
	    "X-SVC-Test-Scenario: unpaid\r\nX-SVC-Test-Scenario: unpaid\r\n"
	    "Content-Type: a/b\r\nContent-Type: c/d\r\n");
	reply_expect(&reply, 200, NULL);
}

TEST_CASE(test_encodings)
{
	static const char *const paths[] = {"/v1/events", "/v1/certifications"};
	for (int i = 0; i < 2; i++) {
		struct reply reply;
		harness_ask(&harness, &reply, "POST", paths[i], LIVE,
		            "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", "{}", 2);
		assert_non_null(strstr(reply.body, "Content-Encoding"));
		reply_expect(&reply, 400, "validation_error");
		harness_ask(&harness, &reply, "POST", paths[i], LIVE,
		            "Content-Type: application/json\r\nContent-Encoding: identity\r\n", "[]", 2);
		assert_null(strstr(reply.body, "Content-Encoding"));
		reply_expect(&reply, 400, "validation_error");
	}
}

TEST_CASE(test_framing)
{
	static const char *const broken[] = {
		"Content-Length: 2\r\nContent-Length: 2\r\n",
		"Content-Length: 2\r\nContent-Length: 3\r\n",
		"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: gzip, chunked\r\n",
		"Transfer-Encoding: identity\r\n",
		"Content-Length : 2\r\n",
		"Content-Length: 1234567890123456789\r\n",
	};
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		char request[512];
		struct reply reply;
		snprintf(request, sizeof request,
		         "POST /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n%s\r\n{}",
		         LIVE, broken[i]);
		int descriptor = harness_connect(&harness);
		harness_send(descriptor, request, strlen(request));
		harness_read(descriptor, false, &reply);
		assert_true(reply.closed);
		reply_expect(&reply, 400, "validation_error");
		char rest;
		assert_true(read(descriptor, &rest, 1) <= 0);
		close(descriptor);
	}
}

/* A refused request leaves the connection usable where that costs little. */
TEST_CASE(test_keep_alive)
{
	static const char request[] =
		"POST /v1/events HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
		"Content-Length: 20\r\n\r\n01234567890123456789"
		"GET /v1/channel HTTP/1.1\r\nHost: a\r\n\r\n";
	struct reply reply;
	int descriptor = harness_connect(&harness);
	harness_send(descriptor, request, strlen(request));
	for (int i = 0; i < 2; i++) {
		harness_read(descriptor, false, &reply);
		assert_false(reply.closed);
		reply_expect(&reply, 401, "invalid_key");
	}
	close(descriptor);
}

static uint64_t id_of(const char *text)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	struct sockaddr_in four = {.sin_family = AF_INET};
	if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1)
		return guard_address_id(harness.server, (struct sockaddr *)&six);
	assert_int_equal(inet_pton(AF_INET, text, &four.sin_addr), 1);
	return guard_address_id(harness.server, (struct sockaddr *)&four);
}

/* The network of one customer counts as one address. */
TEST_CASE(test_one_address)
{
	assert_true(id_of("2001:db8:0:1::1") == id_of("2001:db8:0:ff:ffff::2"));
	assert_true(id_of("2001:db8:0:1::1") != id_of("2001:db8:0:100::1"));
	assert_true(id_of("192.0.2.1") == id_of("::ffff:192.0.2.1"));
	assert_true(id_of("192.0.2.1") != id_of("192.0.2.2"));
	assert_true(id_of("32.1.13.184") != id_of("2001:db8::1"));
}

static int start(void **state)
{
	harness_start(&harness, NULL);
	return 0;
}

/* ---- rates, with small ones ---- */

static void small_rates(struct settings *settings)
{
	settings->rate_live = 2;
	settings->rate_test = 3;
	settings->service_trusted_proxies = "127.0.0.0/8";
}

static int start_small(void **state)
{
	harness_start(&harness, small_rates);
	return 0;
}

TEST_CASE_WITH(test_rate_by_address, start_small, harness_tear_down)
{
	struct reply reply;
	/* Requests without a valid key share one bucket per address. */
	for (int i = 0; i < 8; i++) {
		ask(&reply, "GET", i % 2 ? "/v1/channel" : "/nothing", NULL,
		    "X-Forwarded-For: 192.0.2.1\r\n");
		reply_expect(&reply, i % 2 ? 401 : 404, NULL);
	}
	ask(&reply, "GET", "/v1/channel", NULL, "X-Forwarded-For: 192.0.2.1\r\n");
	reply_expect(&reply, 429, "rate_limited");
	/* Entries of the client to the left of the proxy's own entry have no effect. */
	ask(&reply, "GET", "/v1/channel", NULL, "X-Forwarded-For: 198.51.100.7, 192.0.2.1\r\n");
	reply_expect(&reply, 429, "rate_limited");
	ask(&reply, "GET", "/v1/channel", NULL,
	    "X-Forwarded-For: 192.0.2.1, 198.51.100.7, 127.0.0.2\r\n");
	reply_expect(&reply, 401, "invalid_key");
	ask(&reply, "GET", "/v1/channel", NULL, "X-Forwarded-For: 2001:db8::1\r\n");
	reply_expect(&reply, 401, "invalid_key");
	/* An invalid entry is ignored: the address of the proxy counts instead. */
	static const char *const odd[] = {
		"", "unknown", "192.0.2.1:http", "::ffff:300.1.1.1",
		"a name that is far too long to be the text of any address there is at all"};
	for (int i = 0; i < 9; i++) {
		char header[160];
		snprintf(header, sizeof header, "X-Forwarded-For: %s\r\n",
		         odd[(size_t)i % (sizeof odd / sizeof *odd)]);
		ask(&reply, "GET", "/nothing", NULL, header);
		reply_expect(&reply, i < 8 ? 404 : 429, NULL);
	}
	/* An IPv4-mapped IPv6 address is the same as the IPv4 address. */
	ask(&reply, "GET", "/nothing", NULL, "X-Forwarded-For: ::ffff:192.0.2.1\r\n");
	reply_expect(&reply, 429, "rate_limited");
	ask(&reply, "GET", "/nothing", NULL, "X-Forwarded-For: 192.0.2.1:5678\r\n");
	reply_expect(&reply, 429, "rate_limited");
	/* The look-up of an unknown key counts, too. */
	char nobody[KEY_TEXT_MAX];
	key_generate("svc", MODE_LIVE, nobody);
	ask(&reply, "GET", "/v1/channel", nobody, "X-Forwarded-For: 192.0.2.1\r\n");
	reply_expect(&reply, 429, "rate_limited");
	/* Public pages have a separate limit. */
	ask(&reply, "GET", "/docs/errors", NULL, "X-Forwarded-For: 192.0.2.1\r\n");
	reply_expect(&reply, 200, NULL);
}

static void small_account_rate(struct settings *settings)
{
	small_rates(settings);
	settings->rate_account = 1;
}

static int start_small_account(void **state)
{
	harness_start(&harness, small_account_rate);
	return 0;
}

TEST_CASE_WITH(test_rate_by_account, start_small_account, harness_tear_down)
{
	struct reply reply;
	int allowed = 0;
	for (;; allowed++) {
		ask(&reply, "GET", "/v1/account/balance", LIVE, NULL);
		assert_string_equal(reply_header(&reply, "RateLimit-Limit"), "4");
		if (*reply_header(&reply, "Retry-After"))
			break;
		reply_expect(&reply, 200, NULL);
		assert_true(allowed < 1000);
	}
	assert_true(allowed >= 4);
	assert_string_equal(reply_header(&reply, "RateLimit-Remaining"), "0");
	reply_expect(&reply, 429, "rate_limited");
	ask(&reply, "GET", "/v1/account/balance", TEST, NULL); /* in another bucket */
	assert_string_equal(reply_header(&reply, "RateLimit-Limit"), "3");
	reply_expect(&reply, 200, NULL);
}

TEST_MAIN_EACH(start, harness_tear_down)
