/* Automatic top-up: its settings, and its decisions in the store.
 *
 * A node looks every second for top-ups that are on and whose balance is below the threshold; the
 * registration path has no part in it. The decision is made in a transaction that holds the
 * account: either a pending purchase with its payment to be tried, or the failure with its notice.
 * While a purchase is under way nothing else is decided for the account.
 *
 * Conventions as in accounts.h. */
#ifndef STORE_TOPUP_H
#define STORE_TOPUP_H

#include "ledger/topup.h"
#include "store/store.h"

struct topup_record {
	char account_id[ID_SIZE];
	char pack_id[ID_SIZE];
	char sale_id[ID_SIZE]; /* of the purchase under way; empty: none */
	bool enabled;
	int64_t threshold;
	int64_t daily_max;
	int64_t bought_today;
	int64_t failed_at_us; /* the last failure since it was turned on; TIME_NONE */
	const char *reason;   /* NULL: none */
};
/* ERR_NOT_FOUND when the account has none. */
int store_get_topup(struct store *store, struct slice account_id, int64_t now_us,
                    struct arena *arena, struct topup_record *ret, struct error *error) MUST_CHECK;
/* Sets and turns on. ERR_REFUSED: the pack is withdrawn, another account's, or not sold in the
 * account's currency. */
int store_set_topup(struct store *store, struct slice account_id, struct slice pack_id,
                    int64_t threshold, int64_t daily_max, struct error *error) MUST_CHECK;
/* Settings stay. Turning on is refused like setting. A purchase under way goes on. */
int store_switch_topup(struct store *store, struct slice account_id, bool on, struct error *error)
	MUST_CHECK;

/* The next account after this one (0: from the start) whose top-up is due; 0: none. */
int store_next_due_topup(struct store *store, int64_t after_account, int64_t *ret_account,
                         struct error *error) MUST_CHECK;
/* What has to be looked at before it is decided in a store that was woken (store/nodes/quiet.h):
 * what the original may have charged is the customer's payments since the last purchase before the
 * store was a copy, or since the account was made, or since they were last looked at. Once for each
 * top-up and waking. */
struct topup_look {
	bool wanted;
	char account_id[ID_SIZE];
	const char *customer; /* NULL: none, so that nothing can be charged */
	int64_t since_us;
};
int store_get_topup_look(struct store *store, int64_t account, int64_t copied_us, int64_t woken_us,
                         struct arena *arena, struct topup_look *ret, struct error *error)
	MUST_CHECK;
/* It was looked at. With a `reason` the top-up is turned off, with that reason and no notice. */
int store_end_topup_look(struct store *store, int64_t account, const char *reason, int64_t now_us,
                         struct error *error) MUST_CHECK;
/* Decides for one account. What was due may not be any more: TOPUP_NOTHING. */
int store_run_topup(struct store *store, int64_t account, const char *provider, int64_t now_us,
                    enum topup_action *ret_action, struct error *error) MUST_CHECK;

#endif
