/* The store's functions for administration: accounts and their credits, channels with their sealed
 * configuration versions, keys, consumption limits and alert thresholds.
 *
 * Each change is one durable transaction. Things are named by their identifiers; one that does not
 * exist is ERR_NOT_FOUND with a sentence that names it. Texts have been validated by the caller;
 * what is given back lives in the caller's arena. Thread safe. Lists are in order of creation, at
 * most `limit` items after the one called `after` (empty: from the start); `more` says whether
 * others follow. */
#ifndef STORE_ACCOUNTS_H
#define STORE_ACCOUNTS_H

#include <stdatomic.h>

#include "store/store.h"

/* ---- accounts (accounts.c) ---- */

/* What an account has at most; 0: what the general setting says. */
struct account_bounds {
	int64_t rate;           /* requests per second of all its live keys together */
	int64_t channels;       /* that it has */
	int64_t keys;           /* that are not revoked */
	int64_t certifications; /* live ones, asked for on a UTC day */
	int64_t stored_bytes;   /* content and issued documents */
};
/* How much of it there is. */
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
	bool passkeys_required; /* of everybody who uses its console */
	int64_t test_events_today;
	int64_t test_bytes_today;
	int64_t test_certifications_today;
};
struct account_list {
	struct account_record *items;
	size_t count;
	bool more;
	bool partial; /* a server is away that may have some, too */
};
/* From given: name, email, language, rate_live, unpaid_limit, bounds. Credits may be 0. */
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

/* How many ask for passkeys. */
int store_count_passkey_accounts(struct store *store, int64_t *ret, struct error *error) MUST_CHECK;

/* What is NULL or negative stays as it is. */
struct account_change {
	const char *name;
	const char *email; /* "": none any more */
	int language;
	int64_t rate_live; /* 0: the general setting */
	int64_t unpaid_limit;
	struct account_bounds bounds; /* of each, 0: the general setting */
	int passkeys_required;
	int suspended;
	int disabled; /* 0 also counts as activity, so that the account is not disabled again at once */
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
/* ERR_REFUSED when an adjustment would make the balance negative (only a revert may). */
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
/* Which of an account's movements. */
struct credit_filter {
	struct slice account_id;
	struct slice kind; /* empty: any */
	int64_t since_us;  /* from this time on; TIME_NONE: from the first */
	int64_t until_us;  /* before this time; TIME_NONE: to the last */
	int64_t before;    /* those numbered below; 0: all */
	int64_t limit;
};
/* Newest first. */
int store_list_credits(struct store *store, const struct credit_filter *filter, struct arena *arena,
                       struct credit_list *ret, struct error *error) MUST_CHECK;

/* How many accounts have a balance that is not the sum of their entries (money/balances.c):
 * 0. */
int store_count_unbalanced(struct store *store, const atomic_bool *stopping, int64_t *ret_count,
                           struct error *error) MUST_CHECK;

/* ---- housekeeping (dormancy.c) ---- */

/* Removes the counts of test quotas of days long past. (Totals of usage stay.) */
int store_forget_usage(struct store *store, int64_t now_us, struct error *error) MUST_CHECK;
/* Disables accounts without registration, certification or purchase since before_us. One that
 * cannot be changed keeps no other from it; *ret_count tells of how many, also with an error. */
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
	int64_t live_sealed; /* of these, in sealed segments */
	int64_t test_events;
};
struct channel_list {
	struct channel_record *items;
	size_t count;
	bool more;
	bool partial; /* a server is away that may have some, too */
};
/* From config: modality, name, description, declarant, supplementary_info. Version 1 is sealed and
 * both chains begin. `most`: channels of an account without a bound of its own, 0: any number;
 * ERR_FULL when it has as many. */
int store_create_channel(struct store *store, struct slice account_id,
                         const struct config_facts *config, int64_t most, int64_t now_us,
                         char ret_channel_id[ID_SIZE], struct error *error) MUST_CHECK;
/* As store_get_channel, with at most `limit` versions: the newest of those below `before`. */
int store_get_channel_versions(struct store *store, int64_t account, int64_t channel,
                               int64_t before, int64_t limit, struct arena *arena,
                               struct channel *ret, struct error *error) MUST_CHECK;
/* The numbers behind an identifier; the versions come with store_get_channel. */
int store_find_channel(struct store *store, struct slice channel_id, struct arena *arena,
                       struct channel_record *ret, struct error *error) MUST_CHECK;
/* account_id empty: those of all accounts. */
int store_list_channels(struct store *store, struct slice account_id, struct slice after,
                        int64_t limit, struct arena *arena, struct channel_list *ret,
                        struct error *error) MUST_CHECK;

/* What is NULL or negative stays as it is; "" makes description and supplementary_info null. */
struct config_change {
	const char *name;
	const char *description;
	const char *declarant;
	const char *supplementary_info;
	int modality; /* -1, or enum modality: ERR_REFUSED once the channel has events */
};
/* Seals a new version, only when something differs. */
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
	int64_t expires_at_us;   /* TIME_NONE: not by itself */
	int64_t revoked_at_us;   /* TIME_NONE: valid */
	const char *reason;      /* of the revocation; NULL: none was given */
	int64_t last_used_at_us; /* TIME_NONE: never, or not for a minute yet */
};
struct key_list {
	struct key_record *items;
	size_t count;
	bool more;
};
/* Of the key's text only its SHA-256 and last four characters come here. `most`: keys of an account
 * without a bound of its own that are not revoked, 0: any number; ERR_FULL when it has as many. */
int store_create_key(struct store *store, struct slice channel_id, enum mode mode, const char *name,
                     int64_t expires_at_us, const struct sha256 *key_hash, const char last_four[5],
                     int64_t most, int64_t now_us, char ret_key_id[ID_SIZE], struct error *error)
	MUST_CHECK;
/* Either filter may be empty. */
int store_list_keys(struct store *store, struct slice account_id, struct slice channel_id,
                    struct slice after, int64_t limit, struct arena *arena, struct key_list *ret,
                    struct error *error) MUST_CHECK;
/* From that time on every node refuses it, by its own clock; TIME_NONE: it does not end by itself.
 * ERR_REFUSED for a revoked one. */
int store_expire_key(struct store *store, struct slice key_id, int64_t expires_at_us,
                     struct error *error) MUST_CHECK;
/* For good. A key that is already revoked keeps its first time and reason. reason NULL: none. */
int store_revoke_key(struct store *store, struct slice key_id, const char *reason, int64_t now_us,
                     int64_t *ret_revoked_at_us, struct error *error) MUST_CHECK;

/* ---- consumption limits and alert thresholds (limits.c) ---- */
/* Of an account: whatever it registers is compared with them, in one transaction with what others
 * register. ERR_REFUSED beyond that. */
#define LIMITS_MAX 1000
#define THRESHOLDS_MAX 100
struct limit_record {
	char limit_id[ID_SIZE];
	char account_id[ID_SIZE];
	char channel_id[ID_SIZE];
	char key_id[ID_SIZE]; /* empty: of the whole channel; then the next two are NULL */
	const char *key_name; /* NULL: none */
	const char *key_last_four;
	const char *channel_name;
	enum period period;
	int64_t max_events;
	bool block;
	int64_t created_at_us;
	int64_t used; /* live events of the period that now lies in */
};
struct limit_list {
	struct limit_record *items;
	size_t count;
	bool more;
	bool partial; /* a server is away that may have some, too */
};
/* Exactly one of channel_id and key_id is not empty. ERR_REFUSED for a test key and a revoked one:
 * test events never count. */
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
	bool armed; /* the balance was above it; the next downward crossing sends a notice */
};
struct threshold_list {
	struct threshold_record *items;
	size_t count;
	bool more;
	bool partial; /* a server is away that may have some, too */
};
/* ERR_REFUSED when the account already has one at that number of credits. */
int store_create_threshold(struct store *store, struct slice account_id, int64_t credits,
                           char ret_threshold_id[ID_SIZE], struct error *error) MUST_CHECK;
int store_list_thresholds(struct store *store, struct slice account_id, struct slice after,
                          int64_t limit, struct arena *arena, struct threshold_list *ret,
                          struct error *error) MUST_CHECK;
int store_delete_threshold(struct store *store, struct slice threshold_id, struct error *error)
	MUST_CHECK;

#endif
