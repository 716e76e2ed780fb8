/* Operations on the history of an account's credits by UTC day. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "admin/admin_call.h"
#include "base/clock.h"
#include "ledger/purchase_rules.h"
#include "store/usage/totals.h"

static void put_time(struct json_writer *out, const struct member *member, int64_t time_us)
{
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)(strlen(member->name) - strlen("_us")), member->name);
	json_time(out, name, time_us);
}

void admin_put(struct json_writer *out, const void *record, const struct member *members)
{
	for (const struct member *member = members; member->name; member++) {
		const char *at = (const char *)record + member->offset;
		if (member->kind == MEMBER_CHARACTERS)
			json_text(out, member->name, at);
		else if (member->kind == MEMBER_STRING)
			json_text(out, member->name, *(const char *const *)at);
		else if (member->kind == MEMBER_BOOL)
			json_boolean(out, member->name, *(const bool *)at);
		else if (member->kind == MEMBER_INT)
			json_integer(out, member->name, *(const int *)at);
		else if (member_is_time(member))
			put_time(out, member, *(const int64_t *)at);
		else
			json_integer(out, member->name, *(const int64_t *)at);
	}
}

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

/* Moves the first day to the one after "after". */
static int skip_to_after(const struct admin_call *call, struct days *days, struct error *error)
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

static int run_credits(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct days days;
	struct balance_list list = {0};
	int result = read_days(call, &days, error)
		?: skip_to_after(call, &days, error)
		?: store_list_balances(call->admin->store, &days, call->now_us,
		                       admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->arena, &list,
		                       error);
	if (result)
		return result;
	list_begin(out);
	for (size_t i = 0; i < list.count; i++) {
		const struct balance_day *day = &list.items[i];
		json_begin_object(out, NULL);
		admin_day(out, "day", day->day);
		ADMIN_PUT(out, day, balance, unpaid_events, events, settlements, purchases, returns, fees,
		          fee_refunds, adjustments);
		json_end_object(out);
	}
	list_end(out, list.more);
	return OK;
}

#define ACCOUNT ADMIN_FLAG_ID("account", "ACCOUNT", true, "the account")
#define AFTER_DAY ADMIN_FLAG_ID("after", "DAY", false, "start after this day, YYYY-MM-DD")
const struct admin_operation admin_totals_operations[] = {
	{.name = "credits history",
     .summary = "list an account's balance at the end of each UTC day and its movements",
     .columns = "day balance unpaid_events events settlements purchases returns fees fee_refunds "
                "adjustments",
     .csv = "day balance unpaid_events events settlements purchases returns fees fee_refunds "
            "adjustments",
     .parameters = {ACCOUNT, ADMIN_FLAG_DAYS, ADMIN_FLAG_CSV, ADMIN_LIST_LIMIT, AFTER_DAY},
     .run = run_credits},
	{0},
};
