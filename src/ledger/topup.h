/* Automatic top-up, pure: when to buy, why not, and the two notices that tell of it.
 *
 * A top-up has settings (threshold, pack, daily maximum) and is on or off. Whenever it is on, the
 * balance is below the threshold and no purchase of it is under way, it is decided anew. Every
 * failure turns it off, so that each cause sends one notice. */
#ifndef LEDGER_TOPUP_H
#define LEDGER_TOPUP_H

#include "ledger/ledger.h"
#include "ledger/purchase.h"

/* `reason` of recharge.auto_failed. */
enum recharge_reason {
	RECHARGE_PAYMENT_FAILED,           /* the charge was declined */
	RECHARGE_SALE_CREATION_FAILED,     /* the provider did not take the order */
	RECHARGE_PAYMENT_METHOD_MISSING,   /* none is set, or the provider knows none of that name */
	RECHARGE_PACK_UNAVAILABLE,         /* withdrawn, or not sold in the account's currency */
	RECHARGE_PRICING_COUNTRY_REQUIRED, /* no billing country */
	RECHARGE_DAILY_LIMIT,
	RECHARGE_ACCOUNT_SUSPENDED,
	RECHARGE_CUSTOM_PACK_INACTIVE,
};
const char *recharge_reason_text(enum recharge_reason reason);

struct topup_facts {
	bool enabled;
	bool under_way; /* a purchase of it is neither paid nor failed */
	int64_t balance;
	int64_t threshold;
	bool account_suspended;
	bool account_disabled; /* nothing is bought or failed for it: it waits */
	bool pack_on_sale;     /* and sold to this account, in its currency if that is known */
	bool pack_custom;
	bool has_payment_method;
	bool has_country;
	int64_t bought_today; /* purchases of it that were begun this UTC day */
	int64_t daily_max;
};
enum topup_action { TOPUP_NOTHING, TOPUP_BUY, TOPUP_FAIL };
/* With TOPUP_FAIL the reason. Several causes at once give the first of: account suspended, pack,
 * payment method, country, daily maximum. */
enum topup_action topup_decide(const struct topup_facts *facts, enum recharge_reason *ret_reason);

/* What the notices tell. Texts are the caller's. */
struct recharge {
	/* NULL: no purchase was created; then credits, amount, currency are null. */
	const char *sale_id;
	const char *pack_id;
	int64_t credits;
	int64_t amount_minor; /* net */
	enum currency currency;
	int64_t threshold;
};
/* `balance`: after the pack was added and unpaid events were settled. 0 or ERR_NO_MEMORY; the data
 * is in the arena. */
int recharge_completed(const struct recharge *recharge, int64_t balance, struct arena *arena,
                       struct ledger_notice *ret) MUST_CHECK;
/* `payment_url`: page to pay by hand what was created and not charged; NULL or empty: none. */
int recharge_failed(const struct recharge *recharge, enum recharge_reason reason,
                    const char *payment_url, struct arena *arena, struct ledger_notice *ret)
	MUST_CHECK;

#endif
