/* Consumption limits. */
#include <assert.h>

#include "admin/admin_call.h"
#include "store/accounts/accounts.h"

#define LIMIT_EVENTS_MAX INT64_C(1000000000000)

static int run_create(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	if (admin_given(call, "channel") == admin_given(call, "key"))
		return error_set(error, ERR_USAGE, MSG_ADMIN_ONE_OF, FIELD("channel"), FIELD("key"), NULL);
	enum period period;
	bool known = period_parse(admin_slice(call, "period"), &period);
	assert(known); /* one of the operation's choices */
	bool block = slice_is(admin_slice(call, "action"), "block");
	char limit_id[ID_SIZE];
	int result = store_create_limit(call->admin->store, admin_slice(call, "channel"),
	                                admin_slice(call, "key"), period, admin_integer(call, "max", 0),
	                                block, call->now_us, limit_id, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "limit_id", limit_id);
	json_text(out, "scope", admin_given(call, "key") ? "key" : "channel");
	json_text(out, "channel_id", admin_text(call, "channel"));
	json_text(out, "key_id", admin_text(call, "key"));
	json_text(out, "period", period_text(period));
	json_integer(out, "max_events", admin_integer(call, "max", 0));
	json_text(out, "action", admin_text(call, "action"));
	json_end_object(out);
	return OK;
}

static int run_list(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct limit_list list;
	int result = store_list_limits(call->admin->store, admin_slice(call, "account"),
	                               admin_slice(call, "channel"), admin_slice(call, "after"),
	                               admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->now_us,
	                               call->arena, &list, error);
	if (result)
		return result;
	list_begin(out);
	for (size_t i = 0; i < list.count; i++) {
		const struct limit_record *item = &list.items[i];
		json_begin_object(out, NULL);
		ADMIN_PUT(out, item, limit_id, account_id);
		json_text(out, "scope", *item->key_id ? "key" : "channel");
		ADMIN_PUT(out, item, channel_id, channel_name);
		json_text(out, "key_id", *item->key_id ? item->key_id : NULL);
		ADMIN_PUT(out, item, key_name, key_last_four);
		json_text(out, "period", period_text(item->period));
		ADMIN_PUT(out, item, max_events, used);
		json_text(out, "action", item->block ? "block" : "warn");
		json_time(out, "created_at", item->created_at_us);
		json_end_object(out);
	}
	list_end_partial(out, list.more, list.partial);
	return OK;
}

static int run_delete(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	int result = store_delete_limit(call->admin->store, admin_slice(call, "limit"), error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "limit_id", admin_text(call, "limit"));
	json_boolean(out, "deleted", true);
	json_end_object(out);
	return OK;
}

const struct admin_operation admin_limit_operations[] = {
	{.name = "limit create",
     .summary = "limit the live events of a channel or a key in a UTC day or month",
     .changes = true,
     .parameters = {ADMIN_FLAG_ID("channel", "CHANNEL", false, "the channel to limit"),
                    ADMIN_FLAG_ID("key", "KEY_ID", false, "the key to limit"),
                    ADMIN_FLAG_CHOICE("period", true, "day|month", "period of the count"),
                    ADMIN_FLAG_INTEGER("max", true, 1, LIMIT_EVENTS_MAX,
                                       "events allowed in a period"),
                    ADMIN_FLAG_CHOICE("action", true, "warn|block",
                                      "send a notice, or also refuse further events")},
     .run = run_create},
	{.name = "limit list",
     .summary = "list consumption limits and their usage",
     .columns = "limit_id scope channel_id key_id period max_events used action",
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", false, "only those of this account"),
                    ADMIN_FLAG_ID("channel", "CHANNEL", false, "only those of this channel"),
                    ADMIN_LIST_LIMIT, ADMIN_LIST_AFTER},
     .run = run_list},
	{.name = "limit delete",
     .summary = "delete a consumption limit",
     .changes = true,
     .parameters = {ADMIN_POSITIONAL_ID("limit", "LIMIT", "the limit")},
     .run = run_delete},
	{0},
};
