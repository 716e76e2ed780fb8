/* Operations on purchases. */
#include "admin/admin_call.h"
#include "service/purchase.h"
#include "store/money/packs.h"
#include "store/money/purchases.h"

static void payment_members(struct json_writer *out, const struct purchase_record *purchase)
{
	if (!purchase->payment) {
		json_null(out, "payment");
		return;
	}
	json_begin_object(out, "payment");
	json_text(out, "action", purchase->payment);
	json_text(out, "state", purchase->payment_state);
	json_text(out, "outcome", purchase->payment_outcome);
	json_text(out, "last_error", purchase->payment_error);
	json_end_object(out);
}

static void purchase_members(struct json_writer *out, const struct purchase_record *purchase)
{
	ADMIN_PUT(out, purchase, sale_id, account_id, account_name, country, pack_id, description,
	          credits);
	admin_amount(out, "amount", purchase->amount_minor);
	if (purchase->tax_rate < 0)
		json_null(out, "tax_rate");
	else
		admin_amount(out, "tax_rate", purchase->tax_rate);
	admin_amount(out, "tax", purchase->tax_minor);
	admin_amount(out, "total", purchase->amount_minor + purchase->tax_minor);
	json_text(out, "currency", currency_text(purchase->currency));
	json_text(out, "state", purchase_state_text(purchase->state));
	ADMIN_PUT(out, purchase, automatic, provider, reference);
	json_text(out, "payment_url",
	          purchase->state == PURCHASE_PENDING ? purchase->payment_url : NULL);
	payment_members(out, purchase);
	ADMIN_PUT(out, purchase, created_at_us, paid_at_us, ended_at_us);
}

static int show_purchase(const struct admin_call *call, struct slice sale_id,
                         const struct purchase_outcome *outcome, struct json_writer *out,
                         struct error *error)
{
	struct purchase_record purchase;
	int result = store_find_purchase(call->admin->store, sale_id, call->arena, &purchase, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	purchase_members(out, &purchase);
	if (outcome) {
		json_integer(out, "balance", outcome->balance);
		json_boolean(out, "operational", outcome->balance >= 0 && outcome->unpaid_events == 0);
		ADMIN_PUT(out, outcome, unpaid_events, settled_events);
	}
	json_end_object(out);
	return OK;
}

/* An operator has agreed on the currency with an account without a country. A user sees packs of
 * all currencies and must choose a country first. */
static int require_country(const struct admin_call *call, struct error *error)
{
	struct billing billing;
	if (!call->caller->is_user)
		return OK;
	int result = store_get_billing(call->admin->store, admin_slice(call, "account"), call->arena,
	                               &billing, error);
	if (!result && !billing.country)
		result = error_set(error, ERR_REFUSED, MSG_SALE_NO_COUNTRY, NULL);
	return result;
}

static int run_purchase_create(const struct admin_call *call, struct json_writer *out,
                               struct error *error)
{
	char sale_id[ID_SIZE];
	int result = require_country(call, error);
	if (!result)
		result = store_create_purchase(
			call->admin->store, admin_slice(call, "account"), admin_slice(call, "pack"),
			call->admin->settings->payment_provider, call->now_us, sale_id, error);
	if (!result && call->admin->service)
		result = service_make_payment_page(call->admin->service, slice_of(sale_id), error);
	return result ? result : show_purchase(call, slice_of(sale_id), NULL, out, error);
}

static int run_purchase_page(const struct admin_call *call, struct json_writer *out,
                             struct error *error)
{
	struct slice sale_id = admin_slice(call, "sale");
	if (!call->admin->service)
		return error_set(error, ERR_UNAVAILABLE, MSG_SALE_PAGE_NO_SERVICE, NULL);
	int result =
		service_request_payment_page(call->admin->service, call->admin->store, sale_id, error);
	return result ? result : show_purchase(call, sale_id, NULL, out, error);
}

static int run_purchase_list(const struct admin_call *call, struct json_writer *out,
                             struct error *error)
{
	enum purchase_state wanted;
	int state = purchase_state_parse(admin_slice(call, "state"), &wanted) ? (int)wanted : -1;
	struct purchase_list list;
	int result = store_list_purchases(
		call->admin->store, admin_slice(call, "account"), state, admin_slice(call, "after"),
		admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->arena, &list, error);
	if (result)
		return result;
	ADMIN_PUT_LIST(out, &list, item, purchase_members(out, item));
	list_end_partial(out, list.more, list.partial);
	return OK;
}

static int run_purchase_show(const struct admin_call *call, struct json_writer *out,
                             struct error *error)
{
	return show_purchase(call, admin_slice(call, "sale"), NULL, out, error);
}

static int act(const struct admin_call *call, enum purchase_action what, struct json_writer *out,
               struct error *error)
{
	struct slice sale_id = admin_slice(call, "sale");
	struct purchase_order order = {.act = what, .sale_id = sale_id};
	struct purchase_outcome outcome;
	int result = store_change_purchase(call->admin->store, &order, call->now_us, &outcome, error);
	if (result)
		return result;
	if (call->admin->service)
		service_count_purchase(call->admin->service, &outcome);
	return show_purchase(call, sale_id, &outcome, out, error);
}

static int run_purchase_pay(const struct admin_call *call, struct json_writer *out,
                            struct error *error)
{
	return act(call, PURCHASE_PAY, out, error);
}

static int run_purchase_cancel(const struct admin_call *call, struct json_writer *out,
                               struct error *error)
{
	return act(call, PURCHASE_CANCEL, out, error);
}

static int run_purchase_revert(const struct admin_call *call, struct json_writer *out,
                               struct error *error)
{
	return act(call, PURCHASE_REVERT, out, error);
}

/* The provider refunds what it charged. Other refunds are made by the operator. */
static int run_purchase_refund(const struct admin_call *call, struct json_writer *out,
                               struct error *error)
{
	struct slice sale_id = admin_slice(call, "sale");
	struct purchase_record purchase;
	int result = store_find_purchase(call->admin->store, sale_id, call->arena, &purchase, error);
	if (result)
		return result;
	if (purchase.state != PURCHASE_PAID || !purchase.reference)
		return act(call, PURCHASE_REFUND, out, error);
	result = store_request_refund(call->admin->store, sale_id, call->now_us, error);
	if (result)
		return result;
	service_wake(call->admin->service, WAKE_TOPUP);
	return show_purchase(call, sale_id, NULL, out, error);
}

#define SALE ADMIN_POSITIONAL_ID("sale", "SALE", "the purchase's sale code (sal_…)")
#define PURCHASE_COLUMNS                                                                           \
	"sale_id account_id pack_id credits total currency state automatic created_at"

const struct admin_operation admin_purchase_operations[] = {
	{.name = "purchase create",
     .summary = "start a purchase of a pack",
     .changes = true,
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", true, "the buyer"),
                    ADMIN_FLAG_ID("pack", "PACK", true, "the pack to buy")},
     .run = run_purchase_create},
	{.name = "purchase list",
     .summary = "list purchases, newest first",
     .columns = PURCHASE_COLUMNS,
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", false, "only those of this account"),
                    ADMIN_FLAG_CHOICE("state", false,
                                      "pending|paid|canceled|rejected|refunded|reverted",
                                      "only this state"),
                    ADMIN_LIST_LIMIT, ADMIN_LIST_AFTER},
     .run = run_purchase_list},
	{.name = "purchase show",
     .summary = "show a purchase",
     .parameters = {SALE},
     .run = run_purchase_show},
	{.name = "purchase page",
     .summary = "request a payment page from the provider again",
     .changes = true,
     .parameters = {SALE},
     .run = run_purchase_page},
	{.name = "purchase pay",
     .summary = "confirm the payment of a purchase and add its credits",
     .changes = true,
     .parameters = {SALE},
     .run = run_purchase_pay},
	{.name = "purchase cancel",
     .summary = "cancel a purchase that was not paid",
     .changes = true,
     .parameters = {SALE},
     .run = run_purchase_cancel},
	{.name = "purchase refund",
     .summary = "refund a purchase: return the money and take back the credits",
     .changes = true,
     .parameters = {SALE},
     .run = run_purchase_refund},
	{.name = "purchase revert",
     .summary = "take back the credits after the customer's bank reversed the payment",
     .changes = true,
     .parameters = {SALE},
     .run = run_purchase_revert},
	{0},
};
