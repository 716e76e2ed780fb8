/* Top-ups and payments with a store and a scripted provider: every answer leads to its end state.
 * Whatever call fails, one order is charged under one key, credits are given once, and a fault of
 * the service is never taken for a refusal by the provider. */
#include "testing.h"
#include "failing.h"
#include "base/clock.h"
#include "sample.h"
#include "admin/admin.h"
#include "service/keys.h"
#include "service/purchase.h"
#include "store/money/packs.h"
#include "store/money/topup.h"

#define ANSWERS_MAX 6
#define STEPS_MAX 40
#define PAUSE_US (700 * US_PER_SECOND) /* longer than any pause between two attempts */

static struct sample sample;
static struct settings settings;
static struct service service;
static struct arena arena;
static struct error error;
static char pack_id[ID_SIZE], account_id[ID_SIZE];
static int64_t later_us;

/* ---- the provider ---- */

/* Its answers, one after the other; the last one is repeated. */
static struct {
	struct payment_result answers[ANSWERS_MAX];
	size_t count, at;
	int charges, look_ups, refunds, pages;
	char key[PAYMENT_KEY_SIZE]; /* of all charges of a purchase */
	int result;                 /* of the calls */
} provider;

static int answer(struct payment_result *ret)
{
	if (provider.result)
		return provider.result;
	*ret = provider.answers[provider.at];
	provider.at += provider.at + 1 < provider.count;
	return OK;
}

int __wrap_payment_charge(struct payment_provider *unused, const struct payment_order *order,
                          struct payment_result *ret, struct error *unused_error);
int __wrap_payment_charge(struct payment_provider *unused, const struct payment_order *order,
                          struct payment_result *ret, struct error *unused_error)
{
	if (provider.charges++ > 0)
		assert_string_equal(order->idempotency_key, provider.key);
	snprintf(provider.key, sizeof provider.key, "%s", order->idempotency_key);
	assert_int_equal(order->amount_minor, 1210);
	return answer(ret);
}

int __wrap_payment_get(struct payment_provider *unused, const struct payment_order *order,
                       const char *reference, int64_t since_us, struct payment_result *ret,
                       struct error *unused_error);
int __wrap_payment_get(struct payment_provider *unused, const struct payment_order *order,
                       const char *reference, int64_t since_us, struct payment_result *ret,
                       struct error *unused_error)
{
	provider.look_ups++;
	return answer(ret);
}

int __wrap_payment_refund(struct payment_provider *unused, const char *reference, const char *key,
                          struct payment_result *ret, struct error *unused_error);
int __wrap_payment_refund(struct payment_provider *unused, const char *reference, const char *key,
                          struct payment_result *ret, struct error *unused_error)
{
	provider.refunds++;
	return answer(ret);
}

int __wrap_payment_page(struct payment_provider *unused, const struct payment_order *order,
                        struct payment_result *ret, struct error *unused_error);
int __wrap_payment_page(struct payment_provider *unused, const struct payment_order *order,
                        struct payment_result *ret, struct error *unused_error)
{
	provider.pages++;
	return answer(ret);
}

bool __wrap_payment_provider_charges(const struct payment_provider *unused);
bool __wrap_payment_provider_charges(const struct payment_provider *unused)
{
	return true;
}

int64_t __real_store_now_us(struct store *store);
int64_t __wrap_store_now_us(struct store *store);
int64_t __wrap_store_now_us(struct store *store)
{
	return __real_store_now_us(store) + later_us;
}

static void answers(const enum payment_outcome *outcomes, size_t count)
{
	memset(&provider, 0, sizeof provider);
	provider.count = count;
	for (size_t i = 0; i < count; i++) {
		provider.answers[i] =
			(struct payment_result){.outcome = outcomes[i], .reason = "as written"};
		if (outcomes[i] == PAYMENT_PAID || outcomes[i] == PAYMENT_PENDING)
			snprintf(provider.answers[i].reference, PAYMENT_REFERENCE_SIZE, "pi_%s", account_id);
		if (outcomes[i] == PAYMENT_DECLINED)
			snprintf(provider.answers[i].payment_url, PAYMENT_URL_SIZE, "https://pay.example.org");
	}
}
#define ANSWERS(...)                                                                               \
	answers((enum payment_outcome[]){__VA_ARGS__},                                                 \
	        sizeof((enum payment_outcome[]){__VA_ARGS__}) / sizeof(enum payment_outcome))

/* ---- the service ---- */

static int set_up(void **state)
{
	sample_open(&sample, MODALITY_HASH_ONLY, 3);
	arena_init(&arena, (size_t)64 << 20);
	settings = (struct settings){.service_prefix = "svc"};
	memset(&service, 0, sizeof service);
	service.settings = &settings;
	service.store = sample.store;
	later_us = 0;
	struct payment_provider *payments = NULL;
	assert_int_equal(
		payment_provider_open(&(struct payment_settings){.provider = "manual"}, &payments, &error),
		OK);
	service.payments = payments;
	struct pack_record pack = {
		.name = "Pack", .credits = 10, .amount_minor = 1000, .currency = CURRENCY_EUR};
	assert_int_equal(store_create_pack(sample.store, &pack, sample.now_us, pack_id, &error), OK);
	return 0;
}

static int tear_down(void **state)
{
	payment_provider_close(service.payments);
	arena_free(&arena);
	sample_close(&sample);
	return 0;
}

/* Makes an account with 3 credits that buys 10 more. */
static void new_account(void)
{
	struct account_record given = {.name = "Customer", .unpaid_limit = 100};
	struct billing_change billing = {
		.country = "ES", .tax_rate = 2100, .customer = "cus_1", .payment_method = "pm_1"};
	struct store *store = sample.store;
	assert_int_equal(store_create_account(store, &given, 3, sample.now_us, account_id, &error), OK);
	struct slice id = slice_of(account_id);
	assert_int_equal(store_change_billing(store, id, &billing, &error), OK);
	assert_int_equal(store_set_topup(store, id, slice_of(pack_id), 5, 3, &error), OK);
}

static struct purchase_record the_purchase(void)
{
	struct purchase_list list;
	assert_int_equal(store_list_purchases(sample.store, slice_of(account_id), -1, slice_of(""), 10,
	                                      &arena, &list, &error),
	                 OK);
	assert_int_equal(list.count, 1);
	return list.items[0];
}

static int64_t the_balance(void)
{
	struct account_record found;
	assert_int_equal(store_find_account(sample.store, slice_of(account_id), sample.now_us, &arena,
	                                    &found, &error),
	                 OK);
	return found.balance;
}

static bool topup_is_on(void)
{
	struct topup_record topup;
	assert_int_equal(
		store_get_topup(sample.store, slice_of(account_id), sample.now_us, &arena, &topup, &error),
		OK);
	return topup.enabled;
}

static bool is_fault(int result)
{
	return result == ERR_UNAVAILABLE || result == ERR_IO || result == ERR_NO_MEMORY;
}

/* Works as the top-up job does, until there is nothing to do for a while. */
static void work(void)
{
	static const atomic_bool stopping;
	for (int quiet = 0, steps = 0; quiet < 2; steps++) {
		assert_true(steps < STEPS_MAX);
		struct error failure = {0};
		int result =
			service_decide_topups(&service, store_now_us(sample.store), &stopping, &failure);
		if (!result)
			result = service_attempt_payment(&service, "holder", &failure);
		if (result && result != ERR_NOT_FOUND && !is_fault(result))
			fail_msg("%d %s", result, failure.cause);
		quiet = result == ERR_NOT_FOUND ? quiet + 1 : 0;
		later_us += PAUSE_US;
	}
}

/* ---- each call failing ---- */

#define ALL (FAILING_MEMORY | FAILING_SQLITE | FAILING_PARTS | FAILING_ARENAS)

static void end_as(const char *failed, int at, enum purchase_state state, int64_t balance,
                   bool topup_on)
{
	struct purchase_record purchase = the_purchase();
	if (purchase.state != state || the_balance() != balance || topup_is_on() != topup_on)
		fail_msg("call %d, %s: %s, balance %d, %s", at, failed ? failed : "none",
		         purchase_state_text(purchase.state), (int)the_balance(),
		         topup_is_on() ? "on" : "off");
	arena_reset(&arena);
}

TEST_CASE(a_paid_topup_pays_once)
{
	for (int at = 1;; at++) {
		new_account();
		ANSWERS(PAYMENT_UNKNOWN, PAYMENT_PENDING, PAYMENT_PENDING, PAYMENT_PAID);
		failing_arm(ALL, at);
		work();
		const char *failed = failing_disarm();
		end_as(failed, at, PURCHASE_PAID, 13, true);
		if (!failed)
			break;
	}
	assert_true(provider.look_ups > 0);
	assert_true(atomic_load(&service.counters.payments_unknown) > 0);
}

TEST_CASE(a_declined_topup_is_turned_off)
{
	for (int at = 1;; at++) {
		new_account();
		ANSWERS(PAYMENT_DECLINED);
		failing_arm(ALL, at);
		work();
		const char *failed = failing_disarm();
		end_as(failed, at, PURCHASE_PENDING, 3, false);
		if (!failed)
			break;
	}
	assert_string_equal(the_purchase().payment_url, "https://pay.example.org");
}

TEST_CASE(a_refund_takes_its_credits_once)
{
	for (int at = 1;; at++) {
		new_account();
		ANSWERS(PAYMENT_PAID);
		work();
		end_as("nothing yet", at, PURCHASE_PAID, 13, true);
		assert_int_equal(store_switch_topup(sample.store, slice_of(account_id), false, &error), OK);
		assert_int_equal(store_request_refund(sample.store, slice_of(the_purchase().sale_id),
		                                      store_now_us(sample.store), &error),
		                 OK);
		ANSWERS(PAYMENT_UNKNOWN, PAYMENT_PAID);
		failing_arm(ALL, at);
		work();
		const char *failed = failing_disarm();
		end_as(failed, at, PURCHASE_REFUNDED, 3, false);
		if (!failed)
			break;
	}
}

/* ---- answers of the provider ---- */

TEST_CASE(each_answer_has_its_end)
{
	static const struct {
		enum payment_outcome answer;
		enum purchase_state state;
		int64_t balance;
		bool on;
	} cases[] = {
		{PAYMENT_PAID, PURCHASE_PAID, 13, true},
		{PAYMENT_DECLINED, PURCHASE_PENDING, 3, false},
		{PAYMENT_ACTION_REQUIRED, PURCHASE_PENDING, 3, false},
		{PAYMENT_METHOD_MISSING, PURCHASE_REJECTED, 3, false},
		{PAYMENT_REFUSED, PURCHASE_REJECTED, 3, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		new_account();
		ANSWERS(cases[i].answer);
		work();
		end_as(payment_outcome_text(cases[i].answer), 0, cases[i].state, cases[i].balance,
		       cases[i].on);
		assert_int_equal(provider.charges, 1);
	}
}

TEST_CASE(each_answer_to_a_refund_has_its_end)
{
	static const struct {
		enum payment_outcome answer;
		enum purchase_state state;
	} cases[] = {
		{PAYMENT_PAID, PURCHASE_REFUNDED}, {PAYMENT_PENDING, PURCHASE_REFUNDED},
		{PAYMENT_REFUSED, PURCHASE_PAID},  {PAYMENT_METHOD_MISSING, PURCHASE_PAID},
		{PAYMENT_DECLINED, PURCHASE_PAID},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		new_account();
		ANSWERS(PAYMENT_PAID);
		work();
		assert_int_equal(store_switch_topup(sample.store, slice_of(account_id), false, &error), OK);
		assert_int_equal(store_request_refund(sample.store, slice_of(the_purchase().sale_id),
		                                      store_now_us(sample.store), &error),
		                 OK);
		ANSWERS(cases[i].answer);
		work();
		end_as(payment_outcome_text(cases[i].answer), 0, cases[i].state,
		       cases[i].state == PURCHASE_PAID ? 13 : 3, false);
		assert_int_equal(provider.refunds, 1);
	}
}

/* For an hour and a half of unknown outcomes the same order is repeated. After a day only its
 * outcome is requested, and an unknown order counts as declined. */
TEST_CASE(an_old_charge_is_only_asked_about)
{
	static const atomic_bool stopping;
	new_account();
	ANSWERS(PAYMENT_UNKNOWN);
	provider.answers[0].retry_after_seconds = 300;
	assert_int_equal(service_decide_topups(&service, store_now_us(sample.store), &stopping, NULL),
	                 OK);
	assert_int_equal(service_attempt_payment(&service, "holder", NULL), OK);
	later_us += 290 * US_PER_SECOND; /* not before the time that the provider requested */
	assert_int_equal(service_attempt_payment(&service, "holder", NULL), ERR_NOT_FOUND);
	later_us += 20 * US_PER_SECOND;
	for (int i = 0; i < 12; i++) {
		assert_int_equal(service_attempt_payment(&service, "holder", NULL), OK);
		later_us += PAUSE_US;
	}
	assert_int_equal(provider.charges, 13);
	assert_int_equal(provider.look_ups, 0);
	ANSWERS(PAYMENT_NONE);
	later_us += 17 * 3600 * US_PER_SECOND; /* nearly all of the time that a key is remembered */
	assert_int_equal(service_attempt_payment(&service, "holder", NULL), OK);
	assert_int_equal(provider.charges, 1);
	end_as("soon", 0, PURCHASE_PENDING, 3, true);
	later_us += 4 * 3600 * US_PER_SECOND;
	work();
	assert_int_equal(provider.charges, 1);
	assert_true(provider.look_ups >= 1);
	end_as("never was", 0, PURCHASE_PENDING, 3, false);
}

/* A request that could not be sent: an unusable order ends, a lack of memory is retried. */
TEST_CASE(what_was_not_sent)
{
	static const atomic_bool stopping;
	new_account();
	ANSWERS(PAYMENT_PAID);
	provider.result = ERR_NO_MEMORY;
	assert_int_equal(service_decide_topups(&service, store_now_us(sample.store), &stopping, NULL),
	                 OK);
	assert_int_equal(service_attempt_payment(&service, "holder", NULL), OK);
	end_as("no memory", 0, PURCHASE_PENDING, 3, true);
	provider.result = ERR_VALIDATION;
	work();
	end_as("no order", 0, PURCHASE_REJECTED, 3, false);
}

/* ---- notices ---- */

static struct payment_notice notice_of(enum payment_notice_kind kind)
{
	struct payment_notice notice = {
		.kind = kind, .amount_minor = 1210, .currency = "EUR", .created_us = 1, .sent_us = 2};
	snprintf(notice.reference, sizeof notice.reference, "pi_%s", account_id);
	snprintf(notice.sale_code, sizeof notice.sale_code, "%s", the_purchase().sale_id);
	return notice;
}

static int notices_woken;

static void note_wake(void *context, enum wake which)
{
	assert_int_equal(which, WAKE_TOPUP);
	notices_woken++;
}

static void begin_purchase(void)
{
	static const atomic_bool stopping;
	new_account();
	ANSWERS(PAYMENT_PENDING);
	assert_int_equal(service_decide_topups(&service, store_now_us(sample.store), &stopping, NULL),
	                 OK);
	assert_int_equal(service_attempt_payment(&service, "holder", NULL), OK);
}

TEST_CASE(a_notice_counts_once_whatever_fails)
{
	for (int at = 1;; at++) {
		begin_purchase();
		struct payment_notice notice = notice_of(PAYMENT_NOTICE_PAID);
		failing_arm(ALL, at);
		int result = service_payment_notice(&service, &notice, NULL);
		const char *failed = failing_disarm();
		assert_true(failed ? is_fault(result) || !result : !result);
		if (result) {
			assert_int_equal(the_balance(), 3);
			assert_int_equal(service_payment_notice(&service, &notice, NULL), OK);
		}
		end_as(failed, at, PURCHASE_PAID, 13, true);
		notice = notice_of(PAYMENT_NOTICE_PAID); /* it is repeated, and sent under another name */
		assert_int_equal(service_payment_notice(&service, &notice, NULL), OK);
		snprintf(notice.reference, sizeof notice.reference, "pi_other");
		assert_int_equal(service_payment_notice(&service, &notice, &error), OK);
		end_as("again", at, PURCHASE_PAID, 13, true);
		if (!failed)
			break;
	}
}

/* The provider refunds the charge, in the job that is woken. */
TEST_CASE(a_refund_that_the_operator_asks_for)
{
	begin_purchase();
	struct payment_notice notice = notice_of(PAYMENT_NOTICE_PAID);
	assert_int_equal(service_payment_notice(&service, &notice, NULL), OK);
	BUF_AUTO struct buf answer = {.limit = ADMIN_RESULT_MAX};
	struct json *arguments;
	const char *text = arena_printf(&arena, "{\"sale\":\"%s\"}", the_purchase().sale_id);
	assert_int_equal(json_parse(&arena, slice_of(text), NULL, &arguments, NULL), OK);
	struct admin admin = {.settings = &settings, .store = sample.store, .service = &service};
	service.wake = note_wake;
	service.keys = key_cache_make(); /* which a command has cleared */
	assert_non_null(service.keys);
	notices_woken = 0;
	assert_int_equal(
		admin_run(&admin, admin_find(slice_of("purchase refund")), arguments, NULL, &answer, NULL),
		OK);
	assert_int_equal(notices_woken, 1);
	service.wake = NULL;
	key_cache_free(service.keys);
	service.keys = NULL;
	assert_int_equal(the_purchase().state, PURCHASE_PAID); /* until it is refunded */
}

TEST_CASE(notices_of_other_kinds)
{
	begin_purchase();
	struct payment_notice notice = notice_of(PAYMENT_NOTICE_OTHER);
	assert_int_equal(service_payment_notice(&service, &notice, NULL), OK);
	/* A failed attempt is checked soon, by the job that is woken. */
	service.wake = note_wake;
	notices_woken = 0;
	notice.kind = PAYMENT_NOTICE_FAILED;
	assert_int_equal(service_payment_notice(&service, &notice, NULL), OK);
	*notice.sale_code = '\0';
	assert_int_equal(service_payment_notice(&service, &notice, NULL), OK);
	assert_int_equal(notices_woken, 2);
	/* A payment below the price buys nothing. */
	notice = notice_of(PAYMENT_NOTICE_PAID);
	notice.amount_minor = 1;
	assert_int_equal(service_payment_notice(&service, &notice, NULL), ERR_REFUSED);
	end_as("too little", 0, PURCHASE_PENDING, 3, true);
	notice.amount_minor = 1210;
	assert_int_equal(service_payment_notice(&service, &notice, NULL), OK);
	/* Charged back by the bank; then an unknown change, early and late. */
	notice.kind = PAYMENT_NOTICE_REFUNDED;
	notice.by_bank = true;
	assert_int_equal(service_payment_notice(&service, &notice, NULL), OK);
	assert_int_equal(the_purchase().state, PURCHASE_REVERTED);
	*notice.sale_code = '\0';
	snprintf(notice.reference, sizeof notice.reference, "pi_unknown");
	assert_int_equal(service_payment_notice(&service, &notice, NULL), ERR_UNAVAILABLE);
	notice.sent_us = notice.created_us + 3601 * US_PER_SECOND;
	assert_int_equal(service_payment_notice(&service, &notice, NULL), ERR_NOT_FOUND);
}

/* ---- pages ---- */

TEST_CASE(a_page_is_kept_or_told_to_be_missing)
{
	for (int at = 1;; at++) {
		char sale_id[ID_SIZE];
		new_account();
		ANSWERS(PAYMENT_DECLINED);
		assert_int_equal(store_create_purchase(sample.store, slice_of(account_id),
		                                       slice_of(pack_id), "manual", sample.now_us, sale_id,
		                                       &error),
		                 OK);
		failing_arm(ALL, at);
		int result = service_make_payment_page(&service, slice_of(sale_id), &error);
		const char *failed = failing_disarm();
		if (failed ? !is_fault(result) : result)
			fail_msg("call %d, %s: %d", at, failed ? failed : "none", result);
		assert_true((the_purchase().payment_url == NULL) == (failed != NULL));
		if (!failed)
			break;
	}
	assert_int_equal(service_make_payment_page(&service, slice_of("sal_none"), &error),
	                 ERR_NOT_FOUND);
	provider.result = ERR_NO_MEMORY; /* it can be requested again */
	assert_int_equal(service_make_payment_page(&service, slice_of(the_purchase().sale_id), &error),
	                 OK);
}

/* Until it is resumed a read-only copy does not accept notices, so that the provider repeats
 * them. */
TEST_CASE(a_quiet_store_takes_no_notice)
{
	begin_purchase();
	struct payment_notice notice = notice_of(PAYMENT_NOTICE_PAID);
	atomic_store(&service.read_only_since_us, 1);
	assert_int_equal(service_payment_notice(&service, &notice, &error), ERR_UNAVAILABLE);
	assert_int_equal(the_balance(), 3);
	assert_int_equal(the_purchase().state, PURCHASE_PENDING);
	atomic_store(&service.read_only_since_us, 0);
	assert_int_equal(service_payment_notice(&service, &notice, &error), OK);
	assert_int_equal(the_balance(), 13);
}

TEST_CASE(a_quiet_store_asks_for_no_page)
{
	char sale_id[ID_SIZE];
	new_account();
	ANSWERS(PAYMENT_DECLINED);
	assert_int_equal(store_create_purchase(sample.store, slice_of(account_id), slice_of(pack_id),
	                                       "manual", sample.now_us, sale_id, &error),
	                 OK);
	atomic_store(&service.read_only_since_us, 1);
	assert_int_equal(service_make_payment_page(&service, slice_of(sale_id), &error), OK);
	assert_true(provider.pages == 0 && !the_purchase().payment_url);
	atomic_store(&service.read_only_since_us, 0);
	assert_int_equal(service_make_payment_page(&service, slice_of(sale_id), &error), OK);
	assert_true(provider.pages == 1 && the_purchase().payment_url);
}

TEST_MAIN_EACH(set_up, tear_down)
