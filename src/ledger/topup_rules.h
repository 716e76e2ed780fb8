/* Automatic top-up, pure functions: when to buy, reasons for failure, and the two notices.
 *
 * A top-up has settings (threshold, pack, daily maximum) and is enabled or disabled. It is
 * evaluated again whenever it is enabled, the balance is below the threshold and it has no purchase
 * in progress. Every failure disables it, so each cause sends one notice. */
#ifndef LEDGER_TOPUP_RULES_H
#define LEDGER_TOPUP_RULES_H

#include "ledger/ledger.h"
#include "ledger/purchase_rules.h"

/* `reason` of recharge.auto_failed. */
enum recharge_reason {
	RECHARGE_PAYMENT_FAILED,           /* the charge was declined */
	RECHARGE_SALE_CREATION_FAILED,     /* the provider did not accept the order */
	RECHARGE_PAYMENT_METHOD_MISSING,   /* none is set, or the provider does not know it */
	RECHARGE_PACK_UNAVAILABLE,         /* withdrawn, or not sold in the account's currency */
	RECHARGE_PRICING_COUNTRY_REQUIRED, /* no billing country */
	RECHARGE_DAILY_LIMIT,
	RECHARGE_ACCOUNT_SUSPENDED,
	RECHARGE_CUSTOM_PACK_INACTIVE,
};
const char *recharge_reason_text(enum recharge_reason reason);

struct topup_facts {
	bool enabled;
	bool under_way; /* a purchase of the top-up is neither paid nor failed */
	int64_t balance;
	int64_t threshold;
	bool account_suspended;
	bool account_disabled; /* the top-up waits: no purchase, no failure */
	bool pack_on_sale;     /* and available to this account, in its currency if known */
	bool pack_custom;
	bool has_payment_method;
	bool has_country;
	int64_t bought_today; /* purchases of the top-up started in this UTC day */
	int64_t daily_max;
};
enum topup_action { TOPUP_NOTHING, TOPUP_BUY, TOPUP_FAIL };
/* Decides the next action, with the reason for TOPUP_FAIL. Of several reasons the first counts:
 * account suspended, pack, payment method, country, daily maximum. */
enum topup_action topup_decide(const struct topup_facts *facts, enum recharge_reason *ret_reason);

/* Data of the notices. Texts belong to the caller. */
struct recharge {
	/* NULL: no purchase was created; credits, amount and currency are null then. */
	const char *sale_id;
	const char *pack_id;
	int64_t credits;
	int64_t amount_minor; /* net */
	enum currency currency;
	int64_t threshold;
};
/* Creates the notice of a completed top-up. `balance`: after adding the pack and settling unpaid
 * events. Returns 0 or ERR_NO_MEMORY; the data is in the arena. */
int recharge_completed(const struct recharge *recharge, int64_t balance, struct arena *arena,
                       struct ledger_notice *ret) MUST_CHECK;
/* Creates the notice of a failed top-up. `payment_url`: page to pay a purchase that was created and
 * not charged; NULL or empty: none. */
int recharge_failed(const struct recharge *recharge, enum recharge_reason reason,
                    const char *payment_url, struct arena *arena, struct ledger_notice *ret)
	MUST_CHECK;

#endif
