/* Administration of accounts: credits, channels with their sealed configuration versions, API keys,
 * consumption limits and alert thresholds.
 *
 * Each change is one durable transaction. Objects are named by their public identifiers. For an
 * unknown identifier a function returns ERR_NOT_FOUND with a message that names it. The caller has
 * validated all texts. Results live in the caller's arena. Thread safe. Lists are in order of
 * creation and have at most `limit` items after the item `after` (empty: from the start); `more` is
 * true when others follow. */
#ifndef STORE_ACCOUNTS_H
#define STORE_ACCOUNTS_H

#include <stdatomic.h>

#include "store/store.h"

/* ---- accounts (accounts.c) ---- */

/* Limits of an account; 0: the general setting. */
struct account_bounds {
	int64_t rate;           /* requests per second of all live keys together */
	int64_t channels;       /* number of channels */
	int64_t keys;           /* number of keys that are not revoked */
	int64_t certifications; /* live certifications requested in a UTC day */
	int64_t stored_bytes;   /* bytes of content and issued documents */
};
/* Current use of these limits. */
struct account_uses {
	int64_t channels;
	int64_t keys;
	int64_t certifications; /* today */
	int64_t stored_bytes;
};
struct account_record {
	char account_id[ID_SIZE];
	const char *name;
	const char *email; /* NULL: none */
	enum language language;
	int64_t created_at_us;
	int64_t active_at_us; /* day of the last registration, certification or purchase */
	bool suspended;
	bool disabled;
	int64_t rate_live; /* requests per second; 0: the general setting */
	int64_t balance;
	int64_t unpaid_events;
	int64_t unpaid_limit;
	struct account_bounds bounds;
	bool passkeys_required; /* for all users of the account's console */
	int64_t test_events_today;
	int64_t test_bytes_today;
	int64_t test_certifications_today;
};
struct account_list {
	struct account_record *items;
	size_t count;
	bool more;
	bool partial; /* incomplete: a shard server is unavailable */
};
/* Creates an account. Reads from `given`: name, email, language, rate_live, unpaid_limit, bounds.
 * `credits` may be 0. */
int store_create_account(struct store *store, const struct account_record *given, int64_t credits,
                         int64_t now_us, char ret_account_id[ID_SIZE], struct error *error)
	MUST_CHECK;
int store_find_account(struct store *store, struct slice account_id, int64_t now_us,
                       struct arena *arena, struct account_record *ret, struct error *error)
	MUST_CHECK;
int store_count_account_uses(struct store *store, struct slice account_id, int64_t now_us,
                             struct account_uses *ret, struct error *error) MUST_CHECK;
int store_list_accounts(struct store *store, struct slice after, int64_t limit, int64_t now_us,
                        struct arena *arena, struct account_list *ret, struct error *error)
	MUST_CHECK;

/* Counts the accounts that require passkeys. */
int store_count_passkey_accounts(struct store *store, int64_t *ret, struct error *error) MUST_CHECK;

/* A member that is NULL or negative leaves the value unchanged. */
struct account_change {
	const char *name;
	const char *email; /* "": remove it */
	int language;
	int64_t rate_live; /* 0: the general setting */
	int64_t unpaid_limit;
	struct account_bounds bounds; /* each 0: the general setting */
	int passkeys_required;
	int suspended;
	int disabled; /* enabling (0) counts as activity, so that the account is not disabled again at
	                 once */
};
#define ACCOUNT_UNCHANGED                                                                          \
	(struct account_change)                                                                        \
	{                                                                                              \
		.language = -1, .rate_live = -1, .unpaid_limit = -1, .passkeys_required = -1,              \
		.suspended = -1, .disabled = -1, .bounds = {                                               \
			-1,                                                                                    \
			-1,                                                                                    \
			-1,                                                                                    \
			-1,                                                                                    \
			-1                                                                                     \
		}                                                                                          \
	}
int store_change_account(struct store *store, struct slice account_id,
                         const struct account_change *change, int64_t now_us, struct error *error)
	MUST_CHECK;

/* ---- credits (accounts.c) ---- */
struct credit_movement {
	int64_t credits;       /* signed, not 0 */
	const char *kind;      /* "adjustment" or "revert" */
	const char *reference; /* may be NULL */
};
struct credit_outcome {
	int64_t balance;
	int64_t unpaid_events;
	int64_t settled_events;
};
/* Moves credits. Returns ERR_REFUSED when an adjustment would make the balance negative; only a
 * revert may. */
int store_move_credits(struct store *store, struct slice account_id,
                       const struct credit_movement *movement, int64_t now_us,
                       struct credit_outcome *ret, struct error *error) MUST_CHECK;

struct credit_record {
	int64_t number; /* from 1 within the account */
	int64_t at_us;
	const char *kind;
	int64_t credits;
	int64_t balance;
	const char *channel_id; /* NULL unless the entry pays a run of events */
	int64_t first_sequence;
	int64_t last_sequence;
	const char *reference;
};
struct credit_list {
	struct credit_record *items;
	size_t count;
	bool more;
};
/* Selects credit entries of an account. */
struct credit_filter {
	struct slice account_id;
	struct slice kind; /* empty: any */
	int64_t since_us;  /* inclusive; TIME_NONE: no lower bound */
	int64_t until_us;  /* exclusive; TIME_NONE: no upper bound */
	int64_t before;    /* only entries with a lower number; 0: all */
	int64_t limit;
};
/* Lists credit entries, newest first. */
int store_list_credits(struct store *store, const struct credit_filter *filter, struct arena *arena,
                       struct credit_list *ret, struct error *error) MUST_CHECK;

/* Counts the accounts whose balance differs from the sum of their credit entries
 * (money/check_balances.c). The expected result is 0. */
int store_count_unbalanced(struct store *store, const atomic_bool *stopping, int64_t *ret_count,
                           struct error *error) MUST_CHECK;

/* ---- housekeeping (dormancy.c) ---- */

/* Removes expired counts of test quotas. Usage totals are kept. */
int store_forget_usage(struct store *store, int64_t now_us, struct error *error) MUST_CHECK;
/* Disables accounts without a registration, certification or purchase since before_us. A failure on
 * one account does not stop the others; *ret_count is set to the number of disabled accounts also
 * on error. */
int store_disable_idle_accounts(struct store *store, int64_t before_us, int64_t *ret_count,
                                struct error *error) MUST_CHECK;

/* ---- channels (configure.c) ---- */
struct channel_record {
	int64_t account;
	int64_t channel;
	char channel_id[ID_SIZE];
	char account_id[ID_SIZE];
	int64_t created_at_us;
	bool suspended;
	enum modality modality;
	int64_t config_version;
	const char *name;
	const char *declarant;
	int64_t live_events;
	int64_t live_sealed; /* of these, events in sealed segments */
	int64_t test_events;
};
struct channel_list {
	struct channel_record *items;
	size_t count;
	bool more;
	bool partial; /* incomplete: a shard server is unavailable */
};
/* Creates a channel from the modality, name, description, declarant and supplementary_info in
 * `config`. Seals configuration version 1 and starts the live and the test chain. `most` is the
 * maximum number of channels of an account without its own limit; 0: no limit. Returns ERR_FULL
 * when the limit is reached. */
int store_create_channel(struct store *store, struct slice account_id,
                         const struct config_facts *config, int64_t most, int64_t now_us,
                         char ret_channel_id[ID_SIZE], struct error *error) MUST_CHECK;
/* Reads a channel with at most `limit` versions: the newest ones below `before`. */
int store_get_channel_versions(struct store *store, int64_t account, int64_t channel,
                               int64_t before, int64_t limit, struct arena *arena,
                               struct channel *ret, struct error *error) MUST_CHECK;
/* Finds the internal numbers of a channel. The versions are read by store_get_channel_versions. */
int store_find_channel(struct store *store, struct slice channel_id, struct arena *arena,
                       struct channel_record *ret, struct error *error) MUST_CHECK;
/* Lists channels; account_id empty: of all accounts. */
int store_list_channels(struct store *store, struct slice account_id, struct slice after,
                        int64_t limit, struct arena *arena, struct channel_list *ret,
                        struct error *error) MUST_CHECK;

/* A member that is NULL or negative leaves the value unchanged; "" sets description or
 * supplementary_info to null. */
struct config_change {
	const char *name;
	const char *description;
	const char *declarant;
	const char *supplementary_info;
	int modality; /* -1: unchanged; else enum modality, ERR_REFUSED once the channel has events */
};
/* Seals a new configuration version, but only when a value differs. */
int store_configure_channel(struct store *store, struct slice channel_id,
                            const struct config_change *change, int64_t now_us,
                            int64_t *ret_version, bool *ret_changed, struct error *error)
	MUST_CHECK;
int store_suspend_channel(struct store *store, struct slice channel_id, bool suspended,
                          struct error *error) MUST_CHECK;

/* ---- keys (api_keys.c) ---- */
struct key_record {
	char key_id[ID_SIZE];
	char channel_id[ID_SIZE];
	char account_id[ID_SIZE];
	char last_four[5];
	enum mode mode;
	const char *channel_name;
	const char *name; /* NULL: none */
	int64_t created_at_us;
	int64_t expires_at_us;   /* TIME_NONE: no expiry */
	int64_t revoked_at_us;   /* TIME_NONE: valid */
	const char *reason;      /* of the revocation; NULL: none was given */
	int64_t last_used_at_us; /* TIME_NONE: never; recorded with a delay of up to a minute */
};
struct key_list {
	struct key_record *items;
	size_t count;
	bool more;
};
/* Creates a key. The store receives only the SHA-256 of the key's text and its last four
 * characters. `most` is the maximum number of unrevoked keys of an account without its own limit;
 * 0: no limit. Returns ERR_FULL when the limit is reached. */
int store_create_key(struct store *store, struct slice channel_id, enum mode mode, const char *name,
                     int64_t expires_at_us, const struct sha256 *key_hash, const char last_four[5],
                     int64_t most, int64_t now_us, char ret_key_id[ID_SIZE], struct error *error)
	MUST_CHECK;
/* Lists keys. Either filter may be empty. */
int store_list_keys(struct store *store, struct slice account_id, struct slice channel_id,
                    struct slice after, int64_t limit, struct arena *arena, struct key_list *ret,
                    struct error *error) MUST_CHECK;
/* Sets the time from which every node, by its own clock, refuses the key; TIME_NONE: no expiry.
 * Returns ERR_REFUSED for a revoked key. */
int store_expire_key(struct store *store, struct slice key_id, int64_t expires_at_us,
                     struct error *error) MUST_CHECK;
/* Revokes a key permanently. A key that is already revoked keeps its first time and reason.
 * `reason` may be NULL. */
int store_revoke_key(struct store *store, struct slice key_id, const char *reason, int64_t now_us,
                     int64_t *ret_revoked_at_us, struct error *error) MUST_CHECK;

/* ---- consumption limits and alert thresholds (limits.c) ---- */
/* Maximum numbers per account. Every registration of the account is compared with all of them,
 * inside a transaction that also serves other registrations. Creating one more returns
 * ERR_REFUSED. */
#define LIMITS_MAX 1000
#define THRESHOLDS_MAX 100
struct limit_record {
	char limit_id[ID_SIZE];
	char account_id[ID_SIZE];
	char channel_id[ID_SIZE];
	char key_id[ID_SIZE]; /* empty: the limit is of the whole channel, and the next two are NULL */
	const char *key_name; /* NULL: none */
	const char *key_last_four;
	const char *channel_name;
	enum period period;
	int64_t max_events;
	bool block;
	int64_t created_at_us;
	int64_t used; /* live events in the current period */
};
struct limit_list {
	struct limit_record *items;
	size_t count;
	bool more;
	bool partial; /* incomplete: a shard server is unavailable */
};
/* Creates a limit. Exactly one of channel_id and key_id is not empty. Returns ERR_REFUSED for a
 * test key, because test events are never counted, and for a revoked key. */
int store_create_limit(struct store *store, struct slice channel_id, struct slice key_id,
                       enum period period, int64_t max_events, bool block, int64_t now_us,
                       char ret_limit_id[ID_SIZE], struct error *error) MUST_CHECK;
int store_list_limits(struct store *store, struct slice account_id, struct slice channel_id,
                      struct slice after, int64_t limit, int64_t now_us, struct arena *arena,
                      struct limit_list *ret, struct error *error) MUST_CHECK;
int store_delete_limit(struct store *store, struct slice limit_id, struct error *error) MUST_CHECK;

struct threshold_record {
	char threshold_id[ID_SIZE];
	char account_id[ID_SIZE];
	int64_t credits;
	bool armed; /* the balance was above the threshold; the next downward crossing sends a notice */
};
struct threshold_list {
	struct threshold_record *items;
	size_t count;
	bool more;
	bool partial; /* incomplete: a shard server is unavailable */
};
/* Creates a threshold. Returns ERR_REFUSED when the account already has one with this number of
 * credits. */
int store_create_threshold(struct store *store, struct slice account_id, int64_t credits,
                           char ret_threshold_id[ID_SIZE], struct error *error) MUST_CHECK;
int store_list_thresholds(struct store *store, struct slice account_id, struct slice after,
                          int64_t limit, struct arena *arena, struct threshold_list *ret,
                          struct error *error) MUST_CHECK;
int store_delete_threshold(struct store *store, struct slice threshold_id, struct error *error)
	MUST_CHECK;

#endif
