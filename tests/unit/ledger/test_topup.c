/* When a top-up buys, what prevents it, and the exact text of its notices. */
#include "testing.h"
#include "base/json.h"
#include "ledger/topup_rules.h"

static const struct topup_facts due = {
	.enabled = true,
	.balance = 9,
	.threshold = 10,
	.pack_on_sale = true,
	.has_payment_method = true,
	.has_country = true,
	.daily_max = 3,
};

TEST_CASE(it_buys_below_the_threshold)
{
	enum recharge_reason reason;
	struct topup_facts facts = due;
	assert_int_equal(topup_decide(&facts, &reason), TOPUP_BUY);
	facts.balance = 10;
	assert_int_equal(topup_decide(&facts, &reason), TOPUP_NOTHING);
	facts.balance = -5;
	assert_int_equal(topup_decide(&facts, &reason), TOPUP_BUY);
	facts.bought_today = 2;
	assert_int_equal(topup_decide(&facts, &reason), TOPUP_BUY);
}

TEST_CASE(it_rests_while_it_must)
{
	enum recharge_reason reason;
	struct topup_facts off = due, busy = due, disabled = due;
	off.enabled = false;
	busy.under_way = true;
	disabled.account_disabled = true;
	disabled.account_suspended = true;
	assert_int_equal(topup_decide(&off, &reason), TOPUP_NOTHING);
	assert_int_equal(topup_decide(&busy, &reason), TOPUP_NOTHING);
	assert_int_equal(topup_decide(&disabled, &reason), TOPUP_NOTHING);
}

static void assert_reason(const struct topup_facts *facts, const char *wanted)
{
	enum recharge_reason reason;
	assert_int_equal(topup_decide(facts, &reason), TOPUP_FAIL);
	assert_string_equal(recharge_reason_text(reason), wanted);
}

TEST_CASE(each_cause_has_its_reason)
{
	struct topup_facts facts = due;
	facts.bought_today = 3;
	assert_reason(&facts, "daily_limit");
	facts.has_country = false;
	assert_reason(&facts, "pricing_country_required");
	facts.has_payment_method = false;
	assert_reason(&facts, "payment_method_missing");
	facts.pack_on_sale = false;
	assert_reason(&facts, "pack_unavailable");
	facts.pack_custom = true;
	assert_reason(&facts, "custom_pack_inactive");
	facts.account_suspended = true;
	assert_reason(&facts, "account_suspended");
	assert_string_equal(recharge_reason_text(RECHARGE_PAYMENT_FAILED), "payment_failed");
	assert_string_equal(recharge_reason_text(RECHARGE_SALE_CREATION_FAILED),
	                    "sale_creation_failed");
}

/* A decision to buy has no obstacle, and a failure has one; no other decision acts. */
TEST_CASE(decisions_follow_from_the_facts)
{
	srand((unsigned)test_seed());
	for (int i = 0; i < 200000; i++) {
		struct topup_facts facts = {
			.enabled = rand() % 4 != 0,
			.under_way = rand() % 4 == 0,
			.balance = rand() % 20 - 5,
			.threshold = rand() % 10 + 1,
			.account_suspended = rand() % 4 == 0,
			.account_disabled = rand() % 4 == 0,
			.pack_on_sale = rand() % 4 != 0,
			.pack_custom = rand() % 2,
			.has_payment_method = rand() % 4 != 0,
			.has_country = rand() % 4 != 0,
			.bought_today = rand() % 4,
			.daily_max = rand() % 3 + 1,
		};
		enum recharge_reason reason;
		enum topup_action action = topup_decide(&facts, &reason);
		bool wanted = facts.enabled && !facts.under_way && !facts.account_disabled &&
		              facts.balance < facts.threshold;
		bool possible = !facts.account_suspended && facts.pack_on_sale && facts.has_country &&
		                facts.has_payment_method && facts.bought_today < facts.daily_max;
		assert_int_equal(action, !wanted ? TOPUP_NOTHING : possible ? TOPUP_BUY : TOPUP_FAIL);
	}
}

/* ---- notices ---- */

static const struct recharge bought = {
	.sale_id = "sal_1",
	.pack_id = "pck_1",
	.credits = 500,
	.amount_minor = 1050,
	.currency = CURRENCY_GBP,
	.threshold = 10,
};

static void assert_data(const struct ledger_notice *notice, enum notice_type type,
                        const char *wanted)
{
	char text[1024];
	snprintf(text, sizeof text, "%.*s", (int)notice->data.size, notice->data.data);
	assert_int_equal(notice->type, type);
	assert_string_equal(text, wanted);
}

TEST_CASE(notices_tell_exactly)
{
	ARENA_AUTO struct arena arena = {.limit = 65536};
	struct ledger_notice notice;
	struct recharge never = bought;
	never.sale_id = NULL;
	assert_int_equal(recharge_completed(&bought, 507, &arena, &notice), OK);
	assert_data(&notice, NOTICE_RECHARGE_COMPLETED,
	            "{\"recharge_id\":\"sal_1\",\"pack_id\":\"pck_1\",\"credits\":500,"
	            "\"amount\":\"10.50\",\"currency\":\"GBP\",\"threshold\":10,\"balance\":507}");
	assert_int_equal(
		recharge_failed(&bought, RECHARGE_PAYMENT_FAILED, "https://pay/1", &arena, &notice), OK);
	assert_data(&notice, NOTICE_RECHARGE_FAILED,
	            "{\"recharge_id\":\"sal_1\",\"pack_id\":\"pck_1\",\"credits\":500,"
	            "\"amount\":\"10.50\",\"currency\":\"GBP\",\"threshold\":10,"
	            "\"reason\":\"payment_failed\",\"payment_url\":\"https://pay/1\","
	            "\"auto_recharge_disabled\":true}");
	assert_int_equal(recharge_failed(&never, RECHARGE_DAILY_LIMIT, "", &arena, &notice), OK);
	assert_data(&notice, NOTICE_RECHARGE_FAILED,
	            "{\"recharge_id\":null,\"pack_id\":\"pck_1\",\"credits\":null,\"amount\":null,"
	            "\"currency\":null,\"threshold\":10,\"reason\":\"daily_limit\","
	            "\"payment_url\":null,\"auto_recharge_disabled\":true}");
}

TEST_CASE(a_page_with_a_long_address_fits)
{
	ARENA_AUTO struct arena arena = {.limit = 65536};
	char url[2049];
	memset(url, '"', sizeof url - 1);
	url[sizeof url - 1] = '\0';
	struct ledger_notice notice;
	assert_int_equal(recharge_failed(&bought, RECHARGE_PAYMENT_FAILED, url, &arena, &notice), OK);
	struct json *json;
	assert_int_equal(json_parse(&arena, notice.data, NULL, &json, NULL), OK);
	struct slice text;
	assert_true(json_get_text(json, "payment_url", &text));
	assert_int_equal(text.size, sizeof url - 1);
}

TEST_MAIN(NULL, NULL)
