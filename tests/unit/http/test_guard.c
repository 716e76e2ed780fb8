/* The checks before a body is read, and the headers of every answer. */
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

static void test_every_answer(void **state)
{
	static const char *const always[] = {"RateLimit-Limit",  "RateLimit-Remaining",
	                                     "RateLimit-Reset",  "X-Request-Id",
	                                     "Content-Language", "Vary",
	                                     "Cache-Control",    "Date",
	                                     "Content-Type"};
	static const struct {
		const char *method, *path;
		int status;
	} cases[] = {
		{"GET", "/nothing", 404},         {"GET", "/v1/events/", 404},
		{"GET", "/v1/events/%zz", 404},   {"DELETE", "/v1/events", 405},
		{"GET", "/v1/events", 401},       {"OPTIONS", "/v1/channel", 405},
		{"HEAD", "/v1/channel", 401},     {"GET", "/verify", 200},
		{"GET", "/v1/openapi.yaml", 200}, {"GET", "/assets/verify.js", 200},
		{"GET", "/docs/errors", 200},     {"GET", "/assets/x", 404},
		{"GET", "/v1/channel?x=1", 401},  {"GET", "/v1/downloads/CERT-2026-0000001/a.pdf", 404},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct reply reply;
		ask(&reply, cases[i].method, cases[i].path, NULL, NULL);
		for (size_t j = 0; j < sizeof always / sizeof *always; j++) {
			if (!*reply_header(&reply, always[j]))
				fail_msg("%s %s lacks %s", cases[i].method, cases[i].path, always[j]);
		}
		bool drawn_with = strcmp(cases[i].path, "/assets/verify.js") == 0;
		assert_string_equal(reply_header(&reply, "Cache-Control"),
		                    drawn_with ? "no-cache" : "no-store");
		reply_expect(&reply, cases[i].status, NULL);
	}
}

static void test_method(void **state)
{
	struct reply reply;
	ask(&reply, "PUT", "/v1/events", LIVE, "Content-Length: 0\r\n");
	assert_string_equal(reply_header(&reply, "Allow"), "GET, HEAD, POST");
	reply_expect(&reply, 405, "validation_error");
	ask(&reply, "POST", "/v1/channel", LIVE, "Content-Length: 0\r\n");
	assert_string_equal(reply_header(&reply, "Allow"), "GET, HEAD");
	reply_expect(&reply, 405, "validation_error");
}

static void test_keys(void **state)
{
	struct reply reply;
	char header[256], wrong[KEY_TEXT_MAX];
	ask(&reply, "GET", "/v1/channel", NULL, NULL);
	assert_string_equal(reply_header(&reply, "WWW-Authenticate"), "Bearer");
	reply_expect(&reply, 401, "invalid_key");
	strcpy(wrong, LIVE);
	wrong[strlen(wrong) - 1] = wrong[strlen(wrong) - 1] == 'a' ? 'b' : 'a';
	ask(&reply, "GET", "/v1/channel", wrong, NULL);
	reply_expect(&reply, 401, "invalid_key");
	key_generate("svc", MODE_LIVE, wrong); /* well-formed, but of no client */
	ask(&reply, "GET", "/v1/channel", wrong, NULL);
	reply_expect(&reply, 401, "invalid_key");

	ask(&reply, "GET", "/v1/channel", LIVE, NULL);
	reply_expect(&reply, 200, NULL);
	snprintf(header, sizeof header, "X-SVC-Api-Key: %s\r\n", LIVE);
	ask(&reply, "GET", "/v1/channel", NULL, header);
	reply_expect(&reply, 200, NULL);
	ask(&reply, "GET", "/v1/channel", NULL, "Authorization: Basic !!!!\r\n");
	reply_expect(&reply, 401, "invalid_key");
	snprintf(header, sizeof header, "Authorization: Bearer %s\r\nAuthorization: Bearer %s\r\n",
	         LIVE, TEST);
	ask(&reply, "GET", "/v1/channel", NULL, header);
	reply_expect(&reply, 401, "invalid_key");
	snprintf(header, sizeof header, "/v1/channel?api_key=%s", LIVE);
	ask(&reply, "GET", header, NULL, NULL);
	reply_expect(&reply, 401, "invalid_key");
}

/* base64 of "<key>:" for Basic. */
static void basic(const char *key, char *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char text[KEY_TEXT_MAX + 4] = "";
	size_t size = (size_t)snprintf(text, sizeof text, "%s:", key);
	for (size_t i = 0; i < size; i += 3) {
		uint32_t group = (uint32_t)(uint8_t)text[i] << 16 | (uint32_t)(uint8_t)text[i + 1] << 8 |
		                 (uint8_t)text[i + 2];
		for (int place = 0; place < 4; place++)
			*out++ = i + (size_t)place > size ? '=' : digits[group >> (18 - 6 * place) & 63];
	}
	*out = '\0';
}

static void test_basic(void **state)
{
	struct reply reply;
	char encoded[128], header[256];
	basic(LIVE, encoded);
	snprintf(header, sizeof header, "Authorization: basic %s\r\n", encoded);
	ask(&reply, "GET", "/v1/channel", NULL, header);
	reply_expect(&reply, 200, NULL);
}

/* Text that is not a key, in whatever form, is reported as an invalid key. */
static void test_odd_credentials(void **state)
{
	static const char *const odd[] = {
		"Bearer",
		"Digest abc",
		"Basic ",
		"Basic =",
		"Basic c3ZjX2xpdmVfYQ==",
		"Bearer svc_live_a",
		("Basic QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB"
	     "QUFBQUFBQUFBQUFBQUFB")};
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		struct reply reply;
		char header[256];
		snprintf(header, sizeof header, "Authorization: %s\r\n", odd[i]);
		ask(&reply, "GET", "/v1/channel", NULL, header);
		reply_expect(&reply, 401, "invalid_key");
	}
}

/* An answer that is sent while the body is still arriving has the same text as one after it. */
static void test_said_early(void **state)
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

static void test_encodings(void **state)
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

static void test_language(void **state)
{
	struct reply reply;
	ask(&reply, "GET", "/v1/nothing", NULL, "Accept-Language: en;q=0.4, es;q=0.5\r\n");
	assert_string_equal(reply_header(&reply, "Content-Language"), "es");
	assert_non_null(strstr(reply.body, "Esta ruta no existe."));
	assert_non_null(strstr(reply.body, "\"incident_id\":null"));
	assert_non_null(strstr(reply.body, "http://127.0.0.1:8080/docs/errors#not_found"));
	reply_expect(&reply, 404, "not_found");
	ask(&reply, "GET", "/v1/channel", LIVE, "Accept-Language: es\r\n");
	assert_non_null(strstr(reply.body, "cadenas real y de prueba"));
	reply_expect(&reply, 200, NULL);
}

static void test_scenarios(void **state)
{
	struct reply reply;
	static const char json[] = "Content-Type: application/json\r\nX-SVC-Test-Scenario: ";
	static const char event[] = "{\"client_ref\":\"forced\",\"payload\":{}}";
	static const char range[] = "{\"seq_from\":1,\"seq_to\":9}";
	static const struct {
		const char *path, *value, *body; /* NULL: GET */
		int status;
		const char *code;
	} cases[] = {
		{"/v1/channel", "rate_limited", NULL, 429, "rate_limited"},
		{"/v1/channel", "unpaid", NULL, 200, NULL},
		{"/v1/channel", "unpaid_limit", NULL, 200, NULL},
		{"/v1/channel", "nonsense", NULL, 400, "validation_error"},
		{"/v1/channel?x=1", "rate_limited", NULL, 400, "validation_error"},
		{"/v1/events", "rate_limited", NULL, 429, "rate_limited"},
		{"/v1/events?limit=0", "rate_limited", NULL, 400, "validation_error"},
		{"/v1/certifications", "rate_limited", NULL, 429, "rate_limited"},
		{"/v1/certifications?limit=0", "rate_limited", NULL, 400, "validation_error"},
		{"/v1/events", "rate_limited", event, 429, "rate_limited"},
		{"/v1/events", "unpaid_limit", event, 402, "unpaid_limit_exceeded"},
		{"/v1/events", "unpaid_limit", "", 400, "validation_error"},
		{"/v1/certifications", "unpaid", range, 402, "account_not_operational"},
		{"/v1/certifications", "unpaid_limit", range, 402, "account_not_operational"},
		{"/v1/certifications", "rate_limited", range, 429, "rate_limited"},
		{"/v1/certifications", "rate_limited", "{}", 400, "validation_error"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char headers[128];
		const char *body = cases[i].body;
		snprintf(headers, sizeof headers, "%s%s\r\n", json, cases[i].value);
		harness_ask(&harness, &reply, body ? "POST" : "GET", cases[i].path, TEST, headers, body,
		            body ? strlen(body) : 0);
		if (cases[i].status == 429)
			assert_true(atoi(reply_header(&reply, "Retry-After")) >= 1);
		reply_expect(&reply, cases[i].status, cases[i].code);
	}
	ask(&reply, "GET", "/v1/channel", LIVE, "X-SVC-Test-Scenario: nonsense\r\n");
	reply_expect(&reply, 200, NULL);
}

static void set_account(int suspended, int disabled)
{
	struct error error = {0};
	struct account_change change = ACCOUNT_UNCHANGED;
	change.suspended = suspended;
	change.disabled = disabled;
	assert_int_equal(store_change_account(harness.service.store, slice_of(harness.account_id),
	                                      &change, clock_now_us(), &error),
	                 0);
	service_clear_key_cache(&harness.service);
}

static void test_states(void **state)
{
	struct reply reply;
	set_account(1, 0);
	ask(&reply, "GET", "/v1/channel", LIVE, NULL);
	reply_expect(&reply, 200, NULL);
	harness_post(&harness, &reply, "/v1/events", LIVE, "not even JSON");
	reply_expect(&reply, 403, "suspended");
	harness_post(&harness, &reply, "/v1/certifications", TEST, "{}");
	reply_expect(&reply, 403, "suspended");
	set_account(0, 1);
	ask(&reply, "GET", "/v1/channel", LIVE, NULL);
	reply_expect(&reply, 403, "account_disabled");
	set_account(0, 0);

	int64_t at;
	struct error error = {0};
	assert_int_equal(store_revoke_key(harness.service.store,
	                                  slice_of(harness.key_id[MODALITY_HASH_ONLY][MODE_TEST]), NULL,
	                                  clock_now_us(), &at, &error),
	                 0);
	service_clear_key_cache(&harness.service);
	ask(&reply, "GET", "/v1/channel", harness.key[MODALITY_HASH_ONLY][MODE_TEST], NULL);
	assert_string_equal(reply_header(&reply, "WWW-Authenticate"), "Bearer");
	reply_expect(&reply, 401, "revoked_key");
}

static void test_framing(void **state)
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

static void test_long_head(void **state)
{
	static char request[64 * 1024];
	struct reply reply;
	int descriptor = harness_connect(&harness);
	size_t size = (size_t)sprintf(request, "GET /v1/");
	memset(request + size, 'a', 40000);
	strcpy(request + size + 40000, " HTTP/1.1\r\nHost: a\r\n\r\n");
	harness_send(descriptor, request, strlen(request));
	harness_read(descriptor, false, &reply);
	assert_true(reply.status == 414 || reply.status == 431 || reply.status == 0);
	reply_free(&reply);
	close(descriptor);
}

/* A refused request leaves the connection usable where that costs little. */
static void test_keep_alive(void **state)
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
static void test_one_address(void **state)
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

static void test_rate_by_key(void **state)
{
	struct reply reply;
	for (int i = 0; i < 3; i++) {
		ask(&reply, "GET", "/v1/account/balance", TEST, NULL);
		assert_string_equal(reply_header(&reply, "RateLimit-Limit"), "3");
		assert_int_equal(atoi(reply_header(&reply, "RateLimit-Remaining")), 2 - i);
		assert_string_equal(reply_header(&reply, "RateLimit-Reset"), "1");
		reply_expect(&reply, 200, NULL);
	}
	ask(&reply, "GET", "/v1/account/balance", TEST, NULL);
	assert_string_equal(reply_header(&reply, "Retry-After"), "1");
	assert_string_equal(reply_header(&reply, "RateLimit-Remaining"), "0");
	reply_expect(&reply, 429, "rate_limited");
	for (int i = 0; i < 8; i++) {
		ask(&reply, "GET", "/v1/account/balance", LIVE, NULL);
		assert_string_equal(reply_header(&reply, "RateLimit-Limit"), "8");
		reply_expect(&reply, 200, NULL);
	}
	ask(&reply, "GET", "/v1/account/balance", LIVE, NULL);
	reply_expect(&reply, 429, "rate_limited");
}

static void test_rate_by_address(void **state)
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
	settings->rate_wrong_codes = 2;
}

static int start_small_account(void **state)
{
	harness_start(&harness, small_account_rate);
	return 0;
}

static void test_rate_by_account(void **state)
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

static void test_wrong_codes(void **state)
{
	static const char *const guesses[] = {"/verify/SVC-2026-AAAA-AAAA",
	                                      "/verify?code=SVC-2026-AAAA-AAAB"};
	struct reply reply;
	for (int i = 0; i < 2; i++) {
		ask(&reply, "GET", guesses[i], NULL, "Accept: application/json\r\n");
		reply_expect(&reply, 404, "not_found");
	}
	for (int i = 0; i < 2; i++) {
		ask(&reply, "GET", guesses[i], NULL, "Accept: application/json\r\n");
		int wait = atoi(reply_header(&reply, "Retry-After"));
		assert_true(wait >= 1 && wait <= 30);
		assert_string_equal(reply_header(&reply, "RateLimit-Limit"), "2");
		reply_expect(&reply, 429, "rate_limited");
	}
	ask(&reply, "GET", guesses[0], NULL,
	    "Accept: application/json\r\nX-Forwarded-For: 192.0.2.9\r\n");
	reply_expect(&reply, 404, "not_found");
	ask(&reply, "GET", "/docs/errors", NULL, NULL);
	reply_expect(&reply, 200, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_answer),
		cmocka_unit_test(test_method),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_basic),
		cmocka_unit_test(test_language),
		cmocka_unit_test(test_scenarios),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_framing),
		cmocka_unit_test(test_long_head),
		cmocka_unit_test(test_keep_alive),
		cmocka_unit_test(test_odd_credentials),
		cmocka_unit_test(test_said_early),
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_one_address),
	};
	const struct CMUnitTest rates[] = {
		cmocka_unit_test_setup_teardown(test_rate_by_key, start_small, harness_tear_down),
		cmocka_unit_test_setup_teardown(test_rate_by_address, start_small, harness_tear_down),
		cmocka_unit_test_setup_teardown(test_rate_by_account, start_small_account,
	                                    harness_tear_down),
		cmocka_unit_test_setup_teardown(test_wrong_codes, start_small_account, harness_tear_down),
	};
	int failed = cmocka_run_group_tests(tests, start, harness_tear_down);
	return failed + cmocka_run_group_tests(rates, NULL, NULL);
}
