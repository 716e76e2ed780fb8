/* Operations that make a store a read-only copy and resume it. */
#include "admin/admin_call.h"
#include "service/clock_start.h"
#include "service/read_only.h"
#include "store/nodes/read_only_copy.h"

static void due_members(struct json_writer *out, const struct pending_work *due)
{
	json_begin_object(out, "due");
	ADMIN_PUT(out, due, notices, mails, payments, certifications);
	json_end_object(out);
	json_begin_object(out, "on_waking");
	json_integer(out, "charges_looked_up", due->charges);
	json_integer(out, "topups_looked_up", due->topups);
	json_integer(out, "certifications_given_time", due->certifications_before);
	json_end_object(out);
}

static int count_due(const struct admin_call *call, struct pending_work *ret, struct error *error)
{
	struct store *store = call->admin->store;
	int64_t patience_us = call->admin->settings->certification_give_up_after;
	return store_count_pending_work(store, store_now_us(store) - patience_us, ret, error);
}

static int answer(const struct admin_call *call, const struct pending_work *due, int64_t skipped,
                  struct json_writer *out, struct error *error)
{
	struct quiet quiet;
	int result = store_get_copy_state(call->admin->store, &quiet, error);
	if (!result && call->admin->service)
		result = read_only_refresh(call->admin->service, error);
	if (result)
		return result;
	bool by_setting = call->admin->settings->service_quiet;
	json_begin_object(out, NULL);
	json_boolean(out, "quiet", quiet.is || by_setting);
	json_boolean(out, "by_setting", by_setting);
	json_time(out, "since", quiet.is ? quiet.since_us : TIME_NONE);
	json_text(out, "reason", quiet.is ? quiet.reason : NULL);
	json_integer(out, "skipped_notices", skipped);
	due_members(out, due);
	json_end_object(out);
	return OK;
}

static int run_read_only(const struct admin_call *call, struct json_writer *out,
                         struct error *error)
{
	struct pending_work due;
	int result =
		store_mark_copy(call->admin->store, admin_text(call, "reason"), call->now_us, error);
	if (!result)
		result = count_due(call, &due, error);
	return result ? result : answer(call, &due, 0, out, error);
}

#define CLOCK_AWAITED_US (2 * US_PER_SECOND)

/* No authority was asked while the store was a read-only copy. Usually the comparison is complete
 * when the response is sent, so that nothing is refused any more. */
static void compare_clock(struct service *service)
{
	if (!service)
		return;
	service_wake(service, WAKE_CLOCK);
	clock_start_await(service, CLOCK_AWAITED_US);
}

static int run_wake(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct store *store = call->admin->store;
	bool dry = admin_given(call, "dry_run");
	int64_t skipped = 0;
	struct quiet quiet = {0};
	struct pending_work due;
	int result = store_get_copy_state(store, &quiet, error);
	bool read_only_now = quiet.is || call->admin->settings->service_quiet;
	if (!result && !read_only_now && !dry && admin_given(call, "skip_notices"))
		result = error_set(error, ERR_REFUSED, MSG_ADMIN_NOT_READ_ONLY, NULL);
	if (!result && !dry && admin_given(call, "skip_notices"))
		result = store_skip_deliveries(store, call->now_us, &skipped, error);
	if (!result)
		result = count_due(call, &due, error);
	if (!result && !dry && read_only_now)
		result = store_resume_copy(store, store_now_us(store), error);
	if (!result)
		result = answer(call, &due, skipped, out, error);
	if (!result && !dry && read_only_now)
		compare_clock(call->admin->service);
	return result;
}

const struct admin_operation admin_read_only_operations[] = {
	{.name = "store quiet",
     .summary =
         "make the store a read-only copy: nothing is sent, charged, sealed or acknowledged until "
         "'store wake'",
     .changes = true,
     .parameters = {{.name = "reason",
                     .kind = ADMIN_LINE,
                     .required = true,
                     .place = "TEXT",
                     .least = 1,
                     .most = COPY_REASON_MAX,
                     .help = "reason, stored with the mode"}},
     .run = run_read_only},
	{.name = "store wake",
     .summary = "resume a store that is a read-only copy, and show what is due",
     .changes = true,
     .parameters = {ADMIN_FLAG_SWITCH("dry_run", "only show what is due"),
                    ADMIN_FLAG_SWITCH("skip_notices",
                                      "do not send pending notices; they can be replayed")},
     .run = run_wake},
	{0},
};
