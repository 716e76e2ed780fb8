/* How accounts pay (country, pricing region, payment method) and the packs they can buy.
 *
 * As in accounts.h: each change is one durable transaction, things are named by their identifiers,
 * what does not exist is ERR_NOT_FOUND with a sentence, texts have been validated by the caller and
 * what is given back lives in the caller's arena. Thread safe. */
#ifndef STORE_PACKS_H
#define STORE_PACKS_H

#include "ledger/purchase.h"
#include "store/store.h"

/* ---- billing ---- */
struct billing {
	const char *country; /* NULL: none */
	bool own_region;     /* set by the operator; else it is the country's */
	bool has_region;     /* one of the two */
	enum pricing_region region;
	int64_t tax_rate;           /* hundredths of a percent */
	const char *customer;       /* the provider's name; NULL: none */
	const char *payment_method; /* likewise: the default one */
};
int store_get_billing(struct store *store, struct slice account_id, struct arena *arena,
                      struct billing *ret, struct error *error) MUST_CHECK;

/* What is NULL or negative stays as it is; "" makes it none. */
struct billing_change {
	const char *country;
	const char *region;
	int64_t tax_rate;
	const char *customer;
	const char *payment_method;
};
int store_change_billing(struct store *store, struct slice account_id,
                         const struct billing_change *change, struct error *error) MUST_CHECK;

/* ---- packs ---- */
struct pack_record {
	char pack_id[ID_SIZE];
	char account_id[ID_SIZE]; /* of a custom pack; empty: on sale to everybody */
	const char *name;
	int64_t credits;
	int64_t amount_minor; /* net */
	enum currency currency;
	int64_t created_at_us;
	int64_t withdrawn_at_us; /* TIME_NONE: on sale */
};
struct pack_list {
	struct pack_record *items;
	size_t count;
	bool more;
	bool partial; /* a server is away that may have some, too */
};
/* From given: account_id, name, credits, amount_minor, currency. A custom pack has the currency of
 * its account's pricing region once that is known, else ERR_REFUSED. */
int store_create_pack(struct store *store, const struct pack_record *given, int64_t now_us,
                      char ret_pack_id[ID_SIZE], struct error *error) MUST_CHECK;
int store_find_pack(struct store *store, struct slice pack_id, struct arena *arena,
                    struct pack_record *ret, struct error *error) MUST_CHECK;
/* Those on sale to everybody in order of creation, then custom ones. account_id empty: all packs;
 * else what this account can buy: on sale, in its currency where that is known, and its own. */
int store_list_packs(struct store *store, struct slice account_id, struct slice after,
                     int64_t limit, struct arena *arena, struct pack_list *ret, struct error *error)
	MUST_CHECK;
/* Takes a pack off sale, or puts it on sale again. Purchases that exist stay as they are. An
 * automatic top-up that buys a custom pack is turned off at once, with its notice; one that buys a
 * pack for everybody finds out when it is due. *ret_turned_off: top-ups turned off (0 or 1). */
int store_withdraw_pack(struct store *store, struct slice pack_id, bool withdrawn, int64_t now_us,
                        int64_t *ret_turned_off, struct error *error) MUST_CHECK;

#endif
