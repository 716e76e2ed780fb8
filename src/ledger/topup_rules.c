#include "ledger/topup_rules.h"

#include "base/json.h"

#define NOTICE_DATA_MAX                                                                            \
	16384 /* a payment page's address may be long, and escapes make it longer                      \
	       */

const char *recharge_reason_text(enum recharge_reason reason)
{
	static const char *const names[] = {
		"payment_failed",    "sale_creation_failed",     "payment_method_missing",
		"pack_unavailable",  "pricing_country_required", "daily_limit",
		"account_suspended", "custom_pack_inactive",
	};
	return names[reason];
}

static bool find_obstacle(const struct topup_facts *facts, enum recharge_reason *ret_reason)
{
	if (facts->account_suspended)
		*ret_reason = RECHARGE_ACCOUNT_SUSPENDED;
	else if (!facts->pack_on_sale)
		*ret_reason =
			facts->pack_custom ? RECHARGE_CUSTOM_PACK_INACTIVE : RECHARGE_PACK_UNAVAILABLE;
	else if (!facts->has_payment_method)
		*ret_reason = RECHARGE_PAYMENT_METHOD_MISSING;
	else if (!facts->has_country)
		*ret_reason = RECHARGE_PRICING_COUNTRY_REQUIRED;
	else if (facts->bought_today >= facts->daily_max)
		*ret_reason = RECHARGE_DAILY_LIMIT;
	else
		return false;
	return true;
}

enum topup_action topup_decide(const struct topup_facts *facts, enum recharge_reason *ret_reason)
{
	if (!facts->enabled || facts->under_way || facts->account_disabled ||
	    facts->balance >= facts->threshold)
		return TOPUP_NOTHING;
	return find_obstacle(facts, ret_reason) ? TOPUP_FAIL : TOPUP_BUY;
}

/* ---- notices ---- */

static void write_facts(struct json_writer *writer, const struct recharge *recharge)
{
	json_begin_object(writer, NULL);
	json_text(writer, "recharge_id", recharge->sale_id);
	json_text(writer, "pack_id", recharge->pack_id);
	if (recharge->sale_id) {
		char amount[AMOUNT_TEXT_SIZE];
		amount_format(recharge->amount_minor, amount);
		json_integer(writer, "credits", recharge->credits);
		json_text(writer, "amount", amount);
		json_text(writer, "currency", currency_text(recharge->currency));
	} else {
		json_null(writer, "credits");
		json_null(writer, "amount");
		json_null(writer, "currency");
	}
	json_integer(writer, "threshold", recharge->threshold);
}

static int finish(struct json_writer *writer, enum notice_type type, struct arena *arena,
                  struct ledger_notice *ret)
{
	json_end_object(writer);
	int result = buf_check(writer->out);
	if (result)
		return result;
	const char *copy = arena_copy(arena, writer->out->data, writer->out->size);
	if (!copy)
		return ERR_NO_MEMORY;
	*ret = (struct ledger_notice){.type = type, .data = slice_make(copy, writer->out->size)};
	return OK;
}

int recharge_completed(const struct recharge *recharge, int64_t balance, struct arena *arena,
                       struct ledger_notice *ret)
{
	BUF_AUTO struct buf data;
	buf_init(&data, NOTICE_DATA_MAX);
	struct json_writer writer = {.out = &data};
	write_facts(&writer, recharge);
	json_integer(&writer, "balance", balance);
	return finish(&writer, NOTICE_RECHARGE_COMPLETED, arena, ret);
}

int recharge_failed(const struct recharge *recharge, enum recharge_reason reason,
                    const char *payment_url, struct arena *arena, struct ledger_notice *ret)
{
	BUF_AUTO struct buf data;
	buf_init(&data, NOTICE_DATA_MAX);
	struct json_writer writer = {.out = &data};
	write_facts(&writer, recharge);
	json_text(&writer, "reason", recharge_reason_text(reason));
	json_text(&writer, "payment_url", payment_url && *payment_url ? payment_url : NULL);
	json_boolean(&writer, "auto_recharge_disabled", true);
	return finish(&writer, NOTICE_RECHARGE_FAILED, arena, ret);
}
