/* A stored text that must have one of a few values but has another one since the store was damaged
 * is reported by every reader. It is not taken for another value, and the cause names it and its
 * owner. */
#include "testing.h"
#include "registering.h"
#include "sample.h"
#include "store/certifications/certifications.h"
#include "store/money/packs.h"
#include "store/money/purchases.h"
#include "store/money/topup.h"
#include "store/store_internal.h"

#define LEASE_US (30 * US_PER_SECOND)
#define KEY "a key's text"
#define PAGE 10

static struct sample sample;
static struct arena arena;
static struct error error;
static char key_id[ID_SIZE], limit_id[ID_SIZE], pack_id[ID_SIZE], certification_id[ID_SIZE];
static struct purchase_record purchase;
static int64_t references;

static struct slice account(void)
{
	return slice_of(sample.account_id);
}

static struct slice channel(void)
{
	return slice_of(sample.channel_id);
}

/* ---- the readers ---- */

static int find_key(void)
{
	struct key_identity key;
	struct sha256 hash = sha256_of(KEY, strlen(KEY));
	return store_find_key(sample.store, &hash, &key, &error);
}

static int list_keys(void)
{
	struct key_list list;
	return store_list_keys(sample.store, account(), channel(), slice_of(""), PAGE, &arena, &list,
	                       &error);
}

static int find_channel(void)
{
	struct channel_record record;
	return store_find_channel(sample.store, channel(), &arena, &record, &error);
}

static int list_channels(void)
{
	struct channel_list list;
	return store_list_channels(sample.store, account(), slice_of(""), PAGE, &arena, &list, &error);
}

static int configure(void)
{
	struct config_change change = {.name = "Another", .modality = -1};
	int64_t version;
	bool changed;
	return store_configure_channel(sample.store, channel(), &change, sample.now_us, &version,
	                               &changed, &error);
}

static int read_configs(void)
{
	struct channel found;
	return store_get_channel_versions(sample.store, sample.account, sample.channel, INT64_MAX,
	                                  INT64_MAX, &arena, &found, &error);
}

static int list_limits(void)
{
	struct limit_list list;
	return store_list_limits(sample.store, account(), channel(), slice_of(""), PAGE, sample.now_us,
	                         &arena, &list, &error);
}

static int register_one(void)
{
	struct registration item = {
		.account = sample.account,
		.channel = sample.channel,
		.chain = sample.live_chain,
		.key = 1,
		.declaration = {.modality = MODALITY_HASH_ONLY, .occurred_at_us = TIME_NONE},
		.content_bytes = -1,
		.arena = &arena};
	struct registration *items = &item;
	item.declaration.client_ref =
		slice_of(arena_printf(&arena, "another-%lld", (long long)++references));
	return register_items(sample.store, &items, 1, sample.now_us + references, &error);
}

static int find_certification(void)
{
	struct certification found;
	return store_find_certification(sample.store, sample.account, sample.live_chain,
	                                slice_of(certification_id), &arena, &found, &error);
}

static int list_certifications(void)
{
	struct certification *items;
	size_t count;
	bool more;
	struct list_page page = {ORDER_DESCENDING, 0, PAGE};
	return store_list_certifications(sample.store, sample.account, sample.live_chain, -1, &page,
	                                 &arena, &items, &count, &more, &error);
}

static int find_pack(void)
{
	struct pack_record record;
	return store_find_pack(sample.store, slice_of(pack_id), &arena, &record, &error);
}

static int list_packs(void)
{
	struct pack_list list;
	return store_list_packs(sample.store, slice_of(""), slice_of(""), PAGE, &arena, &list, &error);
}

static int buy(void)
{
	char sale_id[ID_SIZE];
	return store_create_purchase(sample.store, account(), slice_of(pack_id), "manual",
	                             sample.now_us, sale_id, &error);
}

static int find_purchase(void)
{
	struct purchase_record record;
	return store_find_purchase(sample.store, slice_of(purchase.sale_id), &arena, &record, &error);
}

static int list_purchases(void)
{
	struct purchase_list list;
	return store_list_purchases(sample.store, account(), -1, slice_of(""), PAGE, &arena, &list,
	                            &error);
}

static int change_purchase(void)
{
	struct purchase_order order = {.act = PURCHASE_PAY, .sale_id = slice_of(purchase.sale_id)};
	struct purchase_outcome outcome;
	return store_change_purchase(sample.store, &order, sample.now_us, &outcome, &error);
}

static int read_billing(void)
{
	struct billing billing;
	return store_get_billing(sample.store, account(), &arena, &billing, &error);
}

static int claim_payment(void)
{
	struct payment payment;
	return store_claim_payment(sample.store, "holder", "stripe", sample.now_us, LEASE_US, &arena,
	                           &payment, &error);
}

/* ---- an account that has one of each ---- */

static void request_certification(void)
{
	struct certification made = {
		.account = sample.account,
		.channel = sample.channel,
		.chain = sample.live_chain,
		.key = 1,
		.mode = MODE_LIVE,
		.requested_at_us = sample.now_us,
		.range = {.from_us = TIME_NONE, .to_us = TIME_NONE, .seq_from = 1, .seq_to = 1},
		.first_sequence = 1,
		.last_sequence = 1,
		.config_versions = "[1]",
	};
	memcpy(made.channel_id, sample.channel_id, ID_SIZE);
	assert_int_equal(store_accept_certification(sample.store, "SVC", 0, &made, &error), OK);
	memcpy(certification_id, made.certification_id, ID_SIZE);
}

static void begin_purchase(void)
{
	struct pack_record pack = {
		.name = "Pack", .credits = 10, .amount_minor = 1000, .currency = CURRENCY_USD};
	struct billing_change billing = {
		.region = "world", .country = "ES", .tax_rate = 2100, .payment_method = "pm_1"};
	enum topup_action action;
	struct purchase_list list;
	assert_int_equal(store_create_pack(sample.store, &pack, sample.now_us, pack_id, &error), OK);
	assert_int_equal(store_change_billing(sample.store, account(), &billing, &error), OK);
	assert_int_equal(store_set_topup(sample.store, account(), slice_of(pack_id), 5, 3, &error), OK);
	assert_int_equal(
		store_run_topup(sample.store, sample.account, "stripe", sample.now_us, &action, &error),
		OK);
	assert_int_equal(action, TOPUP_BUY);
	assert_int_equal(store_list_purchases(sample.store, account(), -1, slice_of(""), PAGE, &arena,
	                                      &list, &error),
	                 OK);
	assert_int_equal(list.count, 1);
	purchase = list.items[0];
}

static int set_up(void **state)
{
	arena_init(&arena, 16 << 20);
	sample_open(&sample, MODALITY_HASH_ONLY, 3);
	sample_register(&sample, MODE_LIVE, 1);
	sample_add_key(&sample, MODE_TEST, KEY, key_id);
	assert_int_equal(store_create_limit(sample.store, channel(), slice_of(""), PERIOD_MONTH, 1000,
	                                    true, sample.now_us, limit_id, &error),
	                 OK);
	request_certification();
	begin_purchase();
	return 0;
}

static int tear_down(void **state)
{
	sample_close(&sample);
	arena_free(&arena);
	return 0;
}

/* ---- damage ---- */

static const struct damage {
	const char *table, *column, *what;
	int (*read[4])(void);
} damages[] = {
	{"api_keys", "mode", "mode", {find_key, list_keys}},
	{"channel_configs", "modality", "modality", {find_key, find_channel, list_channels, configure}},
	{"channel_configs", "modality", "modality", {read_configs}},
	{"consumption_limits", "period", "period", {list_limits, register_one}},
	{"consumption_limits", "action", "action", {list_limits, register_one}},
	{"certifications", "status", "status", {find_certification, list_certifications}},
	{"certifications", "language", "language", {find_certification, list_certifications}},
	{"packs", "currency", "currency", {find_pack, list_packs, buy}},
	{"account_billing", "region", "region", {read_billing, buy}},
	{"purchases",
     "currency",
     "currency",
     {find_purchase, list_purchases, change_purchase, claim_payment}},
	{"purchases", "state", "state", {find_purchase, list_purchases, change_purchase}},
	{"payments", "action", "action", {claim_payment}},
	{"payments", "state", "state", {claim_payment}},
};

TEST_CASE(what_stands_for_nothing_is_told)
{
	char sql[200], expected[80];
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++)
		for (size_t k = 0; k < 4 && damages[i].read[k]; k++) {
			const struct damage *damage = &damages[i];
			(void)set_up(state);
			int whole = damage->read[k]();
			if (whole && whole != ERR_REFUSED)
				fail_msg("%s %s: %s", damage->table, damage->column, error_reason(&error, whole));
			(void)tear_down(state);
			(void)set_up(state);
			snprintf(sql, sizeof sql, "UPDATE %s SET %s = 'ni\303\261o'", damage->table,
			         damage->column);
			sample_change(&sample, sql);
			error_clear(&error);
			int result = damage->read[k]();
			snprintf(expected, sizeof expected, ": \"ni\303\261o\" is not a valid %s",
			         damage->what);
			if (result != ERR_CORRUPT || !strstr(error.cause, expected))
				fail_msg("%s %s, reader %zu: %d %s", damage->table, damage->column, k, result,
				         error.cause);
			(void)tear_down(state);
		}
}

/* The cause names the row and fits into a line. */
TEST_CASE(the_cause_says_where)
{
	char expected[120];
	(void)set_up(state);
	sample_change(&sample, "UPDATE api_keys SET mode = printf('%.*c', 1000, 'x')");
	assert_int_equal(list_keys(), ERR_CORRUPT);
	snprintf(expected, sizeof expected,
	         "%s: \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" is not a valid mode", key_id);
	assert_string_equal(error.cause, expected);
	sample_change(&sample, "UPDATE consumption_limits SET period = ''");
	assert_int_equal(register_one(), ERR_CORRUPT);
	snprintf(expected, sizeof expected, "%s: \"\" is not a valid period", limit_id);
	assert_string_equal(error.cause, expected);
	(void)tear_down(state);
}

/* An unreadable payment is reported, and the next one is claimed nevertheless. */
TEST_CASE(a_damaged_payment_keeps_no_other)
{
	struct payment payment;
	(void)set_up(state);
	sample_change(&sample,
	              "CREATE TABLE kept AS SELECT * FROM payments;"
	              "UPDATE payments SET action = 'give', next_try_at = next_try_at - 1;"
	              "UPDATE kept SET number = number + 1, idempotency_key = 'other', next_try_at = "
	              "next_try_at + 0; INSERT INTO payments SELECT * FROM kept");
	assert_int_equal(claim_payment(), ERR_CORRUPT);
	assert_int_equal(store_claim_payment(sample.store, "holder", "stripe", sample.now_us, LEASE_US,
	                                     &arena, &payment, &error),
	                 OK);
	assert_string_equal(payment.idempotency_key, "other");
	assert_int_equal(claim_payment(), OK); /* the holder's own payment, resumed */
	sample_change(&sample, "UPDATE payments SET state = 'over' WHERE action <> 'give'");
	assert_int_equal(claim_payment(), ERR_NOT_FOUND);
	sample.now_us += LEASE_US;
	assert_int_equal(claim_payment(), ERR_CORRUPT);
	(void)tear_down(state);
}

TEST_MAIN(NULL, NULL)
