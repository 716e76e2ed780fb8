/* The overview of an account: one document for the start page of its console. */
#include <stdlib.h>

#include "admin/admin_call.h"
#include "base/clock.h"
#include "store/accounts/accounts.h"
#include "store/money/topup.h"
#include "store/notices/webhooks.h"
#include "store/usage/overview.h"
#include "store/usage/totals.h"

#define PACE_DAYS 14 /* whole days before today */
#define LIMITS_READ 200
#define LIMITS_SHOWN 10

struct overview {
	const struct admin_call *call;
	struct slice account_id;
	struct account_record account;
	struct account_activity *activity;
	struct balance_list balances; /* of the days shown, from the creation of the account */
	struct days days;
};

/* ---- state ---- */

static bool registers(const struct account_record *account)
{
	return !account->disabled && !account->suspended &&
	       (account->balance > 0 || account->unpaid_events < account->unpaid_limit);
}

static void state_members(const struct overview *overview, struct json_writer *out)
{
	const struct account_record *account = &overview->account;
	ADMIN_PUT(out, account, account_id, name, balance, unpaid_events, unpaid_limit);
	json_boolean(out, "operational", account->balance >= 0 && account->unpaid_events == 0);
	json_boolean(out, "registers", registers(account));
	const struct {
		bool holds;
		const char *reason;
	} reasons[] = {
		{account->disabled, "disabled"},
		{account->suspended, "suspended"},
		{account->balance < 0, "negative_balance"},
		{account->balance == 0, "no_credits"},
		{account->unpaid_events > 0, "unpaid_events"},
		{account->balance <= 0 && account->unpaid_events >= account->unpaid_limit,
	     "unpaid_limit_reached"},
	};
	json_begin_array(out, "reasons");
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (reasons[i].holds)
			json_text(out, NULL, reasons[i].reason);
	json_end_array(out);
}

/* ---- days ---- */

static void event_members(const struct overview *overview, struct json_writer *out)
{
	const struct account_activity *activity = overview->activity;
	json_begin_object(out, "events");
	admin_day(out, "first_day", activity->first_day);
	json_integer(out, "days", OVERVIEW_DAYS);
	json_integer(out, "total", activity->events);
	json_integer(out, "today", activity->events_today);
	json_integer(out, "test_today", activity->test_events_today);
	json_begin_array(out, "channels");
	for (size_t i = 0; i < activity->channel_count; i++) {
		const struct overview_channel *channel = &activity->channels[i];
		json_begin_object(out, NULL);
		ADMIN_PUT(out, channel, channel_id, name, total);
		json_integer(out, "today", channel->counts[OVERVIEW_DAYS - 1]);
		json_begin_array(out, "counts");
		for (size_t day = 0; day < OVERVIEW_DAYS; day++)
			json_integer(out, NULL, channel->counts[day]);
		json_end_array(out);
		json_end_object(out);
	}
	json_end_array(out);
	json_end_object(out);
}

/* Extrapolates the usage of the last whole days. */
static void forecast_members(const struct overview *overview, struct json_writer *out)
{
	const struct balance_list *list = &overview->balances;
	size_t whole = list->count ? list->count - 1 : 0; /* excluding today */
	size_t days = whole < PACE_DAYS ? whole : PACE_DAYS;
	int64_t used = 0;
	for (size_t i = whole - days; i < whole; i++)
		used -= list->items[i].events + list->items[i].settlements + list->items[i].fees +
		        list->items[i].fee_refunds;
	int64_t left = ledger_days_left(overview->account.balance, used, (int64_t)days);
	json_begin_object(out, "forecast");
	json_integer(out, "days", (int64_t)days);
	json_integer(out, "used", used);
	if (left >= 0) {
		json_integer(out, "days_left", left);
		admin_day(out, "runs_out_on", time_day(overview->call->now_us) + left);
	} else {
		json_null(out, "days_left");
		json_null(out, "runs_out_on");
	}
	json_end_object(out);
}

static void credit_members(const struct overview *overview, struct json_writer *out)
{
	const struct balance_list *list = &overview->balances;
	json_begin_object(out, "credits");
	admin_day(out, "first_day",
	          list->count ? list->items[0].day : time_day(overview->call->now_us));
	json_begin_array(out, "balances");
	for (size_t i = 0; i < list->count; i++)
		json_integer(out, NULL, list->items[i].balance);
	json_end_array(out);
	forecast_members(overview, out);
	json_end_object(out);
}

/* ---- pending work ---- */

static void pending_members(const struct overview *overview, struct json_writer *out)
{
	const struct account_activity *activity = overview->activity;
	int64_t since_us = activity->oldest_pending_at_us;
	json_integer(out, "pending_events", activity->pending_events);
	json_time(out, "oldest_pending_at", since_us);
	if (since_us == TIME_NONE)
		json_null(out, "oldest_pending_seconds");
	else
		json_integer(out, "oldest_pending_seconds",
		             since_us < overview->call->now_us
		                 ? (overview->call->now_us - since_us) / US_PER_SECOND
		                 : 0);
	json_integer(out, "certifications_processing", activity->certifying);
	json_begin_array(out, "certifications");
	for (size_t i = 0; i < activity->certification_count; i++) {
		const struct overview_certification *item = &activity->certifications[i];
		json_begin_object(out, NULL);
		ADMIN_PUT(out, item, certification_id, channel_id, requested_at_us, progress_permille);
		json_end_object(out);
	}
	json_end_array(out);
}

/* ---- what requires attention ---- */

/* Writes the endpoints that are disabled, or whose retries were exhausted since the last
 * delivery. */
static int endpoint_members(const struct overview *overview, struct json_writer *out,
                            struct error *error)
{
	struct webhook_list list = {0};
	int result =
		store_list_webhooks(overview->call->admin->store, overview->account_id, slice_of(""),
	                        WEBHOOKS_MAX, overview->call->arena, &list, error);
	if (result)
		return result;
	json_integer(out, "endpoints", (int64_t)list.count);
	json_begin_array(out, "endpoints_in_trouble");
	for (size_t i = 0; i < list.count; i++) {
		const struct webhook_record *item = &list.items[i];
		bool enabled = item->disabled_at_us == TIME_NONE;
		if (enabled && item->failures == 0)
			continue;
		json_begin_object(out, NULL);
		ADMIN_PUT(out, item, endpoint_id, url);
		json_boolean(out, "enabled", enabled);
		ADMIN_PUT(out, item, disabled_by, disabled_at_us, failures, waiting);
		json_end_object(out);
	}
	json_end_array(out);
	return OK;
}

static int topup_members(const struct overview *overview, struct json_writer *out,
                         struct error *error)
{
	struct topup_record topup;
	int result = store_get_topup(overview->call->admin->store, overview->account_id,
	                             overview->call->now_us, overview->call->arena, &topup, error);
	if (result == ERR_NOT_FOUND) {
		json_null(out, "topup");
		return OK;
	}
	if (result)
		return result;
	json_begin_object(out, "topup");
	ADMIN_PUT(out, &topup, enabled, threshold, pack_id);
	json_text(out, "sale_id", *topup.sale_id ? topup.sale_id : NULL);
	ADMIN_PUT(out, &topup, failed_at_us, reason);
	json_end_object(out);
	return OK;
}

/* Sorts by usage, highest first. */
static int compare_limits(const void *left, const void *right)
{
	const struct limit_record *a = left, *b = right;
	__int128 first = (__int128)a->used * b->max_events, second = (__int128)b->used * a->max_events;
	if (first != second)
		return first > second ? -1 : 1;
	return strcmp(a->limit_id, b->limit_id);
}

static int limit_members(const struct overview *overview, struct json_writer *out,
                         struct error *error)
{
	struct limit_list list = {0};
	int result = store_list_limits(overview->call->admin->store, overview->account_id, slice_of(""),
	                               slice_of(""), LIMITS_READ, overview->call->now_us,
	                               overview->call->arena, &list, error);
	if (result)
		return result;
	if (list.count)
		qsort(list.items, list.count, sizeof *list.items, compare_limits);
	json_begin_array(out, "limits");
	for (size_t i = 0; i < list.count && i < LIMITS_SHOWN; i++) {
		const struct limit_record *item = &list.items[i];
		json_begin_object(out, NULL);
		ADMIN_PUT(out, item, limit_id, channel_id, channel_name);
		json_text(out, "key_id", *item->key_id ? item->key_id : NULL);
		ADMIN_PUT(out, item, key_name, key_last_four);
		json_text(out, "period", period_text(item->period));
		ADMIN_PUT(out, item, max_events, used);
		json_text(out, "action", item->block ? "block" : "warn");
		json_end_object(out);
	}
	json_end_array(out);
	json_boolean(out, "more_limits", list.more || list.count > LIMITS_SHOWN);
	return OK;
}

static int read_overview(struct overview *overview, struct error *error)
{
	const struct admin_call *call = overview->call;
	int64_t today = time_day(call->now_us);
	overview->account_id = admin_slice(call, "account");
	overview->days =
		(struct days){overview->account_id, today - OVERVIEW_DAYS + 1, INT64_MAX / US_PER_DAY};
	overview->activity = arena_alloc(call->arena, sizeof *overview->activity);
	if (!overview->activity)
		return ERR_NO_MEMORY;
	return store_find_account(call->admin->store, overview->account_id, call->now_us, call->arena,
	                          &overview->account, error)
		?: store_read_activity(call->admin->store, overview->account_id, call->now_us, call->arena,
		                       overview->activity, error)
		?: store_list_balances(call->admin->store, &overview->days, call->now_us, OVERVIEW_DAYS,
		                       call->arena, &overview->balances, error);
}

static int run_overview(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct overview overview = {.call = call};
	int result = read_overview(&overview, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	state_members(&overview, out);
	event_members(&overview, out);
	credit_members(&overview, out);
	pending_members(&overview, out);
	result = endpoint_members(&overview, out, error)
		?: topup_members(&overview, out, error)
		?: limit_members(&overview, out, error);
	json_time(out, "as_of", call->now_us);
	json_end_object(out);
	return result;
}

const struct admin_operation admin_overview_operations[] = {
	{.name = "account overview",
     .summary = "show the state of an account: credits, pending work and the last 90 days",
     .parameters = {ADMIN_POSITIONAL_ID("account", "ACCOUNT", "the account")},
     .run = run_overview},
	{0},
};
