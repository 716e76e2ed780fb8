/* Outbound requests and e-mail, with each call failing in turn: each fault is reported as a lack of
 * memory, never as a refusal or an unusable address, and the next attempt succeeds. */
#include <pthread.h>
#include <stdatomic.h>

#include "testing.h"
#include "loopback.h"
#include "base/clock.h"
#include "failing.h"
#include "net/http_multi.h"
#include "net/mail.h"
#include "smtp_script.h"

#define KINDS (FAILING_MEMORY | FAILING_CURL)
#define PATIENCE_US (60 * US_PER_SECOND)

static struct address_guard loopback;

/* ---- a server that answers every request ---- */

static int listener;
static char url[64];
static pthread_t server_thread;
static atomic_bool stopping;

static void answer_one(int peer)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nX-One: 1\r\nContent-Length: 2\r\n"
								 "Connection: close\r\n\r\nok";
	char request[8192] = "";
	size_t size = 0;
	ssize_t got;
	while (!strstr(request, "\r\n\r\n") && size < sizeof request - 1 &&
	       (got = recv(peer, request + size, sizeof request - 1 - size, 0)) > 0)
		size += (size_t)got;
	(void)send(peer, answer, sizeof answer - 1, MSG_NOSIGNAL);
	shutdown(peer, SHUT_WR);
	while (recv(peer, request, sizeof request, 0) > 0)
		continue;
	close(peer);
}

static void *serve(void *context)
{
	int peer;
	while ((peer = accept(listener, NULL, NULL)) >= 0 && !atomic_load(&stopping))
		answer_one(peer);
	return context;
}

static int start(void **state)
{
	int port;
	assert_int_equal(network_list_parse(slice_of("127.0.0.0/8"), &loopback.allowed, NULL), 0);
	listener = loopback_listen(&port);
	snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
	assert_int_equal(pthread_create(&server_thread, NULL, serve, NULL), 0);
	return 0;
}

static int stop(void **state)
{
	atomic_store(&stopping, true);
	shutdown(listener, SHUT_RDWR);
	pthread_join(server_thread, NULL);
	close(listener);
	return 0;
}

/* ---- each call failing in turn ---- */

/* Returns whether to continue after an attempt in which the `at`-th call was to fail. */
static bool goes_on(const char *what, int at, int result, const struct error *error)
{
	const char *failed = failing_disarm();
	if (result != (failed ? ERR_NO_MEMORY : 0))
		fail_msg("%s, call %d, %s: %d %s", what, at, failed ? failed : "none", result,
		         error->cause);
	return failed;
}

#define IN_TURN(expression)                                                                        \
	do {                                                                                           \
		struct error error;                                                                        \
		int at = 0, code;                                                                          \
		do {                                                                                       \
			error = (struct error){0};                                                             \
			failing_arm(KINDS, ++at);                                                              \
			code = (expression);                                                                   \
		} while (goes_on(#expression, at, code, &error));                                          \
	} while (0)

static struct http_request request_here(void)
{
	return (struct http_request){
		.url = url, .allow_http = true, .guard = &loopback, .timeout_ms = 60000};
}

static int exchange(const struct http_request *request, struct error *error)
{
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	int result = http_send(request, &answer, error);
	if (!result)
		assert_true(answer.status == 200 && slice_is(buf_slice(&answer.body), "ok"));
	return result;
}

static size_t give(void *context, uint64_t offset, void *data, size_t size)
{
	memset(data, 'x', size);
	return size;
}

TEST_CASE(test_requests)
{
	static const char *const headers[] = {"X-Two: 2"};
	struct http_upload upload = {.size = 5, .read = give};
	struct http_request request = request_here();
	request.bearer = "token";
	request.headers = headers;
	request.header_count = 1;
	IN_TURN(exchange(&request, &error));
	request = request_here();
	request.body = slice_of("{}");
	request.content_type = "application/json";
	request.user = "user";
	request.stall_timeout_ms = 60000;
	IN_TURN(exchange(&request, &error));
	request = request_here();
	request.method = "PUT";
	request.upload = &upload;
	IN_TURN(exchange(&request, &error));
}

/* After a failed request the session works as before. */
TEST_CASE(test_session)
{
	struct http_session *session = NULL;
	struct http_request request = request_here();
	IN_TURN((session = http_session_open()) ? 0 : ERR_NO_MEMORY);
	request.session = session;
	IN_TURN(exchange(&request, &error));
	http_session_close(session);
}

TEST_CASE(test_addresses)
{
	IN_TURN(http_url_check(slice_of("https://example.org/hook"), false, "url", &error));
	IN_TURN(mail_url_check("smtps://mail.example.org"));
}

TEST_CASE(test_mail)
{
	static struct smtp_script script;
	char mail_url[64];
	struct mail_server server = {
		.url = mail_url, .user = "", .guard = &loopback, .timeout_ms = 60000};
	struct mail_message message = {.from = "notices@example.org",
	                               .from_name = "Ñandú",
	                               .id = "eml_1",
	                               .to = "owner@example.com",
	                               .subject = slice_of("Año"),
	                               .text = slice_of("One line.\n")};
	smtp_start(&script);
	snprintf(mail_url, sizeof mail_url, "smtp://127.0.0.1:%d/", script.port);
	IN_TURN(mail_send(&server, &message, &error));
	smtp_finish(&script);
	assert_non_null(strstr(script.heard, "RCPT TO:<owner@example.com>"));
}

/* ---- many concurrent requests ---- */

static const char *exchanged(struct http_multi *many, int at, int *ret_result)
{
	struct http_exchange item = {.request = request_here()};
	failing_arm_others(KINDS, at);
	http_multi_submit(many, &item);
	struct http_exchange *ended = http_multi_collect(many, PATIENCE_US);
	const char *failed = failing_disarm();
	assert_ptr_equal(ended, &item);
	*ret_result = item.result;
	http_answer_free(&item.answer);
	return failed;
}

TEST_CASE(test_many)
{
	struct http_multi *many = NULL;
	struct error error = {0};
	const char *failed;
	int at = 0, result;
	do {
		failing_arm(KINDS | FAILING_SYSTEM, ++at);
		result = http_multi_start(&many, &error);
		failed = failing_disarm();
		assert_int_equal(result, failed ? ERR_NO_MEMORY : 0);
	} while (failed);
	at = 0;
	do {
		failed = exchanged(many, ++at, &result);
		if (result && (!failed || result != ERR_NO_MEMORY))
			fail_msg("call %d, %s: %d", at, failed ? failed : "none", result);
	} while (failed);
	assert_null(http_multi_stop(many));
}

TEST_MAIN(start, stop)
