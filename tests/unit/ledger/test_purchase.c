/* Amounts, currencies, regions, and what a purchase may become. */
#include "testing.h"
#include "ledger/purchase_rules.h"

/* ---- amounts ---- */

TEST_CASE(amounts_are_read)
{
	static const struct {
		const char *text;
		int64_t minor;
	} rows[] = {{"0", 0},
	            {"0.01", 1},
	            {"0.1", 10},
	            {"10", 1000},
	            {"10.5", 1050},
	            {"10.50", 1050},
	            {"499999.99", 49999999},
	            {"9.99", 999}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int64_t minor = -1;
		assert_true(amount_parse(slice_of(rows[i].text), AMOUNT_MAX, &minor));
		assert_int_equal(minor, rows[i].minor);
	}
}

TEST_CASE(other_texts_are_no_amounts)
{
	static const char *const rows[] = {"",
	                                   ".",
	                                   ".5",
	                                   "5.",
	                                   "-1",
	                                   "+1",
	                                   " 1",
	                                   "1 ",
	                                   "1,00",
	                                   "1.000",
	                                   "1.00.0",
	                                   "01",
	                                   "00",
	                                   "1e3",
	                                   "0x1",
	                                   "1.-1",
	                                   "1.a",
	                                   "1.0a",
	                                   "a",
	                                   "500000",
	                                   "1.0\n",
	                                   "1.\xd9\xa0",
	                                   "9999999999999999999999",
	                                   "18446744073709551616",
	                                   "1000000000000000.00",
	                                   "49999999.01"};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int64_t minor = -1;
		assert_false(amount_parse(slice_of(rows[i]), AMOUNT_MAX, &minor));
		assert_int_equal(minor, -1);
	}
	int64_t minor = -1;
	assert_false(amount_parse(slice_make("1\0", 2), AMOUNT_MAX, &minor));
}

TEST_CASE(an_amount_is_written_as_it_is_read)
{
	srand((unsigned)test_seed());
	for (int i = 0; i < 100000; i++) {
		int64_t minor = (((int64_t)rand() << 16) ^ rand()) % (AMOUNT_MAX + 1);
		int64_t again = -1;
		char text[AMOUNT_TEXT_SIZE];
		amount_format(minor, text);
		assert_true(amount_parse(slice_of(text), AMOUNT_MAX, &again));
		assert_int_equal(again, minor);
		assert_int_equal(text[strlen(text) - 3], '.');
	}
}

TEST_CASE(half_a_cent_of_tax_is_rounded_up)
{
	static const int64_t rows[][3] = {
		{1000, 2100, 210}, {999, 2100, 210}, {1, 2100, 0}, {3, 2000, 1},
		{5, 1000, 1},      {4, 1000, 0},     {1000, 0, 0}, {AMOUNT_MAX, TAX_RATE_MAX, AMOUNT_MAX},
		{1050, 550, 58}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(amount_tax(rows[i][0], rows[i][1]), rows[i][2]);
	assert_true(AMOUNT_MAX + amount_tax(AMOUNT_MAX, TAX_RATE_MAX) <= AMOUNT_TOTAL_MAX);
}

/* Over amounts and rates: amount_tax gives the only tax that amount_is_taxed accepts. */
TEST_CASE(only_the_tax_of_a_rate_is_accepted)
{
	srand((unsigned)test_seed());
	for (int i = 0; i < 20000; i++) {
		int64_t net = i % 2 ? rand() % 2000 : rand() % (AMOUNT_MAX + 1);
		int64_t rate = rand() % (TAX_RATE_MAX + 1);
		int64_t tax = amount_tax(net, rate);
		assert_true(amount_is_taxed(net, rate, tax));
		assert_false(amount_is_taxed(net, rate, tax + 1) || amount_is_taxed(net, rate, tax - 1));
	}
	assert_false(amount_is_taxed(-1, 0, 0) || amount_is_taxed(AMOUNT_MAX + 1, 0, 0) ||
	             amount_is_taxed(1, -1, 0) || amount_is_taxed(1, TAX_RATE_MAX + 1, 1) ||
	             amount_is_taxed(INT64_MAX, INT64_MAX, INT64_MIN));
}

/* Successive partial refunds never take back more credits than were bought, and at most one credit
 * less per refund. A full refund takes back all. */
TEST_CASE(a_part_takes_its_part_of_the_credits)
{
	srand((unsigned)test_seed());
	for (int i = 0; i < 100000; i++) {
		int64_t total = 1 + rand() % AMOUNT_TOTAL_MAX;
		int64_t credits = ((int64_t)rand() << (rand() % 10)) ^ rand();
		int64_t left = total, taken = 0;
		int parts = 0;
		while (left > 0 && parts < 5) {
			int64_t part = 1 + rand() % left;
			int64_t lost = amount_credits_lost(credits, total, part);
			assert_true(lost >= 0 && (__int128)lost * total <= (__int128)credits * part);
			assert_true((__int128)(lost + 1) * total > (__int128)credits * part);
			assert_true(lost <= amount_credits_lost(credits, total, part + 1));
			taken += lost;
			left -= part;
			parts++;
		}
		assert_true(taken <= credits);
		assert_int_equal(amount_credits_lost(credits, total, total), credits);
		assert_int_equal(amount_credits_lost(credits, total, total + 1), credits);
		assert_int_equal(amount_credits_lost(credits, total, 0), 0);
		assert_int_equal(amount_credits_lost(credits, total, -1), 0);
	}
	assert_int_equal(amount_credits_lost(10, 1210, 605), 5);
	assert_int_equal(amount_credits_lost(10, 1210, 1209), 9);
	assert_int_equal(amount_credits_lost(1000, 999, 1), 1);
}

/* ---- regions ---- */

TEST_CASE(a_country_leads_to_a_currency)
{
	static const struct {
		const char *country;
		enum pricing_region region;
		const char *currency;
	} rows[] = {{"ES", REGION_EUROPE, "EUR"},         {"DE", REGION_EUROPE, "EUR"},
	            {"CH", REGION_EUROPE, "EUR"},         {"GB", REGION_UNITED_KINGDOM, "GBP"},
	            {"JE", REGION_UNITED_KINGDOM, "GBP"}, {"US", REGION_WORLD, "USD"},
	            {"MX", REGION_WORLD, "USD"},          {"JP", REGION_WORLD, "USD"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct slice country = slice_of(rows[i].country);
		assert_true(country_is_known(country));
		assert_int_equal(country_region(country), rows[i].region);
		assert_string_equal(currency_text(region_currency(rows[i].region)), rows[i].currency);
		enum pricing_region again;
		assert_true(region_parse(slice_of(region_text(rows[i].region)), &again));
		assert_int_equal(again, rows[i].region);
	}
	static const char *const unknown[] = {"",   "E",  "ESP", "es", "UK",
	                                      "EU", "XX", "A1",  "ZZ", "SE "};
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
		assert_false(country_is_known(slice_of(unknown[i])));
}

TEST_CASE(all_assigned_countries_are_known)
{
	int known = 0;
	for (char a = 'A'; a <= 'Z'; a++)
		for (char b = 'A'; b <= 'Z'; b++)
			known += country_is_known(slice_make((const char[]){a, b}, 2));
	assert_int_equal(known, 249);
}

TEST_CASE(currencies_have_names)
{
	enum currency currency = CURRENCY_GBP;
	assert_true(currency_parse(slice_of("USD"), &currency));
	assert_int_equal(currency, CURRENCY_USD);
	assert_false(currency_parse(slice_of("eur"), &currency));
	assert_false(currency_parse(slice_of("CHF"), &currency));
	assert_int_equal(currency, CURRENCY_USD);
}

/* ---- states ---- */

#define REFUSED                                                                                    \
	{                                                                                              \
		false, 0, 0                                                                                \
	}

/* Rows: the state before; columns: pay, cancel, reject, refund, revert. */
static const struct purchase_step by_operator[6][5] = {
	[PURCHASE_PENDING] = {{true, PURCHASE_PAID, 1},
                          {true, PURCHASE_CANCELED, 0},
                          {true, PURCHASE_REJECTED, 0},
                          REFUSED,
                          REFUSED},
	[PURCHASE_PAID] = {{true, PURCHASE_PAID, 0},
                       REFUSED,
                       REFUSED,
                       {true, PURCHASE_REFUNDED, -1},
                       {true, PURCHASE_REVERTED, -1}},
	[PURCHASE_CANCELED] = {REFUSED, {true, PURCHASE_CANCELED, 0}, REFUSED, REFUSED, REFUSED},
	[PURCHASE_REJECTED] = {REFUSED, REFUSED, REFUSED, REFUSED, REFUSED},
	[PURCHASE_REFUNDED] = {REFUSED, REFUSED, REFUSED, {true, PURCHASE_REFUNDED, 0}, REFUSED},
	[PURCHASE_REVERTED] = {REFUSED, REFUSED, REFUSED, REFUSED, {true, PURCHASE_REVERTED, 0}},
};

TEST_CASE(an_operator_is_held_to_the_table)
{
	for (int from = 0; from < 6; from++)
		for (int act = 0; act < 5; act++) {
			struct purchase_step step =
				purchase_step((enum purchase_state)from, (enum purchase_action)act, false);
			const struct purchase_step *wanted = &by_operator[from][act];
			assert_int_equal(step.allowed, wanted->allowed);
			assert_int_equal(step.to, wanted->allowed ? wanted->to : (unsigned)from);
			assert_int_equal(step.credits, wanted->credits);
		}
}

/* Notices in any order and any number lead to the same end state, and the credits of the steps are
 * those of that state. */
TEST_CASE(the_order_of_notices_does_not_matter)
{
	srand((unsigned)test_seed());
	for (int round = 0; round < 20000; round++) {
		bool paid = rand() % 4 != 0, back = paid && rand() % 2;
		enum purchase_state now = (enum purchase_state[]){PURCHASE_PENDING, PURCHASE_CANCELED,
		                                                  PURCHASE_REJECTED}[rand() % 3];
		enum purchase_state begin = now;
		bool told_paid = false, told_back = false;
		int credits = 0;
		while ((paid && !told_paid) || (back && !told_back) || rand() % 3) {
			enum purchase_action act = rand() % 2 && back ? PURCHASE_REVERT : PURCHASE_PAY;
			if (act == PURCHASE_PAY && !paid)
				break;
			struct purchase_step step = purchase_step(now, act, true);
			assert_true(step.allowed);
			now = step.to;
			credits += step.credits;
			assert_true(credits == 0 || credits == 1);
			told_paid |= act == PURCHASE_PAY;
			told_back |= act == PURCHASE_REVERT;
		}
		assert_int_equal(now, back ? PURCHASE_REVERTED : paid ? PURCHASE_PAID : begin);
		assert_int_equal(credits, now == PURCHASE_PAID);
	}
}

TEST_MAIN(NULL, NULL)
