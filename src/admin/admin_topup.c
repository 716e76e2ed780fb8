/* Operations on automatic top-up. */
#include "admin/admin_call.h"
#include "store/money/topup.h"

#define TOPUP_DAILY_MAX 1000
#define TOPUP_DAILY_DEFAULT 3

static const char *null_if_empty(const char *text)
{
	return text && *text ? text : NULL;
}

static int show_topup(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct topup_record topup;
	int result = store_get_topup(call->admin->store, admin_slice(call, "account"), call->now_us,
	                             call->arena, &topup, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	ADMIN_PUT(out, &topup, account_id, enabled, threshold, pack_id, daily_max, bought_today);
	json_text(out, "sale_id", null_if_empty(topup.sale_id));
	ADMIN_PUT(out, &topup, failed_at_us, reason);
	json_end_object(out);
	return OK;
}

static int run_topup_set(const struct admin_call *call, struct json_writer *out,
                         struct error *error)
{
	int result = store_set_topup(call->admin->store, admin_slice(call, "account"),
	                             admin_slice(call, "pack"), admin_integer(call, "threshold", 0),
	                             admin_integer(call, "daily_max", TOPUP_DAILY_DEFAULT), error);
	if (!result)
		service_wake(call->admin->service, WAKE_TOPUP);
	return result ? result : show_topup(call, out, error);
}

static int run_topup_show(const struct admin_call *call, struct json_writer *out,
                          struct error *error)
{
	return show_topup(call, out, error);
}

static int switch_topup(const struct admin_call *call, bool on, struct json_writer *out,
                        struct error *error)
{
	int result = store_switch_topup(call->admin->store, admin_slice(call, "account"), on, error);
	if (!result)
		service_wake(call->admin->service, WAKE_TOPUP);
	return result ? result : show_topup(call, out, error);
}

static int run_topup_on(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	return switch_topup(call, true, out, error);
}

static int run_topup_off(const struct admin_call *call, struct json_writer *out,
                         struct error *error)
{
	return switch_topup(call, false, out, error);
}

#define ACCOUNT ADMIN_POSITIONAL_ID("account", "ACCOUNT", "the account")

const struct admin_operation admin_topup_operations[] = {
	{.name = "topup set",
     .summary = "buy a pack whenever the balance falls below a threshold",
     .changes = true,
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", true, "the account"),
                    ADMIN_FLAG_INTEGER("threshold", true, 1, ADMIN_CREDITS_MAX,
                                       "buy when the balance is below this number of credits"),
                    ADMIN_FLAG_ID("pack", "PACK", true, "the pack to buy"),
                    ADMIN_FLAG_INTEGER("daily_max", false, 1, TOPUP_DAILY_MAX,
                                       "maximum number of purchases per UTC day (3 by default)")},
     .run = run_topup_set},
	{.name = "topup show",
     .summary = "show an account's automatic top-up",
     .parameters = {ACCOUNT},
     .run = run_topup_show},
	{.name = "topup on",
     .summary = "turn an automatic top-up on again with its previous settings",
     .changes = true,
     .parameters = {ACCOUNT},
     .run = run_topup_on},
	{.name = "topup off",
     .summary = "turn an automatic top-up off; its settings are kept",
     .changes = true,
     .parameters = {ACCOUNT},
     .run = run_topup_off},
	{0},
};
