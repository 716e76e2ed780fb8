/* Private to src/store/money: rows of billing, packs, purchases and top-ups inside a transaction
 * that holds the account. Everything that is read lives in the arena of the transaction. */
#ifndef STORE_MONEY_H
#define STORE_MONEY_H

#include "ledger/topup_rules.h"
#include "store/money/packs.h"
#include "store/money/purchases.h"
#include "store/transaction.h"

#define MONEY_MEMORY_MAX ((size_t)4 << 20) /* thresholds, notices, URLs of payment pages */

/* A transaction on one account's money. */
struct money {
	struct db_connection *connection;
	struct arena arena;
	int64_t now_us;
	struct ledger_account account; /* locked until the transaction ends */
	bool activity;                 /* for a purchase: counts as activity of the account */
};
/* money_begin begins a transaction as begin_write does; money_end commits it when `code` is 0, else
 * rolls back, and frees the memory. */
void money_begin(struct store *store, int64_t now_us, struct money *money, struct error **error);
int money_end(struct money *money, int code, struct error *error) MUST_CHECK;
/* Locks and reads the account; called before any other read of the account. */
int money_hold(struct money *money, int64_t account, struct error *error) MUST_CHECK;
/* Moves credits with ledger_move_credits and writes entries, notices and the account. *ret_entry is
 * the number of the movement's own entry. */
int money_move(struct money *money, int64_t credits, const char *kind, const char *reference,
               int64_t *ret_entry, int64_t *ret_settled, struct error *error) MUST_CHECK;

/* ---- billing and packs (packs.c) ---- */
struct account_state {
	bool suspended;
	bool disabled;
	const char *name;
	struct billing billing;
};
int read_account_state(struct db_connection *connection, int64_t account, struct arena *arena,
                       struct account_state *ret, struct error *error) MUST_CHECK;

struct pack_row {
	int64_t account; /* 0: on sale to all accounts */
	char pack_id[ID_SIZE];
	const char *name;
	int64_t credits;
	int64_t amount_minor;
	enum currency currency;
	bool withdrawn;
};
/* Returns ERR_NOT_FOUND with its message when the pack does not exist. */
int read_pack_row(struct db_connection *connection, struct slice pack_id, struct arena *arena,
                  struct pack_row *ret, struct error *error) MUST_CHECK;
/* Returns whether the account may buy the pack now; false also for a withdrawn pack. */
bool pack_is_sold_to(const struct pack_row *pack, int64_t account, const struct billing *billing);
/* Returns the refusal with its message when the account may not buy the pack. */
int refuse_pack(const struct pack_row *pack, int64_t account, const struct billing *billing,
                struct error *error) MUST_CHECK;

/* ---- purchases and payments (purchases.c, payments.c) ---- */
struct new_purchase {
	const struct pack_row *pack;
	const struct account_state *buyer;
	const char *provider;
	bool automatic;
};
int insert_purchase(struct money *money, const struct new_purchase *given, int64_t *ret_number,
                    char ret_sale_id[ID_SIZE], struct error *error) MUST_CHECK;
int insert_payment(struct money *money, int64_t purchase, const char *sale_id, const char *provider,
                   enum payment_action action, struct error *error) MUST_CHECK;

struct purchase_row {
	int64_t number;
	char sale_id[ID_SIZE];
	char pack_id[ID_SIZE];
	int64_t credits;
	int64_t amount_minor;
	int64_t tax_minor;
	enum currency currency;
	enum purchase_state state;
	const char *provider;
	const char *payment_url; /* NULL: none */
	const char *reference;   /* the provider's identifier of the payment; NULL: unknown */
};
int read_purchase_row(struct money *money, int64_t number, struct purchase_row *ret,
                      struct error *error) MUST_CHECK;
/* Finds the purchase by its sale code, locks the account and reads the purchase. */
int hold_purchase(struct money *money, struct slice sale_id, struct purchase_row *ret,
                  struct error *error) MUST_CHECK;
/* Does what purchase_step allows: changes the state, moves the credits, and ends the top-up that
 * made the purchase. */
int step_purchase(struct money *money, struct purchase_row *row, struct purchase_step step,
                  struct purchase_outcome *ret, struct error *error) MUST_CHECK;
/* Ends all open payments of the purchase with this action, with the given outcome. */
int close_payments(struct money *money, int64_t purchase, enum payment_action action,
                   const char *outcome, struct error *error) MUST_CHECK;

/* ---- top-up (topup.c) ---- */

/* Ends a top-up whose purchase is paid: writes its notice, with the current balance. *ret is
 * RECHARGE_NONE when the purchase is not that of a top-up. */
int topup_complete(struct money *money, const struct purchase_row *row, enum recharge_end *ret,
                   struct error *error) MUST_CHECK;
/* Ends a top-up whose purchase failed: turns it off and writes notice and mail. `created`: the
 * purchase exists and can still be paid. */
int topup_fail_purchase(struct money *money, const struct purchase_row *row, bool created,
                        enum recharge_reason reason, enum recharge_end *ret, struct error *error)
	MUST_CHECK;
/* Turns off the account's top-up if it buys this custom pack, which is withdrawn. *ret_off: it was
 * on. */
int topup_lose_pack(struct money *money, const char *pack_id, bool *ret_off, struct error *error)
	MUST_CHECK;

#endif
