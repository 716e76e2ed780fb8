#include "service/topup_payment_check.h"

#include "base/log.h"
#include "payment/payment.h"
#include "store/money/purchases.h"
#include "store/money/topup.h"

#define CHECK_MEMORY_MAX ((size_t)1 << 20)
#define PAID "charged_elsewhere"
#define NOT_DISCLOSED "charges_not_known"

struct check {
	struct service *service;
	const char *account_id;
	int found;
};

/* Returns whether the payment is accounted for: the sale is or was paid here, or it waits here for
 * a payment in progress, which the provider's notice will settle. */
static bool is_known(const struct purchase_record *record, const struct customer_payment *made)
{
	switch (record->state) {
	case PURCHASE_PAID:
	case PURCHASE_REFUNDED:
	case PURCHASE_REVERTED: return true;
	case PURCHASE_PENDING: return !made->paid;
	case PURCHASE_CANCELED:
	case PURCHASE_REJECTED: return false;
	}
	return false;
}

static int judge(void *context, const struct customer_payment *made, struct error *error)
{
	struct check *check = context;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, CHECK_MEMORY_MAX);
	struct purchase_record record;
	struct error absent = {0};
	int result = store_find_purchase(check->service->store, slice_of(made->sale_code), &arena,
	                                 &record, &absent);
	if (result && result != ERR_NOT_FOUND)
		return error_cause(error, result, "%.200s", error_reason(&absent, result));
	if (!result && is_known(&record, made))
		return OK;
	check->found++;
	log_error("unknown_payment_found", "account_id", check->account_id, "sale_id", made->sale_code,
	          "reference", made->reference, "meaning",
	          result ? "the customer paid for a sale that this store does not have"
	                 : "the customer paid for a sale that is not paid here");
	return OK;
}

static int ask(struct check *check, const struct topup_payment_check *wanted,
               const char **ret_reason, struct error *error)
{
	*ret_reason = NULL;
	int result = OK;
	if (wanted->customer && *wanted->customer)
		result = payment_list_by_customer(check->service->payments, wanted->customer,
		                                  wanted->since_us, judge, check, error);
	if (check->found)
		*ret_reason = PAID;
	if (result != ERR_REFUSED)
		return result;
	log_error("payments_not_disclosed", "account_id", check->account_id, "cause",
	          error_reason(error, result));
	error_clear(error);
	*ret_reason = NOT_DISCLOSED;
	return OK;
}

int topup_payment_check(struct service *service, int64_t account, bool *ret_held,
                        struct error *error)
{
	int64_t woken_us = atomic_load(&service->woken_us);
	*ret_held = false;
	if (!woken_us || !payment_provider_charges(service->payments))
		return OK;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, CHECK_MEMORY_MAX);
	struct topup_payment_check wanted = {0};
	int result = store_get_topup_check(service->store, account, atomic_load(&service->copied_us),
	                                   woken_us, &arena, &wanted, error);
	if (result || !wanted.wanted)
		return result;
	struct check check = {.service = service, .account_id = wanted.account_id};
	const char *reason;
	result = ask(&check, &wanted, &reason, error);
	if (!result)
		result = store_end_topup_check(service->store, account, reason,
		                               store_now_us(service->store), error);
	if (result || !reason)
		return result;
	*ret_held = true;
	atomic_fetch_add(&service->counters.topups_failed, 1);
	log_error("topup_held", "account_id", wanted.account_id, "reason", reason, "meaning",
	          "the top-up is off until 'constancia topup on'; add the credits that were paid for");
	return OK;
}
