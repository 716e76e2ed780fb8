/* The pure rules of money: currencies and amounts, pricing regions, and what a purchase may become.
 *
 * Amounts are integers in minor units (cents, pence) inside, decimal strings with two digits
 * outside; all three currencies have two. No I/O, no clock, no memory. */
#ifndef LEDGER_PURCHASE_H
#define LEDGER_PURCHASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* ---- amounts ---- */

/* Net prices; with the tax the total stays within AMOUNT_TOTAL_MAX. */
#define AMOUNT_MAX INT64_C(49999999)
#define AMOUNT_TOTAL_MAX INT64_C(99999999)
#define AMOUNT_TEXT_SIZE 24
/* Tax rates are in hundredths of a percent: 2100 is 21 %. */
#define TAX_RATE_MAX 10000
#define TAX_RATE_STEP 50

/* "10", "10.5" or "10.50", from 0 to `most` minor units: digits, and at most one point with one or
 * two digits behind it; no sign, no space, no leading zero but a single one. */
bool amount_parse(struct slice text, int64_t most, int64_t *ret_minor) MUST_CHECK;
/* "10.50"; for 0 and above. */
void amount_format(int64_t minor, char text[AMOUNT_TEXT_SIZE]);
/* The tax on a net amount, a half cent rounded up. */
int64_t amount_tax(int64_t net_minor, int64_t rate);
/* Whether that is the tax; any numbers may be asked about. */
bool amount_is_taxed(int64_t net_minor, int64_t rate, int64_t tax_minor);
/* The one multiple of TAX_RATE_STEP that gives this tax on the net amount. -1: none does, or
 * several do, so that nobody can say which it was. */
int64_t amount_tax_rate(int64_t net_minor, int64_t tax_minor);
/* The rate that a receipt names: the recorded one, or where none was (below 0) the one above. */
int64_t amount_named_rate(int64_t recorded, int64_t net_minor, int64_t tax_minor);

/* Of the credits that `total_minor` bought, those that a part of it bought, which was taken back:
 * rounded down, so that nobody loses more than was taken. All of them for the whole and above. */
int64_t amount_credits_lost(int64_t credits, int64_t total_minor, int64_t lost_minor);

/* ---- currencies and pricing regions ---- */

enum currency { CURRENCY_EUR, CURRENCY_GBP, CURRENCY_USD };
const char *currency_text(enum currency currency); /* "EUR", "GBP", "USD" */
bool currency_parse(struct slice text, enum currency *ret) MUST_CHECK;

/* A pricing region has one currency, and packs are on sale in a currency. */
enum pricing_region { REGION_EUROPE, REGION_UNITED_KINGDOM, REGION_WORLD };
const char *region_text(enum pricing_region region); /* "europe", "united-kingdom", "world" */
bool region_parse(struct slice text, enum pricing_region *ret) MUST_CHECK;
enum currency region_currency(enum pricing_region region);
/* ISO 3166-1 alpha-2 in capitals, of those assigned. */
bool country_is_known(struct slice country);
/* The region a known country belongs to unless the account has one of its own. */
enum pricing_region country_region(struct slice country);

/* ---- what a purchase may become ---- */

enum purchase_state {
	PURCHASE_PENDING,  /* created, to be paid */
	PURCHASE_PAID,     /* its credits are in the balance */
	PURCHASE_CANCELED, /* called off before it was paid */
	PURCHASE_REJECTED, /* the payment provider did not take the order: it never came about */
	PURCHASE_REFUNDED, /* given back */
	PURCHASE_REVERTED, /* taken back by the customer's bank */
};
const char *purchase_state_text(enum purchase_state state);
bool purchase_state_parse(struct slice text, enum purchase_state *ret) MUST_CHECK;

enum purchase_act {
	PURCHASE_PAY,
	PURCHASE_CANCEL,
	PURCHASE_REJECT,
	PURCHASE_REFUND,
	PURCHASE_REVERT
};

struct purchase_step {
	bool allowed;           /* false: refused, nothing changes */
	enum purchase_state to; /* the same as before: it was done already */
	int credits;            /* 1: the pack's credits come; -1: they go; 0: none move */
};
/* `told`: the provider says that it happened, so that it cannot be refused: notices come late,
 * twice and out of order, and the state must end up as if they had come in order. Money that
 * arrives for a canceled purchase buys its credits; money that we only hear of as given back buys
 * none. */
struct purchase_step purchase_step(enum purchase_state from, enum purchase_act act, bool told);

#endif
