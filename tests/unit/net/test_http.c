#include <poll.h>
#include <pthread.h>

#include "testing.h"
#include "loopback.h"
#include "base/clock.h"
#include "net/http.h"

/* A server for one connection: reads a request, then sends the answer of the script. */
struct script {
	const char *answer;
	size_t answer_size; /* 0: its length as text */
	bool silent;        /* sends nothing until the client disconnects */
	int listener;
	int port;
	char request[65536];
	size_t request_size;
	pthread_t thread;
};

static struct address_guard loopback;

static bool request_complete(const struct script *script)
{
	const char *end = strstr(script->request, "\r\n\r\n");
	const char *length = strstr(script->request, "Content-Length: ");

	if (!end)
		return false;
	size_t head = (size_t)(end + 4 - script->request);
	return script->request_size - head >= (length ? strtoul(length + 16, NULL, 10) : 0);
}

static void *serve(void *context)
{
	struct script *script = context;
	struct pollfd waiting = {.fd = script->listener, .events = POLLIN};

	if (poll(&waiting, 1, 20000) != 1)
		return NULL;
	int client = accept(script->listener, NULL, NULL);
	while (!request_complete(script) && script->request_size < sizeof script->request - 1) {
		ssize_t size = recv(client, script->request + script->request_size,
		                    sizeof script->request - 1 - script->request_size, 0);
		if (size <= 0)
			break;
		script->request_size += (size_t)size;
	}
	size_t size = script->answer_size ? script->answer_size : strlen(script->answer);
	if (script->silent)
		(void)recv(client, script->request, 1, 0);
	else
		(void)send(client, script->answer, size, MSG_NOSIGNAL);
	close(client);
	return NULL;
}

static void start(struct script *script)
{
	script->listener = loopback_listen(&script->port);
	assert_int_equal(pthread_create(&script->thread, NULL, serve, script), 0);
}

static void finish(struct script *script)
{
	pthread_join(script->thread, NULL);
	close(script->listener);
}

static struct http_request request_to(const struct script *script, char url[128])
{
	snprintf(url, 128, "http://127.0.0.1:%d/a/../path?q=1", script->port);
	return (struct http_request){
		.url = url, .allow_http = true, .guard = &loopback, .timeout_ms = 20000};
}

TEST_CASE(test_get)
{
	struct script script = {.answer = "HTTP/1.1 103 Early Hints\r\nLink: <early>\r\n\r\n"
	                                  "HTTP/1.1 200 OK\r\nContent-Type:  text/plain \r\n"
	                                  "X-Empty:\r\nContent-Length: 5\r\n\r\nhello"};
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	static const char *const headers[] = {"X-One: 1", "X-Two: 2"};
	char url[128];

	start(&script);
	struct http_request request = request_to(&script, url);
	request.headers = headers;
	request.header_count = 2;
	assert_int_equal(http_send(&request, &answer, NULL), 0);
	finish(&script);
	assert_int_equal(answer.status, 200);
	assert_false(answer.cut);
	assert_string_equal(answer.body.data, "hello");
	assert_string_equal(answer.address, "127.0.0.1");
	assert_true(slice_is(http_answer_header(&answer, "content-type"), "text/plain"));
	assert_true(slice_is(http_answer_header(&answer, "X-Empty"), ""));
	assert_non_null(http_answer_header(&answer, "X-Empty").data);
	assert_null(http_answer_header(&answer, "Link").data);
	assert_null(http_answer_header(&answer, "Content").data);
	assert_ptr_equal(strstr(script.request, "GET /a/../path?q=1 HTTP/1.1\r\n"), script.request);
	assert_non_null(strstr(script.request, "\r\nX-One: 1\r\n"));
	assert_non_null(strstr(script.request, "\r\nX-Two: 2\r\n"));
	assert_null(strstr(script.request, "Authorization"));
}

TEST_CASE(test_post)
{
	struct script script = {.answer = "HTTP/1.1 204 No Content\r\n\r\n"};
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	char body[3000];
	char url[128];

	memset(body, 'b', sizeof body);
	start(&script);
	struct http_request request = request_to(&script, url);
	request.body = slice_make(body, sizeof body);
	request.content_type = "application/timestamp-query";
	request.user = "someone";
	request.password = "secret";
	assert_int_equal(http_send(&request, &answer, NULL), 0);
	finish(&script);
	assert_int_equal(answer.status, 204);
	assert_int_equal(answer.body.size, 0);
	assert_ptr_equal(strstr(script.request, "POST /"), script.request);
	assert_non_null(strstr(script.request, "\r\nContent-Length: 3000\r\n"));
	assert_non_null(strstr(script.request, "\r\nContent-Type: application/timestamp-query\r\n"));
	assert_non_null(strstr(script.request, "\r\nAuthorization: Basic c29tZW9uZTpzZWNyZXQ=\r\n"));
	assert_null(strstr(script.request, "Expect"));
	assert_memory_equal(strstr(script.request, "\r\n\r\n") + 4, body, sizeof body);
}

TEST_CASE(test_other_methods)
{
	static const char *const methods[] = {"PUT", "DELETE", "HEAD"};

	for (size_t i = 0; i < 3; i++) {
		struct script script = {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"};
		HTTP_ANSWER_AUTO struct http_answer answer = {0};
		char url[128];

		start(&script);
		struct http_request request = request_to(&script, url);
		request.method = methods[i];
		request.bearer = "token-1";
		if (i == 0)
			request.body = slice_of("content");
		assert_int_equal(http_send(&request, &answer, NULL), 0);
		finish(&script);
		assert_ptr_equal(strstr(script.request, methods[i]), script.request);
		assert_non_null(strstr(script.request, "\r\nAuthorization: Bearer token-1\r\n"));
		assert_null(strstr(script.request, "Content-Type"));
		if (i == 0)
			assert_string_equal(strstr(script.request, "\r\n\r\n") + 4, "content");
	}
}

TEST_CASE(test_redirect_is_not_followed)
{
	struct script script = {.answer = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
	                                  "Content-Length: 0\r\n\r\n"};
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	char url[128];

	start(&script);
	struct http_request request = request_to(&script, url);
	assert_int_equal(http_send(&request, &answer, NULL), 0);
	finish(&script);
	assert_int_equal(answer.status, 302);
	assert_true(slice_is(http_answer_header(&answer, "Location"), "http://127.0.0.1:1/"));
}

TEST_CASE(test_body_limit)
{
	static const struct {
		const char *answer;
		bool cut_allowed;
		int result;
		const char *body;
		bool cut;
	} cases[] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789", false, 0, "0123456789", false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789", true, 0, "0123456789", false},
		{"HTTP/1.1 200 OK\r\n\r\n0123456789", false, 0, "0123456789", false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n0123456789a", true, 0, "0123456789", true},
		{"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n0123456789a", false, ERR_TOO_LARGE, "",
	     false},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
	     "chunked\r\n\r\n6\r\n012345\r\n6\r\n6789ab\r\n0\r\n\r\n",
	     true, 0, "0123456789", true},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
	     "chunked\r\n\r\n6\r\n012345\r\n6\r\n6789ab\r\n0\r\n\r\n",
	     false, ERR_TOO_LARGE, "", false},
		/* a complete answer, and nothing less, is complete */
		{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123", true, ERR_NETWORK, "", false},
		{"", true, ERR_NETWORK, "", false},
		{"nonsense\r\n\r\n", true, ERR_NETWORK, "", false},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct script script = {.answer = cases[i].answer};
		HTTP_ANSWER_AUTO struct http_answer answer = {0};
		char url[128];

		start(&script);
		struct http_request request = request_to(&script, url);
		request.answer_limit = 10;
		request.cut_over_limit = cases[i].cut_allowed;
		int result = http_send(&request, &answer, NULL);
		finish(&script);
		if (result != cases[i].result)
			fail_msg("case %zu: %d", i, result);
		if (!result) {
			assert_string_equal(answer.body.data, cases[i].body);
			assert_int_equal(answer.cut, cases[i].cut);
		}
	}
}

TEST_CASE(test_header_limit)
{
	static char text[HTTP_HEADERS_MAX * 2];
	struct script script = {.answer = text};
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	struct error error = {0};
	char url[128];

	strcpy(text, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n");
	for (size_t i = 0; i < HTTP_HEADERS_MAX / 64 + 1; i++)
		strcat(text, "X-Padding: 0123456789012345678901234567890123456789012345678901\r\n");
	strcat(text, "\r\n");
	start(&script);
	struct http_request request = request_to(&script, url);
	assert_int_equal(http_send(&request, &answer, &error), ERR_NETWORK);
	finish(&script);
	assert_non_null(strstr(error.cause, "headers"));
}

TEST_CASE(test_timeout)
{
	struct script script = {.answer = "", .silent = true};
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	char url[128];

	start(&script);
	struct http_request request = request_to(&script, url);
	request.timeout_ms = 150;
	int64_t before_us = clock_monotonic_us();
	assert_int_equal(http_send(&request, &answer, NULL), ERR_NETWORK);
	assert_in_range(clock_monotonic_us() - before_us, 100000, 10000000);
	finish(&script);
}

/* The name resolves to a loopback address, which only the connection reveals. */
TEST_CASE(test_guard)
{
	struct script script = {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"};
	struct error error = {0};
	char url[128];
	static const char *const forms[] = {"127.0.0.1",      "localhost", "[::ffff:127.0.0.1]",
	                                    "2130706433",     "0x7f.1",    "[::1]",
	                                    "169.254.169.254"};

	start(&script);
	struct http_request request = request_to(&script, url);
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		HTTP_ANSWER_AUTO struct http_answer refused = {0};
		snprintf(url, sizeof url, "http://%s:%d/", forms[i], script.port);
		request.guard = NULL;
		if (http_send(&request, &refused, &error) != ERR_REFUSED)
			fail_msg("%s: %s", forms[i], error.cause);
		assert_non_null(strstr(error.cause, "not permitted"));
	}
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	snprintf(url, sizeof url, "http://localhost:%d/", script.port);
	request.guard = &loopback;
	assert_int_equal(http_send(&request, &answer, NULL), 0);
	finish(&script);
	assert_int_equal(answer.status, 200);
}

TEST_CASE(test_refused_before_sending)
{
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	static const char *const broken_header[] = {"X-One: 1\r\nX-Two: 2"};
	struct http_request request = {.allow_http = true, .guard = &loopback, .timeout_ms = 500};
	static const char *const urls[] = {"ftp://127.0.0.1/", "file:///etc/passwd",
	                                   "gopher://127.0.0.1/", "http://user:pw@127.0.0.1/",
	                                   "http://"};

	assert_int_equal(http_send(&request, &answer, NULL), ERR_VALIDATION);
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		request.url = urls[i];
		int result = http_send(&request, &answer, NULL);
		if (result != ERR_VALIDATION)
			fail_msg("%s: %d", urls[i], result);
	}
	request.url = "http://127.0.0.1:9/";
	request.allow_http = false;
	assert_int_equal(http_send(&request, &answer, NULL), ERR_VALIDATION);
	request.allow_http = true;
	request.headers = broken_header;
	request.header_count = 1;
	assert_int_equal(http_send(&request, &answer, NULL), ERR_VALIDATION);
	const char *many[HTTP_REQUEST_HEADERS_MAX + 1];
	for (size_t i = 0; i < sizeof many / sizeof *many; i++)
		many[i] = "X-One: 1";
	request.headers = many;
	request.header_count = sizeof many / sizeof *many;
	assert_int_equal(http_send(&request, &answer, NULL), ERR_VALIDATION);
	request.header_count = 0;
	static char long_text[HTTP_URL_MAX + 32] = "http://127.0.0.1:9/";
	memset(long_text + strlen(long_text), 'a', sizeof long_text - strlen(long_text) - 1);
	request.content_type = long_text;
	assert_int_equal(http_send(&request, &answer, NULL), ERR_VALIDATION);
	request.content_type = NULL;
	request.url = long_text;
	assert_int_equal(http_send(&request, &answer, NULL), ERR_VALIDATION);
}

/* An unreadable certificate is a fault of this exchange; nothing is sent without it. */
TEST_CASE(test_client_certificate)
{
	struct script script = {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"};
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	char url[128], secure[128];

	start(&script);
	struct http_request request = request_to(&script, url);
	snprintf(secure, sizeof secure, "https://127.0.0.1:%d/", script.port);
	request.url = secure;
	request.client_certificate = request.client_key = "/nothing/here.pem";
	assert_int_equal(http_send(&request, &answer, NULL), ERR_NETWORK);
	finish(&script);
	assert_null(strstr(script.request, "HTTP/1.1"));
}

/* Proxy settings in the environment must not bypass the guard. */
TEST_CASE(test_no_proxy_from_environment)
{
	struct script script = {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"};
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	char url[128];

	setenv("http_proxy", "http://127.0.0.1:1/", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1/", 1);
	start(&script);
	struct http_request request = request_to(&script, url);
	int result = http_send(&request, &answer, NULL);
	finish(&script);
	unsetenv("http_proxy");
	unsetenv("ALL_PROXY");
	assert_int_equal(result, 0);
}

TEST_CASE(test_url_check)
{
	static const struct {
		const char *url;
		bool https;
		bool http;
	} cases[] = {
		{"https://example.com/hook", true, true},
		{"https://example.com:8443/hook?x=1", true, true},
		{"https://[2001:db8::1]/", true, true},
		{"http://example.com/", false, true},
		{"HTTPS://EXAMPLE.COM", true, true},
		{"example.com/hook", false, false},
		{"//example.com/", false, false},
		{"https://", false, false},
		{"https:///path", false, false},
		{"https://user@example.com/", false, false},
		{"https://user:pw@example.com/", false, false},
		{"https://example.com/#part", false, false},
		{"https://example.com/#", false, false},
		{"https://example.com/a b", false, false},
		{"https://example.com/\r\nX: y", false, false},
		{"https://ex\xc3\xa1mple.com/", false, false},
		{"https://example.com:99999/", false, false},
		{"ftp://example.com/", false, false},
		{"javascript:alert(1)", false, false},
		{"", false, false},
	};
	char longest[HTTP_URL_MAX + 2];
	struct error error = {0};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool https = http_url_check(slice_of(cases[i].url), false, "url", &error) == 0;
		bool http = http_url_check(slice_of(cases[i].url), true, "url", &error) == 0;
		if (https != cases[i].https || http != cases[i].http)
			fail_msg("%s: %d %d", cases[i].url, https, http);
	}
	assert_non_null(strstr(error.english, "'url'"));
	memset(longest, 'a', sizeof longest);
	memcpy(longest, "https://example.com/", 20);
	assert_int_equal(http_url_check(slice_make(longest, HTTP_URL_MAX), false, "url", NULL), 0);
	assert_int_equal(http_url_check(slice_make(longest, HTTP_URL_MAX + 1), false, "url", NULL),
	                 ERR_VALIDATION);
}

static size_t give_letters(void *context, uint64_t offset, void *data, size_t size)
{
	(void)context;
	for (size_t i = 0; i < size; i++)
		((char *)data)[i] = (char)('a' + (offset + i) % 26);
	return size;
}

static bool take_into(void *context, struct slice part)
{
	struct buf *taken = context;
	buf_add_slice(taken, part);
	return buf_check(taken) == 0;
}

TEST_CASE(test_streams)
{
	struct script script = {.answer =
	                            "HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 5\r\n\r\nhello"};
	struct http_upload upload = {.read = give_letters, .size = 30000};
	struct http_session *session = http_session_open();
	BUF_AUTO struct buf taken = {.limit = 100};
	char url[128];

	assert_non_null(session);
	for (int i = 0; i < 2; i++) { /* the second request finds the kept connection closed */
		HTTP_ANSWER_AUTO struct http_answer answer = {0};
		memset(script.request, 0, sizeof script.request);
		script.request_size = 0;
		start(&script);
		struct http_request request = request_to(&script, url);
		request.method = "PUT";
		request.upload = &upload;
		request.take = take_into;
		request.take_context = &taken;
		request.session = session;
		request.stall_timeout_ms = 20000;
		assert_int_equal(http_send(&request, &answer, NULL), 0);
		finish(&script);
		assert_int_equal(answer.status, 200);
		assert_int_equal(answer.body.size, 0);
		assert_true(slice_is(http_answer_header(&answer, "X-A"), "b"));
		assert_non_null(strstr(script.request, "PUT /a/../path?q=1 HTTP/1.1\r\n"));
		const char *body = strstr(script.request, "\r\n\r\n") + 4;
		assert_int_equal(strlen(body), 30000);
		assert_memory_equal(body + 29990, "mnopqrstuv", 10);
	}
	assert_string_equal(taken.data, "hellohello");
	http_session_close(session);
	http_session_close(NULL);
}

static bool take_nothing(void *context, struct slice part)
{
	(void)context;
	(void)part;
	return false;
}

/* Only the body of a successful answer is streamed; a refusal by the callback ends the exchange. */
TEST_CASE(test_streamed_answers)
{
	static const struct {
		const char *answer;
		int result;
	} cases[] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", ERR_NETWORK},
		{"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello", 0},
	};
	for (size_t i = 0; i < 2; i++) {
		struct script script = {.answer = cases[i].answer};
		HTTP_ANSWER_AUTO struct http_answer answer = {0};
		char url[128];
		start(&script);
		struct http_request request = request_to(&script, url);
		request.take = take_nothing;
		assert_int_equal(http_send(&request, &answer, NULL), cases[i].result);
		finish(&script);
		if (!cases[i].result)
			assert_string_equal(answer.body.data, "hello");
	}
}

TEST_CASE(test_stall)
{
	struct script script = {.answer = "", .silent = true};
	struct error error = {0};
	struct http_answer answer;
	char url[128];

	start(&script);
	struct http_request request = request_to(&script, url);
	request.timeout_ms = 60000;
	request.stall_timeout_ms = 100;
	assert_int_equal(http_send(&request, &answer, &error), ERR_NETWORK);
	finish(&script);
	assert_non_null(strstr(error.cause, "no progress for 100 ms"));
}

/* A header that is not sent must not be signed: some services refuse that. */
TEST_CASE(test_signed_requests)
{
	struct script script = {.answer = "HTTP/1.1 204 No Content\r\n\r\n"};
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	static const char *const headers[] = {"x-amz-content-sha256: 0"};
	char url[128];

	start(&script);
	struct http_request request = request_to(&script, url);
	request.headers = headers;
	request.header_count = 1;
	request.user = "key";
	request.password = "secret";
	request.aws_sigv4 = "aws:amz:eu-west-1:s3";
	assert_int_equal(http_send(&request, &answer, NULL), 0);
	finish(&script);
	assert_non_null(strstr(script.request, "\r\nAuthorization: AWS4-HMAC-SHA256 Credential=key/"));
	assert_non_null(strstr(script.request, "/eu-west-1/s3/aws4_request, "
	                                       "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "));
	assert_null(strstr(script.request, "secret"));
}

int main(void)
{
	if (network_list_parse(slice_of("127.0.0.0/8, ::1"), &loopback.allowed, NULL) != 0)
		return 1;
	return tests_run(NULL, NULL, NULL, NULL);
}
