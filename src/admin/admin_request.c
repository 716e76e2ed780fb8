/* The operation that lists the request log of an account. */
#include <stdlib.h>

#include "admin/admin_call.h"
#include "base/clock.h"
#include "store/usage/request_records.h"

#define STATUS_MAX 999
#define REQUEST_TEXT_MAX 40
#define STATUS_SIZE 3 /* "404", "4xx" */

static int read_status(const struct admin_call *call, struct request_filter *filter,
                       struct error *error)
{
	char label[FIELD_SIZE];
	filter->highest_status = STATUS_MAX;
	if (!admin_given(call, "status"))
		return OK;
	const char *text = admin_text(call, "status");
	bool is_class = strcmp(text + 1, "xx") == 0;
	if (*text < '1' || *text > '5' || (!is_class && strspn(text, "0123456789") != STATUS_SIZE))
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_STATUS, error_field("status", label), text,
		                 NULL);
	filter->lowest_status = is_class ? (*text - '0') * 100 : strtol(text, NULL, 10);
	filter->highest_status = filter->lowest_status + (is_class ? 99 : 0);
	return OK;
}

/* Older rows may still be there until housekeeping deletes them. */
static int read_times(const struct admin_call *call, struct request_filter *filter,
                      struct error *error)
{
	int64_t kept_since_us = store_now_us(call->admin->store) - REQUESTS_KEEP_US;
	int result = admin_moment(call, "since", -1, INT64_MIN, &filter->since_us, error);
	if (!result)
		result = admin_moment(call, "until", -1, INT64_MAX, &filter->until_us, error);
	if (!result && filter->since_us > filter->until_us)
		result = error_set(error, ERR_USAGE, MSG_ADMIN_DATES_TURNED, FIELD("since"), FIELD("until"),
		                   NULL);
	if (filter->since_us < kept_since_us)
		filter->since_us = kept_since_us;
	return result;
}

static int read_filter(const struct admin_call *call, struct request_filter *filter,
                       struct error *error)
{
	char label[FIELD_SIZE];
	*filter = (struct request_filter){
		.account_id = admin_slice(call, "account"),
		.channel_id = admin_slice(call, "channel"),
		.key_id = admin_slice(call, "key"),
		.after = admin_slice(call, "after"),
		.has_number = admin_given(call, "request"),
	};
	if (filter->has_number && !request_number_parse(admin_slice(call, "request"), &filter->number))
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_REQUEST_ID, error_field("request", label),
		                 admin_text(call, "request"), NULL);
	int result = read_status(call, filter, error);
	return result ? result : read_times(call, filter, error);
}

static void write_row(struct json_writer *out, const struct request_view *row)
{
	json_text(out, "row", row->cursor);
	ADMIN_PUT(out, row, request_id, at_us, method, route, path, query);
	if (row->status)
		json_integer(out, "status", row->status);
	else
		json_null(out, "status");
	ADMIN_PUT(out, row, code, incident_id);
	json_integer(out, "duration_us", row->duration);
	ADMIN_PUT(out, row, bytes_in, bytes_out, aborted, channel_id, channel_name, key_id, key_name,
	          mode, represents);
}

static int run_list(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct request_filter filter;
	struct request_view_list list;
	int result = read_filter(call, &filter, error);
	if (!result)
		result = store_list_requests(call->admin->store, &filter,
		                             admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->arena,
		                             &list, error);
	if (result)
		return result;
	ADMIN_PUT_LIST(out, &list, item, write_row(out, item));
	list_end(out, list.more);
	return OK;
}

const struct admin_operation admin_request_operations[] = {
	{.name = "request list",
     .summary = "list an account's requests of the last 30 days, newest first; of many, a part is "
                "kept",
     .columns = "request_id at method path status code duration_us key_id mode represents",
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", true, "the account"),
                    {.name = "request",
                     .kind = ADMIN_LINE,
                     .place = "REQUEST",
                     .least = 1,
                     .most = REQUEST_TEXT_MAX,
                     .help = "only the request with this X-Request-Id (req_…)"},
                    ADMIN_FLAG_ID("key", "KEY_ID", false, "only this key"),
                    ADMIN_FLAG_ID("channel", "CHANNEL", false, "only this channel"),
                    {.name = "status",
                     .kind = ADMIN_LINE,
                     .place = "STATUS",
                     .least = STATUS_SIZE,
                     .most = STATUS_SIZE,
                     .help = "only this status, such as 404, or all of 4xx or 5xx"},
                    ADMIN_FLAG_MOMENT("since", false,
                                      "begun from this time on, or this duration before now"),
                    ADMIN_FLAG_MOMENT("until", false,
                                      "begun before this time, or this duration before now"),
                    ADMIN_LIST_LIMIT,
                    ADMIN_FLAG_ID("after", "ROW", false,
                                  "start after this row, the last of the previous page")},
     .run = run_list},
	{0},
};
