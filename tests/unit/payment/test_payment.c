/* Opening a provider, validating an order, and the manual provider. */
#include "testing.h"
#include "payment/payment.h"

static const struct payment_settings good = {
	.provider = "stripe",
	.stripe_url = "https://api.example.org/",
	.stripe_key = "sk_test_1",
	.stripe_webhook_secret = "whsec_1,whsec_2",
	.allow_networks = "127.0.0.0/8,::1",
	.return_url = "https://example.org/paid",
};

static int try_open(const struct payment_settings *settings, struct error *error)
{
	struct payment_provider *provider = NULL;
	*error = (struct error){0};
	int result = payment_provider_open(settings, &provider, error);
	payment_provider_close(provider);
	return result;
}

TEST_CASE(test_settings)
{
	struct error error;
	assert_int_equal(try_open(&good, &error), OK);

	struct payment_settings bad = good;
	bad.provider = "barter";
	assert_int_equal(try_open(&bad, &error), ERR_VALIDATION);
	assert_int_equal(error.message, MSG_PAYMENT_PROVIDER);
	assert_non_null(strstr(error.english, "must be one of manual, stripe; it is 'barter'"));
	bad = good;
	bad.stripe_key = "";
	assert_int_equal(try_open(&bad, &error), ERR_VALIDATION);
	assert_non_null(strstr(error.english, "payment.stripe_key"));
	bad = good;
	bad.stripe_key = "sk_secret\r\nX-Other: 1";
	assert_int_equal(try_open(&bad, &error), ERR_VALIDATION);
	assert_null(strstr(error.english, "sk_secret"));
	assert_null(strstr(error.cause, "sk_secret"));
	bad = good;
	bad.stripe_webhook_secret = NULL;
	assert_int_equal(try_open(&bad, &error), ERR_VALIDATION);
	assert_non_null(strstr(error.english, "payment.stripe_webhook_secret"));
	bad = good;
	bad.allow_networks = "somewhere";
	assert_int_equal(try_open(&bad, &error), ERR_VALIDATION);
	bad = good;
	bad.return_url = "javascript:alert(1)";
	assert_int_equal(try_open(&bad, &error), ERR_VALIDATION);
}

TEST_CASE(test_the_key_travels_in_the_clear_only_to_allowed_addresses)
{
	static const struct {
		const char *url;
		int result;
	} cases[] = {
		{"http://127.0.0.1:12111", OK},
		{"http://127.0.0.1:12111/", OK},
		{"http://[::1]:12111", OK},
		{"HTTP://127.0.0.1", OK},
		{"http://localhost:12111", ERR_VALIDATION},
		{"http://192.0.2.1", ERR_VALIDATION},
		{"http://[::2]", ERR_VALIDATION},
		{"http://127.0.0.1.example.org", ERR_VALIDATION},
		{"http://api.stripe.com", ERR_VALIDATION},
		{"https://api.stripe.com?a=b", ERR_VALIDATION},
		{"https://user@api.stripe.com", ERR_VALIDATION},
		{"ftp://127.0.0.1", ERR_VALIDATION},
		{"", ERR_VALIDATION},
		{NULL, ERR_VALIDATION},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error error;
		struct payment_settings settings = good;
		settings.stripe_url = cases[i].url;
		if (try_open(&settings, &error) != cases[i].result)
			fail_msg("%s", cases[i].url);
	}
}

static const struct payment_order order = {
	.sale_code = "sal_1",
	.idempotency_key = "key-1",
	.amount_minor = 1210,
	.currency = "EUR",
	.customer = "cus_1",
	.payment_method = "pm_1",
	.description = "Mil créditos",
};

TEST_CASE(test_orders)
{
	struct payment_provider *provider;
	struct payment_result result = {.outcome = PAYMENT_DECLINED};
	assert_int_equal(payment_provider_open(&(struct payment_settings){0}, &provider, NULL), OK);
	char key[PAYMENT_KEY_SIZE + 1];
	memset(key, 'k', sizeof key);
	key[PAYMENT_KEY_SIZE] = '\0';
	struct payment_order bad[11];
	for (size_t i = 0; i < 11; i++)
		bad[i] = order;
	bad[0].sale_code = NULL;
	bad[1].sale_code = "";
	bad[2].idempotency_key = key;
	bad[3].idempotency_key = "a\r\nb";
	bad[4].amount_minor = 0;
	bad[5].amount_minor = PAYMENT_AMOUNT_MAX + 1;
	bad[6].currency = "eur";
	bad[7].currency = NULL;
	bad[8].customer = "cus\n";
	bad[9].description = "\xff";
	bad[10].payment_method = key;
	for (size_t i = 0; i < 11; i++)
		if (payment_charge(provider, &bad[i], &result, NULL) != ERR_VALIDATION)
			fail_msg("order %zu", i);
	assert_int_equal(result.outcome, PAYMENT_DECLINED); /* untouched */
	key[PAYMENT_KEY_SIZE - 1] = '\0';
	struct payment_order longest = order;
	longest.idempotency_key = key;
	longest.customer = longest.payment_method = longest.description = NULL;
	assert_int_equal(payment_charge(provider, &longest, &result, NULL), OK);
	assert_int_equal(payment_refund(provider, "", "key-2", &result, NULL), ERR_VALIDATION);
	payment_provider_close(provider);
}

TEST_CASE(test_manual)
{
	struct payment_provider *provider;
	struct payment_result result;
	struct payment_notice notice;
	assert_int_equal(
		payment_provider_open(&(struct payment_settings){.provider = "manual"}, &provider, NULL),
		OK);
	assert_string_equal(payment_provider_name(provider), "manual");
	assert_false(payment_provider_charges(provider));
	assert_null(payment_notice_header(provider));
	assert_null(payment_provider_address(provider));
	assert_int_equal(payment_charge(provider, &order, &result, NULL), OK);
	assert_int_equal(result.outcome, PAYMENT_PENDING);
	assert_string_equal(result.reference, "");
	assert_int_equal(payment_get(provider, &order, NULL, 0, &result, NULL), OK);
	assert_int_equal(result.outcome, PAYMENT_PENDING);
	assert_int_equal(payment_page(provider, &order, &result, NULL), OK);
	assert_string_equal(result.payment_url, "");
	assert_int_equal(payment_refund(provider, "bank-1", "key-2", &result, NULL), OK);
	assert_int_equal(result.outcome, PAYMENT_PENDING);
	assert_int_equal(
		payment_read_notice(provider, slice_of("t=1"), slice_of("{}"), 0, &notice, NULL),
		ERR_NOT_FOUND);
	payment_provider_close(provider);
	payment_provider_close(NULL);
}

TEST_CASE(test_outcome_texts)
{
	assert_string_equal(payment_outcome_text(PAYMENT_UNKNOWN), "unknown");
	assert_string_equal(payment_outcome_text(PAYMENT_ACTION_REQUIRED), "action_required");
	assert_string_equal(payment_outcome_text(PAYMENT_REFUSED), "refused");
}

TEST_MAIN(NULL, NULL)
