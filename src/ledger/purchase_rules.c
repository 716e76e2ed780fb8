#include "ledger/purchase_rules.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- amounts ---- */

#define AMOUNT_DIGITS_MAX 15 /* of the integer part */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool amount_parse(struct slice text, int64_t most, int64_t *ret_minor)
{
	size_t at = 0;
	int64_t minor = 0;
	while (at < text.size && is_digit(text.data[at]) && at < AMOUNT_DIGITS_MAX)
		minor = minor * 10 + (text.data[at++] - '0');
	if (at == 0 || (at > 1 && text.data[0] == '0'))
		return false;
	size_t behind = text.size - at;
	if (behind == 1 || behind > 3 || (behind > 0 && text.data[at] != '.'))
		return false;
	for (size_t i = 1; i <= 2; i++) {
		if (i < behind && !is_digit(text.data[at + i]))
			return false;
		minor = minor * 10 + (i < behind ? text.data[at + i] - '0' : 0);
	}
	if (minor > most)
		return false;
	*ret_minor = minor;
	return true;
}

void amount_format(int64_t minor, char text[AMOUNT_TEXT_SIZE])
{
	assert(minor >= 0);
	snprintf(text, AMOUNT_TEXT_SIZE, "%" PRId64 ".%02" PRId64, minor / 100, minor % 100);
}

int64_t amount_tax(int64_t net_minor, int64_t rate)
{
	assert(net_minor >= 0 && net_minor <= AMOUNT_MAX && rate >= 0 && rate <= TAX_RATE_MAX);
	return (net_minor * rate + 5000) / 10000;
}

bool amount_is_taxed(int64_t net_minor, int64_t rate, int64_t tax_minor)
{
	return net_minor >= 0 && net_minor <= AMOUNT_MAX && rate >= 0 && rate <= TAX_RATE_MAX &&
	       amount_tax(net_minor, rate) == tax_minor;
}

int64_t amount_credits_lost(int64_t credits, int64_t total_minor, int64_t lost_minor)
{
	assert(credits >= 0 && total_minor >= 0 && total_minor <= AMOUNT_TOTAL_MAX);
	if (lost_minor >= total_minor)
		return credits;
	if (lost_minor <= 0)
		return 0;
	/* Computed in two terms, because the product of all factors may overflow. */
	return credits / total_minor * lost_minor + credits % total_minor * lost_minor / total_minor;
}

/* ---- currencies and pricing regions ---- */

static const char *const currency_names[] = {"EUR", "GBP", "USD"};
static const char *const region_names[] = {"europe", "united-kingdom", "world"};

static bool find_name(const char *const *names, size_t count, struct slice text, unsigned *ret)
{
	for (unsigned i = 0; i < count; i++)
		if (slice_is(text, names[i])) {
			*ret = i;
			return true;
		}
	return false;
}

const char *currency_text(enum currency currency)
{
	assert((size_t)currency < sizeof currency_names / sizeof *currency_names);
	return currency_names[currency];
}

bool currency_parse(struct slice text, enum currency *ret)
{
	unsigned found;
	if (!find_name(currency_names, 3, text, &found))
		return false;
	*ret = (enum currency)found;
	return true;
}

const char *region_text(enum pricing_region region)
{
	assert((size_t)region < sizeof region_names / sizeof *region_names);
	return region_names[region];
}

bool region_parse(struct slice text, enum pricing_region *ret)
{
	unsigned found;
	if (!find_name(region_names, 3, text, &found))
		return false;
	*ret = (enum pricing_region)found;
	return true;
}

enum currency region_currency(enum pricing_region region)
{
	static const enum currency currencies[] = {CURRENCY_EUR, CURRENCY_GBP, CURRENCY_USD};
	assert((size_t)region < sizeof currencies / sizeof *currencies);
	return currencies[region];
}

/* Two letters per country. */
static const char united_kingdom[] = "GBGGGIIMJE";
static const char europe[] =
	"ADALATAXBABEBGBYCHCYCZDEDKEEESFIFOFRGFGPGRHRHUIEISITLILTLULVMCMDMEMFMKMQMTNLNOPLPMPT"
	"RERORSSESISKSJSMUAVAYT";
static const char others[] =
	"AEAFAGAIAMAOAQARASAUAWAZBBBDBFBHBIBJBLBMBNBOBQBRBSBTBVBWBZCACCCDCFCGCICKCLCMCNCOCRCU"
	"CVCWCXDJDMDODZECEGEHERETFJFKFMGAGDGEGHGLGMGNGQGSGTGUGWGYHKHMHNHTIDILINIOIQIRJMJOJPKE"
	"KGKHKIKMKNKPKRKWKYKZLALBLCLKLRLSLYMAMGMHMLMMMNMOMPMRMSMUMVMWMXMYMZNANCNENFNGNINPNRNU"
	"NZOMPAPEPFPGPHPKPNPRPSPWPYQARURWSASBSCSDSGSHSLSNSOSRSSSTSVSXSYSZTCTDTFTGTHTJTKTLTMTN"
	"TOTRTTTVTWTZUGUMUSUYUZVCVEVGVIVNVUWFWSYEZAZMZW";

static bool is_among(const char *countries, struct slice country)
{
	if (country.size != 2)
		return false;
	for (const char *at = countries; *at; at += 2)
		if (memcmp(at, country.data, 2) == 0)
			return true;
	return false;
}

bool country_is_known(struct slice country)
{
	return is_among(united_kingdom, country) || is_among(europe, country) ||
	       is_among(others, country);
}

enum pricing_region country_region(struct slice country)
{
	if (is_among(united_kingdom, country))
		return REGION_UNITED_KINGDOM;
	return is_among(europe, country) ? REGION_EUROPE : REGION_WORLD;
}

/* ---- states of a purchase ---- */

static const char *const state_names[] = {"pending",  "paid",     "canceled",
                                          "rejected", "refunded", "reverted"};

const char *purchase_state_text(enum purchase_state state)
{
	assert((size_t)state < sizeof state_names / sizeof *state_names);
	return state_names[state];
}

bool purchase_state_parse(struct slice text, enum purchase_state *ret)
{
	unsigned found;
	if (!find_name(state_names, 6, text, &found))
		return false;
	*ret = (enum purchase_state)found;
	return true;
}

static struct purchase_step step_to(enum purchase_state to, int credits)
{
	return (struct purchase_step){true, to, credits};
}

/* Refunded or reverted: the first of the two remains. */
static struct purchase_step step_back(enum purchase_state from, enum purchase_state to,
                                      bool reported)
{
	if (from == PURCHASE_PAID)
		return step_to(to, -1);
	if (from == PURCHASE_REFUNDED || from == PURCHASE_REVERTED)
		return (struct purchase_step){reported || from == to, from, 0};
	return (struct purchase_step){reported, reported ? to : from, 0};
}

struct purchase_step purchase_step(enum purchase_state from, enum purchase_action act,
                                   bool reported)
{
	bool never_paid = from == PURCHASE_CANCELED || from == PURCHASE_REJECTED;
	switch (act) {
	case PURCHASE_PAY:
		if (from == PURCHASE_PENDING || (never_paid && reported))
			return step_to(PURCHASE_PAID, 1);
		return (struct purchase_step){reported || from == PURCHASE_PAID, from, 0};
	case PURCHASE_CANCEL:
	case PURCHASE_REJECT:
		if (from == PURCHASE_PENDING)
			return step_to(act == PURCHASE_CANCEL ? PURCHASE_CANCELED : PURCHASE_REJECTED, 0);
		return (struct purchase_step){
			reported || (act == PURCHASE_CANCEL && from == PURCHASE_CANCELED), from, 0};
	case PURCHASE_REFUND: return step_back(from, PURCHASE_REFUNDED, reported);
	case PURCHASE_REVERT: return step_back(from, PURCHASE_REVERTED, reported);
	}
	return (struct purchase_step){false, from, 0};
}
