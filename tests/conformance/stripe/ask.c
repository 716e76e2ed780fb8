/* Calls each function of the Stripe provider once and prints what came of it, a line each:
 * operation, outcome, reference, page, reason. For tests/conformance/stripe/run.
 *
 * usage: payment-ask URL NETWORK */
#include <stdio.h>

#include "base/clock.h"
#include "payment/payment.h"

static const struct payment_order order = {
	.sale_code = "sal_0123456789abcdef",
	.idempotency_key = "sal_0123456789abcdef-1",
	.amount_minor = 1210,
	.currency = "EUR",
	.customer = "cus_123",
	.payment_method = "pm_123",
	.description = "1000 credits",
};

static int print(const char *operation, int code, const struct payment_result *result)
{
	printf("%s\t%s\t%s\t%s\t%s\n", operation,
	       code ? "failed" : payment_outcome_text(result->outcome), result->reference,
	       result->payment_url, result->reason);
	return code != 0;
}

int main(int count, char **arguments)
{
	if (count != 3)
		return 2;
	struct payment_settings settings = {
		.provider = "stripe",
		.stripe_url = arguments[1],
		.stripe_key = "sk_test_123",
		.stripe_webhook_secret = "whsec_123",
		.allow_networks = arguments[2],
		.return_url = "https://example.org/paid",
	};
	struct payment_provider *provider;
	struct error error = {0};
	if (payment_provider_open(&settings, &provider, &error)) {
		fprintf(stderr, "%s\n", error_message(&error, LANGUAGE_ENGLISH));
		return 2;
	}
	struct payment_result result = {0};
	int failed = print("charge", payment_charge(provider, &order, &result, &error), &result);
	result = (struct payment_result){0};
	failed |=
		print("look_up", payment_get(provider, &order, "pi_123", 0, &result, &error), &result);
	result = (struct payment_result){0};
	failed |= print("list", payment_get(provider, &order, NULL, clock_now_us(), &result, &error),
	                &result);
	result = (struct payment_result){0};
	failed |= print("page", payment_page(provider, &order, &result, &error), &result);
	result = (struct payment_result){0};
	failed |=
		print("refund", payment_refund(provider, "pi_123", "key-2", &result, &error), &result);
	payment_provider_close(provider);
	return failed;
}
