/* Purchases of packs and the payments for them.
 *
 * Credits move in the transaction that changes the state of a purchase: an entry "purchase" when it
 * is paid, "refund" or "revert" when it is taken back, each with the sale code as its reference.
 * The rules are in ledger/purchase_rules.h. The notice about the success or failure of an automatic
 * top-up is written in the same transaction.
 *
 * Conventions as in accounts.h. */
#ifndef STORE_PURCHASES_H
#define STORE_PURCHASES_H

#include "ledger/topup_rules.h"
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
	/* Of the account, at the creation of the purchase. */
	int64_t tax_rate; /* hundredths of a percent; below 0: not recorded by the older version */
	const char *account_name; /* NULL: not recorded by the older version */
	const char *country;      /* NULL: none */
	const char *provider;
	bool automatic;
	enum purchase_state state;
	int64_t created_at_us;
	int64_t paid_at_us;      /* TIME_NONE: never */
	int64_t ended_at_us;     /* canceled, rejected, refunded or reverted; TIME_NONE: none */
	const char *reference;   /* the provider's identifier of the payment; NULL: unknown */
	const char *payment_url; /* NULL: none */
	const char *customer;
	const char *payment_method;
	/* The last attempt to charge or refund; payment NULL: none. */
	const char *payment;       /* "charge", "refund" */
	const char *payment_state; /* "due", "waiting", "over" */
	const char *payment_outcome;
	const char *payment_error;
};
struct purchase_list {
	struct purchase_record *items;
	size_t count;
	bool more;
	bool partial; /* incomplete: a shard server is unavailable */
};
/* Creates a pending purchase at the current price of the pack. Returns ERR_REFUSED when the pack is
 * withdrawn, is a custom pack of another account or is not sold in the account's currency, or when
 * the account is disabled. */
int store_create_purchase(struct store *store, struct slice account_id, struct slice pack_id,
                          const char *provider, int64_t now_us, char ret_sale_id[ID_SIZE],
                          struct error *error) MUST_CHECK;
int store_find_purchase(struct store *store, struct slice sale_id, struct arena *arena,
                        struct purchase_record *ret, struct error *error) MUST_CHECK;
/* Lists purchases, newest first. account_id empty: of all accounts; state -1: any, else enum
 * purchase_state. `after` is a sale code, empty for the first page. */
int store_list_purchases(struct store *store, struct slice account_id, int state,
                         struct slice after, int64_t limit, struct arena *arena,
                         struct purchase_list *ret, struct error *error) MUST_CHECK;
/* Stores the URL of the page on which a pending purchase can be paid. */
int store_set_payment_url(struct store *store, struct slice sale_id, const char *payment_url,
                          struct error *error) MUST_CHECK;

/* ---- changes of state ---- */

/* A request of an operator or, with `reported`, a report of the payment provider. */
struct purchase_order {
	enum purchase_action act;
	bool reported;
	struct slice sale_id;
	const char
		*reference; /* told: the provider's identifier of the payment; used when sale_id is empty */
	int64_t amount_minor; /* told: amount received or taken back; less than the total is refused */
	struct slice currency;
};
enum recharge_end { RECHARGE_NONE, RECHARGE_COMPLETED, RECHARGE_FAILED };
struct purchase_outcome {
	bool changed; /* false: the purchase already had that state */
	enum purchase_state state;
	int64_t balance;
	int64_t unpaid_events;
	int64_t settled_events;
	enum recharge_end recharge; /* end of the automatic top-up that made the purchase */
};
/* Changes the state of a purchase. A request of an operator returns ERR_REFUSED where purchase_step
 * refuses it, and while a charge of the provider has an unknown outcome. A report returns
 * ERR_REFUSED, without any change, when too little was received, and when only a part was taken
 * back or the currency differs. The message then states the number of credits that correspond to
 * the part, so that an operator can move them. */
int store_change_purchase(struct store *store, const struct purchase_order *order, int64_t now_us,
                          struct purchase_outcome *ret, struct error *error) MUST_CHECK;

/* ---- payments: each is a job with a lease ---- */

enum payment_action { PAYMENT_CHARGE, PAYMENT_GIVE_BACK };
struct payment {
	int64_t account;
	int64_t number;
	int64_t purchase;
	enum payment_action action;
	char idempotency_key[IDEMPOTENCY_KEY_SIZE];
	bool waiting; /* the provider has accepted it: query its state, do not repeat the request */
	int64_t created_at_us;
	int64_t first_try_at_us; /* when the first attempt began */
	int64_t attempts;        /* including this one */
	/* Of the purchase, as recorded at its creation. */
	char sale_id[ID_SIZE];
	int64_t total_minor;
	enum currency currency;
	const char *customer;       /* NULL: none */
	const char *payment_method; /* NULL: none */
	const char *description;
	const char *reference; /* of the payment; NULL: not known yet */
};

/* Requests a refund through the provider: creates a payment with action PAYMENT_GIVE_BACK. Returns
 * ERR_REFUSED unless the purchase is paid, and OK when a refund is already in progress. */
int store_request_refund(struct store *store, struct slice sale_id, int64_t now_us,
                         struct error *error) MUST_CHECK;

/* Leases to `holder`, until now_us + lease_us, the payment of this provider that has been due
 * longest. Returns ERR_NOT_FOUND when none is due. A holder works on one payment at a time. A lease
 * that it still holds is left from a crash; the payment is resumed at once unless that has happened
 * many times (store/nodes/job_claims.h). */
int store_claim_payment(struct store *store, const char *holder, const char *provider,
                        int64_t now_us, int64_t lease_us, struct arena *arena, struct payment *ret,
                        struct error *error) MUST_CHECK;
/* Releases the lease; the next check is due at next_us. `waiting`: the provider has accepted the
 * payment. A member that is NULL leaves the value unchanged. Returns ERR_REFUSED when another
 * holder has the lease or the payment has ended. */
struct payment_delay {
	int64_t next_us;
	bool waiting;
	const char *reference;
	const char *cause;
};
int store_delay_payment(struct store *store, const struct payment *payment, const char *holder,
                        const struct payment_delay *delay, struct error *error) MUST_CHECK;
/* Makes a payment due immediately, because a notification suggests that the state of the charge has
 * changed. */
int store_expedite_payment(struct store *store, struct slice idempotency_key, struct slice sale_id,
                           int64_t now_us, struct error *error) MUST_CHECK;

enum payment_end {
	PAYMENT_END_DONE,     /* charged or refunded */
	PAYMENT_END_DECLINED, /* not charged: the purchase stays pending and can be paid manually */
	PAYMENT_END_METHOD_MISSING, /* not charged: rejected because the payment method is missing */
	PAYMENT_END_REJECTED,       /* refused by the provider; or cannot be refunded */
};
struct payment_ended {
	enum payment_end end;
	const char *outcome;     /* one word, stored */
	const char *reference;   /* NULL or empty: unknown */
	const char *payment_url; /* DECLINED: page for manual payment; NULL or empty: none */
	const char *cause;       /* for the operator; NULL: none */
};
/* Ends the payment and updates purchase, balance and top-up in one transaction. Returns ERR_REFUSED
 * when another holder has the lease or the payment has ended. */
int store_end_payment(struct store *store, const struct payment *payment, const char *holder,
                      const struct payment_ended *ended, int64_t now_us,
                      struct purchase_outcome *ret, struct error *error) MUST_CHECK;

#endif
