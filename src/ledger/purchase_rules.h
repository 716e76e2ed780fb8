/* Rules for purchases: currencies, amounts, pricing regions, and the states of a purchase. Pure
 * functions.
 *
 * Amounts are integers in minor units (cents, pence) internally, and decimal strings with two
 * digits externally. All three currencies have two digits. */
#ifndef LEDGER_PURCHASE_RULES_H
#define LEDGER_PURCHASE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* ---- amounts ---- */

/* Maximum net price. With tax, a total is at most AMOUNT_TOTAL_MAX. */
#define AMOUNT_MAX INT64_C(49999999)
#define AMOUNT_TOTAL_MAX INT64_C(99999999)
#define AMOUNT_TEXT_SIZE 24
/* Tax rates are in hundredths of a percent: 2100 is 21 %. */
#define TAX_RATE_MAX 10000

/* Parses "10", "10.5" or "10.50", from 0 to `most` minor units: digits with an optional point and
 * one or two digits after it. No sign, no spaces, no superfluous leading zeros. */
bool amount_parse(struct slice text, int64_t most, int64_t *ret_minor) MUST_CHECK;
/* Writes "10.50", for amounts of at least 0. */
void amount_format(int64_t minor, char text[AMOUNT_TEXT_SIZE]);
/* Returns the tax on a net amount, rounded half up. */
int64_t amount_tax(int64_t net_minor, int64_t rate);
/* Returns whether `tax_minor` is the tax. Accepts any numbers. */
bool amount_is_taxed(int64_t net_minor, int64_t rate, int64_t tax_minor);

/* Returns the credits to remove if `lost_minor` of `total_minor` was taken back: the proportional
 * part, rounded down in the customer's favour; all credits for the total or more. */
int64_t amount_credits_lost(int64_t credits, int64_t total_minor, int64_t lost_minor);

/* ---- currencies and pricing regions ---- */

enum currency { CURRENCY_EUR, CURRENCY_GBP, CURRENCY_USD };
const char *currency_text(enum currency currency); /* "EUR", "GBP", "USD" */
bool currency_parse(struct slice text, enum currency *ret) MUST_CHECK;

/* A pricing region has one currency; packs are sold in a currency. */
enum pricing_region { REGION_EUROPE, REGION_UNITED_KINGDOM, REGION_WORLD };
const char *region_text(enum pricing_region region); /* "europe", "united-kingdom", "world" */
bool region_parse(struct slice text, enum pricing_region *ret) MUST_CHECK;
enum currency region_currency(enum pricing_region region);
/* Returns whether `country` is an assigned ISO 3166-1 alpha-2 code in capitals. */
bool country_is_known(struct slice country);
/* Returns the default region of a known country. */
enum pricing_region country_region(struct slice country);

/* ---- states of a purchase ---- */

enum purchase_state {
	PURCHASE_PENDING,  /* created, not paid */
	PURCHASE_PAID,     /* credits were added */
	PURCHASE_CANCELED, /* canceled before payment */
	PURCHASE_REJECTED, /* the payment provider did not accept the order */
	PURCHASE_REFUNDED, /* refunded to the customer */
	PURCHASE_REVERTED, /* taken back by the customer's bank */
};
const char *purchase_state_text(enum purchase_state state);
bool purchase_state_parse(struct slice text, enum purchase_state *ret) MUST_CHECK;

enum purchase_action {
	PURCHASE_PAY,
	PURCHASE_CANCEL,
	PURCHASE_REJECT,
	PURCHASE_REFUND,
	PURCHASE_REVERT
};

struct purchase_step {
	bool allowed;           /* false: refused, no change */
	enum purchase_state to; /* equal to `from`: already done */
	int credits;            /* 1: add the pack's credits; -1: remove them; 0: none */
};
/* `reported`: by the provider, so it cannot be refused. Reports may be late, repeated
 * and out of order; the final state is the same as in order. A payment for a canceled purchase adds
 * its credits. A payment that is first reported as refunded adds none. */
struct purchase_step purchase_step(enum purchase_state from, enum purchase_action act,
                                   bool reported);

#endif
