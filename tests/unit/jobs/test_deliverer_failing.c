/* The deliverer, with each call failing in turn: every notice arrives once the fault is over,
 * none counts as delivered that did not arrive, and no fault of the service counts against an
 * endpoint. */
#include <poll.h>
#include <pthread.h>

#include "testing.h"
#include "loopback.h"
#include "failing.h"
#include "jobs/deliverer.h"
#include "sample.h"
#include "store/notices/deliveries.h"
#include "store/notices/webhooks.h"

/* ---- the receiver ---- */

struct receiver {
	int listener, port;
	pthread_t thread;
	atomic_bool over;
	atomic_int status; /* of its answers */
	atomic_int received;
	char last[8192]; /* the last request */
};

static void take_request(struct receiver *receiver, int client)
{
	char text[8192];
	size_t size = 0;
	const char *end = NULL;
	while (size < sizeof text - 1) {
		ssize_t got = recv(client, text + size, sizeof text - 1 - size, 0);
		if (got <= 0)
			break;
		text[size += (size_t)got] = '\0';
		end = strstr(text, "\r\n\r\n");
		const char *length = strstr(text, "Content-Length: ");
		if (end && length && size - (size_t)(end + 4 - text) >= strtoul(length + 16, NULL, 10))
			break;
	}
	if (!end)
		return;
	memcpy(receiver->last, text, size + 1);
	atomic_fetch_add(&receiver->received, 1);
	int length = snprintf(text, sizeof text,
	                      "HTTP/1.1 %d x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
	                      atomic_load(&receiver->status));
	(void)send(client, text, (size_t)length, MSG_NOSIGNAL);
}

static void *receive(void *context)
{
	struct receiver *receiver = context;
	while (!atomic_load(&receiver->over)) {
		struct pollfd ready = {.fd = receiver->listener, .events = POLLIN};
		if (poll(&ready, 1, 20) != 1)
			continue;
		int client = accept(receiver->listener, NULL, NULL);
		take_request(receiver, client);
		close(client);
	}
	return NULL;
}

static void start_receiver(struct receiver *receiver)
{
	atomic_store(&receiver->status, 200);
	receiver->listener = loopback_listen(&receiver->port);
	assert_int_equal(pthread_create(&receiver->thread, NULL, receive, receiver), 0);
}

static void stop_receiver(struct receiver *receiver)
{
	atomic_store(&receiver->over, true);
	pthread_join(receiver->thread, NULL);
	close(receiver->listener);
}

/* ---- the deliverer ---- */

static struct sample sample;
static struct settings settings;
static struct service service;
static struct deliverer deliverer;
static struct receiver receiver;
static char endpoint_id[ID_SIZE];
static struct arena arena;
static struct error error;

static atomic_bool stopping;
struct http_exchange *__real_http_multi_collect(struct http_multi *many, int64_t timeout_us);
struct http_exchange *__wrap_http_multi_collect(struct http_multi *many, int64_t timeout_us);
/* A run ends as soon as nothing is in progress, instead of after some idle seconds. */
struct http_exchange *__wrap_http_multi_collect(struct http_multi *many, int64_t timeout_us)
{
	bool idle = deliverer.queue.under_way == 0;
	struct http_exchange *ended = __real_http_multi_collect(many, idle ? 0 : timeout_us);
	if (!ended && idle)
		atomic_store(&stopping, true);
	return ended;
}

static void run(void)
{
	atomic_store(&stopping, false);
	(void)deliverer_run(&deliverer, &stopping);
}

static int set_up(void **state)
{
	char url[64], threshold[ID_SIZE];
	memset(&receiver, 0, sizeof receiver);
	start_receiver(&receiver);
	sample_open(&sample, MODALITY_CONTENT, 1000);
	arena_init(&arena, (size_t)16 << 20);
	settings = (struct settings){
		.service_prefix = "svc",
		.webhook_schedule = "1ms,1ms",
		.webhook_allow_networks = "127.0.0.0/8",
		.webhook_allow_http = true,
		.webhook_timeout = 60 * US_PER_SECOND,
	};
	memset(&service, 0, sizeof service);
	service.settings = &settings;
	service.store = sample.store;
	snprintf(url, sizeof url, "http://127.0.0.1:%d/", receiver.port);
	struct slice account = slice_of(sample.account_id);
	assert_int_equal(
		store_create_webhook(sample.store, account, url, NULL, clock_now_us(), endpoint_id, &error),
		OK);
	assert_int_equal(store_create_threshold(sample.store, account, 999, threshold, &error), OK);
	assert_int_equal(deliverer_init(&deliverer, &service, "node", &error), OK);
	return 0;
}

static int tear_down(void **state)
{
	deliverer_free(&deliverer);
	sample_close(&sample);
	arena_free(&arena);
	stop_receiver(&receiver);
	return 0;
}

/* Causes one more notice: the balance falls to the threshold and rises again. */
static void cause_notice(void)
{
	struct credit_outcome outcome;
	struct credit_movement fall = {.credits = -10, .kind = "adjustment"};
	struct credit_movement rise = {.credits = 10, .kind = "adjustment"};
	struct slice account = slice_of(sample.account_id);
	assert_int_equal(
		store_move_credits(sample.store, account, &fall, clock_now_us(), &outcome, &error), OK);
	assert_int_equal(
		store_move_credits(sample.store, account, &rise, clock_now_us(), &outcome, &error), OK);
}

static struct delivery_counts count(void)
{
	struct delivery_counts counts;
	assert_int_equal(store_count_deliveries(sample.store, &counts, &error), OK);
	return counts;
}

static uint64_t delivered(void)
{
	return atomic_load(&service.counters.notices_delivered);
}

/* The signature of the last request matches its body. */
static void check_signature(void)
{
	static const char stamp[] = "X-SVC-Timestamp: ", id[] = "X-SVC-Webhook-Id: ";
	char secret[WEBHOOK_SECRET_SIZE], notice[64];
	const char *at = strstr(receiver.last, stamp), *name = strstr(receiver.last, id);
	assert_non_null(at);
	assert_non_null(name);
	snprintf(notice, sizeof notice, "%.*s", (int)strcspn(name + strlen(id), "\r"),
	         name + strlen(id));
	struct webhook_headers headers;
	webhook_secret(&deliverer.installation, endpoint_id, 1, secret);
	assert_int_equal(webhook_sign(&deliverer.rules, notice,
	                              slice_of(strstr(receiver.last, "\r\n\r\n") + 4), secret, NULL,
	                              atoll(at + strlen(stamp)) * US_PER_SECOND, &headers),
	                 OK);
	if (!strstr(receiver.last, headers.signature))
		fail_msg("%s is not in %s", headers.signature, receiver.last);
}

/* ---- the tests ---- */

static void in_turn(unsigned kinds, int result)
{
	uint64_t caused = delivered();
	failing_code = result;
	for (int at = 1;; at++) {
		cause_notice();
		caused++;
		uint64_t before = delivered();
		failing_arm(kinds, at);
		run();
		const char *failed = failing_disarm();
		assert_int_equal(delivered() - before + (uint64_t)count().waiting, 1);
		assert_true((uint64_t)atomic_load(&receiver.received) >= delivered());
		while (count().waiting > 0)
			run(); /* given up with the node's lease, or waiting for its time */
		check_signature();
		if (delivered() != caused)
			fail_msg("call %d, %s: %d of %d", at, failed ? failed : "none", (int)delivered(),
			         (int)caused);
		assert_int_equal(atomic_load(&service.counters.notice_attempts_failed), 0);
		assert_int_equal(count().disabled, 0);
		if (!failed)
			break;
		/* A new deliverer, with new threads and secrets. */
		deliverer_free(&deliverer);
		assert_int_equal(deliverer_init(&deliverer, &service, "node", &error), OK);
	}
	failing_code = ERR_UNAVAILABLE;
	struct webhook_record webhook;
	assert_int_equal(
		store_find_webhook(sample.store, slice_of(endpoint_id), &arena, &webhook, &error), OK);
	assert_null(webhook.disabled_by);
}

TEST_CASE(notices_outlive_faults)
{
	in_turn(FAILING_MEMORY | FAILING_SQLITE | FAILING_SYSTEM, ERR_UNAVAILABLE);
}

TEST_CASE(notices_outlive_a_store_that_is_away)
{
	in_turn(FAILING_PARTS | FAILING_ARENAS, ERR_UNAVAILABLE);
	in_turn(FAILING_PARTS, ERR_INTERNAL);
}

TEST_CASE(begins_only_when_it_can)
{
	for (int at = 1;; at++) {
		struct deliverer other;
		failing_arm(FAILING_MEMORY | FAILING_PARTS, at);
		int result = deliverer_init(&other, &service, "node", &error);
		const char *failed = failing_disarm();
		deliverer_free(&other);
		assert_int_equal(result, !failed                         ? OK
		                         : strcmp(failed, "calloc") == 0 ? ERR_NO_MEMORY
		                                                         : ERR_UNAVAILABLE);
		if (!failed)
			break;
	}
	settings.webhook_schedule = "soon";
	struct deliverer other;
	assert_int_equal(deliverer_init(&other, &service, "node", &error), ERR_VALIDATION);
	deliverer_free(&other);
}

TEST_MAIN_EACH(set_up, tear_down)
