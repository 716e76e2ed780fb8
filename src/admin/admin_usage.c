/* The operation that lists the usage totals of the store. */
#include <stdio.h>

#include "admin/admin_call.h"
#include "base/clock.h"
#include "store/usage/usage.h"

#define MONTH_SIZE ADMIN_MONTH_SIZE
#define DATE_SIZE ADMIN_DATE_SIZE

static const struct {
	const char *name;
	unsigned by;
} dimensions[] = {
	{"account", USAGE_BY_ACCOUNT}, {"channel", USAGE_BY_CHANNEL}, {"key", USAGE_BY_KEY},
	{"day", USAGE_BY_DAY},         {"month", USAGE_BY_MONTH},
};

static int read_by(struct slice text, unsigned *ret_by, struct error *error)
{
	unsigned by = 0;
	bool known = true;
	for (const char *at = text.data, *end = text.data + text.size; known && at <= end;) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		struct slice word = slice_make(at, (size_t)((comma ? comma : end) - at));
		known = false;
		for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++) {
			if (!slice_is(word, dimensions[i].name))
				continue;
			by |= dimensions[i].by;
			known = true;
		}
		at += word.size + 1;
	}
	if (!known || (by & USAGE_BY_DAY && by & USAGE_BY_MONTH))
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_BY, text.data, NULL);
	*ret_by = by;
	return OK;
}

/* Parses the day "YYYY-MM-DD", or the first day of "YYYY-MM". */
static int read_day(const struct admin_call *call, const char *name, size_t size, int64_t *ret_day,
                    struct error *error)
{
	char text[TIME_TEXT_SIZE], label[FIELD_SIZE];
	const char *given = admin_text(call, name);
	int64_t time_us;
	snprintf(text, sizeof text, "%s%sT00:00:00Z", given, size == MONTH_SIZE ? "-01" : "");
	if (strlen(given) == size && !time_parse(slice_of(text), name, &time_us, NULL)) {
		*ret_day = time_day(time_us);
		return OK;
	}
	return error_set(error, ERR_USAGE,
	                 size == MONTH_SIZE ? MSG_ADMIN_BAD_MONTH : MSG_ADMIN_BAD_DATE,
	                 error_field(name, label), given, NULL);
}

int admin_days(const struct admin_call *call, int64_t *ret_first, int64_t *ret_last,
               struct error *error)
{
	bool from = admin_given(call, "from"), to = admin_given(call, "to");
	int64_t first = INT64_MIN, last = INT64_MAX;
	if (admin_given(call, "month")) {
		if (from || to)
			return error_set(error, ERR_USAGE, MSG_ADMIN_ONE_OF, FIELD("month"),
			                 from ? FIELD("from") : FIELD("to"), NULL);
		int64_t day;
		int result = read_day(call, "month", MONTH_SIZE, &day, error);
		if (!result)
			time_month_days(day * US_PER_DAY, ret_first, ret_last);
		return result;
	}
	int result = from ? read_day(call, "from", DATE_SIZE, &first, error) : OK;
	if (!result && to)
		result = read_day(call, "to", DATE_SIZE, &last, error);
	if (!result && first > last)
		result =
			error_set(error, ERR_USAGE, MSG_ADMIN_DATES_TURNED, FIELD("from"), FIELD("to"), NULL);
	if (!result) {
		*ret_first = first;
		*ret_last = last;
	}
	return result;
}

static int read_filter(const struct admin_call *call, struct usage_filter *filter,
                       struct error *error)
{
	*filter = (struct usage_filter){
		.account_id = admin_slice(call, "account"),
		.channel_id = admin_slice(call, "channel"),
		.key_id = admin_slice(call, "key"),
		.mode = -1,
		.by = USAGE_BY_CHANNEL | USAGE_BY_KEY,
	};
	enum mode mode;
	if (mode_parse(admin_slice(call, "mode"), &mode))
		filter->mode = mode;
	int result = OK;
	if (admin_given(call, "by"))
		result = read_by(admin_slice(call, "by"), &filter->by, error);
	return result ? result : admin_days(call, &filter->first_day, &filter->last_day, error);
}

static void write_row(struct json_writer *out, const struct usage_row *row)
{
	const struct usage_counts *counts = &row->counts;
	json_begin_object(out, NULL);
	json_text(out, "row", row->cursor);
	json_text(out, "period", *row->period ? row->period : NULL);
	ADMIN_PUT(out, row, account_id, account_name, channel_id, channel_name, key_id, key_name);
	json_text(out, "mode", mode_text(row->mode));
	ADMIN_PUT(out, counts, events, unpaid_events, content_bytes, certifications_requested,
	          certifications_completed, certifications_failed, events_certified, fees, refunds);
	json_integer(out, "credits", usage_credits(counts, row->mode));
	json_end_object(out);
}

static int run_usage(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct usage_filter filter;
	struct usage_list list;
	int result = read_filter(call, &filter, error);
	if (!result)
		result = store_list_usage(call->admin->store, &filter, admin_slice(call, "after"),
		                          admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->arena,
		                          &list, error);
	if (result)
		return result;
	list_begin(out);
	for (size_t i = 0; i < list.count; i++)
		write_row(out, &list.items[i]);
	list_end(out, list.more);
	return OK;
}

const struct admin_operation admin_usage_operations[] = {
	{.name = "usage",
     .summary = "show the usage: events, bytes, certifications and credits",
     .columns = "period account_id channel_id channel_name key_id mode events content_bytes "
                "certifications_completed credits",
     .csv = "period account_id account_name channel_id channel_name key_id key_name mode events "
            "unpaid_events content_bytes certifications_requested certifications_completed "
            "certifications_failed events_certified fees refunds credits",
     .parameters =
         {
			 ADMIN_FLAG_ID("account", "ACCOUNT", false, "only this account"),
			 ADMIN_FLAG_ID("channel", "CHANNEL", false, "only this channel"),
			 ADMIN_FLAG_ID("key", "KEY_ID", false, "only this key"),
			 ADMIN_FLAG_LINE("by", false, 3, 40,
                             "one row per account, channel, key, day or month; several values are "
                             "separated by commas (channel,key by default)"),
			 ADMIN_FLAG_DAYS,
			 ADMIN_FLAG_CHOICE("mode", false, "live|test", "only keys of this mode"),
			 ADMIN_FLAG_CSV,
			 ADMIN_LIST_LIMIT,
			 ADMIN_FLAG_ID("after", "ROW", false,
                           "start after this row, the last of the previous page"),
		 },
     .run = run_usage},
	{0},
};
