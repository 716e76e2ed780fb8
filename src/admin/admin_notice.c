/* Operations on notices: list, show and replay. */
#include "admin/admin_call.h"
#include "service/webhook.h"
#include "store/notices/notices.h"
#include "store/notices/replay.h"

#define TYPES_MAX 512
#define BODY_MAX ((size_t)64 * 1024)

/* ---- showing ---- */

static int64_t count_in(const struct notice_view *view, const char *status)
{
	int64_t count = 0;
	for (size_t i = 0; i < view->state_count; i++)
		count += strcmp(view->states[i].status, status) == 0;
	return count;
}

static void state_members(struct json_writer *out, const struct notice_state *state)
{
	bool waiting = strcmp(state->status, "waiting") == 0;
	ADMIN_PUT(out, state, endpoint_id, status, attempts);
	json_time(out, "next_attempt_at", waiting ? state->due_at_us : TIME_NONE);
	json_time(out, "ended_at", waiting ? TIME_NONE : state->due_at_us);
	json_time(out, "replayed_at", state->replayed_at_us);
}

static void notice_members(struct json_writer *out, const struct notice_view *view)
{
	static const char *const statuses[] = {"delivered", "waiting", "failed", "missed"};
	json_integer(out, "number", view->notice);
	ADMIN_PUT(out, view, notice_id, account_id, type, mode, created_at_us);
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		json_integer(out, statuses[i], count_in(view, statuses[i]));
	json_begin_array(out, "deliveries");
	for (size_t i = 0; i < view->state_count; i++) {
		json_begin_object(out, NULL);
		state_members(out, &view->states[i]);
		json_end_object(out);
	}
	json_end_array(out);
}

static int read_filter(const struct admin_call *call, struct notice_filter *filter,
                       struct error *error)
{
	*filter = (struct notice_filter){
		.account_id = admin_slice(call, "account"),
		.endpoint_id = admin_slice(call, "endpoint"),
		.status = admin_slice(call, "status"),
		.before = admin_integer(call, "before", 0),
	};
	int result = admin_time(call, "since", INT64_MIN, &filter->since_us, error);
	if (!result)
		result = admin_time(call, "until", INT64_MAX, &filter->until_us, error);
	if (result || !admin_given(call, "type"))
		return result;
	BUF_AUTO struct buf types;
	buf_init(&types, TYPES_MAX);
	result = webhook_types_check(admin_slice(call, "type"), &types, error);
	if (result)
		return result;
	const char *copy = arena_copy(call->arena, types.data, types.size);
	filter->types = slice_make(copy, types.size);
	return copy ? OK : ERR_NO_MEMORY;
}

static int run_list(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct notice_filter filter;
	struct notice_list list;
	int result = read_filter(call, &filter, error);
	if (!result)
		result = store_list_notices(call->admin->store, &filter,
		                            admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->arena,
		                            &list, error);
	if (result)
		return result;
	ADMIN_PUT_LIST(out, &list, item, notice_members(out, item));
	list_end(out, list.more);
	return OK;
}

static int run_show(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct notice_view view;
	int result = store_find_notice(call->admin->store, admin_slice(call, "notice"), call->arena,
	                               &view, error);
	if (result)
		return result;
	BUF_AUTO struct buf body;
	buf_init(&body, BODY_MAX);
	webhook_envelope(view.notice_id, view.type, view.created_at_us, view.mode, view.data, &body);
	json_begin_object(out, NULL);
	notice_members(out, &view);
	json_slice(out, "body", buf_slice(&body));
	json_end_object(out);
	return buf_check(&body);
}

/* ---- replay ---- */

static int replay_one(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	int result = store_replay_notice(call->admin->store, admin_slice(call, "notice"),
	                                 admin_slice(call, "endpoint"), call->now_us, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "notice_id", admin_text(call, "notice"));
	json_text(out, "endpoint_id", admin_text(call, "endpoint"));
	json_text(out, "status", "waiting");
	json_end_object(out);
	return OK;
}

/* Replays notices up to the present time; later ones are queued as they arise. */
static int replay_many(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct replay_range range = {
		.what = admin_given(call, "missed") ? REPLAY_MISSED : REPLAY_FAILED,
		.until_us = call->now_us,
	};
	struct replay_place place = {.more = true};
	int64_t kept_since_us = call->now_us - call->admin->settings->webhook_keep;
	int result = admin_time(call, "since", INT64_MIN, &range.since_us, error);
	while (!result && place.more)
		result = store_replay_batch(call->admin->store, admin_slice(call, "endpoint"), &range,
		                            call->now_us, &place, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "endpoint_id", admin_text(call, "endpoint"));
	json_integer(out, "queued", place.queued);
	json_time(out, "since", range.since_us == INT64_MIN ? TIME_NONE : range.since_us);
	json_time(out, "until", range.until_us);
	json_time(out, "kept_since", kept_since_us);
	json_end_object(out);
	return OK;
}

static int run_replay(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	int ways =
		admin_given(call, "notice") + admin_given(call, "missed") + admin_given(call, "failed");
	if (ways != 1)
		return error_set(error, ERR_USAGE, MSG_ADMIN_REPLAY_WHAT, NULL);
	if (!admin_given(call, "notice"))
		return replay_many(call, out, error);
	if (admin_given(call, "since"))
		return error_set(error, ERR_USAGE, MSG_ADMIN_ONE_OF, FIELD("notice"), FIELD("since"), NULL);
	return replay_one(call, out, error);
}

/* ---- the table ---- */

#define ACCOUNT ADMIN_FLAG_ID("account", "ACCOUNT", true, "the account")
#define SINCE ADMIN_FLAG_MOMENT("since", false, "created from this time on")

const struct admin_operation admin_notice_operations[] = {
	{.name = "webhook replay",
     .summary = "deliver notices to an endpoint again with a new schedule: one notice, or with "
                "--missed or --failed all such notices",
     .changes = true,
     .parameters = {{.name = "notice",
                     .kind = ADMIN_ID,
                     .positional = true,
                     .place = "NOTICE",
                     .help = "the notice (ntc_…)"},
                    ADMIN_FLAG_ID("endpoint", "ENDPOINT", true, "the endpoint (whk_…)"),
                    ADMIN_FLAG_SWITCH("missed",
                                      "all notices of its types that it has not acknowledged"),
                    ADMIN_FLAG_SWITCH("failed", "all notices whose retries are exhausted"),
                    SINCE},
     .run = run_replay},
	{.name = "notice list",
     .summary =
         "list an account's notices, newest first, with the number of endpoints in each status",
     .columns = "number notice_id type mode created_at delivered waiting failed missed",
     .parameters = {ACCOUNT,
                    SINCE,
                    ADMIN_FLAG_MOMENT("until", false, "created before this time"),
                    {.name = "type",
                     .kind = ADMIN_LINE,
                     .place = "TYPE,…",
                     .least = 1,
                     .most = TYPES_MAX,
                     .help = "only these types"},
                    ADMIN_FLAG_ID("endpoint", "ENDPOINT", false, "only notices for this endpoint"),
                    ADMIN_FLAG_CHOICE(
						"status", false, "delivered|waiting|failed|missed",
						"only notices with this status at an endpoint, or at the given one"),
                    ADMIN_LIST_LIMIT,
                    ADMIN_LIST_BEFORE},
     .run = run_list},
	{.name = "notice show",
     .summary = "show a notice: its body as sent, and its status at each endpoint",
     .parameters = {ADMIN_POSITIONAL_ID("notice", "NOTICE", "the notice (ntc_…)")},
     .run = run_show},
	{0},
};
