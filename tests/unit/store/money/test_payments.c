/* Payments as jobs: one holder at a time, taken over after the lease, resumed after a crash, ended
 * once, with the same idempotency key throughout. */
#include "testing.h"
#include "sample.h"
#include "store/money/packs.h"
#include "store/money/purchases.h"
#include "store/money/topup.h"

#define LEASE_US (30 * US_PER_SECOND)

struct shop {
	struct sample sample;
	struct arena arena;
	char pack_id[ID_SIZE];
	int64_t now_us;
};

/* Makes an account with 3 credits whose top-up has begun a purchase. */
static int set_up(void **state)
{
	static struct shop shop;
	sample_open(&shop.sample, MODALITY_HASH_ONLY, 3);
	arena_init(&shop.arena, 1 << 20);
	shop.now_us = shop.sample.now_us;
	struct store *store = shop.sample.store;
	struct slice account = slice_of(shop.sample.account_id);
	struct pack_record pack = {
		.name = "Pack", .credits = 10, .amount_minor = 1000, .currency = CURRENCY_EUR};
	struct billing_change billing = {.country = "ES", .tax_rate = 2100, .payment_method = "pm_1"};
	enum topup_action action;
	assert_int_equal(store_create_pack(store, &pack, shop.now_us, shop.pack_id, NULL), OK);
	assert_int_equal(store_change_billing(store, account, &billing, NULL), OK);
	assert_int_equal(store_set_topup(store, account, slice_of(shop.pack_id), 5, 3, NULL), OK);
	assert_int_equal(
		store_run_topup(store, shop.sample.account, "stripe", shop.now_us, &action, NULL), OK);
	assert_int_equal(action, TOPUP_BUY);
	*state = &shop;
	return 0;
}

static int tear_down(void **state)
{
	struct shop *shop = *state;
	arena_free(&shop->arena);
	sample_close(&shop->sample);
	return 0;
}

static int claim(struct shop *shop, const char *holder, struct payment *payment)
{
	return store_claim_payment(shop->sample.store, holder, "stripe", shop->now_us, LEASE_US,
	                           &shop->arena, payment, NULL);
}

static int end_paid(struct shop *shop, const struct payment *payment, const char *holder)
{
	struct payment_ended ended = {.end = PAYMENT_END_DONE, .outcome = "paid", .reference = "pi_1"};
	struct purchase_outcome outcome;
	return store_end_payment(shop->sample.store, payment, holder, &ended, shop->now_us, &outcome,
	                         NULL);
}

static int64_t balance_of(struct shop *shop)
{
	struct balance balance;
	assert_int_equal(store_get_balance(shop->sample.store, shop->sample.account, &balance, NULL),
	                 OK);
	return balance.balance;
}

TEST_CASE_ON(the_order_is_complete, struct shop *shop)
{
	struct payment payment;
	assert_int_equal(claim(shop, "a", &payment), OK);
	assert_int_equal(payment.action, PAYMENT_CHARGE);
	assert_int_equal(payment.total_minor, 1210);
	assert_int_equal(payment.currency, CURRENCY_EUR);
	assert_string_equal(payment.payment_method, "pm_1");
	assert_string_equal(payment.description, "Pack (10)");
	assert_int_equal(payment.first_try_at_us, shop->now_us);
	assert_int_equal(payment.attempts, 1);
	assert_false(payment.waiting);
	assert_null(payment.customer);
	assert_memory_equal(payment.idempotency_key, payment.sale_id, strlen(payment.sale_id));
}

TEST_CASE_ON(one_holder_at_a_time, struct shop *shop)
{
	struct payment first, second;
	assert_int_equal(claim(shop, "a", &first), OK);
	assert_int_equal(claim(shop, "b", &second), ERR_NOT_FOUND);
	shop->now_us += LEASE_US - 1;
	assert_int_equal(claim(shop, "b", &second), ERR_NOT_FOUND);
	shop->now_us += 1;
	assert_int_equal(claim(shop, "b", &second), OK);
	assert_string_equal(second.idempotency_key, first.idempotency_key);
	assert_int_equal(second.first_try_at_us, first.first_try_at_us);
	/* The answer of the first holder comes too late; that of the second one counts. */
	assert_int_equal(end_paid(shop, &first, "a"), ERR_REFUSED);
	assert_int_equal(balance_of(shop), 3);
	assert_int_equal(end_paid(shop, &second, "b"), OK);
	assert_int_equal(end_paid(shop, &second, "b"), ERR_REFUSED);
	assert_int_equal(balance_of(shop), 13);
	assert_int_equal(claim(shop, "a", &first), ERR_NOT_FOUND);
}

TEST_CASE_ON(a_holder_resumes_what_it_held, struct shop *shop)
{
	struct payment payment;
	/* Only a limited number of times: a payment that always ends the process must wait for the
	 * lease. */
	for (int i = 1; i <= 5; i++) {
		assert_int_equal(claim(shop, "a", &payment), OK);
		assert_int_equal(payment.attempts, i);
	}
	assert_int_equal(claim(shop, "a", &payment), ERR_NOT_FOUND);
	shop->now_us += LEASE_US;
	assert_int_equal(claim(shop, "a", &payment), OK);
}

TEST_CASE_ON(an_unknown_outcome_keeps_it_under_way, struct shop *shop)
{
	struct store *store = shop->sample.store;
	struct payment first, second;
	struct payment_delay delay = {.next_us = shop->now_us + US_PER_SECOND, .cause = "cut off"};
	enum topup_action action;
	assert_int_equal(claim(shop, "a", &first), OK);
	assert_int_equal(store_delay_payment(store, &first, "b", &delay, NULL), ERR_REFUSED);
	assert_int_equal(store_delay_payment(store, &first, "a", &delay, NULL), OK);
	assert_int_equal(claim(shop, "a", &second), ERR_NOT_FOUND);
	assert_int_equal(
		store_run_topup(store, shop->sample.account, "stripe", shop->now_us, &action, NULL), OK);
	assert_int_equal(action, TOPUP_NOTHING);
	shop->now_us += US_PER_SECOND;
	assert_int_equal(claim(shop, "b", &second), OK);
	assert_string_equal(second.idempotency_key, first.idempotency_key);
	delay.next_us = shop->now_us + US_PER_DAY;
	delay.waiting = true;
	delay.reference = "pi_9";
	assert_int_equal(store_delay_payment(store, &second, "b", &delay, NULL), OK);
	/* A notice reports that something happened. */
	assert_int_equal(store_expedite_payment(store, slice_of("another"), slice_of(first.sale_id),
	                                        shop->now_us, NULL),
	                 OK);
	assert_int_equal(claim(shop, "a", &first), ERR_NOT_FOUND);
	assert_int_equal(store_expedite_payment(store, slice_of(second.idempotency_key),
	                                        slice_of(second.sale_id), shop->now_us, NULL),
	                 OK);
	assert_int_equal(claim(shop, "a", &first), OK);
	assert_true(first.waiting);
	assert_string_equal(first.reference, "pi_9");
}

TEST_CASE_ON(another_provider_leaves_it_alone, struct shop *shop)
{
	struct payment payment;
	assert_int_equal(store_claim_payment(shop->sample.store, "a", "manual", shop->now_us, LEASE_US,
	                                     &shop->arena, &payment, NULL),
	                 ERR_NOT_FOUND);
}

TEST_CASE(one_payment_of_two_can_go_back)
{
	struct shop *shop = *state;
	struct payment payment;
	assert_int_equal(claim(shop, "a", &payment), OK);
	assert_int_equal(end_paid(shop, &payment, "a"), OK);
	struct purchase_order order = {.act = PURCHASE_REFUND,
	                               .reported = true,
	                               .sale_id = slice_of(payment.sale_id),
	                               .reference = "pi_2",
	                               .amount_minor = 1210,
	                               .currency = slice_of("EUR")};
	struct purchase_outcome outcome;
	assert_int_equal(
		store_change_purchase(shop->sample.store, &order, shop->now_us, &outcome, NULL), OK);
	assert_false(outcome.changed);
	assert_int_equal(outcome.state, PURCHASE_PAID);
	assert_int_equal(balance_of(shop), 13);
	order.sale_id = slice_of("");
	order.reference = "pi_1";
	assert_int_equal(
		store_change_purchase(shop->sample.store, &order, shop->now_us, &outcome, NULL), OK);
	assert_int_equal(outcome.state, PURCHASE_REFUNDED);
	assert_int_equal(balance_of(shop), 3);
}

/* A dispute over a part: the account keeps its credits until an operator decides. */
TEST_CASE(a_part_taken_back_changes_nothing)
{
	static const struct {
		int64_t minor;
		const char *currency, *credits;
	} rows[] = {{605, "EUR", "(5,"}, {1209, "EUR", "(9,"}, {1, "EUR", "(0,"}, {1210, "USD", "(0,"}};
	struct shop *shop = *state;
	struct payment payment;
	struct purchase_outcome outcome;
	struct error error = {0};
	assert_int_equal(claim(shop, "a", &payment), OK);
	assert_int_equal(end_paid(shop, &payment, "a"), OK);
	struct purchase_order order = {
		.act = PURCHASE_REVERT, .reported = true, .sale_id = slice_of(""), .reference = "pi_1"};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		order.amount_minor = rows[i].minor;
		order.currency = slice_of(rows[i].currency);
		error_clear(&error);
		assert_int_equal(
			store_change_purchase(shop->sample.store, &order, shop->now_us, &outcome, &error),
			ERR_REFUSED);
		const char *said = error_message(&error, LANGUAGE_ENGLISH);
		assert_non_null(strstr(said, payment.sale_id));
		assert_non_null(strstr(said, rows[i].credits));
		assert_int_equal(balance_of(shop), 13);
	}
	order.amount_minor = 1210;
	order.currency = slice_of("EUR");
	assert_int_equal(
		store_change_purchase(shop->sample.store, &order, shop->now_us, &outcome, NULL), OK);
	assert_int_equal(outcome.state, PURCHASE_REVERTED);
	assert_int_equal(balance_of(shop), 3);
}

TEST_MAIN_EACH(set_up, tear_down)
