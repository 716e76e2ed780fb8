/* Notices of Stripe: signatures against values that openssl(1) computed, and the content of
 * events. */
#include "testing.h"
#include "base/clock.h"
#include "base/digest.h"
#include "payment/payment.h"

#define SIGNED_AT INT64_C(1700000000)
#define NOW (SIGNED_AT * US_PER_SECOND)

/* printf '%s' "1700000000.$BODY" | openssl dgst -sha256 -hmac whsec_first (…second, …other) */
static const char body[] =
	"{\"id\":\"evt_1\",\"object\":\"event\",\"created\":1700000000,"
	"\"type\":\"payment_intent.succeeded\",\"data\":{\"object\":{\"id\":\"pi_1\","
	"\"object\":\"payment_intent\",\"amount\":1210,\"amount_received\":1210,\"currency\":\"eur\","
	"\"status\":\"succeeded\",\"metadata\":{\"sale_code\":\"sal_1\",\"attempt\":\"key-1\"}}}}";
#define FIRST "af847387139685170bbe8860481adf899e4d6d064cbac93a08518daea4c15612"
#define SECOND "02c5e53667000a3918443a25e8c721a35762bf0b061a7726ec8f57d9f4058e5a"
#define OTHER "1621af5608547fb44cc95c4c762663d2d93fe86325583108b470f7ab27730e5d"

static struct payment_provider *provider;

static int setup(void **state)
{
	struct payment_settings settings = {
		.provider = "stripe",
		.stripe_url = "https://api.example.org",
		.stripe_key = "sk_test_1",
		.stripe_webhook_secret = "whsec_first, whsec_second",
	};
	return payment_provider_open(&settings, &provider, NULL);
}

static int teardown(void **state)
{
	payment_provider_close(provider);
	return 0;
}

static int read_signed(const char *signature, const char *text, int64_t now_us,
                       struct payment_notice *notice)
{
	struct error error = {0};
	int result =
		payment_read_notice(provider, slice_of(signature), slice_of(text), now_us, notice, &error);
	assert_int_equal(result, error.code);
	return result;
}

/* Signs a body and reads it. */
static int read_event(const char *text, struct payment_notice *notice)
{
	char *all = NULL;
	char hex[2 * SHA256_SIZE + 1];
	char header[128];
	assert_true(asprintf(&all, "%lld.%s", (long long)SIGNED_AT, text) > 0);
	struct sha256 mac = hmac_sha256(slice_of("whsec_first"), slice_of(all));
	hex_encode(mac.bytes, SHA256_SIZE, hex);
	snprintf(header, sizeof header, "t=%lld,v1=%s", (long long)SIGNED_AT, hex);
	free(all);
	return read_signed(header, text, NOW, notice);
}

TEST_CASE(test_signatures)
{
	static const struct {
		const char *header;
		int64_t now_us;
		int result;
	} cases[] = {
		{"t=1700000000,v1=" FIRST, NOW, OK},
		{"t=1700000000,v1=" SECOND, NOW, OK},
		{"v1=" FIRST ",t=1700000000", NOW, OK},
		{"t=1700000000, v1=" OTHER ", v1=" FIRST ",v0=00", NOW, OK},
		{"t=1700000000,v1=" FIRST, NOW + 300 * US_PER_SECOND, OK},
		{"t=1700000000,v1=" FIRST, NOW - 300 * US_PER_SECOND, OK},
		{"t=1700000000,v1=" FIRST, NOW + 301 * US_PER_SECOND, ERR_VALIDATION},
		{"t=1700000000,v1=" FIRST, NOW - 301 * US_PER_SECOND, ERR_VALIDATION},
		{"t=1700000001,v1=" FIRST, NOW, ERR_VALIDATION},
		{"t=01700000000,v1=" FIRST, NOW, ERR_VALIDATION},
		{"t=1700000000,v1=" OTHER, NOW, ERR_VALIDATION},
		{"t=1700000000,v0=" FIRST, NOW, ERR_VALIDATION},
		{"t=1700000000", NOW, ERR_VALIDATION},
		{"t=1700000000,v1=", NOW, ERR_VALIDATION},
		{"t=1700000000,v1=" FIRST "00", NOW, ERR_VALIDATION},
		{"t=1700000000,t=1700000000,v1=" FIRST, NOW, ERR_VALIDATION},
		{"t=,v1=" FIRST, NOW, ERR_VALIDATION},
		{"t=-1,v1=" FIRST, NOW, ERR_VALIDATION},
		{"t=99999999999999999999,v1=" FIRST, NOW, ERR_VALIDATION},
		{"v1=" FIRST, NOW, ERR_VALIDATION},
		{"", NOW, ERR_VALIDATION},
		{",,,,", NOW, ERR_VALIDATION},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct payment_notice notice;
		if (read_signed(cases[i].header, body, cases[i].now_us, &notice) != cases[i].result)
			fail_msg("%s", cases[i].header);
	}
	struct payment_notice notice;
	char altered[sizeof body];
	memcpy(altered, body, sizeof body);
	altered[8] = '2';
	assert_int_equal(read_signed("t=1700000000,v1=" FIRST, altered, NOW, &notice), ERR_VALIDATION);
}

TEST_CASE(test_many_signatures_are_not_all_tried)
{
	char header[4000] = "t=1700000000";
	struct payment_notice notice;
	for (int i = 0; i < 20; i++)
		strcat(header, ",v1=" OTHER);
	strcat(header, ",v1=" FIRST);
	assert_int_equal(read_signed(header, body, NOW, &notice), ERR_VALIDATION);
}

TEST_CASE(test_paid)
{
	struct payment_notice notice;
	assert_int_equal(read_signed("t=1700000000,v1=" FIRST, body, NOW, &notice), OK);
	assert_int_equal(notice.kind, PAYMENT_NOTICE_PAID);
	assert_string_equal(notice.id, "evt_1");
	assert_string_equal(notice.type, "payment_intent.succeeded");
	assert_int_equal(notice.created_us, NOW);
	assert_string_equal(notice.sale_code, "sal_1");
	assert_string_equal(notice.idempotency_key, "key-1");
	assert_string_equal(notice.reference, "pi_1");
	assert_int_equal(notice.amount_minor, 1210);
	assert_string_equal(notice.currency, "EUR");
}

#define EVENT(type, object)                                                                        \
	"{\"id\":\"evt_2\",\"created\":1700000000,\"type\":\"" type "\",\"data\":{\"object\":" object  \
	"}}"

TEST_CASE(test_failed)
{
	struct payment_notice notice;
	assert_int_equal(
		read_event(EVENT("payment_intent.payment_failed",
	                     "{\"id\":\"pi_2\",\"status\":\"requires_payment_method\",\"amount\":5,"
	                     "\"currency\":\"eur\",\"last_payment_error\":{\"code\":\"card_declined\","
	                     "\"decline_code\":\"insufficient_funds\"},"
	                     "\"metadata\":{\"sale_code\":\"sal_2\"}}"),
	               &notice),
		OK);
	assert_int_equal(notice.kind, PAYMENT_NOTICE_FAILED);
	assert_string_equal(notice.sale_code, "sal_2");
	assert_string_equal(notice.idempotency_key, "");
	assert_string_equal(notice.code, "insufficient_funds");
	assert_int_equal(notice.amount_minor, 0);
	assert_int_equal(
		read_event(EVENT("payment_intent.canceled", "{\"id\":\"pi_2\",\"status\":\"canceled\","
	                                                "\"metadata\":{\"sale_code\":\"sal_2\"}}"),
	               &notice),
		OK);
	assert_int_equal(notice.kind, PAYMENT_NOTICE_FAILED);
}

TEST_CASE(test_given_back)
{
	struct payment_notice notice;
	assert_int_equal(
		read_event(EVENT("charge.refunded",
	                     "{\"id\":\"ch_1\",\"payment_intent\":\"pi_3\","
	                     "\"refunded\":true,\"amount_refunded\":1210,"
	                     "\"currency\":\"gbp\",\"metadata\":{\"sale_code\":\"sal_3\"}}"),
	               &notice),
		OK);
	assert_int_equal(notice.kind, PAYMENT_NOTICE_REFUNDED);
	assert_false(notice.by_bank);
	assert_string_equal(notice.reference, "pi_3");
	assert_string_equal(notice.sale_code, "sal_3");
	assert_string_equal(notice.currency, "GBP");
	assert_int_equal(notice.amount_minor, 1210);
	/* A partial refund requires the operator. */
	assert_int_equal(
		read_event(EVENT("charge.refunded", "{\"payment_intent\":\"pi_3\",\"refunded\":false,"
	                                        "\"amount_refunded\":10,\"currency\":\"gbp\"}"),
	               &notice),
		OK);
	assert_int_equal(notice.kind, PAYMENT_NOTICE_OTHER);
	/* A dispute: the intent may be expanded. */
	assert_int_equal(read_event(EVENT("charge.dispute.closed",
	                                  "{\"payment_intent\":{\"id\":\"pi_4\"},\"status\":\"lost\","
	                                  "\"amount\":1210,\"currency\":\"usd\"}"),
	                            &notice),
	                 OK);
	assert_int_equal(notice.kind, PAYMENT_NOTICE_REFUNDED);
	assert_true(notice.by_bank);
	assert_string_equal(notice.reference, "pi_4");
	assert_string_equal(notice.sale_code, "");
	assert_int_equal(
		read_event(EVENT("charge.dispute.closed", "{\"payment_intent\":\"pi_4\",\"status\":\"won\","
	                                              "\"amount\":1210,\"currency\":\"usd\"}"),
	               &notice),
		OK);
	assert_int_equal(notice.kind, PAYMENT_NOTICE_OTHER);
}

TEST_CASE(test_others)
{
	static const char *const events[] = {
		EVENT("customer.created", "{\"id\":\"cus_1\"}"),
		/* the payment of another service */
		EVENT("payment_intent.succeeded",
	          "{\"id\":\"pi_5\",\"amount_received\":5,\"metadata\":{}}"),
		EVENT("payment_intent.succeeded", "{\"metadata\":{\"sale_code\":\"sal_1\"}}"),
		EVENT("payment_intent.succeeded",
	          "{\"id\":\"pi_5\",\"metadata\":{\"sale_code\":\"sal_1\"}}"),
		EVENT("payment_intent.succeeded",
	          "{\"id\":\"pi_5\",\"amount_received\":\"5\",\"metadata\":{\"sale_code\":\"sal_1\"}}"),
		EVENT("charge.refunded", "{\"refunded\":true,\"amount_refunded\":5}"),
		EVENT("payment_intent.processing", "{\"id\":\"pi_5\",\"metadata\":{\"sale_code\":\"s\"}}"),
	};
	for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
		struct payment_notice notice;
		assert_int_equal(read_event(events[i], &notice), OK);
		if (notice.kind != PAYMENT_NOTICE_OTHER)
			fail_msg("%s", events[i]);
	}
}

TEST_CASE(test_no_events)
{
	static const char *const texts[] = {
		"",
		"[]",
		"null",
		"{}",
		"not JSON",
		"{\"id\":\"evt\",\"created\":1,\"type\":\"a\"}",
		"{\"id\":\"evt\",\"created\":1,\"type\":\"a\",\"data\":{\"object\":[]}}",
		"{\"id\":\"evt\",\"created\":-1,\"type\":\"a\",\"data\":{\"object\":{}}}",
		"{\"id\":\"evt\",\"created\":9007199254740991,\"type\":\"a\",\"data\":{\"object\":{}}}",
		"{\"id\":\"evt\",\"created\":\"1\",\"type\":\"a\",\"data\":{\"object\":{}}}",
		"{\"id\":1,\"created\":1,\"type\":\"a\",\"data\":{\"object\":{}}}",
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct payment_notice notice;
		if (read_event(texts[i], &notice) != ERR_VALIDATION)
			fail_msg("%s", texts[i]);
	}
}

TEST_MAIN(setup, teardown)
