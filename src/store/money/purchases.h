/* Purchases of packs and the payments made for them.
 *
 * Credits move in the transaction that changes a purchase's state: an entry "purchase" when it is
 * paid, "refund" or "revert" when it is taken back, each with the sale code as its reference, after
 * the rules of ledger/purchase.h. An automatic top-up whose purchase is paid or fails is told of in
 * the same transaction.
 *
 * Conventions as in accounts.h. */
#ifndef STORE_PURCHASES_H
#define STORE_PURCHASES_H

#include "ledger/topup.h"
#include "store/store.h"

#define IDEMPOTENCY_KEY_SIZE (ID_SIZE + 32)

struct purchase_record {
	char sale_id[ID_SIZE];
	char account_id[ID_SIZE];
	char pack_id[ID_SIZE];
	const char *description;
	int64_t credits;
	int64_t amount_minor; /* net */
	int64_t tax_minor;
	enum currency currency;
	/* Of the account when it was created. */
	int64_t tax_rate;         /* hundredths of a percent; below 0: from before it was recorded */
	const char *account_name; /* NULL: likewise */
	const char *country;      /* NULL: none */
	const char *provider;
	bool automatic;
	enum purchase_state state;
	int64_t created_at_us;
	int64_t paid_at_us;      /* TIME_NONE: never */
	int64_t ended_at_us;     /* canceled, rejected, refunded or reverted; TIME_NONE */
	const char *reference;   /* the provider's name of the payment; NULL */
	const char *payment_url; /* NULL: none */
	const char *customer;
	const char *payment_method;
	/* The last attempt at charging or giving back; payment NULL: there was none. */
	const char *payment;       /* "charge", "refund" */
	const char *payment_state; /* "due", "waiting", "over" */
	const char *payment_outcome;
	const char *payment_error;
};
struct purchase_list {
	struct purchase_record *items;
	size_t count;
	bool more;
	bool partial; /* a server is away that may have some, too */
};
/* Pending, at the pack's price as it stands. ERR_REFUSED: the pack is withdrawn, another account's
 * custom pack, or not sold in the account's currency; the account is disabled. */
int store_create_purchase(struct store *store, struct slice account_id, struct slice pack_id,
                          const char *provider, int64_t now_us, char ret_sale_id[ID_SIZE],
                          struct error *error) MUST_CHECK;
int store_find_purchase(struct store *store, struct slice sale_id, struct arena *arena,
                        struct purchase_record *ret, struct error *error) MUST_CHECK;
/* Newest first. account_id empty: of all accounts; state -1: any, else enum purchase_state. `after`
 * is a sale code, empty for the first page. */
int store_list_purchases(struct store *store, struct slice account_id, int state,
                         struct slice after, int64_t limit, struct arena *arena,
                         struct purchase_list *ret, struct error *error) MUST_CHECK;
/* Keeps the page on which a pending purchase can be paid. */
int store_set_payment_url(struct store *store, struct slice sale_id, const char *payment_url,
                          struct error *error) MUST_CHECK;

/* ---- what becomes of a purchase ---- */

/* An operator's act, or (told) what the provider says has happened. */
struct purchase_order {
	enum purchase_act act;
	bool told;
	struct slice sale_id;
	const char *reference; /* told: the provider's name of the payment; finds it without sale_id */
	int64_t amount_minor;  /* told: what was received or taken back; less than the total: refused */
	struct slice currency;
};
enum recharge_end { RECHARGE_NONE, RECHARGE_COMPLETED, RECHARGE_FAILED };
struct purchase_outcome {
	bool changed; /* false: it was so already */
	enum purchase_state state;
	int64_t balance;
	int64_t unpaid_events;
	int64_t settled_events;
	enum recharge_end recharge; /* the end of an automatic top-up that came with it */
};
/* An operator's act is ERR_REFUSED where purchase_step says so, and while the provider works on a
 * charge whose outcome is not known. ERR_REFUSED too, with nothing changed, when too little was
 * received, and when the provider tells that a part was taken back, or another currency: the
 * sentence says how many credits that part bought, for an operator to take. */
int store_act_on_purchase(struct store *store, const struct purchase_order *order, int64_t now_us,
                          struct purchase_outcome *ret, struct error *error) MUST_CHECK;

/* ---- payments: attempts, each a job with a lease ---- */

enum payment_action { PAYMENT_CHARGE, PAYMENT_GIVE_BACK };
struct payment {
	int64_t account;
	int64_t number;
	int64_t purchase;
	enum payment_action action;
	char idempotency_key[IDEMPOTENCY_KEY_SIZE];
	bool waiting; /* the provider has taken it on: ask, do not try again */
	int64_t created_at_us;
	int64_t first_try_at_us; /* when the first try began */
	int64_t attempts;        /* this one included */
	/* Of the purchase, as frozen at its creation. */
	char sale_id[ID_SIZE];
	int64_t total_minor;
	enum currency currency;
	const char *customer;       /* NULL: none */
	const char *payment_method; /* likewise */
	const char *description;
	const char *reference; /* of the payment, once known; NULL */
};

/* A refund through the provider: a payment with action PAYMENT_GIVE_BACK. ERR_REFUSED unless the
 * purchase is paid; one under way already is OK. */
int store_ask_for_refund(struct store *store, struct slice sale_id, int64_t now_us,
                         struct error *error) MUST_CHECK;

/* The payment of this provider that has been due longest, leased to `holder` until now_us +
 * lease_us; ERR_NOT_FOUND. A holder works on one at a time: what it still holds is left from before
 * a crash and taken up at once, unless that happened many times. */
int store_claim_payment(struct store *store, const char *holder, const char *provider,
                        int64_t now_us, int64_t lease_us, struct arena *arena, struct payment *ret,
                        struct error *error) MUST_CHECK;
/* Gives it back, to be looked at again from next_us on. `waiting`: the provider has taken it on.
 * What is NULL stays. ERR_REFUSED: the lease is another's, or it is over. */
struct payment_delay {
	int64_t next_us;
	bool waiting;
	const char *reference;
	const char *cause;
};
int store_delay_payment(struct store *store, const struct payment *payment, const char *holder,
                        const struct payment_delay *delay, struct error *error) MUST_CHECK;
/* A notice hints that something became of a charge: it is looked at as soon as may be. */
int store_hurry_payment(struct store *store, struct slice idempotency_key, struct slice sale_id,
                        int64_t now_us, struct error *error) MUST_CHECK;

enum payment_end {
	PAYMENT_END_DONE,           /* charged; given back */
	PAYMENT_END_DECLINED,       /* not charged: the purchase stays pending, to be paid by hand */
	PAYMENT_END_METHOD_MISSING, /* not charged: rejected for want of a payment method */
	PAYMENT_END_REJECTED,       /* the provider does not take the order; cannot be given back */
};
struct payment_ended {
	enum payment_end end;
	const char *outcome;     /* one word, kept */
	const char *reference;   /* NULL or empty: not known */
	const char *payment_url; /* DECLINED: page to pay by hand; NULL or empty: none */
	const char *cause;       /* for the operator; NULL: none */
};
/* Ends it with what follows for purchase, balance and top-up, in one transaction. ERR_REFUSED: the
 * lease is another's, or it is over. */
int store_end_payment(struct store *store, const struct payment *payment, const char *holder,
                      const struct payment_ended *ended, int64_t now_us,
                      struct purchase_outcome *ret, struct error *error) MUST_CHECK;

#endif
