/* Requests of each kind, with each call failing in turn in the server. The client gets a fault
 * (5xx, or the end of the connection) or the right answer, never another one, and a failed request
 * succeeds when it is repeated. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "failing.h"
#include "harness.h"
#include "service/keys.h"
#include "store/check/inspect.h"

#define KINDS (FAILING_MEMORY | FAILING_SQLITE | FAILING_OPENSSL)
#define LARGE 40000

static struct harness harness;
#define LIVE harness.key[MODALITY_CONTENT][MODE_LIVE]
#define TEST harness.key[MODALITY_CONTENT][MODE_TEST]
#define HASH harness.key[MODALITY_HASH_ONLY][MODE_LIVE]

/* ---- requests and answers ---- */

struct answer {
	int status; /* 0: none */
	char *head;
	char *body;
	size_t size;
	bool whole; /* the body has the announced length */
};

static void answer_free(struct answer *answer)
{
	free(answer->head);
	*answer = (struct answer){0};
}

/* Removes the values of "Name: value" lines that differ from request to request. */
static void without_chance(char *head)
{
	static const char *const names[] = {
		"\r\nDate: ", "\r\nX-Request-Id: ", "\r\nRateLimit-Remaining: ", "\r\nRateLimit-Reset: "};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char *value = strstr(head, names[i]);
		if (value) {
			value += strlen(names[i]);
			memmove(value, value + strcspn(value, "\r"), strlen(value + strcspn(value, "\r")) + 1);
		}
	}
}

static struct answer ask(struct slice request, bool is_head)
{
	struct answer answer = {0};
	size_t capacity = 1 << 20, got = 0;
	char *text = malloc(capacity);
	assert_non_null(text);
	int descriptor = harness_connect(&harness);
	harness_send(descriptor, request.data, request.size);
	ssize_t more;
	while ((more = recv(descriptor, text + got, capacity - got - 1, 0)) > 0)
		got += (size_t)more;
	close(descriptor);
	text[got] = '\0';
	answer.head = text;
	char *body = strstr(text, "\r\n\r\n");
	if (!body)
		return answer;
	body[2] = '\0';
	answer.body = body + 4;
	answer.size = got - (size_t)(answer.body - text);
	const char *length = strstr(text, "\r\nContent-Length: ");
	answer.whole = is_head || (length && strtoul(length + 18, NULL, 10) == answer.size);
	assert_int_equal(sscanf(text, "HTTP/1.1 %d ", &answer.status), 1);
	without_chance(text);
	return answer;
}

/* ---- each call in turn ---- */

struct request {
	const char *method, *target, *key, *headers; /* the last two may be NULL */
	const char *body; /* NULL: none; a # in it becomes a new number each time */
	int status;
	bool differs; /* answers differ even without a failure */
	unsigned kinds;
};

static int number; /* in the place of the # */

static void add_body(struct buf *text, const char *body)
{
	const char *place = strchr(body, '#');
	buf_add(text, body, place ? (size_t)(place - body) : strlen(body));
	if (place)
		buf_printf(text, "%06d%s", number, place + 1);
}

static void write_request(const struct request *request, struct buf *text)
{
	buf_printf(text, "%s %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n%s", request->method,
	           request->target, request->headers ? request->headers : "");
	if (request->key)
		buf_printf(text, "Authorization: Bearer %s\r\n", request->key);
	if (request->body)
		buf_printf(text, "Content-Length: %zu\r\n",
		           strlen(request->body) + (strchr(request->body, '#') ? 5 : 0));
	buf_add_text(text, "\r\n");
	if (request->body)
		add_body(text, request->body);
	assert_int_equal(buf_check(text), 0);
}

static struct answer once(const struct request *request)
{
	BUF_AUTO struct buf text = {.limit = 1 << 20};
	write_request(request, &text);
	service_clear_key_cache(&harness.service);
	return ask(buf_slice(&text), strcmp(request->method, "HEAD") == 0);
}

static bool is_json(const struct answer *answer)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct json *json;
	struct error error;
	return json_parse(&arena, slice_make(answer->body, answer->size), NULL, &json, &error) == 0;
}

static bool is_fault(const struct answer *answer)
{
	if (answer->status == 0 || !answer->whole)
		return true;
	bool page = strstr(answer->head, "text/html") && strstr(answer->body, "</html>");
	return answer->status >= 500 && (answer->size == 0 || page || is_json(answer));
}

/* A repetition of an event that was registered nevertheless is answered with 200. */
static bool is_right(const struct request *request, const struct answer *usual,
                     const struct answer *answer)
{
	bool replayed = request->status == 201 && answer->status == 200;
	if (!answer->whole || (answer->status != request->status && !replayed))
		return false;
	if (request->differs || request->status == 201)
		return is_json(answer);
	return strcmp(answer->head, usual->head) == 0 && answer->size == usual->size &&
	       memcmp(answer->body, usual->body, usual->size) == 0;
}

static void in_turn(const struct request *request)
{
	const char *failed;
	int at = 0;
	number++;
	struct answer usual = once(request);
	if (usual.status != request->status || !usual.whole)
		fail_msg("%s %s: %s\n%s", request->method, request->target, usual.head, usual.body);
	do {
		number++;
		failing_arm_others(request->kinds, ++at);
		struct answer answer = once(request);
		failed = failing_disarm();
		if (!is_right(request, &usual, &answer) && (!failed || !is_fault(&answer)))
			fail_msg("%s %s, call %d, %s: %s%s\ninstead of %s%s", request->method, request->target,
			         at, failed ? failed : "none", answer.head, answer.body, usual.head,
			         usual.body);
		answer_free(&answer);
		answer = once(request);
		if (!is_right(request, &usual, &answer))
			fail_msg("%s %s, after call %d, %s: %s%s", request->method, request->target, at,
			         failed ? failed : "none", answer.head, answer.body);
		answer_free(&answer);
	} while (failed);
	answer_free(&usual);
}

/* ---- the requests ---- */

#define GET(target, key, headers, status)                                                          \
	{                                                                                              \
		"GET", target, key, headers, NULL, status, false, KINDS                                    \
	}
#define POST(target, key, headers, body, status)                                                   \
	{                                                                                              \
		"POST", target, key, headers, body, status, false, KINDS                                   \
	}
#define DIFFERS(method, target, key, headers, body, status)                                        \
	{                                                                                              \
		method, target, key, headers, body, status, true, KINDS                                    \
	}
#define WITH_FILES(method, target, key, headers, body, status)                                     \
	{                                                                                              \
		method, target, key, headers, body, status, false, KINDS | FAILING_FILES                   \
	}

#define JSON "Content-Type: application/json\r\n"
#define FORM "Content-Type: multipart/form-data; boundary=\"b\"\r\n"
#define PART(name) "--b\r\nContent-Disposition: form-data; " name "\r\n\r\n"

static char event_path[3][512]; /* small, large, a file */
static char escaped_path[640], cursor_path[512], certification_path[512];
static char download_path[512], verify_path[512], digest_path[512];
static char large_body[LARGE + 128];
static char unknown_key[KEY_TEXT_MAX];

static void test_reads(void **state)
{
	const struct request requests[] = {
		GET("/v1/channel", LIVE, NULL, 200),
		{"HEAD", "/v1/channel", LIVE, "Accept-Language: es\r\n", NULL, 200, false, KINDS},
		GET("/v1/channel/seals?from=1&to=2999-01-01T00:00:00Z", LIVE, NULL, 200),
		GET("/v1/account/balance", LIVE, NULL, 200),
		GET("/v1/events?limit=2&status=registered&from=2026-01-01T00:00:00Z", LIVE, NULL, 200),
		GET(cursor_path, LIVE, NULL, 200),
		GET(event_path[0], LIVE, NULL, 200),
		GET(escaped_path, LIVE, NULL, 200),
		DIFFERS("GET", "/v1/certifications?limit=1", TEST, NULL, NULL, 200),
		DIFFERS("GET", certification_path, TEST, NULL, NULL, 200),
		GET("/v1/notices", TEST, NULL, 200),
	};
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
		in_turn(&requests[i]);
}

static void test_content(void **state)
{
	const char *paths[] = {event_path[0], event_path[1], event_path[2]};
	for (size_t i = 0; i < 3; i++) {
		char path[640];
		snprintf(path, sizeof path, "%s/content", paths[i]);
		in_turn(&(struct request)WITH_FILES("GET", path, LIVE, NULL, NULL, 200));
	}
	in_turn(&(struct request)WITH_FILES("GET", download_path, NULL, NULL, NULL, 200));
	in_turn(&(struct request)GET(download_path, NULL, "Range: bytes=2-4\r\n", 206));
	in_turn(&(struct request)GET(download_path, NULL, "Range: bytes=20-\r\n", 416));
}

static void test_pages(void **state)
{
	const struct request requests[] = {
		GET("/verify", NULL, NULL, 200),
		GET(verify_path, NULL, NULL, 200),
		GET(verify_path, NULL, "Accept: application/json\r\n", 200),
		GET(digest_path, NULL, "Accept-Language: es\r\n", 200),
		GET("/verify?code=%3Cb%3E", NULL, NULL, 404),
		GET("/verify/SVC-2026-AAAA-AAAA", NULL, "Accept: application/json\r\n", 404),
		GET("/assets/verify.js", NULL, NULL, 200),
		GET("/v1/openapi.yaml", NULL, NULL, 200),
		GET("/v1/webhooks.yaml", NULL, NULL, 200),
		GET("/docs/errors", NULL, "Accept-Language: es\r\n", 200),
	};
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
		in_turn(&requests[i]);
}

static void test_refusals(void **state)
{
	const struct request requests[] = {
		GET("/nothing", NULL, NULL, 404),
		GET("/v1/events/%65vt_x", LIVE, NULL, 404),
		GET("/v1/channel", NULL, NULL, 401),
		GET("/v1/channel", unknown_key, NULL, 401),
		GET("/v1/channel", TEST, "X-SVC-Test-Scenario: rate_limited\r\n", 429),
		GET("/v1/events?status=n%6fne", LIVE, NULL, 400),
		GET("/v1/channel/seals?to=yesterday", LIVE, NULL, 400),
		POST("/v1/channel", LIVE, NULL, "x", 405),
		POST("/v1/events", LIVE, JSON, "{\"client_ref\":\"1\",\"payload\":[]}", 400),
		POST("/v1/events", LIVE, JSON, "{\"client_ref\":\"small\",\"payload\":{}}", 409),
		POST("/v1/events", HASH, JSON, large_body, 413),
		POST("/v1/events", LIVE, FORM, PART("name=\"client_ref\"") "a\r\n--b--", 400),
		POST("/v1/events", LIVE, "Content-Type: multipart/form-data; boundary=\"\\\"\"\r\n", "--b",
	         400),
		POST("/v1/certifications", TEST, JSON, "{\"seq_from\":7,\"seq_to\":8}", 400),
		POST("/payments/manual/notices", NULL, NULL, "{}", 404),
		POST("/v1/notices", LIVE, JSON, "{}", 400),
		POST("/v1/notices", TEST, JSON, "{\"type\":\"balance\"}", 400),
	};
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
		in_turn(&requests[i]);
}

/* Texts that do not fit into the first memory block of a request. */
static void test_long_texts(void **state)
{
	static char text[3001], path[3100], query[3100], unknown[3100], type[3200], form[3300];
	memset(text, 'a', sizeof text - 1);
	snprintf(path, sizeof path, "/v1/events/%%65%s", text);
	snprintf(query, sizeof query, "/v1/events?status=%%65%s", text);
	snprintf(unknown, sizeof unknown, "/v1/events?%.1500s=1", text);
	snprintf(type, sizeof type, "Content-Type: multipart/form-data; x=\"%s\"; boundary=b\r\n",
	         text);
	snprintf(form, sizeof form,
	         PART("name=\"client_ref\"; x=\"%.1500s\"") "n#\r\n" PART(
				 "name=\"file\"; filename*=UTF-8''%%65; x=\"%.1500s\"") "abc\r\n--b--\r\n",
	         text, text);
	const struct request requests[] = {
		GET(path, LIVE, NULL, 404),
		GET(query, LIVE, NULL, 400),
		GET(unknown, LIVE, NULL, 400),
		POST("/v1/events", LIVE, type, form, 201),
	};
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
		in_turn(&requests[i]);
}

static void test_behind_a_proxy(void **state)
{
	const struct request requests[] = {
		GET("/docs/errors", NULL, "X-Forwarded-For: 192.0.2.1\r\n", 200),
		GET("/nothing", NULL, "X-Forwarded-For: 192.0.2.1\r\n", 404),
	};
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
		in_turn(&requests[i]);
}

static void no_problem(void *context, const char *text)
{
	fail_msg("%s", text);
}

static void test_registrations(void **state)
{
	const struct request requests[] = {
		POST("/v1/events", LIVE, JSON, "{\"client_ref\":\"n#\",\"payload\":{\"a\":[1.5,true]}}",
	         201),
		POST("/v1/events", HASH, JSON,
	         "{\"client_ref\":\"n#\",\"hash_alg\":\"sha-256\","
	         "\"hash\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\","
	         "\"occurred_at\":\"2026-01-31T09:30:00+01:00\"}",
	         201),
		POST("/v1/notices", TEST, JSON, "{\"type\":\"balance.exhausted\"}", 201),
		WITH_FILES("POST", "/v1/events", LIVE, JSON, large_body, 201),
		WITH_FILES("POST", "/v1/events", LIVE, FORM,
	               PART("name=\"client_ref\"") "n#\r\n" PART(
					   "name=\"file\"; filename=\"a.txt\"") "abc\r\n--b--\r\n",
	               201),
	};
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
		in_turn(&requests[i]);
	struct check_report report;
	struct check_listener listener = {.problem = no_problem};
	struct error error = {0};
	assert_int_equal(store_check(harness.service.store, &listener, &report, &error), OK);
}

static void test_certification(void **state)
{
	in_turn(&(struct request)DIFFERS("POST", "/v1/certifications", LIVE, JSON,
	                                 "{\"seq_from\":1,\"seq_to\":1}", 202));
}

/* The first request is accepted, and every repetition returns its certification. */
static void test_repeated_certification(void **state)
{
	in_turn(&(struct request)DIFFERS("POST", "/v1/certifications", TEST,
	                                 JSON
	                                 "Idempotency-Key: a-key-of-forty-letters-that-is-its-own\r\n",
	                                 "{\"seq_from\":1,\"seq_to\":1}", 202));
	struct reply reply;
	harness_ask(&harness, &reply, "GET", "/v1/certifications", TEST, NULL, NULL, 0);
	const char *first = strstr(reply.body, "\"certification_id\"");
	const char *second = strstr(first + 1, "\"certification_id\"");
	assert_non_null(second); /* and the existing one */
	assert_null(strstr(second + 1, "\"certification_id\""));
	reply_expect(&reply, 200, NULL);
}

/* ---- starting ---- */

static void test_start(void **state)
{
	const char *failed;
	int at = 0;
	do {
		struct http_server *server = NULL;
		struct error error = {0};
		failing_arm(KINDS | FAILING_SYSTEM, ++at);
		int result = http_start(&harness.service, NULL, &server, &error);
		failed = failing_disarm();
		if (result && !failed)
			fail_msg("%d %s", result, error.cause);
		if (failed && result != ERR_IO && result != ERR_NO_MEMORY)
			fail_msg("call %d, %s: %d", at, failed, result);
		assert_true(result ? !server : http_port(server) && http_monitor_port(server));
		http_stop(server);
	} while (failed);
}

/* ---- preparation ---- */

static void text_member(const struct reply *reply, const char *name, char *text, size_t size)
{
	char quoted[64];
	snprintf(quoted, sizeof quoted, "\"%s\":\"", name);
	const char *found = strstr(reply->body, quoted);
	if (!found)
		fail_msg("%s: %s", name, reply->body);
	found += strlen(quoted);
	snprintf(text, size, "%.*s", (int)strcspn(found, "\""), found);
}

static void register_one(const char *key, const char *headers, const char *body, char *path)
{
	struct reply reply;
	char id[64];
	harness_ask(&harness, &reply, "POST", "/v1/events", key, headers, body, strlen(body));
	text_member(&reply, "event_id", id, sizeof id);
	reply_expect(&reply, 201, NULL);
	if (path)
		sprintf(path, "/v1/events/%s", id);
}

static void certify(void)
{
	struct reply reply;
	char text[400];
	register_one(TEST, JSON, "{\"client_ref\":\"small\",\"payload\":{}}", NULL);
	harness_post(&harness, &reply, "/v1/certifications", TEST, "{\"seq_from\":1,\"seq_to\":1}");
	text_member(&reply, "certification_id", text, sizeof text);
	reply_expect(&reply, 202, NULL);
	harness_issue(&harness, "0123456789", 10);
	snprintf(certification_path, sizeof certification_path, "/v1/certifications/%s", text);
	harness_ask(&harness, &reply, "GET", certification_path, TEST, NULL, NULL, 0);
	text_member(&reply, "verification_code", text, sizeof text);
	snprintf(verify_path, sizeof verify_path, "/verify/%s", text);
	text_member(&reply, "url", text, sizeof text);
	snprintf(download_path, sizeof download_path, "%s",
	         text + strlen(harness.settings.service_public_url));
	text_member(&reply, "sha256", text, sizeof text);
	snprintf(digest_path, sizeof digest_path, "/verify?sha256=%s", text);
	reply_expect(&reply, 200, NULL);
}

static void high_rates(struct settings *settings)
{
	settings->rate_live = settings->rate_test = 1000000;
}

static int start(void **state)
{
	struct reply reply;
	char text[128];
	harness_start(&harness, high_rates);
	register_one(LIVE, JSON, "{\"client_ref\":\"small\",\"payload\":{\"n\":1}}", event_path[0]);
	sprintf(large_body, "{\"client_ref\":\"n#\",\"payload\":{\"a\":\"%0*d\"}}", LARGE, 7);
	register_one(LIVE, JSON, large_body, event_path[1]);
	register_one(LIVE, FORM,
	             PART("name=\"client_ref\"") "file\r\n" PART(
					 "name=\"file\"; filename=\"ñ.txt\"") "abc\r\n--b--\r\n",
	             event_path[2]);
	snprintf(escaped_path, sizeof escaped_path, "/v1/events/%%65%.*s", ID_SIZE,
	         event_path[0] + strlen("/v1/events/e"));
	harness_ask(&harness, &reply, "GET", "/v1/events?limit=1", LIVE, NULL, NULL, 0);
	text_member(&reply, "next_cursor", text, sizeof text);
	reply_expect(&reply, 200, NULL);
	snprintf(cursor_path, sizeof cursor_path, "/v1/events?limit=1&cursor=%s", text);
	key_generate("svc", MODE_LIVE, unknown_key);
	certify();
	return 0;
}

static void trusted(struct settings *settings)
{
	high_rates(settings);
	settings->service_trusted_proxies = "127.0.0.0/8";
}

static int start_behind_a_proxy(void **state)
{
	harness_start(&harness, trusted);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_content),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_registrations),
		cmocka_unit_test(test_certification),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_repeated_certification),
	};
	const struct CMUnitTest proxied[] = {cmocka_unit_test(test_behind_a_proxy)};
	int failed = cmocka_run_group_tests(tests, start, harness_tear_down);
	return failed + cmocka_run_group_tests(proxied, start_behind_a_proxy, harness_tear_down);
}
