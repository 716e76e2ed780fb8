/* The Stripe provider, with each allocation failing in turn. A payment may have been made by then:
 * the result is the actual outcome, "unknown" or a lack of memory, never another outcome. */
#include <pthread.h>

#include "testing.h"
#include "loopback.h"
#include "base/clock.h"
#include "failing.h"
#include "payment/payment.h"

#define REQUEST_MAX 8192
#define INTENT(status, more)                                                                       \
	"{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"amount\":1210,\"currency\":\"eur\","         \
	"\"status\":\"" status "\"" more ",\"metadata\":{\"sale_code\":\"sal_1\","                     \
	"\"attempt\":\"sal_1-try-1\"}}"
#define PAID INTENT("succeeded", ",\"amount_received\":1210")

static const struct payment_order order = {
	.sale_code = "sal_1",
	.idempotency_key = "sal_1-try-1",
	.amount_minor = 1210,
	.currency = "EUR",
	.customer = "cus_1",
	.payment_method = "pm_1",
	.description = "1000 credits",
};

static int listener;
static pthread_t thread;
static char url[64];
static const char
	*charged; /* status line, headers, an empty line and body of the answer to a charge */
static struct payment_provider *provider;

/* ---- the server ---- */

static void read_request(int client, char request[REQUEST_MAX])
{
	size_t size = 0;
	for (;;) {
		ssize_t got = recv(client, request + size, REQUEST_MAX - 1 - size, 0);
		size += got > 0 ? (size_t)got : 0;
		request[size] = '\0';
		const char *end = strstr(request, "\r\n\r\n");
		const char *length = strstr(request, "Content-Length: ");
		size_t body = length ? strtoul(length + 16, NULL, 10) : 0;
		if (got <= 0 || (end && size - (size_t)(end + 4 - request) >= body))
			return;
	}
}

static const char *answer_to(const char *request)
{
	if (strncmp(request, "POST /v1/payment_intents ", 25) == 0)
		return charged;
	if (strncmp(request, "POST /v1/refunds ", 17) == 0)
		return "200 OK\n\n{\"id\":\"re_1\",\"status\":\"succeeded\"}";
	if (strncmp(request, "POST /v1/checkout/sessions ", 27) == 0)
		return "200 OK\n\n{\"id\":\"cs_1\",\"url\":\"https://pay.example.org/cs_1\"}";
	if (strncmp(request, "GET /v1/payment_intents/pi_1 ", 29) == 0)
		return "200 OK\n\n" PAID;
	if (strstr(request, "starting_after=pi_0"))
		return "200 OK\n\n{\"object\":\"list\",\"has_more\":false,\"data\":[" PAID "]}";
	return "200 OK\n\n{\"object\":\"list\",\"has_more\":true,\"data\":["
		   "{\"id\":\"pi_0\",\"metadata\":{}}]}";
}

static void *serve(void *context)
{
	(void)context;
	for (int client; (client = accept(listener, NULL, NULL)) >= 0; close(client)) {
		char request[REQUEST_MAX];
		read_request(client, request);
		const char *text = answer_to(request), *body = strstr(text, "\n\n");
		char *all = NULL;
		int size = asprintf(&all, "HTTP/1.1 %.*sContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
		                    (int)(body + 1 - text), text, strlen(body + 2), body + 2);
		(void)send(client, all, (size_t)size, MSG_NOSIGNAL);
		free(all);
	}
	return NULL;
}

static int open_provider(struct error *error)
{
	struct payment_settings settings = {
		.provider = "stripe",
		.stripe_url = url,
		.stripe_key = "sk_test_secret",
		.stripe_webhook_secret = "whsec_one,whsec_two",
		.allow_networks = "127.0.0.1",
		.return_url = "https://example.org/paid",
	};
	return payment_provider_open(&settings, &provider, error);
}

static int set_up(void **state)
{
	int port;
	listener = loopback_listen(&port);
	snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
	return pthread_create(&thread, NULL, serve, NULL) || open_provider(NULL);
}

static int tear_down(void **state)
{
	payment_provider_close(provider);
	shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	return close(listener);
}

/* ---- the tests ---- */

static int charge(struct payment_result *result)
{
	return payment_charge(provider, &order, result, NULL);
}

static int look_up(struct payment_result *result)
{
	return payment_get(provider, &order, NULL, clock_now_us(), result, NULL);
}

static int look_up_reference(struct payment_result *result)
{
	return payment_get(provider, &order, "pi_1", 0, result, NULL);
}

static int refund(struct payment_result *result)
{
	return payment_refund(provider, "pi_1", "sal_1-back", result, NULL);
}

static void in_turn(int (*call)(struct payment_result *result), enum payment_outcome outcome)
{
	for (int at = 1;; at++) {
		struct payment_result result = {0};
		failing_arm(FAILING_MEMORY, at);
		int code = call(&result);
		const char *failed = failing_disarm();
		bool good =
			failed ? code == ERR_NO_MEMORY ||
						 (!code && (result.outcome == outcome || result.outcome == PAYMENT_UNKNOWN))
				   : !code && result.outcome == outcome;
		if (!good)
			fail_msg("call %d, %s: %d %s: %s", at, failed, code,
			         payment_outcome_text(result.outcome), result.reason);
		if (failed)
			continue;
		assert_true(at > 3);
		break;
	}
}

TEST_CASE(opens)
{
	struct payment_provider *kept = provider;
	for (int at = 1;; at++) {
		failing_arm(FAILING_MEMORY, at);
		int result = open_provider(NULL);
		if (!failing_disarm())
			break;
		assert_int_equal(result, ERR_NO_MEMORY);
	}
	payment_provider_close(provider);
	provider = kept;
}

TEST_CASE(charges)
{
	charged = "200 OK\n\n" PAID;
	in_turn(charge, PAYMENT_PAID);
	charged = "402 Payment Required\n\n{\"error\":{\"type\":\"card_error\",\"code\":"
			  "\"card_declined\",\"payment_intent\":{\"id\":\"pi_1\"}}}";
	in_turn(charge, PAYMENT_DECLINED);
	/* The first answer is replayed, and the payment is looked up on two pages. */
	charged = "500 Oops\nIdempotent-Replayed: true\r\n\n{\"error\":{\"type\":\"api_error\"}}";
	in_turn(charge, PAYMENT_PAID);
}

TEST_CASE(looks_up)
{
	in_turn(look_up, PAYMENT_PAID);
	in_turn(look_up_reference, PAYMENT_PAID);
}

TEST_CASE(refunds)
{
	in_turn(refund, PAYMENT_PAID);
}

static int page(struct payment_result *result)
{
	return payment_page(provider, &order, result, NULL);
}

/* A page is complete or absent. */
TEST_CASE(makes_pages)
{
	for (int at = 1;; at++) {
		struct payment_result result = {0};
		failing_arm(FAILING_MEMORY, at);
		int code = page(&result);
		const char *failed = failing_disarm();
		assert_true(!code || (failed && code == ERR_NO_MEMORY));
		if (*result.payment_url || !failed)
			assert_string_equal(result.payment_url, "https://pay.example.org/cs_1");
		if (!failed)
			break;
	}
}

TEST_MAIN(set_up, tear_down)
