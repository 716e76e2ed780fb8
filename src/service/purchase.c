#include "service/purchase.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/schedule.h"
#include "service/read_only.h"
#include "service/topup_payment_check.h"
#include "store/money/purchases.h"
#include "store/money/topup.h"

#define PAYMENT_MEMORY_MAX ((size_t)256 << 10)
/* An attempt may take two exchanges: querying the previous attempt, and charging. */
#define LEASE_US (2 * PAYMENT_TIMEOUT_MS * INT64_C(1000) + 15 * US_PER_SECOND)
#define PAUSE_FIRST_US US_PER_SECOND
#define PAUSE_MAX_US (600 * US_PER_SECOND)
/* Interval of status queries; normally the provider reports the result of a payment by a notice. */
#define ASK_INTERVAL_US (300 * US_PER_SECOND)
#define NEVER_US (100 * 365 * US_PER_DAY)
/* Before this age, the last attempt may still be in transit when a query finds nothing. */
#define ATTEMPT_END_US (PAYMENT_REPEAT_US + 2 * PAYMENT_TIMEOUT_MS * INT64_C(1000))

#define EARLY_US (3600 * US_PER_SECOND)

/* ---- outcome, for log and metrics ---- */

void service_count_purchase(struct service *service, const struct purchase_outcome *outcome)
{
	struct counters *counters = &service->counters;
	if (outcome->changed && outcome->state == PURCHASE_PAID)
		atomic_fetch_add(&counters->purchases_paid, 1);
	if (outcome->recharge == RECHARGE_COMPLETED)
		atomic_fetch_add(&counters->topups_completed, 1);
	if (outcome->recharge == RECHARGE_FAILED)
		atomic_fetch_add(&counters->topups_failed, 1);
}

static void report_outcome(struct service *service, const char *sale_id,
                           const struct purchase_outcome *outcome)
{
	service_count_purchase(service, outcome);
	if (outcome->changed)
		log_info("purchase", "sale_id", sale_id, "state", purchase_state_text(outcome->state));
}

/* ---- notices ---- */

/* A purchase that was paid with another reference was paid twice; an operator must refund one
 * payment. */
static void check_second_payment(struct service *service, const struct payment_notice *notice)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, PAYMENT_MEMORY_MAX);
	struct purchase_record record;
	if (store_find_purchase(service->store, slice_of(notice->sale_code), &arena, &record, NULL))
		return;
	if (record.reference && strcmp(record.reference, notice->reference) != 0)
		log_error("purchase_paid_twice", "sale_id", record.sale_id, "reference", record.reference,
		          "second", notice->reference);
}

/* Returns whether a refund notice may have overtaken the notice of its payment. It must then be
 * repeated later. */
static bool may_be_early(const struct payment_notice *notice, enum purchase_action act, int result)
{
	return result == ERR_NOT_FOUND && act != PURCHASE_PAY && !*notice->sale_code &&
	       notice->sent_us - notice->created_us < EARLY_US;
}

static int apply(struct service *service, const struct payment_notice *notice,
                 enum purchase_action act, struct error *error)
{
	struct purchase_order order = {
		.act = act,
		.reported = true,
		.sale_id = slice_of(notice->sale_code),
		.reference = notice->reference,
		.amount_minor = notice->amount_minor,
		.currency = slice_of(notice->currency),
	};
	struct purchase_outcome outcome;
	int result = store_change_purchase(service->store, &order, store_now_us(service->store),
	                                   &outcome, error);
	if (result == ERR_REFUSED)
		log_error("payment_not_applied", "sale_id", notice->sale_code, "reference",
		          notice->reference, "cause", error_message(error, LANGUAGE_ENGLISH));
	if (may_be_early(notice, act, result))
		return error_cause(error, ERR_UNAVAILABLE, "%s is not known yet", notice->reference);
	if (result)
		return result;
	report_outcome(service, notice->sale_code, &outcome);
	if (act == PURCHASE_PAY && !outcome.changed && *notice->sale_code)
		check_second_payment(service, notice);
	return OK;
}

int service_payment_notice(struct service *service, const struct payment_notice *notice,
                           struct error *error)
{
	struct error local = {0};
	error = error ? error : &local;
	int result = read_only_refuse(service, error);
	if (result)
		return result; /* the provider repeats it */
	switch (notice->kind) {
	case PAYMENT_NOTICE_OTHER: return OK;
	case PAYMENT_NOTICE_PAID: return apply(service, notice, PURCHASE_PAY, error);
	case PAYMENT_NOTICE_REFUNDED:
		return apply(service, notice, notice->by_bank ? PURCHASE_REVERT : PURCHASE_REFUND, error);
	case PAYMENT_NOTICE_FAILED:
		/* The payment may have been retried since: its present state counts. */
		if (*notice->sale_code)
			result = store_expedite_payment(service->store, slice_of(notice->idempotency_key),
			                                slice_of(notice->sale_code),
			                                store_now_us(service->store), error);
		service_wake(service, WAKE_TOPUP);
		return result;
	}
	return OK;
}

/* ---- deciding ---- */

static bool is_the_stores(int result)
{
	return result == ERR_UNAVAILABLE || result == ERR_IO || result == ERR_NO_SPACE ||
	       result == ERR_UNKNOWN_OUTCOME;
}

/* Decides the top-up of one account. */
static int decide_topup(struct service *service, int64_t account, const char *provider,
                        int64_t now_us, struct error *error)
{
	enum topup_action action = TOPUP_NOTHING;
	bool held = false;
	int result = topup_payment_check(service, account, &held, error);
	if (!result && !held)
		result = store_run_topup(service->store, account, provider, now_us, &action, error);
	if (!result && action == TOPUP_FAIL)
		atomic_fetch_add(&service->counters.topups_failed, 1);
	return result;
}

int service_decide_topups(struct service *service, int64_t now_us, const atomic_bool *stopping,
                          struct error *error)
{
	const char *provider = payment_provider_name(service->payments);
	int64_t account = 0;
	struct error local = {0}, last = {0}; /* the last query without a response */
	error = error ? error : &local;
	while (!atomic_load(stopping)) {
		int result = store_next_due_topup(service->store, account, &account, error);
		if (result)
			return result;
		if (!account)
			break;
		result = decide_topup(service, account, provider, now_us, error);
		if (is_the_stores(result))
			return result;
		if (!result)
			continue;
		/* A failure of one account must not delay the others. */
		char number[24];
		snprintf(number, sizeof number, "%" PRId64, account);
		const char *cause = error_reason(error, result);
		if (result == ERR_NETWORK)
			error_cause(&last, result, "account %s: %.400s", number, cause);
		else
			log_error("topup_not_decided", "account", number, "cause", cause);
		error_clear(error);
	}
	if (last.code)
		*error = last;
	return last.code;
}

/* ---- trying ---- */

struct attempt {
	struct service *service;
	const char *holder;
	struct payment payment;
	struct payment_result result;
};

static const char *text(const char *may_be_null)
{
	return may_be_null ? may_be_null : "";
}

static struct payment_order order_of(const struct payment *payment)
{
	return (struct payment_order){
		.sale_code = payment->sale_id,
		.idempotency_key = payment->idempotency_key,
		.amount_minor = payment->total_minor,
		.currency = currency_text(payment->currency),
		.customer = text(payment->customer),
		.payment_method = text(payment->payment_method),
		.description = payment->description,
	};
}

/* Uses the store's clock, because another node may have made the first attempt. */
static int64_t age_of(const struct attempt *attempt)
{
	return store_now_us(attempt->service->store) - attempt->payment.first_try_at_us;
}

static int call_provider(struct attempt *attempt, struct error *error)
{
	struct payment_provider *provider = attempt->service->payments;
	const struct payment *payment = &attempt->payment;
	if (payment->action == PAYMENT_GIVE_BACK)
		return payment_refund(provider, text(payment->reference), payment->idempotency_key,
		                      &attempt->result, error);
	struct payment_order order = order_of(payment);
	/* The original of a copy may have made the payment, and the provider may have forgotten the
	 * idempotency key. */
	if (!payment->waiting && payment->created_at_us < atomic_load(&attempt->service->woken_us)) {
		int result = payment_get(provider, &order, payment->reference, payment->created_at_us,
		                         &attempt->result, error);
		if (result || attempt->result.outcome != PAYMENT_NONE)
			return result;
	}
	if (payment->waiting || age_of(attempt) >= PAYMENT_REPEAT_US)
		return payment_get(provider, &order, payment->reference, payment->first_try_at_us,
		                   &attempt->result, error);
	return payment_charge(provider, &order, &attempt->result, error);
}

/* Returns false while the outcome is unknown. */
static bool find_end(const struct attempt *attempt, enum payment_end *ret)
{
	bool charge = attempt->payment.action == PAYMENT_CHARGE;
	switch (attempt->result.outcome) {
	case PAYMENT_PAID: *ret = PAYMENT_END_DONE; return true;
	case PAYMENT_PENDING: *ret = PAYMENT_END_DONE; return !charge;
	case PAYMENT_DECLINED:
	case PAYMENT_ACTION_REQUIRED:
		*ret = charge ? PAYMENT_END_DECLINED : PAYMENT_END_REJECTED;
		return true;
	case PAYMENT_METHOD_MISSING:
		*ret = charge ? PAYMENT_END_METHOD_MISSING : PAYMENT_END_REJECTED;
		return true;
	case PAYMENT_REFUSED: *ret = PAYMENT_END_REJECTED; return true;
	case PAYMENT_NONE:
		/* No charge was made, and none will be made with this key. */
		*ret = PAYMENT_END_DECLINED;
		return !attempt->payment.waiting && age_of(attempt) >= ATTEMPT_END_US;
	case PAYMENT_UNKNOWN: return false;
	}
	return false;
}

static int64_t pause_after(const struct attempt *attempt)
{
	if (attempt->result.outcome == PAYMENT_PENDING)
		return payment_provider_charges(attempt->service->payments) ? ASK_INTERVAL_US : NEVER_US;
	int64_t wish_us = attempt->result.retry_after_seconds * US_PER_SECOND;
	int64_t pause_us = backoff_us(attempt->payment.attempts, PAUSE_FIRST_US, PAUSE_MAX_US);
	pause_us = pause_us > wish_us ? pause_us : wish_us;
	return pause_us < PAUSE_MAX_US ? pause_us : PAUSE_MAX_US;
}

static int give_back(struct attempt *attempt, struct error *error)
{
	const struct payment *payment = &attempt->payment;
	bool waiting = attempt->result.outcome == PAYMENT_PENDING;
	struct payment_delay delay = {
		.next_us = store_now_us(attempt->service->store) + pause_after(attempt),
		.waiting = waiting,
		.reference = attempt->result.reference,
		.cause = attempt->result.reason,
	};
	if (!waiting) {
		atomic_fetch_add(&attempt->service->counters.payments_unknown, 1);
		log_warning("payment_outcome_unknown", "idempotency_key", payment->idempotency_key, "cause",
		            attempt->result.reason);
	}
	return store_delay_payment(attempt->service->store, payment, attempt->holder, &delay, error);
}

static int end(struct attempt *attempt, enum payment_end how, struct error *error)
{
	struct service *service = attempt->service;
	const struct payment *payment = &attempt->payment;
	const struct payment_result *provider_result = &attempt->result;
	struct payment_ended ended = {
		.end = how,
		.outcome = payment_outcome_text(provider_result->outcome),
		.reference = payment->action == PAYMENT_CHARGE ? provider_result->reference : NULL,
		.payment_url = provider_result->payment_url,
		.cause = *provider_result->code ? provider_result->code : provider_result->reason,
	};
	struct purchase_outcome outcome;
	int result = store_end_payment(service->store, payment, attempt->holder, &ended,
	                               store_now_us(service->store), &outcome, error);
	if (result)
		return result;
	log_info("payment_completed", "idempotency_key", payment->idempotency_key, "outcome",
	         ended.outcome, "cause", provider_result->reason);
	report_outcome(service, payment->sale_id, &outcome);
	return OK;
}

int service_attempt_payment(struct service *service, const char *holder, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, PAYMENT_MEMORY_MAX);
	struct attempt attempt = {.service = service, .holder = holder};
	struct error local = {0};
	error = error ? error : &local;
	int result = store_claim_payment(
		service->store, holder, payment_provider_name(service->payments),
		store_now_us(service->store), LEASE_US, &arena, &attempt.payment, error);
	if (result)
		return result;
	result = call_provider(&attempt, error);
	if (result) {
		/* Nothing was sent: the order is invalid, or memory is exhausted. */
		attempt.result = (struct payment_result){
			.outcome = result == ERR_VALIDATION ? PAYMENT_REFUSED : PAYMENT_UNKNOWN};
		snprintf(attempt.result.reason, sizeof attempt.result.reason, "%.200s",
		         error_reason(error, result));
	}
	enum payment_end how;
	result = find_end(&attempt, &how) ? end(&attempt, how, error) : give_back(&attempt, error);
	/* Refused: a notice was processed first. */
	return result == ERR_REFUSED ? OK : result;
}

/* ---- pages ---- */

/* Returns false if no page was created. */
static bool make_page(struct service *service, const struct purchase_record *record,
                      struct payment_result *ret)
{
	char key[PAYMENT_KEY_SIZE];
	snprintf(key, sizeof key, "%s-page", record->sale_id);
	struct payment_order order = {
		.sale_code = record->sale_id,
		.idempotency_key = key, /* one page per purchase, also for repeated requests */
		.amount_minor = record->amount_minor + record->tax_minor,
		.currency = currency_text(record->currency),
		.customer = text(record->customer),
		.payment_method = text(record->payment_method),
		.description = record->description,
	};
	return !payment_page(service->payments, &order, ret, NULL) && *ret->payment_url;
}

int service_make_payment_page(struct service *service, struct slice sale_id, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, PAYMENT_MEMORY_MAX);
	struct purchase_record record;
	struct payment_result made;
	if (read_only_is_active(service))
		return OK; /* as if the provider did not respond */
	int result = store_find_purchase(service->store, sale_id, &arena, &record, error);
	if (result || record.state != PURCHASE_PENDING || !make_page(service, &record, &made))
		return result;
	return store_set_payment_url(service->store, sale_id, made.payment_url, error);
}

/* For a declined charge of a top-up the provider itself creates a page. */
static bool is_paid_on_page(const struct service *service, const struct purchase_record *record)
{
	return record->state == PURCHASE_PENDING && !record->payment &&
	       strcmp(record->provider, payment_provider_name(service->payments)) == 0 &&
	       strcmp(record->provider, "manual") != 0 && *service->settings->payment_return_url;
}

int service_request_payment_page(struct service *service, struct store *store, struct slice sale_id,
                                 struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, PAYMENT_MEMORY_MAX);
	struct purchase_record record;
	struct payment_result made = {0};
	int result = read_only_refuse(service, error);
	if (!result)
		result = store_find_purchase(store, sale_id, &arena, &record, error);
	if (result || (record.state == PURCHASE_PENDING && record.payment_url))
		return result;
	if (!is_paid_on_page(service, &record))
		return error_set(error, ERR_REFUSED, MSG_SALE_NO_PAGES, record.sale_id, NULL);
	if (make_page(service, &record, &made))
		return store_set_payment_url(store, sale_id, made.payment_url, error);
	log_warning("payment_page_not_made", "sale_id", record.sale_id, "cause", made.reason);
	return error_set(error, ERR_UNAVAILABLE, MSG_SALE_PAGE_LATER, NULL);
}
