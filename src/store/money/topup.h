/* Automatic top-up: its settings, and its decisions in the store.
 *
 * A node searches every second for enabled top-ups whose balance is below the threshold;
 * registration has no part in it. The decision is made in a transaction that holds the account. It
 * creates a pending purchase with its payment, or records the failure with its notice. While a
 * purchase is in progress no other decision is made for the account.
 *
 * Conventions as in accounts.h. */
#ifndef STORE_TOPUP_H
#define STORE_TOPUP_H

#include "ledger/topup_rules.h"
#include "store/store.h"

struct topup_record {
	char account_id[ID_SIZE];
	char pack_id[ID_SIZE];
	char sale_id[ID_SIZE]; /* purchase in progress; empty: none */
	bool enabled;
	int64_t threshold;
	int64_t daily_max;
	int64_t bought_today;
	int64_t failed_at_us; /* the last failure since it was enabled; TIME_NONE: none */
	const char *reason;   /* NULL: none */
};
/* Reads the top-up. Returns ERR_NOT_FOUND when the account has none. */
int store_get_topup(struct store *store, struct slice account_id, int64_t now_us,
                    struct arena *arena, struct topup_record *ret, struct error *error) MUST_CHECK;
/* Stores the settings and enables the top-up. Returns ERR_REFUSED when the pack is withdrawn,
 * belongs to another account or is not sold in the account's currency. */
int store_set_topup(struct store *store, struct slice account_id, struct slice pack_id,
                    int64_t threshold, int64_t daily_max, struct error *error) MUST_CHECK;
/* Enables or disables the top-up; its settings are kept. Enabling is refused under the same
 * conditions as store_set_topup. A purchase in progress continues. */
int store_switch_topup(struct store *store, struct slice account_id, bool on, struct error *error)
	MUST_CHECK;

/* Returns the next account after this one (0: from the start) whose top-up is due; 0: none. */
int store_next_due_topup(struct store *store, int64_t after_account, int64_t *ret_account,
                         struct error *error) MUST_CHECK;
/* A check that is required before a decision in a store that was resumed from a read-only copy
 * (store/nodes/read_only_copy.h), because the original may have charged the customer. The
 * customer's payments have to be checked since the latest of: the last purchase before the store
 * was a copy, the creation of the account, and the previous check. Required once for each top-up
 * and resumption. */
struct topup_payment_check {
	bool wanted;
	char account_id[ID_SIZE];
	const char *customer; /* NULL: none, so that nothing can be charged */
	int64_t since_us;
};
int store_get_topup_check(struct store *store, int64_t account, int64_t copied_us, int64_t woken_us,
                          struct arena *arena, struct topup_payment_check *ret, struct error *error)
	MUST_CHECK;
/* Records that the check was done. With a `reason` the top-up is disabled with that reason and
 * without a notice. */
int store_end_topup_check(struct store *store, int64_t account, const char *reason, int64_t now_us,
                          struct error *error) MUST_CHECK;
/* Decides for one account. Returns TOPUP_NOTHING when the top-up is no longer due. */
int store_run_topup(struct store *store, int64_t account, const char *provider, int64_t now_us,
                    enum topup_action *ret_action, struct error *error) MUST_CHECK;

#endif
