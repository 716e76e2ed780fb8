/* Data from a payment provider: events, signature headers, and responses to a charge, a list and a
 * refund. The first byte selects the kind ('e', 's', 'c', 'l', 'r'). An accepted payment has the
 * properties on which the program relies. */
#include "base/utf8.h"
#include "fuzz.h"
#include "payment/stripe/stripe.h"

static const struct payment_order order = {
	.sale_code = "sal_1",
	.idempotency_key = "key-1",
	.amount_minor = 1210,
	.currency = "EUR",
	.customer = "cus_1",
	.payment_method = "pm_1",
	.description = "",
};

static void check_result(const struct payment_result *result)
{
	require(utf8_valid(slice_of(result->reference)) && utf8_valid(slice_of(result->code)),
	        "texts are UTF-8");
	require(result->outcome != PAYMENT_PAID || *result->reference, "a payment has a reference");
}

static void try_event(struct slice body)
{
	struct payment_notice notice = {0};
	struct error error = {0};
	if (stripe_read_event(body, &notice, &error)) {
		require(error.code == ERR_VALIDATION, "only malformed events are rejected");
		return;
	}
	require(*notice.id && *notice.type && notice.created_us >= 0, "an event has id, type and time");
	require(notice.kind == PAYMENT_NOTICE_OTHER || *notice.reference,
	        "a payment notice has a reference");
	require(notice.kind == PAYMENT_NOTICE_OTHER || notice.kind == PAYMENT_NOTICE_REFUNDED ||
	            *notice.sale_code,
	        "a payment has a sale");
}

static void try_list(struct slice body)
{
	struct payment_result result = {0};
	char last[PAYMENT_REFERENCE_SIZE] = "";
	bool found = false, more = false;
	if (stripe_find_intent(body, &order, &found, &more, last, &result, NULL))
		return;
	require(found || !more || *last, "a page has a cursor for the next one");
	check_result(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct payment_result result = {0};
	int64_t sent_us;
	if (size < 1 || size > PAYMENT_NOTICE_SIZE_MAX)
		return 0;
	struct slice rest = slice_make(data + 1, size - 1);
	switch (data[0]) {
	case 'e': try_event(rest); break;
	case 's':
		require(stripe_check_signature("whsec_1", rest, slice_of("{}"), 0, &sent_us, NULL) ==
		            ERR_VALIDATION,
		        "only the right signature passes");
		break;
	case 'c':
		stripe_read_charge(200, rest, &order, &result);
		check_result(&result);
		stripe_read_charge(402, rest, &order, &result);
		require(result.outcome != PAYMENT_PAID && result.outcome != PAYMENT_PENDING,
		        "an error is not a payment");
		break;
	case 'l': try_list(rest); break;
	case 'r':
		stripe_read_refund(200, rest, &result);
		check_result(&result);
		break;
	default: break;
	}
	return 0;
}
