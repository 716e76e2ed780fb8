/* The Stripe provider against a scripted server. */
#include <poll.h>
#include <pthread.h>

#include "testing.h"
#include "loopback.h"
#include "base/clock.h"
#include "payment/payment.h"

#define ANSWERS_MAX 4
#define REQUEST_MAX 8192

/* One connection for each answer, in order. An answer of NULL closes it without an answer. */
struct script {
	const char *answers[ANSWERS_MAX];
	int count;
	int listener;
	char requests[ANSWERS_MAX][REQUEST_MAX];
	int served;
	pthread_t thread;
	struct payment_provider *provider;
};

static const struct payment_order order = {
	.sale_code = "sal_1",
	.idempotency_key = "sal_1-try-1",
	.amount_minor = 1210,
	.currency = "EUR",
	.customer = "cus_1",
	.payment_method = "pm_1",
	.description = "1 000 crédits & more",
};

static bool request_complete(const char *request, size_t size)
{
	const char *end = strstr(request, "\r\n\r\n");
	const char *length = strstr(request, "Content-Length: ");
	if (!end)
		return false;
	return size - (size_t)(end + 4 - request) >= (length ? strtoul(length + 16, NULL, 10) : 0);
}

static void answer(struct script *script, int client)
{
	char *request = script->requests[script->served];
	size_t size = 0;
	while (!request_complete(request, size) && size < REQUEST_MAX - 1) {
		ssize_t got = recv(client, request + size, REQUEST_MAX - 1 - size, 0);
		if (got <= 0)
			break;
		size += (size_t)got;
	}
	const char *text = script->answers[script->served];
	if (text) {
		const char *body = strstr(text, "\n\n");
		char *all = NULL;
		int length =
			asprintf(&all, "HTTP/1.1 %.*sContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
		             (int)(body + 1 - text), text, strlen(body + 2), body + 2);
		(void)send(client, all, (size_t)length, MSG_NOSIGNAL);
		free(all);
	}
	close(client);
	script->served++;
}

static void *serve(void *context)
{
	struct script *script = context;
	while (script->served < script->count) {
		struct pollfd waiting = {.fd = script->listener, .events = POLLIN};
		if (poll(&waiting, 1, 5000) != 1)
			return NULL;
		answer(script, accept(script->listener, NULL, NULL));
	}
	return NULL;
}

static void start(struct script *script, const char *return_url)
{
	int port;
	char url[64];
	while (script->count < ANSWERS_MAX && script->answers[script->count])
		script->count++;
	script->listener = loopback_listen(&port);
	snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
	struct payment_settings settings = {
		.provider = "stripe",
		.stripe_url = url,
		.stripe_key = "sk_test_secret",
		.stripe_webhook_secret = "whsec_secret",
		.allow_networks = "127.0.0.1",
		.return_url = return_url,
	};
	assert_int_equal(payment_provider_open(&settings, &script->provider, NULL), OK);
	assert_int_equal(pthread_create(&script->thread, NULL, serve, script), 0);
}

static void finish(struct script *script)
{
	pthread_join(script->thread, NULL);
	close(script->listener);
	payment_provider_close(script->provider);
	assert_int_equal(script->served, script->count);
}

static void charge(struct script *script, const char *return_url, struct payment_result *result)
{
	start(script, return_url);
	assert_int_equal(payment_charge(script->provider, &order, result, NULL), OK);
	finish(script);
	assert_null(strstr(result->reason, "secret"));
}

#define INTENT(status, more)                                                                       \
	"{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"amount\":1210,\"currency\":\"eur\","         \
	"\"status\":\"" status "\"" more ",\"metadata\":{\"sale_code\":\"sal_1\","                     \
	"\"attempt\":\"sal_1-try-1\"}}"
#define PAID INTENT("succeeded", ",\"amount_received\":1210")
#define FAULT(type, more) "{\"error\":{\"type\":\"" type "\"" more "}}"

/* ---- requests ---- */

TEST_CASE(test_a_charge_is_sent_as_it_should)
{
	struct script script = {.answers = {"200 OK\n\n" PAID}};
	struct payment_result result;
	charge(&script, NULL, &result);
	assert_int_equal(result.outcome, PAYMENT_PAID);
	assert_string_equal(result.reference, "pi_1");
	const char *request = script.requests[0];
	assert_ptr_equal(strstr(request, "POST /v1/payment_intents HTTP/1.1\r\n"), request);
	assert_non_null(strstr(request, "\r\nAuthorization: Bearer sk_test_secret\r\n"));
	assert_non_null(strstr(request, "\r\nIdempotency-Key: sal_1-try-1\r\n"));
	assert_non_null(strstr(request, "\r\nStripe-Version: 2024-06-20\r\n"));
	assert_non_null(strstr(request, "\r\nContent-Type: application/x-www-form-urlencoded\r\n"));
	assert_string_equal(strstr(request, "\r\n\r\n") + 4,
	                    "amount=1210&currency=eur&customer=cus_1&payment_method=pm_1&confirm=true"
	                    "&off_session=true&automatic_payment_methods[enabled]=true"
	                    "&automatic_payment_methods[allow_redirects]=never"
	                    "&description=1%20000%20cr%C3%A9dits%20%26%20more"
	                    "&metadata[sale_code]=sal_1&metadata[attempt]=sal_1-try-1");
}

TEST_CASE(test_without_a_method_nothing_is_sent)
{
	struct script script = {.count = 0};
	struct payment_result result;
	start(&script, NULL);
	struct payment_order bare = order;
	bare.payment_method = NULL;
	assert_int_equal(payment_charge(script.provider, &bare, &result, NULL), OK);
	assert_int_equal(result.outcome, PAYMENT_METHOD_MISSING);
	bare = order;
	bare.customer = "";
	assert_int_equal(payment_charge(script.provider, &bare, &result, NULL), OK);
	assert_int_equal(result.outcome, PAYMENT_METHOD_MISSING);
	assert_int_equal(payment_get(script.provider, &bare, NULL, 0, &result, NULL), OK);
	assert_int_equal(result.outcome, PAYMENT_NONE);
	finish(&script);
}

/* ---- answers ---- */

TEST_CASE(test_answers)
{
	static const struct {
		const char *answer;
		enum payment_outcome outcome;
		const char *code;
	} cases[] = {
		{"200 OK\n\n" PAID, PAYMENT_PAID, ""},
		{"200 OK\n\n" INTENT("processing", ""), PAYMENT_PENDING, ""},
		{"200 OK\n\n" INTENT("requires_action", ""), PAYMENT_ACTION_REQUIRED, ""},
		{"200 OK\n\n" INTENT("canceled", ""), PAYMENT_DECLINED, ""},
		{"200 OK\n\n" INTENT("requires_payment_method",
	                         ",\"last_payment_error\":{\"code\":\"card_declined\","
	                         "\"decline_code\":\"lost_card\"}"),
	     PAYMENT_DECLINED, "lost_card"},
		/* paid, but not the requested amount */
		{"200 OK\n\n" INTENT("succeeded", ",\"amount_received\":1209"), PAYMENT_UNKNOWN, ""},
		{"200 OK\n\n{\"id\":\"pi_1\",\"amount\":1211,\"amount_received\":1211,"
	     "\"currency\":\"eur\",\"status\":\"succeeded\"}",
	     PAYMENT_UNKNOWN, ""},
		{"200 OK\n\n{\"id\":\"pi_1\",\"amount\":1210,\"amount_received\":1210,"
	     "\"currency\":\"usd\",\"status\":\"succeeded\"}",
	     PAYMENT_UNKNOWN, ""},
		{"200 OK\n\n" INTENT("of_another_time", ""), PAYMENT_UNKNOWN, ""},
		{"200 OK\n\n{}", PAYMENT_UNKNOWN, ""},
		{"200 OK\n\n<html>", PAYMENT_UNKNOWN, ""},
		{"402 Payment Required\n\n" FAULT("card_error", ",\"code\":\"card_declined\","
	                                                    "\"decline_code\":\"insufficient_funds\","
	                                                    "\"payment_intent\":{\"id\":\"pi_1\"}"),
	     PAYMENT_DECLINED, "insufficient_funds"},
		{"402 Payment Required\n\n" FAULT("card_error", ",\"code\":\"authentication_required\","
	                                                    "\"decline_code\":"
	                                                    "\"authentication_required\""),
	     PAYMENT_ACTION_REQUIRED, "authentication_required"},
		{"402 Payment Required\n\n" FAULT("card_error", ",\"code\":\"card_declined\","
	                                                    "\"decline_code\":"
	                                                    "\"authentication_required\""),
	     PAYMENT_ACTION_REQUIRED, "authentication_required"},
		{"402 Payment Required\n\n" FAULT("card_error", ",\"code\":\"expired_card\""),
	     PAYMENT_REFUSED, "expired_card"},
		{"400 Bad Request\n\n" FAULT("invalid_request_error", ",\"code\":\"resource_missing\","
	                                                          "\"param\":\"payment_method\""),
	     PAYMENT_METHOD_MISSING, "resource_missing"},
		{"404 Not Found\n\n" FAULT("invalid_request_error", ",\"code\":\"resource_missing\","
	                                                        "\"param\":\"customer\""),
	     PAYMENT_METHOD_MISSING, "resource_missing"},
		{"400 Bad Request\n\n" FAULT("invalid_request_error", ",\"code\":\"amount_too_small\""),
	     PAYMENT_REFUSED, "amount_too_small"},
		/* unknown outcome */
		{"400 Bad Request\n\n" FAULT("idempotency_error", ""), PAYMENT_UNKNOWN, ""},
		{"400 Bad Request\n\n" FAULT("invalid_request_error", ",\"code\":\"lock_timeout\""),
	     PAYMENT_UNKNOWN, "lock_timeout"},
		{"401 Unauthorized\n\n" FAULT("invalid_request_error", ""), PAYMENT_UNKNOWN, ""},
		{"402 Payment Required\n\n" FAULT("api_error", ""), PAYMENT_UNKNOWN, ""},
		{"403 Forbidden\n\n" FAULT("invalid_request_error", ""), PAYMENT_UNKNOWN, ""},
		{"404 Not Found\n\n<html>", PAYMENT_UNKNOWN, ""},
		{"409 Conflict\n\n" FAULT("idempotency_error", ",\"code\":\"idempotency_key_in_use\""),
	     PAYMENT_UNKNOWN, "idempotency_key_in_use"},
		{"302 Found\nLocation: http://127.0.0.1:1/\r\n\n{}", PAYMENT_UNKNOWN, ""},
		{"500 Oops\n\n" FAULT("api_error", ""), PAYMENT_UNKNOWN, ""},
		{"503 Later\n\nlater", PAYMENT_UNKNOWN, ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct script script = {.answers = {cases[i].answer}};
		struct payment_result result;
		charge(&script, NULL, &result);
		if (result.outcome != cases[i].outcome || strcmp(result.code, cases[i].code) != 0)
			fail_msg("%s\n%s %s: %s", cases[i].answer, payment_outcome_text(result.outcome),
			         result.code, result.reason);
		assert_true(result.outcome == PAYMENT_PAID || *result.reason);
		assert_string_equal(result.payment_url, "");
	}
}

TEST_CASE(test_the_wish_to_wait_is_passed_on)
{
	struct script script = {
		.answers = {"429 Too Many Requests\nRetry-After: 17\r\n\n" FAULT("rate_limit_error", "")}};
	struct payment_result result;
	charge(&script, NULL, &result);
	assert_int_equal(result.outcome, PAYMENT_UNKNOWN);
	assert_int_equal(result.retry_after_seconds, 17);
}

TEST_CASE(test_no_answer_is_no_outcome)
{
	struct script cut = {.answers = {NULL}, .count = 1};
	struct payment_result result;
	charge(&cut, "https://example.org/paid", &result);
	assert_int_equal(result.outcome, PAYMENT_UNKNOWN);
	assert_non_null(strstr(cut.requests[0], "confirm=true"));

	/* nothing listens there any more */
	struct script gone = {.count = 0};
	start(&gone, NULL);
	close(gone.listener);
	assert_int_equal(payment_charge(gone.provider, &order, &result, NULL), OK);
	assert_int_equal(result.outcome, PAYMENT_UNKNOWN);
	gone.listener = -1;
	finish(&gone);
}

TEST_CASE(test_the_guard_sees_the_address)
{
	struct payment_settings settings = {
		.provider = "stripe",
		.stripe_url = "https://127.0.0.1:1",
		.stripe_key = "sk_test_secret",
		.stripe_webhook_secret = "whsec_secret",
	};
	struct payment_provider *provider;
	struct payment_result result;
	assert_int_equal(payment_provider_open(&settings, &provider, NULL), OK);
	assert_int_equal(payment_charge(provider, &order, &result, NULL), OK);
	assert_int_equal(result.outcome, PAYMENT_UNKNOWN);
	assert_non_null(strstr(result.reason, "127.0.0.1 is loopback and not permitted"));
	payment_provider_close(provider);
}

/* ---- a lost answer ---- */

#define REPLAYED_500 "500 Oops\nIdempotent-Replayed: true\r\n\n" FAULT("api_error", "")

TEST_CASE(test_a_replayed_error_is_looked_behind)
{
	struct script script = {
		.answers = {REPLAYED_500, "200 OK\n\n{\"object\":\"list\",\"has_more\":false,\"data\":["
	                              "{\"id\":\"pi_0\",\"metadata\":{}}," PAID "]}"}};
	struct payment_result result;
	charge(&script, NULL, &result);
	assert_int_equal(result.outcome, PAYMENT_PAID);
	assert_string_equal(result.reference, "pi_1");
	assert_ptr_equal(
		strstr(script.requests[1], "GET /v1/payment_intents?customer=cus_1&created[gte]="),
		script.requests[1]);

	struct script none = {
		.answers = {REPLAYED_500,
	                "200 OK\n\n{\"object\":\"list\",\"has_more\":false,\"data\":[]}"}};
	charge(&none, NULL, &result);
	assert_int_equal(result.outcome, PAYMENT_UNKNOWN);

	struct script no_list = {.answers = {REPLAYED_500, "500 Oops\n\n{}"}};
	charge(&no_list, NULL, &result);
	assert_int_equal(result.outcome, PAYMENT_UNKNOWN);
}

static void look_up(struct script *script, const char *reference, struct payment_result *result)
{
	start(script, NULL);
	assert_int_equal(payment_get(script->provider, &order, reference,
	                             INT64_C(1700000000) * US_PER_SECOND, result, NULL),
	                 OK);
	finish(script);
}

TEST_CASE(test_looking_up)
{
	struct payment_result result;
	struct script by_reference = {.answers = {"200 OK\n\n" PAID}};
	look_up(&by_reference, "pi_1/../x", &result);
	assert_int_equal(result.outcome, PAYMENT_PAID);
	assert_ptr_equal(strstr(by_reference.requests[0], "GET /v1/payment_intents/pi_1%2F..%2Fx HTTP"),
	                 by_reference.requests[0]);

	struct script pages = {
		.answers = {
			"200 OK\n\n{\"has_more\":true,\"data\":[{\"id\":\"pi_8\"},{\"id\":\"pi_7\"}]}",
			"200 OK\n\n{\"has_more\":true,\"data\":[" INTENT("requires_confirmation", "") "]}"}};
	look_up(&pages, NULL, &result);
	assert_int_equal(result.outcome, PAYMENT_DECLINED);
	assert_non_null(
		strstr(pages.requests[0], "customer=cus_1&created[gte]=1699913600&limit=50 HTTP"));
	assert_non_null(strstr(pages.requests[1], "&starting_after=pi_7 HTTP"));

	struct script none = {.answers = {"200 OK\n\n{\"has_more\":false,\"data\":[{\"id\":\"pi_7\","
	                                  "\"metadata\":{\"sale_code\":\"sal_1\","
	                                  "\"attempt\":\"other\"}}]}"}};
	look_up(&none, "", &result);
	assert_int_equal(result.outcome, PAYMENT_NONE);
}

TEST_CASE(test_a_broken_list_tells_nothing)
{
	static const char *const answers[] = {
		"500 Oops\n\n{}",
		"200 OK\n\n{}",
		"200 OK\n\n[]",
		"200 OK\n\n{\"data\":[]}",
		"200 OK\n\n{\"has_more\":\"no\",\"data\":[]}",
		"200 OK\n\n{\"has_more\":true,\"data\":[{}]}",
		"200 OK\n\n{\"has_more\":false,\"data\":{}}",
		"404 Not Found\n\n{\"data\":[],\"has_more\":false}",
	};
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		struct script script = {.answers = {answers[i]}};
		struct payment_result result;
		look_up(&script, NULL, &result);
		if (result.outcome != PAYMENT_UNKNOWN)
			fail_msg("%s", answers[i]);
	}
}

/* ---- pages and refunds ---- */

#define DECLINED                                                                                   \
	"402 Payment Required\n\n" FAULT("card_error", ",\"code\":\"card_declined\","                  \
	                                               "\"payment_intent\":{\"id\":\"pi_1\"}")

TEST_CASE(test_a_page_to_pay_by_hand)
{
	struct script script = {
		.answers = {DECLINED,
	                "200 OK\n\n{\"id\":\"cs_1\",\"url\":\"https://pay.example.org/cs_1\"}"}};
	struct payment_result result;
	charge(&script, "https://example.org/paid", &result);
	assert_int_equal(result.outcome, PAYMENT_DECLINED);
	assert_string_equal(result.reference, "pi_1");
	assert_string_equal(result.payment_url, "https://pay.example.org/cs_1");
	const char *request = script.requests[1];
	assert_ptr_equal(strstr(request, "POST /v1/checkout/sessions HTTP"), request);
	assert_non_null(strstr(request, "\r\nIdempotency-Key: sal_1-try-1.page\r\n"));
	assert_non_null(strstr(request, "&payment_intent_data[metadata][sale_code]=sal_1&"));
	assert_non_null(strstr(request, "[unit_amount]=1210&"));

	/* without a page it is declined nevertheless */
	struct script no_page = {.answers = {DECLINED, "500 Oops\n\n{}"}};
	charge(&no_page, "https://example.org/paid", &result);
	assert_int_equal(result.outcome, PAYMENT_DECLINED);
	assert_string_equal(result.payment_url, "");

	struct script odd = {.answers = {DECLINED, "200 OK\n\n{\"url\":\"javascript:alert(1)\"}"}};
	charge(&odd, "https://example.org/paid", &result);
	assert_string_equal(result.payment_url, "");
}

TEST_CASE(test_refunds)
{
	static const struct {
		const char *answer;
		enum payment_outcome outcome;
	} cases[] = {
		{"200 OK\n\n{\"id\":\"re_1\",\"status\":\"succeeded\"}", PAYMENT_PAID},
		{"200 OK\n\n{\"id\":\"re_1\",\"status\":\"pending\"}", PAYMENT_PAID},
		{"200 OK\n\n{\"id\":\"re_1\",\"status\":\"failed\"}", PAYMENT_REFUSED},
		{"200 OK\n\n{}", PAYMENT_UNKNOWN},
		{"400 Bad Request\n\n" FAULT("invalid_request_error",
	                                 ",\"code\":\"charge_already_refunded\""),
	     PAYMENT_PAID},
		{"400 Bad Request\n\n" FAULT("invalid_request_error", ",\"code\":\"charge_disputed\""),
	     PAYMENT_REFUSED},
		{"500 Oops\n\n{}", PAYMENT_UNKNOWN},
		{"409 Conflict\n\n{}", PAYMENT_UNKNOWN},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct script script = {.answers = {cases[i].answer}};
		struct payment_result result;
		start(&script, NULL);
		assert_int_equal(payment_refund(script.provider, "pi_1", "sal_1-back", &result, NULL), OK);
		finish(&script);
		if (result.outcome != cases[i].outcome)
			fail_msg("%s: %s", cases[i].answer, payment_outcome_text(result.outcome));
		assert_non_null(strstr(script.requests[0], "\r\n\r\npayment_intent=pi_1"));
		assert_non_null(strstr(script.requests[0], "\r\nIdempotency-Key: sal_1-back\r\n"));
	}
}

TEST_MAIN(NULL, NULL)
