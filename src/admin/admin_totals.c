/* Totals by day, from what the store keeps: balances, seals, deliveries of notices. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "admin/admin_call.h"
#include "base/clock.h"
#include "ledger/purchase.h"
#include "store/usage/totals.h"

void admin_amount(struct json_writer *out, const char *name, int64_t minor)
{
	char text[AMOUNT_TEXT_SIZE];
	amount_format(minor, text);
	json_text(out, name, text);
}

void admin_day(struct json_writer *out, const char *name, int64_t day)
{
	char text[PERIOD_KEY_SIZE];
	period_key(PERIOD_DAY, day * US_PER_DAY, text);
	json_text(out, name, text);
}

static int read_days(const struct admin_call *call, struct days *days, struct error *error)
{
	days->account_id = admin_slice(call, "account");
	return admin_days(call, &days->first_day, &days->last_day, error);
}

/* Moves the first day behind "after", which is a day. */
static int go_on_behind(const struct admin_call *call, struct days *days, struct error *error)
{
	char text[TIME_TEXT_SIZE];
	int64_t time_us;
	if (!admin_given(call, "after"))
		return OK;
	const char *after = admin_text(call, "after");
	snprintf(text, sizeof text, "%.10sT00:00:00Z", after);
	if (strlen(after) != ADMIN_DATE_SIZE || time_parse(slice_of(text), "after", &time_us, NULL))
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_DATE, FIELD("after"), after, NULL);
	if (time_day(time_us) >= days->first_day)
		days->first_day = time_day(time_us) + 1;
	return OK;
}

/* ---- credits ---- */

static int run_credits(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct days days;
	struct balance_list list = {0};
	int result = read_days(call, &days, error);
	if (!result)
		result = go_on_behind(call, &days, error);
	if (!result)
		result = store_list_balances(call->admin->store, &days, call->now_us,
		                             admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->arena,
		                             &list, error);
	if (result)
		return result;
	list_begin(out);
	for (size_t i = 0; i < list.count; i++) {
		const struct balance_day *day = &list.items[i];
		json_begin_object(out, NULL);
		admin_day(out, "day", day->day);
		json_integer(out, "balance", day->balance);
		json_integer(out, "unpaid_events", day->unpaid_events);
		json_integer(out, "events", day->events);
		json_integer(out, "settlements", day->settlements);
		json_integer(out, "purchases", day->purchases);
		json_integer(out, "returns", day->returns);
		json_integer(out, "fees", day->fees);
		json_integer(out, "fee_refunds", day->fee_refunds);
		json_integer(out, "adjustments", day->adjustments);
		json_end_object(out);
	}
	list_end(out, list.more);
	return OK;
}

/* ---- delays ---- */

static const char *const within[DELAY_BOUNDS] = {"within_1s",  "within_10s", "within_1m",
                                                 "within_10m", "within_1h",  "within_1d"};

/* Of `number` things. */
static void delay_members(struct json_writer *out, const struct delays *delays, int64_t number)
{
	int64_t longer = number;
	if (number)
		json_integer(out, "mean_delay_ms", delays->sum_ms / number);
	else
		json_null(out, "mean_delay_ms");
	if (number)
		json_integer(out, "longest_delay_ms", delays->longest_ms);
	else
		json_null(out, "longest_delay_ms");
	for (size_t i = 0; i < DELAY_BOUNDS; i++) {
		json_integer(out, within[i], delays->within[i]);
		longer -= delays->within[i];
	}
	json_integer(out, "over_1d", longer);
}

static int run_seals(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct days days;
	struct seal_list list = {0};
	int result = read_days(call, &days, error);
	if (!result)
		result = go_on_behind(call, &days, error);
	if (!result)
		result = store_list_seals(call->admin->store, &days,
		                          admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->arena,
		                          &list, error);
	if (result)
		return result;
	list_begin(out);
	for (size_t i = 0; i < list.count; i++) {
		json_begin_object(out, NULL);
		admin_day(out, "day", list.items[i].day);
		json_integer(out, "segments", list.items[i].segments);
		json_integer(out, "events", list.items[i].events);
		delay_members(out, &list.items[i].delays, list.items[i].events);
		json_end_object(out);
	}
	list_end(out, list.more);
	return OK;
}

/* ---- deliveries ---- */

#define ROW_SIZE 48 /* "DAY-ENDPOINT", in numbers */

static int read_row(const struct admin_call *call, struct days *days, int64_t *ret_endpoint,
                    struct error *error)
{
	*ret_endpoint = 0;
	if (!admin_given(call, "after"))
		return OK;
	long long day, endpoint;
	int size = 0;
	const char *after = admin_text(call, "after");
	if (strspn(after, "0123456789-") != strlen(after) || *after == '-' ||
	    sscanf(after, "%9lld-%18lld%n", &day, &endpoint, &size) != 2 || after[size] || endpoint < 0)
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_CURSOR, NULL);
	if (day >= days->first_day) {
		days->first_day = day;
		*ret_endpoint = endpoint;
	}
	return OK;
}

static void write_delivery_day(struct json_writer *out, const struct delivery_day *item)
{
	char row[ROW_SIZE];
	snprintf(row, sizeof row, "%" PRId64 "-%" PRId64, item->day, item->endpoint);
	json_begin_object(out, NULL);
	json_text(out, "row", row);
	admin_day(out, "day", item->day);
	json_text(out, "endpoint_id", item->endpoint_id);
	json_text(out, "url", item->url);
	json_integer(out, "attempts", item->attempts);
	json_integer(out, "delivered", item->delivered);
	json_integer(out, "failed", item->failed);
	delay_members(out, &item->delays, item->delivered);
	json_end_object(out);
}

static int run_deliveries(const struct admin_call *call, struct json_writer *out,
                          struct error *error)
{
	struct days days;
	struct delivery_day_list list = {0};
	int64_t after_endpoint;
	int result = read_days(call, &days, error);
	if (!result)
		result = read_row(call, &days, &after_endpoint, error);
	if (!result)
		result = store_list_delivery_days(
			call->admin->store, &days, admin_slice(call, "endpoint"), after_endpoint,
			admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->arena, &list, error);
	if (result)
		return result;
	list_begin(out);
	for (size_t i = 0; i < list.count; i++)
		write_delivery_day(out, &list.items[i]);
	list_end(out, list.more);
	return OK;
}

#define ACCOUNT ADMIN_FLAG_ID("account", "ACCOUNT", true, "of this account")
#define AFTER_DAY ADMIN_FLAG_ID("after", "DAY", false, "go on behind this day, YYYY-MM-DD")
#define DELAY_NAMES                                                                                \
	"mean_delay_ms longest_delay_ms within_1s within_10s within_1m within_10m within_1h "          \
	"within_1d over_1d"

const struct admin_operation admin_totals_operations[] = {
	{.name = "credits history",
     .summary = "tell an account's balance at the end of each UTC day, and what moved it",
     .columns = "day balance unpaid_events events settlements purchases returns fees fee_refunds "
                "adjustments",
     .csv = "day balance unpaid_events events settlements purchases returns fees fee_refunds "
            "adjustments",
     .parameters = {ACCOUNT, ADMIN_FLAG_DAYS, ADMIN_FLAG_CSV, ADMIN_LIST_LIMIT, AFTER_DAY},
     .run = run_credits},
	{.name = "segment totals",
     .summary = "tell what was sealed on each UTC day, and how long it waited for that at most",
     .columns = "day segments events mean_delay_ms longest_delay_ms",
     .csv = "day segments events " DELAY_NAMES,
     .parameters = {ACCOUNT, ADMIN_FLAG_DAYS, ADMIN_FLAG_CSV, ADMIN_LIST_LIMIT, AFTER_DAY},
     .run = run_seals},
	{.name = "webhook totals",
     .summary = "tell what was delivered to endpoints on each UTC day, and how long it took",
     .columns = "day endpoint_id attempts delivered failed mean_delay_ms longest_delay_ms",
     .csv = "row day endpoint_id url attempts delivered failed " DELAY_NAMES,
     .parameters = {ACCOUNT, ADMIN_FLAG_ID("endpoint", "WHK", false, "of this endpoint"),
                    ADMIN_FLAG_DAYS, ADMIN_FLAG_CSV, ADMIN_LIST_LIMIT,
                    ADMIN_FLAG_ID("after", "ROW", false,
                                  "go on behind this row, the last of the page before")},
     .run = run_deliveries},
	{0},
};
