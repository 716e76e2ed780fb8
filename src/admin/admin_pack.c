/* Operations on billing data and packs. */
#include <assert.h>

#include "admin/admin_call.h"
#include "store/money/packs.h"

#define PROVIDER_NAME_MAX 128 /* length of the ID of a customer or a payment method */
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
	char label[FIELD_SIZE];
	amount_format(least, from);
	amount_format(most, to);
	return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_AMOUNT, error_field(name, label), from, to,
	                 NULL);
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
	admin_amount(out, "tax_rate", billing.tax_rate);
	ADMIN_PUT(out, &billing, customer, payment_method);
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
	int result = check_country(call, error) ?: check_region(call, error);
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
	ADMIN_PUT(out, pack, name, credits);
	admin_amount(out, "price", pack->amount_minor);
	json_text(out, "currency", currency_text(pack->currency));
	json_boolean(out, "on_sale", pack->withdrawn_at_us == TIME_NONE);
	ADMIN_PUT(out, pack, created_at_us, withdrawn_at_us);
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
	ADMIN_PUT_LIST(out, &list, item, pack_members(out, item));
	list_end_partial(out, list.more, list.partial);
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

#define ACCOUNT ADMIN_POSITIONAL_ID("account", "ACCOUNT", "the account")
#define PACK ADMIN_POSITIONAL_ID("pack", "PACK", "the pack (pck_…)")

const struct admin_operation admin_pack_operations[] = {
	{.name = "account billing",
     .summary = "show or change an account's country, pricing and payment method",
     .changes = true,
     .parameters =
         {ACCOUNT,
          ADMIN_FLAG_LINE("country", false, 0, 2, "billing country, such as ES; \"\": none"),
          ADMIN_FLAG_LINE("region", false, 0, 20,
                          "pricing region: " REGIONS "; \"\": the region of the country"),
          ADMIN_FLAG_LINE("tax_rate", false, 1, AMOUNT_LENGTH_MAX,
                          "percent on top of net prices, such as 21 or 5.5"),
          ADMIN_FLAG_LINE("customer", false, 0, PROVIDER_NAME_MAX,
                          "customer ID at the payment provider; \"\": none"),
          ADMIN_FLAG_LINE("payment_method", false, 0, PROVIDER_NAME_MAX,
                          "ID of the default payment method at the provider; \"\": none")},
     .run = run_billing},
	{.name = "billing show",
     .summary = "show an account's country, pricing and payment method",
     .parameters = {ACCOUNT},
     .run = show_billing},
	{.name = "pack create",
     .summary = "put a pack of credits on sale",
     .changes = true,
     .parameters =
         {ADMIN_FLAG_LINE("name", true, 1, ADMIN_LINE_MAX, "name shown to customers"),
          ADMIN_FLAG_INTEGER("credits", true, 1, ADMIN_CREDITS_MAX, "credits in the pack"),
          ADMIN_FLAG_LINE("price", true, 1, AMOUNT_LENGTH_MAX, "net price, such as 10.00"),
          ADMIN_FLAG_CHOICE("currency", true, "EUR|GBP|USD", "currency of the price"),
          ADMIN_FLAG_ID("account", "ACCOUNT", false, "create a custom pack for this account only")},
     .run = run_pack_create},
	{.name = "pack list",
     .summary = "list packs",
     .columns = "pack_id name credits price currency on_sale account_id",
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", false,
                                  "only packs that this account can buy"),
                    ADMIN_LIST_LIMIT, ADMIN_LIST_AFTER},
     .run = run_pack_list},
	{.name = "pack show", .summary = "show a pack", .parameters = {PACK}, .run = run_pack_show},
	{.name = "pack withdraw",
     .summary =
         "withdraw a pack from sale; for a custom pack, also turn off the top-up that buys it",
     .changes = true,
     .parameters = {PACK},
     .run = run_pack_withdraw},
	{.name = "pack offer",
     .summary = "put a withdrawn pack on sale again",
     .changes = true,
     .parameters = {PACK},
     .run = run_pack_offer},
	{0},
};
