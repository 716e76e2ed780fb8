/* Billing of accounts (country, pricing region, payment method) and the packs that they can buy.
 *
 * Conventions as in accounts.h: each change is one durable transaction, objects are named by their
 * identifiers, an unknown one is ERR_NOT_FOUND with a message, the caller has validated all texts,
 * and results live in the caller's arena. Thread safe. */
#ifndef STORE_PACKS_H
#define STORE_PACKS_H

#include "ledger/purchase_rules.h"
#include "store/store.h"

/* ---- billing ---- */
struct billing {
	const char *country; /* NULL: none */
	bool own_region;     /* set by the operator; else derived from the country */
	bool has_region;     /* `region` is set */
	enum pricing_region region;
	int64_t tax_rate;           /* hundredths of a percent */
	const char *customer;       /* the provider's identifier; NULL: none */
	const char *payment_method; /* the provider's identifier of the default method; NULL: none */
};
int store_get_billing(struct store *store, struct slice account_id, struct arena *arena,
                      struct billing *ret, struct error *error) MUST_CHECK;

/* A member that is NULL or negative leaves the value unchanged; "" removes it. */
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
	char account_id[ID_SIZE]; /* of a custom pack; empty: on sale to all accounts */
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
	bool partial; /* incomplete: a shard server is unavailable */
};
/* Creates a pack from account_id, name, credits, amount_minor and currency of `given`. Returns
 * ERR_REFUSED when the currency of a custom pack is not that of its account's pricing region, if
 * that is known. */
int store_create_pack(struct store *store, const struct pack_record *given, int64_t now_us,
                      char ret_pack_id[ID_SIZE], struct error *error) MUST_CHECK;
int store_find_pack(struct store *store, struct slice pack_id, struct arena *arena,
                    struct pack_record *ret, struct error *error) MUST_CHECK;
/* Lists the packs on sale to all accounts in order of creation, then custom packs. account_id
 * empty: all packs; else the packs that this account can buy: on sale, in its currency if known,
 * and its own. */
int store_list_packs(struct store *store, struct slice account_id, struct slice after,
                     int64_t limit, struct arena *arena, struct pack_list *ret, struct error *error)
	MUST_CHECK;
/* Withdraws a pack from sale, or puts it on sale again. Existing purchases are not changed. An
 * automatic top-up with a custom pack is turned off at once, with its notice; a top-up with a
 * general pack fails when it is next due. *ret_turned_off is the number of top-ups turned off (0 or
 * 1). */
int store_withdraw_pack(struct store *store, struct slice pack_id, bool withdrawn, int64_t now_us,
                        int64_t *ret_turned_off, struct error *error) MUST_CHECK;

#endif
