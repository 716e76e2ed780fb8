/* Random histories of purchases, events, reverts, refunds, limits, top-ups and faults at any
 * statement, compared with a very simple model: credits are conserved exactly, every notice is sent
 * once, and every step takes effect completely or not at all.
 *
 * usage: test-store-purchase_histories [SEED [postgresql://…]] */
#include <time.h>

#include "testing.h"
#include "faults.h"
#include "registering.h"
#include "sample.h"
#include "store/accounts/accounts.h"
#include "store/money/packs.h"
#include "store/money/purchases.h"
#include "store/money/topup.h"
#include "store/store_internal.h"

#define HISTORIES 12
#define STEPS 260
#define PURCHASES_MAX STEPS
#define HELD_MAX 16
#define LEASE_US (30 * US_PER_SECOND)
#define UNPAID_LIMIT 4
#define TOPUP_THRESHOLD 8
#define DAILY_MAX 2
#define START INT64_C(1767268800000000) /* 2026-01-01T12:00:00Z */

enum { NOTICE_TYPES = NOTICE_WEBHOOK_TEST + 1 };
enum { PACK_STANDARD, PACK_CUSTOM, PACKS };
static const int64_t pack_credits[PACKS] = {10, 7};
static const int64_t thresholds[] = {0, 5, 20};
#define THRESHOLDS 3
static const struct {
	int64_t max;
	bool block;
} limits[] = {{6, false}, {9, true}};
#define LIMITS 2

struct model_purchase {
	enum purchase_state state;
	int64_t credits;
	bool charge_open;
	bool refund_open;
	bool automatic;
	int64_t created_us;
	int64_t tax_rate;
	int64_t total; /* in cents */
	char buyer[32];
	char holder[32]; /* of the open payment's lease */
};

/* The expected state. */
struct model {
	int64_t balance, unpaid, entries_sum;
	bool armed[THRESHOLDS];
	char day[PERIOD_KEY_SIZE];
	int64_t used;
	bool noticed[LIMITS];
	struct model_purchase purchases[PURCHASES_MAX];
	int64_t purchase_count;
	bool topup_on, suspended, method, country, on_sale[PACKS];
	int64_t tax_rate;
	char name[32]; /* of the account */
	int topup_pack;
	int64_t topup_purchase; /* 0: none in progress */
	int64_t notices[NOTICE_TYPES];
	int64_t events;
};

struct held {
	struct payment payment;
	char holder[32];
};

struct history {
	struct sample sample;
	struct arena arena;
	char pack_ids[PACKS][ID_SIZE];
	int64_t references;
	int64_t holders;
	struct model model;
	struct held held[HELD_MAX];
	int held_count;
	int faults;
};

static const char *server_url;
static unsigned seed;

static int64_t pick(int64_t from, int64_t to)
{
	return from + rand() % (to - from + 1);
}

/* ---- the model's rules ---- */

static void model_thresholds(struct model *model)
{
	for (int i = 0; i < THRESHOLDS; i++) {
		if (model->armed[i] && model->balance <= thresholds[i])
			model->notices[NOTICE_BALANCE_LOW]++;
		model->armed[i] = model->balance > thresholds[i];
	}
}

static void model_credits(struct model *model, int64_t credits)
{
	model->balance += credits;
	while (model->balance > 0 && model->unpaid > 0) {
		model->balance--;
		model->unpaid--;
	}
	model_thresholds(model);
}

static void model_day(struct model *model, int64_t now_us)
{
	char day[PERIOD_KEY_SIZE];
	period_key(PERIOD_DAY, now_us, day);
	if (strcmp(day, model->day) == 0)
		return;
	memcpy(model->day, day, sizeof day);
	model->used = 0;
	memset(model->noticed, 0, sizeof model->noticed);
}

static int model_event(struct model *model)
{
	for (int i = 0; i < LIMITS; i++)
		if (limits[i].block && model->used >= limits[i].max)
			return ERR_LIMIT_BLOCKED;
	if (model->balance <= 0 && model->unpaid >= UNPAID_LIMIT)
		return ERR_UNPAID_LIMIT;
	model->used++;
	model->events++;
	for (int i = 0; i < LIMITS; i++)
		if (model->used >= limits[i].max && !model->noticed[i]) {
			model->noticed[i] = true;
			model->notices[NOTICE_CONSUMPTION_LIMIT_REACHED]++;
		}
	if (model->balance > 0) {
		model->balance--;
		model_thresholds(model);
		return OK;
	}
	if (++model->unpaid == 1)
		model->notices[NOTICE_BALANCE_EXHAUSTED]++;
	if (model->unpaid == UNPAID_LIMIT)
		model->notices[NOTICE_UNPAID_LIMIT_REACHED]++;
	return OK;
}

static void model_topup_ends(struct model *model, int64_t number, bool completed)
{
	if (model->topup_purchase != number)
		return;
	model->topup_purchase = 0;
	model->notices[completed ? NOTICE_RECHARGE_COMPLETED : NOTICE_RECHARGE_FAILED]++;
	if (!completed)
		model->topup_on = false;
}

static void model_state(struct model *model, int64_t number, enum purchase_state state)
{
	struct model_purchase *purchase = &model->purchases[number - 1];
	if (purchase->state == state)
		return;
	bool was_paid = purchase->state == PURCHASE_PAID;
	purchase->state = state;
	if (state == PURCHASE_PAID)
		model_credits(model, purchase->credits);
	else if (was_paid)
		model_credits(model, -purchase->credits);
	model_topup_ends(model, number, state == PURCHASE_PAID);
}

/* ---- steps: predict, carry out, compare ---- */

static void reopen(struct history *history)
{
	store_close(history->sample.store);
	assert_int_equal(
		store_open(&(struct db_options){.url = history->sample.url}, &history->sample.store, NULL),
		OK);
}

static void arm(struct history *history)
{
	static const enum fault kinds[] = {FAULT_NONE,         FAULT_NONE,      FAULT_NONE,
	                                   FAULT_STATEMENT,    FAULT_STATEMENT, FAULT_COMMIT,
	                                   FAULT_COMMIT_ANSWER};
	enum fault kind = kinds[rand() % 7];
	fault_set(kind, kind == FAULT_STATEMENT ? (int)pick(1, 14) : 1);
}

/* Checks the result against `expected` and applies `next` to the model; returns true if the step
 * was answered. */
static bool settle(struct history *history, int result, int expected, const struct model *next)
{
	if (!fault_take()) {
		assert_int_equal(result, expected);
		if (!result)
			history->model = *next;
		return true;
	}
	history->faults++;
	assert_int_not_equal(result, OK);
	if (result == ERR_UNKNOWN_OUTCOME) {
		history->model = *next;
		reopen(history);
	}
	return false;
}

static void step_register(struct history *history)
{
	struct registration items[5] = {0};
	struct registration *pointers[5];
	struct model next = history->model;
	int expected[5];
	char references[5][32];
	size_t count = (size_t)pick(1, 5);
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	model_day(&next, history->sample.now_us);
	for (size_t i = 0; i < count; i++) {
		snprintf(references[i], sizeof references[i], "r%lld", (long long)++history->references);
		items[i] = (struct registration){
			.account = history->sample.account,
			.channel = history->sample.channel,
			.chain = history->sample.live_chain,
			.key = 1,
			.declaration = {.modality = MODALITY_HASH_ONLY,
		                    .client_ref = slice_of(references[i]),
		                    .occurred_at_us = TIME_NONE,
		                    .hash_algorithm = HASH_SHA256},
			.content_bytes = -1,
			.arena = &arena,
		};
		pointers[i] = &items[i];
		expected[i] = model_event(&next);
	}
	arm(history);
	int result =
		register_items(history->sample.store, pointers, count, history->sample.now_us, NULL);
	if (settle(history, result, OK, &next))
		for (size_t i = 0; i < count; i++)
			assert_int_equal(items[i].result, expected[i]);
}

static void step_adjust(struct history *history)
{
	struct model next = history->model;
	struct credit_movement movement = {pick(-8, 8), "adjustment", "a reason"};
	struct credit_outcome outcome;
	if (movement.credits == 0)
		return;
	bool refused = movement.credits < 0 && next.balance + movement.credits < 0;
	model_credits(&next, movement.credits);
	arm(history);
	int result = store_move_credits(history->sample.store, slice_of(history->sample.account_id),
	                                &movement, history->sample.now_us, &outcome, NULL);
	settle(history, result, refused ? ERR_REFUSED : OK, &next);
}

static void model_add(struct history *history, struct model *next, int pack, bool automatic)
{
	int64_t net = pack_credits[pack] * 100;
	struct model_purchase *made = &next->purchases[next->purchase_count++];
	*made = (struct model_purchase){
		.credits = pack_credits[pack],
		.automatic = automatic,
		.charge_open = automatic,
		.created_us = history->sample.now_us,
		.tax_rate = next->tax_rate,
		.total = net + amount_tax(net, next->tax_rate),
	};
	memcpy(made->buyer, next->name, sizeof made->buyer);
}

static void step_create(struct history *history)
{
	struct model next = history->model;
	int pack = rand() % PACKS;
	char sale_id[ID_SIZE];
	model_add(history, &next, pack, false);
	arm(history);
	int result = store_create_purchase(history->sample.store, slice_of(history->sample.account_id),
	                                   slice_of(history->pack_ids[pack]), "stripe",
	                                   history->sample.now_us, sale_id, NULL);
	settle(history, result, next.on_sale[pack] ? OK : ERR_REFUSED, &next);
}

/* Finds the sale code of a purchase by its number. */
static void find_sale_id(struct history *history, int64_t number, char sale_id[ID_SIZE])
{
	struct db_connection *reader = db_take_reader(history->sample.store->db);
	struct db_query *query =
		db_query(reader, "SELECT sale_id FROM purchases WHERE account = $1 AND number = $2");
	db_bind_integer(query, history->sample.account);
	db_bind_integer(query, number);
	assert_true(db_step(query));
	struct slice text = db_text(query, 0);
	snprintf(sale_id, ID_SIZE, "%.*s", (int)text.size, text.data);
	assert_int_equal(db_end(query, NULL), OK);
	db_give(reader);
}

static void step_action(struct history *history)
{
	if (history->model.purchase_count == 0)
		return;
	struct model next = history->model;
	int64_t number = pick(1, next.purchase_count);
	struct model_purchase *purchase = &next.purchases[number - 1];
	static const enum purchase_action acts[] = {PURCHASE_PAY, PURCHASE_PAY, PURCHASE_CANCEL,
	                                            PURCHASE_REFUND, PURCHASE_REVERT};
	struct purchase_order order = {.act = acts[rand() % 5], .reported = rand() % 2};
	if (order.act == PURCHASE_CANCEL)
		order.reported = false;
	char sale_id[ID_SIZE];
	char reference[32];
	find_sale_id(history, number, sale_id);
	snprintf(reference, sizeof reference, "pi_%lld", (long long)number);
	order.sale_id = slice_of(sale_id);
	order.reference = order.reported ? reference : NULL;
	order.amount_minor = purchase->total - (order.reported && rand() % 8 == 0);
	order.currency = slice_of("EUR");
	struct purchase_step step = purchase_step(purchase->state, order.act, order.reported);
	bool busy = !order.reported && step.to != purchase->state &&
	            (purchase->charge_open || purchase->refund_open);
	bool short_paid = order.reported && order.act == PURCHASE_PAY && step.credits > 0 &&
	                  order.amount_minor < purchase->total;
	bool part = order.reported && order.act != PURCHASE_PAY && step.to != purchase->state &&
	            order.amount_minor < purchase->total;
	bool refused = !step.allowed || busy || short_paid || part;
	if (!refused) {
		model_state(&next, number, step.to);
		if (purchase->state != PURCHASE_PENDING)
			purchase->charge_open = false;
		if (purchase->state == PURCHASE_REFUNDED || purchase->state == PURCHASE_REVERTED)
			purchase->refund_open = false;
	}
	arm(history);
	struct purchase_outcome outcome;
	int result = store_change_purchase(history->sample.store, &order, history->sample.now_us,
	                                   &outcome, NULL);
	if (settle(history, result, refused ? ERR_REFUSED : OK, &next) && !result) {
		assert_int_equal(outcome.balance, next.balance);
		assert_int_equal(outcome.unpaid_events, next.unpaid);
	}
}

static void step_ask_for_refund(struct history *history)
{
	if (history->model.purchase_count == 0)
		return;
	struct model next = history->model;
	int64_t number = pick(1, next.purchase_count);
	struct model_purchase *purchase = &next.purchases[number - 1];
	char sale_id[ID_SIZE];
	find_sale_id(history, number, sale_id);
	bool refused = purchase->state != PURCHASE_PAID;
	if (!purchase->refund_open)
		purchase->holder[0] = '\0';
	purchase->refund_open = true;
	arm(history);
	int result = store_request_refund(history->sample.store, slice_of(sale_id),
	                                  history->sample.now_us, NULL);
	settle(history, result, refused ? ERR_REFUSED : OK, &next);
}

/* ---- top-up ---- */

static void step_decide(struct history *history)
{
	struct model next = history->model;
	int64_t today = 0;
	char day[PERIOD_KEY_SIZE], other[PERIOD_KEY_SIZE];
	period_key(PERIOD_DAY, history->sample.now_us, day);
	for (int64_t i = 0; i < next.purchase_count; i++) {
		const struct model_purchase *purchase = &next.purchases[i];
		period_key(PERIOD_DAY, purchase->created_us, other);
		today +=
			purchase->automatic && purchase->state != PURCHASE_REJECTED && strcmp(day, other) == 0;
	}
	bool due = next.topup_on && !next.topup_purchase && next.balance < TOPUP_THRESHOLD;
	bool good = !next.suspended && next.method && next.country && next.on_sale[next.topup_pack] &&
	            today < DAILY_MAX;
	int64_t found = -1;
	assert_int_equal(store_next_due_topup(history->sample.store, 0, &found, NULL), OK);
	assert_int_equal(found, due ? history->sample.account : 0);
	if (due && good) {
		model_add(history, &next, next.topup_pack, true);
		next.topup_purchase = next.purchase_count;
	} else if (due) {
		next.topup_on = false;
		next.notices[NOTICE_RECHARGE_FAILED]++;
	}
	arm(history);
	enum topup_action action;
	int result = store_run_topup(history->sample.store, history->sample.account, "stripe",
	                             history->sample.now_us, &action, NULL);
	if (settle(history, result, OK, &next))
		assert_int_equal(action, !due ? TOPUP_NOTHING : good ? TOPUP_BUY : TOPUP_FAIL);
}

static void step_switch(struct history *history)
{
	struct model next = history->model;
	bool on = rand() % 4 != 0;
	next.topup_on = on;
	arm(history);
	int result =
		store_switch_topup(history->sample.store, slice_of(history->sample.account_id), on, NULL);
	settle(history, result, !on || next.on_sale[next.topup_pack] ? OK : ERR_REFUSED, &next);
}

static void step_set(struct history *history)
{
	struct model next = history->model;
	next.topup_on = true;
	next.topup_pack = rand() % PACKS;
	arm(history);
	int result = store_set_topup(history->sample.store, slice_of(history->sample.account_id),
	                             slice_of(history->pack_ids[next.topup_pack]), TOPUP_THRESHOLD,
	                             DAILY_MAX, NULL);
	settle(history, result, next.on_sale[next.topup_pack] ? OK : ERR_REFUSED, &next);
}

static void step_withdraw(struct history *history)
{
	struct model next = history->model;
	int pack = rand() % PACKS;
	bool withdrawn = rand() % 3 == 0;
	next.on_sale[pack] = !withdrawn;
	if (withdrawn && pack == PACK_CUSTOM && next.topup_on && next.topup_pack == pack) {
		next.topup_on = false;
		next.notices[NOTICE_RECHARGE_FAILED]++;
	}
	int64_t off;
	arm(history);
	int result = store_withdraw_pack(history->sample.store, slice_of(history->pack_ids[pack]),
	                                 withdrawn, history->sample.now_us, &off, NULL);
	settle(history, result, OK, &next);
}

static void step_account(struct history *history)
{
	struct model next = history->model;
	struct account_change change = ACCOUNT_UNCHANGED;
	change.suspended = next.suspended = rand() % 4 == 0;
	snprintf(next.name, sizeof next.name, "Name %d", rand() % 100);
	change.name = next.name;
	arm(history);
	int result = store_change_account(history->sample.store, slice_of(history->sample.account_id),
	                                  &change, history->sample.now_us, NULL);
	settle(history, result, OK, &next);
	next = history->model;
	next.method = rand() % 5 != 0;
	next.country = rand() % 5 != 0;
	next.tax_rate = pick(0, TAX_RATE_MAX);
	struct billing_change billing = {.country = next.country ? "ES" : "",
	                                 .tax_rate = next.tax_rate,
	                                 .payment_method = next.method ? "pm_1" : ""};
	arm(history);
	result = store_change_billing(history->sample.store, slice_of(history->sample.account_id),
	                              &billing, NULL);
	settle(history, result, OK, &next);
}

/* ---- payments ---- */

static struct model_purchase *leased_by(struct history *history, struct model *model,
                                        const char *holder)
{
	struct db_connection *reader = db_take_reader(history->sample.store->db);
	struct db_query *query =
		db_query(reader, "SELECT purchase FROM payments WHERE account = $1 AND lease = $2");
	db_bind_integer(query, history->sample.account);
	db_bind_string(query, holder);
	int64_t number = db_step(query) ? db_integer(query, 0) : 0;
	assert_int_equal(db_end(query, NULL), OK);
	db_give(reader);
	return number ? &model->purchases[number - 1] : NULL;
}

static void step_claim(struct history *history)
{
	if (history->held_count == HELD_MAX)
		return;
	bool open = false;
	for (int64_t i = 0; i < history->model.purchase_count; i++)
		open |= history->model.purchases[i].charge_open || history->model.purchases[i].refund_open;
	struct held *held = &history->held[history->held_count];
	snprintf(held->holder, sizeof held->holder, "h%lld", (long long)++history->holders);
	arm(history);
	int result =
		store_claim_payment(history->sample.store, held->holder, "stripe", history->sample.now_us,
	                        LEASE_US, &history->arena, &held->payment, NULL);
	if (fault_take()) {
		assert_int_not_equal(result, OK);
		if (result == ERR_UNKNOWN_OUTCOME)
			reopen(history);
	} else if (result) {
		assert_int_equal(result, ERR_NOT_FOUND);
		return;
	} else {
		assert_true(open);
		history->held_count++;
	}
	struct model_purchase *purchase = leased_by(history, &history->model, held->holder);
	assert_true(result || purchase);
	if (purchase)
		memcpy(purchase->holder, held->holder, sizeof held->holder);
}

static struct held take_held(struct history *history)
{
	int at = rand() % history->held_count;
	struct held held = history->held[at];
	history->held[at] = history->held[--history->held_count];
	return held;
}

static bool still_holds(const struct model_purchase *purchase, const struct held *held)
{
	bool open =
		held->payment.action == PAYMENT_CHARGE ? purchase->charge_open : purchase->refund_open;
	return open && strcmp(purchase->holder, held->holder) == 0;
}

static void step_delay(struct history *history)
{
	if (history->held_count == 0)
		return;
	struct held held = take_held(history);
	struct model next = history->model;
	struct model_purchase *purchase = &next.purchases[held.payment.purchase - 1];
	bool holds = still_holds(purchase, &held);
	if (holds)
		purchase->holder[0] = '\0';
	struct payment_delay delay = {.next_us = history->sample.now_us + US_PER_SECOND,
	                              .waiting = rand() % 2};
	arm(history);
	int result =
		store_delay_payment(history->sample.store, &held.payment, held.holder, &delay, NULL);
	settle(history, result, holds ? OK : ERR_REFUSED, &next);
}

static void step_end(struct history *history)
{
	if (history->held_count == 0)
		return;
	struct held held = take_held(history);
	struct model next = history->model;
	int64_t number = held.payment.purchase;
	struct model_purchase *purchase = &next.purchases[number - 1];
	bool charge = held.payment.action == PAYMENT_CHARGE;
	bool holds = still_holds(purchase, &held);
	struct payment_ended ended = {.end = (enum payment_end)pick(0, 3), .outcome = "random"};
	if (!holds) {
		/* Another node has it, or it has ended. */
	} else if (charge) {
		purchase->charge_open = false;
		if (ended.end == PAYMENT_END_DONE) {
			model_state(&next, number, PURCHASE_PAID);
		} else if (ended.end == PAYMENT_END_DECLINED) {
			model_topup_ends(&next, number, false);
		} else {
			model_topup_ends(&next, number, false);
			purchase->state = PURCHASE_REJECTED;
		}
	} else {
		purchase->refund_open = false;
		if (ended.end == PAYMENT_END_DONE)
			model_state(&next, number, PURCHASE_REFUNDED);
	}
	arm(history);
	struct purchase_outcome outcome;
	int result = store_end_payment(history->sample.store, &held.payment, held.holder, &ended,
	                               history->sample.now_us, &outcome, NULL);
	settle(history, result, holds ? OK : ERR_REFUSED, &next);
}

/* ---- comparing ---- */

static int64_t number_of(struct db_connection *reader, const char *literal_sql, int64_t account,
                         const char *text)
{
	struct db_query *query = db_query(reader, literal_sql);
	db_bind_integer(query, account);
	db_bind_string(query, text);
	int64_t number = db_step(query) ? db_integer(query, 0) : -1;
	assert_int_equal(db_end(query, NULL), OK);
	return number;
}

static void print_problem(void *context, const char *text)
{
	print_error("seed %u: %s\n", seed, text);
}

/* A receipt states the facts of the sale at its creation, whatever changed later. */
static void compare_records(struct history *history)
{
	char sale_id[ID_SIZE];
	for (int64_t i = 0; i < history->model.purchase_count; i++) {
		const struct model_purchase *expected = &history->model.purchases[i];
		struct purchase_record found;
		find_sale_id(history, i + 1, sale_id);
		assert_int_equal(store_find_purchase(history->sample.store, slice_of(sale_id),
		                                     &history->arena, &found, NULL),
		                 OK);
		assert_int_equal(found.tax_rate, expected->tax_rate);
		assert_int_equal(found.tax_minor, amount_tax(found.amount_minor, found.tax_rate));
		assert_string_equal(found.account_name, expected->buyer);
	}
}

static void compare(struct history *history, bool whole)
{
	const struct model *model = &history->model;
	int64_t account = history->sample.account;
	struct balance balance;
	assert_int_equal(store_get_balance(history->sample.store, account, &balance, NULL), OK);
	assert_int_equal(balance.balance, model->balance);
	assert_int_equal(balance.unpaid_events, model->unpaid);
	struct db_connection *reader = db_take_reader(history->sample.store->db);
	assert_int_equal(number_of(reader,
	                           "SELECT COALESCE(SUM(credits), 0) FROM credit_entries"
	                           " WHERE account = $1 AND $2 <> '-'",
	                           account, ""),
	                 model->balance);
	for (int type = 0; type < NOTICE_TYPES; type++)
		assert_int_equal(number_of(reader,
		                           "SELECT COUNT(*) FROM notices WHERE account = $1"
		                           " AND type = $2",
		                           account, notice_type_text((enum notice_type)type)),
		                 model->notices[type]);
	assert_int_equal(number_of(reader,
	                           "SELECT COUNT(*) FROM purchases WHERE account = $1"
	                           " AND $2 <> '-'",
	                           account, ""),
	                 model->purchase_count);
	for (int state = 0; state < 6; state++) {
		int64_t count = 0;
		for (int64_t i = 0; i < model->purchase_count; i++)
			count += model->purchases[i].state == (enum purchase_state)state;
		assert_int_equal(number_of(reader,
		                           "SELECT COUNT(*) FROM purchases WHERE account = $1"
		                           " AND state = $2",
		                           account, purchase_state_text((enum purchase_state)state)),
		                 count);
	}
	db_give(reader);
	if (!whole)
		return;
	compare_records(history);
	struct check_listener listener = {.problem = print_problem};
	struct check_report report;
	assert_int_equal(store_check(history->sample.store, &listener, &report, NULL), OK);
	assert_int_equal(report.events, model->events);
	atomic_bool stopping = false;
	int64_t unbalanced = -1;
	assert_int_equal(store_count_unbalanced(history->sample.store, &stopping, &unbalanced, NULL),
	                 OK);
	assert_int_equal(unbalanced, 0);
}

/* ---- histories ---- */

static void make_packs(struct history *history)
{
	for (int i = 0; i < PACKS; i++) {
		struct pack_record pack = {.name = "Pack",
		                           .credits = pack_credits[i],
		                           .amount_minor = pack_credits[i] * 100,
		                           .currency = CURRENCY_EUR};
		if (i == PACK_CUSTOM)
			memcpy(pack.account_id, history->sample.account_id, ID_SIZE);
		assert_int_equal(
			store_create_pack(history->sample.store, &pack, START, history->pack_ids[i], NULL), OK);
		history->model.on_sale[i] = true;
	}
}

static void begin(struct history *history)
{
	char id[ID_SIZE];
	memset(history, 0, sizeof *history);
	arena_init(&history->arena, (size_t)64 << 20);
	sample_create_directory(&history->sample);
	if (server_url)
		sample_create_schema(&history->sample, server_url);
	struct db_options options = {.url = history->sample.url, .create = true};
	assert_int_equal(store_open(&options, &history->sample.store, NULL), OK);
	history->sample.now_us = START;
	history->sample.unpaid_limit = UNPAID_LIMIT;
	sample_fill(&history->sample, history->sample.store, MODALITY_HASH_ONLY, 0);
	for (int i = 0; i < THRESHOLDS; i++)
		assert_int_equal(store_create_threshold(history->sample.store,
		                                        slice_of(history->sample.account_id), thresholds[i],
		                                        id, NULL),
		                 OK);
	for (int i = 0; i < LIMITS; i++)
		assert_int_equal(store_create_limit(history->sample.store,
		                                    slice_of(history->sample.channel_id), slice_of(""),
		                                    PERIOD_DAY, limits[i].max, limits[i].block, START, id,
		                                    NULL),
		                 OK);
	make_packs(history);
	struct billing_change billing = {.country = "ES", .tax_rate = 2100, .payment_method = "pm_1"};
	assert_int_equal(store_change_billing(history->sample.store,
	                                      slice_of(history->sample.account_id), &billing, NULL),
	                 OK);
	assert_int_equal(store_set_topup(history->sample.store, slice_of(history->sample.account_id),
	                                 slice_of(history->pack_ids[0]), TOPUP_THRESHOLD, DAILY_MAX,
	                                 NULL),
	                 OK);
	history->model.method = history->model.country = history->model.topup_on = true;
	history->model.tax_rate = 2100;
	struct account_change change = ACCOUNT_UNCHANGED;
	change.name = strcpy(history->model.name, "Name");
	assert_int_equal(store_change_account(history->sample.store,
	                                      slice_of(history->sample.account_id), &change, START,
	                                      NULL),
	                 OK);
}

static void end_history(struct history *history)
{
	store_close(history->sample.store);
	arena_free(&history->arena);
	sample_remove_directory(&history->sample);
}

static void (*const steps[])(struct history *) = {
	step_register, step_register,       step_register, step_register, step_register, step_register,
	step_adjust,   step_create,         step_action,   step_action,   step_action,   step_decide,
	step_decide,   step_decide,         step_claim,    step_claim,    step_claim,    step_end,
	step_end,      step_delay,          step_switch,   step_switch,   step_set,      step_withdraw,
	step_account,  step_ask_for_refund,
};

TEST_CASE(credits_are_conserved_and_notices_come_once)
{
	int64_t notices[NOTICE_TYPES] = {0};
	int faults = 0;
	for (int i = 0; i < HISTORIES; i++) {
		static struct history history;
		begin(&history);
		for (int step = 1; step <= STEPS; step++) {
			history.sample.now_us +=
				rand() % 3 ? pick(0, 20) * US_PER_SECOND : pick(0, 5) * 3600 * US_PER_SECOND;
			steps[rand() % (int)(sizeof steps / sizeof *steps)](&history);
			compare(&history, step % 65 == 0);
		}
		for (int type = 0; type < NOTICE_TYPES; type++)
			notices[type] += history.model.notices[type];
		faults += history.faults;
		end_history(&history);
	}
	/* Otherwise the histories would prove little. */
	for (int type = NOTICE_BALANCE_LOW; type <= NOTICE_RECHARGE_FAILED; type++) {
		print_message("%s: %lld\n", notice_type_text((enum notice_type)type),
		              (long long)notices[type]);
		assert_true(notices[type] > 0);
	}
	print_message("faults: %d\n", faults);
	assert_true(faults > HISTORIES * STEPS / 20);
}

int main(int count, char **arguments)
{
	seed = count > 1 ? (unsigned)strtoul(arguments[1], NULL, 10) : (unsigned)time(NULL);
	server_url = count > 2 ? arguments[2] : NULL;
	print_message("seed %u\n", seed);
	srand(seed);
	return tests_run(NULL, NULL, NULL, NULL);
}
