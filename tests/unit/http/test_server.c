/* Starting, stopping, the operator's listener, and many clients at once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"

static struct harness harness;

static void test_settings(void **state)
{
	static const char *const bad[] = {
		"",       "8080",  "localhost:8080", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:80a",
		"::1:80", "[::1]", "[127.0.0.1]:80"};
	harness_start(&harness, NULL);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct settings settings = harness.settings;
		struct service service = harness.service;
		struct http_server *server = NULL;
		struct error error = {0};
		settings.service_listen = bad[i];
		service.settings = &settings;
		if (http_start(&service, &server, &error) != ERR_VALIDATION)
			fail_msg("%s", bad[i]);
		assert_null(server);
	}
	/* An address in use. */
	struct settings settings = harness.settings;
	struct service service = harness.service;
	struct http_server *server = NULL;
	struct error error = {0};
	char listen[32];
	snprintf(listen, sizeof listen, "127.0.0.1:%u", http_port(harness.server));
	settings.service_listen = listen;
	service.settings = &settings;
	assert_int_equal(http_start(&service, &server, &error), ERR_IO);
	assert_non_null(strstr(error.cause, listen));
	/* None for the operator, and IPv6. */
	settings.service_listen = "[::1]:0";
	settings.service_admin_listen = "";
	if (http_start(&service, &server, &error) == 0) {
		assert_true(http_port(server) > 0);
		assert_int_equal(http_monitor_port(server), 0);
		http_stop(server);
	}
	http_stop(NULL);
	harness_stop(&harness);
}

/* Each with its two lines of comment and a value, in the order of the list; nothing else. */
static void assert_every_metric(const char *page)
{
	static const char *const heads[] = {
#define HEAD(name, type, help)                                                                     \
	"# HELP constancia_" name " " help "\n# TYPE constancia_" name " " type "\nconstancia_" name,
#define SERIES(member, name, type, help) HEAD(name, type, help)
#define HTTP_COUNTER(member, name, type, help) HEAD(name, type, help)
#define COUNTER(member, name, type, unit, help) HEAD(name, type, help)
#define GAUGE(member, name, type, unit, help) HEAD(name, type, help)
#include "service/metrics.def"
	};
	size_t count = 0;
	for (const char *at = page; (at = strstr(at, "# HELP")); at++)
		count++;
	assert_int_equal(count, sizeof heads / sizeof *heads);
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		const char *found = strstr(page, heads[i]);
		if (!found)
			fail_msg("not there, or not in its place: %s", heads[i]);
		page = found + strlen(heads[i]);
	}
}

static void test_admin(void **state)
{
	struct reply reply;
	harness_start(&harness, NULL);
	harness_post(&harness, &reply, "/v1/events", harness.key[MODALITY_CONTENT][MODE_LIVE],
	             "{\"client_ref\":\"a\",\"payload\":{}}");
	reply_expect(&reply, 201, NULL);
	harness_ask_operators(&harness, &reply, "/livez");
	reply_expect(&reply, 200, NULL);
	harness_ask_operators(&harness, &reply, "/readyz");
	assert_non_null(strstr(reply.body, "\"ready\":true"));
	reply_expect(&reply, 200, NULL);
	harness_ask_operators(&harness, &reply, "/metrics");
	assert_non_null(strstr(reply.body, "constancia_http_requests_total{status=\"201\"} 1\n"));
	assert_non_null(strstr(reply.body, "constancia_http_request_seconds_bucket{le=\"+Inf\"} 1\n"));
	assert_non_null(strstr(reply.body, "\nconstancia_events_registered_total 1\n"));
	assert_every_metric(reply.body);
	reply_expect(&reply, 200, NULL);
	harness_ask_operators(&harness, &reply, "/v1/events");
	reply_expect(&reply, 404, NULL);
	http_drain(harness.server, clock_monotonic_us() + US_PER_SECOND);
	harness_ask_operators(&harness, &reply, "/readyz");
	assert_non_null(strstr(reply.body, "stopping"));
	reply_expect(&reply, 503, NULL);
	harness_stop(&harness);
}

/* A connection that was open before the drain is answered and told to go. */
static void test_drain(void **state)
{
	struct reply reply;
	static const char request[] = "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n";
	harness_start(&harness, NULL);
	int descriptor = harness_connect(&harness);
	harness_send(descriptor, request, strlen(request));
	harness_read(descriptor, false, &reply);
	assert_false(reply.closed);
	reply_free(&reply);
	http_drain(harness.server, clock_monotonic_us() + US_PER_SECOND);
	harness_send(descriptor, request, strlen(request));
	harness_read(descriptor, false, &reply);
	assert_true(reply.closed);
	reply_expect(&reply, 404, "not_found");
	close(descriptor);
	harness_stop(&harness);
}

#define CLIENTS 16
#define ROUNDS 40

struct worker {
	pthread_t thread;
	int number;
	int good;
};

static void one_round(struct worker *worker, int descriptor, int round)
{
	char body[256], request[512];
	struct reply reply;
	int size = snprintf(body, sizeof body, "{\"client_ref\":\"%d-%d\",\"payload\":{\"n\":%d}}",
	                    worker->number, round / 2, round / 2);
	snprintf(request, sizeof request,
	         "POST /v1/events HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
	         "Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
	         harness.key[MODALITY_CONTENT][MODE_LIVE], size, body);
	harness_send(descriptor, request, strlen(request));
	harness_read(descriptor, false, &reply);
	worker->good += reply.status == (round % 2 ? 200 : 201);
	reply_free(&reply);
	snprintf(request, sizeof request,
	         "GET /v1/events?limit=5 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n",
	         harness.key[MODALITY_CONTENT][MODE_LIVE]);
	harness_send(descriptor, request, strlen(request));
	harness_read(descriptor, false, &reply);
	worker->good += reply.status == 200;
	reply_free(&reply);
}

static void *work(void *context)
{
	struct worker *worker = context;
	int descriptor = harness_connect(&harness);
	for (int round = 0; round < ROUNDS; round++)
		one_round(worker, descriptor, round);
	close(descriptor);
	return NULL;
}

static void fast(struct settings *settings)
{
	settings->rate_live = 1000000;
}

static void test_many(void **state)
{
	struct worker workers[CLIENTS] = {0};
	struct reply reply;
	harness_start(&harness, fast);
	for (int i = 0; i < CLIENTS; i++) {
		workers[i].number = i;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < CLIENTS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].good, 2 * ROUNDS);
	}
	char part[64];
	snprintf(part, sizeof part, "\"sequence\":%d,", CLIENTS * ROUNDS / 2);
	char path[64];
	snprintf(path, sizeof path, "/v1/events?seq_from=%d", CLIENTS * ROUNDS / 2);
	harness_ask(&harness, &reply, "GET", path, harness.key[MODALITY_CONTENT][MODE_LIVE], NULL, NULL,
	            0);
	assert_non_null(strstr(reply.body, part));
	reply_expect(&reply, 200, NULL);
	harness_stop(&harness);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_admin),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
