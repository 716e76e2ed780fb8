/* How accounts pay, packs, purchases and automatic top-ups. */
#include <assert.h>

#include "service/admin_call.h"
#include "service/purchase.h"
#include "store/money/packs.h"
#include "store/money/purchases.h"
#include "store/money/topup.h"

#define PROVIDER_NAME_MAX 128 /* of a customer or a payment method */
#define TOPUP_DAILY_MAX 1000
#define TOPUP_DAILY_DEFAULT 3
#define AMOUNT_LENGTH_MAX 24
#define REGIONS "europe|united-kingdom|world"

static const char *null_if_empty(const char *text)
{
	return text && *text ? text : NULL;
}

static int read_amount(const struct admin_call *call, const char *name, int64_t least, int64_t most,
                       int64_t *ret, struct error *error)
{
	if (amount_parse(admin_slice(call, name), most, ret) && *ret >= least)
		return OK;
	char from[AMOUNT_TEXT_SIZE], to[AMOUNT_TEXT_SIZE];
	char label[ADMIN_LABEL_SIZE] = "--";
	for (size_t i = 0; name[i] && i < sizeof label - 3; i++)
		label[i + 2] = name[i] == '_' ? '-' : name[i];
	amount_format(least, from);
	amount_format(most, to);
	return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_AMOUNT, label, from, to, NULL);
}

static void amount_member(struct json_writer *out, const char *name, int64_t minor)
{
	char text[AMOUNT_TEXT_SIZE];
	amount_format(minor, text);
	json_text(out, name, text);
}

/* ---- billing ---- */

static int check_country(const struct admin_call *call, struct error *error)
{
	struct slice country = admin_slice(call, "country");
	if (country.size && !country_is_known(country))
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_COUNTRY, NULL);
	return OK;
}

static int check_region(const struct admin_call *call, struct error *error)
{
	struct slice region = admin_slice(call, "region");
	enum pricing_region known;
	if (region.size && !region_parse(region, &known))
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_REGION, REGIONS, NULL);
	return OK;
}

static int show_billing(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct billing billing;
	int result = store_get_billing(call->admin->store, admin_slice(call, "account"), call->arena,
	                               &billing, error);
	if (result)
		return result;
	const char *region = billing.has_region ? region_text(billing.region) : NULL;
	json_begin_object(out, NULL);
	json_text(out, "account_id", admin_text(call, "account"));
	json_text(out, "country", billing.country);
	json_text(out, "pricing_region", region);
	json_text(out, "currency",
	          billing.has_region ? currency_text(region_currency(billing.region)) : NULL);
	amount_member(out, "tax_rate", billing.tax_rate);
	json_text(out, "customer", billing.customer);
	json_text(out, "payment_method", billing.payment_method);
	json_end_object(out);
	return OK;
}

static int run_billing(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct billing_change change = {
		.country = admin_text(call, "country"),
		.region = admin_text(call, "region"),
		.tax_rate = -1,
		.customer = admin_text(call, "customer"),
		.payment_method = admin_text(call, "payment_method"),
	};
	int result = check_country(call, error);
	if (!result)
		result = check_region(call, error);
	if (!result && admin_given(call, "tax_rate"))
		result = read_amount(call, "tax_rate", 0, TAX_RATE_MAX, &change.tax_rate, error);
	bool changes = change.country || change.region || change.tax_rate >= 0 || change.customer ||
	               change.payment_method;
	if (!result && changes)
		result =
			store_change_billing(call->admin->store, admin_slice(call, "account"), &change, error);
	return result ? result : show_billing(call, out, error);
}

/* ---- packs ---- */

static void pack_members(struct json_writer *out, const struct pack_record *pack)
{
	json_text(out, "pack_id", pack->pack_id);
	json_text(out, "account_id", null_if_empty(pack->account_id));
	json_text(out, "name", pack->name);
	json_integer(out, "credits", pack->credits);
	amount_member(out, "price", pack->amount_minor);
	json_text(out, "currency", currency_text(pack->currency));
	json_boolean(out, "on_sale", pack->withdrawn_at_us == TIME_NONE);
	json_time(out, "created_at", pack->created_at_us);
	json_time(out, "withdrawn_at", pack->withdrawn_at_us);
}

static int show_pack(const struct admin_call *call, struct slice pack_id, struct json_writer *out,
                     struct error *error)
{
	struct pack_record pack;
	int result = store_find_pack(call->admin->store, pack_id, call->arena, &pack, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	pack_members(out, &pack);
	json_end_object(out);
	return OK;
}

static int run_pack_create(const struct admin_call *call, struct json_writer *out,
                           struct error *error)
{
	struct pack_record given = {
		.name = admin_text(call, "name"),
		.credits = admin_integer(call, "credits", 0),
	};
	bool known = currency_parse(admin_slice(call, "currency"), &given.currency);
	assert(known); /* one of the operation's choices */
	if (admin_given(call, "account"))
		memcpy(given.account_id, admin_text(call, "account"),
		       admin_slice(call, "account").size + 1);
	char pack_id[ID_SIZE];
	int result = read_amount(call, "price", 1, AMOUNT_MAX, &given.amount_minor, error);
	if (!result)
		result = store_create_pack(call->admin->store, &given, call->now_us, pack_id, error);
	return result ? result : show_pack(call, slice_of(pack_id), out, error);
}

static int run_pack_list(const struct admin_call *call, struct json_writer *out,
                         struct error *error)
{
	struct pack_list list;
	int result = store_list_packs(
		call->admin->store, admin_slice(call, "account"), admin_slice(call, "after"),
		admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->arena, &list, error);
	if (result)
		return result;
	list_begin(out);
	for (size_t i = 0; i < list.count; i++) {
		json_begin_object(out, NULL);
		pack_members(out, &list.items[i]);
		json_end_object(out);
	}
	list_end(out, list.more);
	return OK;
}

static int run_pack_show(const struct admin_call *call, struct json_writer *out,
                         struct error *error)
{
	return show_pack(call, admin_slice(call, "pack"), out, error);
}

static int withdraw(const struct admin_call *call, bool withdrawn, struct json_writer *out,
                    struct error *error)
{
	int64_t turned_off = 0;
	int result = store_withdraw_pack(call->admin->store, admin_slice(call, "pack"), withdrawn,
	                                 call->now_us, &turned_off, error);
	if (!result && turned_off && call->admin->service)
		atomic_fetch_add(&call->admin->service->counters.topups_failed, 1);
	return result ? result : show_pack(call, admin_slice(call, "pack"), out, error);
}

static int run_pack_withdraw(const struct admin_call *call, struct json_writer *out,
                             struct error *error)
{
	return withdraw(call, true, out, error);
}

static int run_pack_offer(const struct admin_call *call, struct json_writer *out,
                          struct error *error)
{
	return withdraw(call, false, out, error);
}

/* ---- purchases ---- */

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
	json_text(out, "sale_id", purchase->sale_id);
	json_text(out, "account_id", purchase->account_id);
	json_text(out, "pack_id", purchase->pack_id);
	json_text(out, "description", purchase->description);
	json_integer(out, "credits", purchase->credits);
	amount_member(out, "amount", purchase->amount_minor);
	amount_member(out, "tax", purchase->tax_minor);
	amount_member(out, "total", purchase->amount_minor + purchase->tax_minor);
	json_text(out, "currency", currency_text(purchase->currency));
	json_text(out, "state", purchase_state_text(purchase->state));
	json_boolean(out, "automatic", purchase->automatic);
	json_text(out, "provider", purchase->provider);
	json_text(out, "reference", purchase->reference);
	json_text(out, "payment_url",
	          purchase->state == PURCHASE_PENDING ? purchase->payment_url : NULL);
	payment_members(out, purchase);
	json_time(out, "created_at", purchase->created_at_us);
	json_time(out, "paid_at", purchase->paid_at_us);
	json_time(out, "ended_at", purchase->ended_at_us);
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
		json_integer(out, "unpaid_events", outcome->unpaid_events);
		json_integer(out, "settled_events", outcome->settled_events);
	}
	json_end_object(out);
	return OK;
}

static int run_purchase_create(const struct admin_call *call, struct json_writer *out,
                               struct error *error)
{
	char sale_id[ID_SIZE];
	int result = store_create_purchase(
		call->admin->store, admin_slice(call, "account"), admin_slice(call, "pack"),
		call->admin->settings->payment_provider, call->now_us, sale_id, error);
	if (!result && call->admin->service)
		result = service_make_payment_page(call->admin->service, slice_of(sale_id), error);
	return result ? result : show_purchase(call, slice_of(sale_id), NULL, out, error);
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
	list_begin(out);
	for (size_t i = 0; i < list.count; i++) {
		json_begin_object(out, NULL);
		purchase_members(out, &list.items[i]);
		json_end_object(out);
	}
	list_end(out, list.more);
	return OK;
}

static int run_purchase_show(const struct admin_call *call, struct json_writer *out,
                             struct error *error)
{
	return show_purchase(call, admin_slice(call, "sale"), NULL, out, error);
}

static int act(const struct admin_call *call, enum purchase_act what, struct json_writer *out,
               struct error *error)
{
	struct slice sale_id = admin_slice(call, "sale");
	struct purchase_order order = {.act = what, .sale_id = sale_id};
	struct purchase_outcome outcome;
	int result = store_act_on_purchase(call->admin->store, &order, call->now_us, &outcome, error);
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

/* What a provider charged it also gives back; the rest the operator has given back by hand. */
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
	result = store_ask_for_refund(call->admin->store, sale_id, call->now_us, error);
	if (result)
		return result;
	service_wake(call->admin->service, WAKE_TOPUP);
	return show_purchase(call, sale_id, NULL, out, error);
}

/* ---- automatic top-up ---- */

static int show_topup(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct topup_record topup;
	int result = store_get_topup(call->admin->store, admin_slice(call, "account"), call->now_us,
	                             call->arena, &topup, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "account_id", topup.account_id);
	json_boolean(out, "enabled", topup.enabled);
	json_integer(out, "threshold", topup.threshold);
	json_text(out, "pack_id", topup.pack_id);
	json_integer(out, "daily_max", topup.daily_max);
	json_integer(out, "bought_today", topup.bought_today);
	json_text(out, "sale_id", null_if_empty(topup.sale_id));
	json_time(out, "failed_at", topup.failed_at_us);
	json_text(out, "reason", topup.reason);
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
#define PACK ADMIN_POSITIONAL_ID("pack", "PACK", "the pack (pck_…)")
#define SALE ADMIN_POSITIONAL_ID("sale", "SALE", "the purchase's sale code (sal_…)")
#define PURCHASE_COLUMNS                                                                           \
	"sale_id account_id pack_id credits total currency state automatic created_at"

const struct admin_operation admin_purchase_operations[] = {
	{.name = "account billing",
     .summary = "show or change country, prices and payment method of an account",
     .parameters = {ACCOUNT,
                    ADMIN_FLAG_LINE("country", false, 0, 2,
                                    "billing country, such as ES; \"\": none"),
                    ADMIN_FLAG_LINE("region", false, 0, 20,
                                    "pricing region of its own: " REGIONS "; \"\": the country's"),
                    ADMIN_FLAG_LINE("tax_rate", false, 1, AMOUNT_LENGTH_MAX,
                                    "percent on top of net prices, such as 21 or 5.5"),
                    ADMIN_FLAG_LINE("customer", false, 0, PROVIDER_NAME_MAX,
                                    "the payment provider's name of the customer; \"\": none"),
                    ADMIN_FLAG_LINE("payment_method", false, 0, PROVIDER_NAME_MAX,
                                    "the provider's name of the default method; \"\": none")},
     .run = run_billing},
	{.name = "pack create",
     .summary = "put a pack of credits on sale",
     .parameters = {ADMIN_FLAG_LINE("name", true, 1, ADMIN_LINE_MAX, "as customers read it"),
                    ADMIN_FLAG_INTEGER("credits", true, 1, ADMIN_CREDITS_MAX, "credits in it"),
                    ADMIN_FLAG_LINE("price", true, 1, AMOUNT_LENGTH_MAX,
                                    "net price, such as 10.00"),
                    ADMIN_FLAG_CHOICE("currency", true, "EUR|GBP|USD", "currency of the price"),
                    ADMIN_FLAG_ID("account", "ACCOUNT", false,
                                  "a custom pack for this account alone")},
     .run = run_pack_create},
	{.name = "pack list",
     .summary = "list packs",
     .columns = "pack_id name credits price currency on_sale account_id",
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", false, "what this account can buy"),
                    ADMIN_LIST_LIMIT, ADMIN_LIST_AFTER},
     .run = run_pack_list},
	{.name = "pack show", .summary = "show a pack", .parameters = {PACK}, .run = run_pack_show},
	{.name = "pack withdraw",
     .summary = "take a pack off sale; a custom one turns off the top-up that buys it",
     .parameters = {PACK},
     .run = run_pack_withdraw},
	{.name = "pack offer",
     .summary = "put a withdrawn pack on sale again",
     .parameters = {PACK},
     .run = run_pack_offer},
	{.name = "purchase create",
     .summary = "begin a purchase of a pack",
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", true, "who buys"),
                    ADMIN_FLAG_ID("pack", "PACK", true, "what is bought")},
     .run = run_purchase_create},
	{.name = "purchase list",
     .summary = "list purchases, newest first",
     .columns = PURCHASE_COLUMNS,
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", false, "those of one account"),
                    ADMIN_FLAG_CHOICE("state", false,
                                      "pending|paid|canceled|rejected|refunded|reverted",
                                      "only these"),
                    ADMIN_LIST_LIMIT, ADMIN_LIST_AFTER},
     .run = run_purchase_list},
	{.name = "purchase show",
     .summary = "show a purchase",
     .parameters = {SALE},
     .run = run_purchase_show},
	{.name = "purchase pay",
     .summary = "confirm that a purchase was paid: its credits come",
     .parameters = {SALE},
     .run = run_purchase_pay},
	{.name = "purchase cancel",
     .summary = "call off a purchase that was not paid",
     .parameters = {SALE},
     .run = run_purchase_cancel},
	{.name = "purchase refund",
     .summary = "give a purchase back: money and credits return",
     .parameters = {SALE},
     .run = run_purchase_refund},
	{.name = "purchase revert",
     .summary = "take its credits back after the customer's bank took back the money",
     .parameters = {SALE},
     .run = run_purchase_revert},
	{.name = "topup set",
     .summary = "have a pack bought whenever the balance falls below a threshold",
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", true, "the account"),
                    ADMIN_FLAG_INTEGER("threshold", true, 1, ADMIN_CREDITS_MAX,
                                       "buy when fewer credits are left"),
                    ADMIN_FLAG_ID("pack", "PACK", true, "what to buy"),
                    ADMIN_FLAG_INTEGER("daily_max", false, 1, TOPUP_DAILY_MAX,
                                       "purchases in a UTC day (3 unless told)")},
     .run = run_topup_set},
	{.name = "topup show",
     .summary = "show an account's automatic top-up",
     .parameters = {ACCOUNT},
     .run = run_topup_show},
	{.name = "topup on",
     .summary = "turn an automatic top-up on again, with its settings",
     .parameters = {ACCOUNT},
     .run = run_topup_on},
	{.name = "topup off",
     .summary = "turn an automatic top-up off; its settings are kept",
     .parameters = {ACCOUNT},
     .run = run_topup_off},
	{0},
};
