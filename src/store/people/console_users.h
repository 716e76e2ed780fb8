/* Users of the console: their roles in accounts, sign-in links, sessions and passkeys.
 *
 * A user has an e-mail address, which is compared in lower case, and a role in each of one or more
 * accounts. The store receives only SHA-256 digests of links and cookies. Lifetimes are chosen by
 * the caller (service/user_auth.h). Each change is one transaction. Thread safe. Results live in
 * the caller's arena. */
#ifndef STORE_PEOPLE_CONSOLE_USERS_H
#define STORE_PEOPLE_CONSOLE_USERS_H

#include "store/store.h"

enum role { ROLE_OWNER = 1, ROLE_DEVELOPER = 2, ROLE_ACCOUNTANT = 4, ROLE_READER = 8 };
#define ROLES "owner|developer|accountant|reader"
const char *role_text(enum role role);
bool role_parse(struct slice text, enum role *ret) MUST_CHECK;

#define EMAIL_SIZE 255
#define USERS_OF_ACCOUNT_MAX 200
#define ACCOUNTS_OF_USER_MAX 200

/* ---- users (users.c) ---- */
struct invitation {
	struct slice account_id;
	const char *email; /* in lower case */
	enum role role;
	enum language language; /* used if the user is created */
	const char *invited_by; /* user_id; NULL: the operator */
	struct slice mail;      /* values of the mail "invitation", JSON; empty: no mail is sent */
	int64_t hourly_mails;   /* maximum invitation mails of the account per hour; 0: no limit */
};
/* Adds a role, and creates the user if the address is new. Returns ERR_REFUSED when the user
 * already has a role in the account, when the account has USERS_OF_ACCOUNT_MAX users, when the user
 * has ACCOUNTS_OF_USER_MAX accounts, or when the limit of invitations is reached. The audit record
 * does not contain the user_id: an identifier that stays the same after removal and a new
 * invitation would reveal that the user has other accounts. */
int store_invite_user(struct store *store, const struct invitation *invitation, int64_t now_us,
                      char ret_user_id[ID_SIZE], struct error *error) MUST_CHECK;

struct user_record {
	char user_id[ID_SIZE];
	const char *email;
	enum role role;
	int64_t made_at_us;
	const char *made_by; /* e-mail; NULL: the operator, or a user who no longer exists */
	int64_t seen_at_us;  /* last use of this account; TIME_NONE: never */
	int64_t passkeys;    /* number of passkeys */
};
struct user_list {
	struct user_record *items;
	size_t count;
};
/* Lists all users of an account, by e-mail address. */
int store_list_users(struct store *store, struct slice account_id, struct arena *arena,
                     struct user_list *ret, struct error *error) MUST_CHECK;

/* Both functions end the sessions of the user in which that account is chosen, and no others.
 * Setting the current role again has no effect. They return ERR_NOT_FOUND when the user has no role
 * in the account, and ERR_REFUSED when the user is its last owner, even if two owners leave at the
 * same time. A user without a role in any account is deleted. */
int store_change_role(struct store *store, struct slice account_id, const char *email,
                      enum role role, int64_t now_us, struct error *error) MUST_CHECK;
int store_remove_user(struct store *store, struct slice account_id, const char *email,
                      int64_t now_us, struct error *error) MUST_CHECK;

int store_set_user_language(struct store *store, const char *user_id, enum language language,
                            struct error *error) MUST_CHECK;

/* ---- sign-in links (sign_in.c) ---- */
struct link_grant {
	const char *email;  /* in lower case */
	struct sha256 link; /* digest of the link's secret */
	const struct sha256
		*browser; /* digest of the browser that requested it; NULL: any browser may use the link */
	const char
		*asked;      /* identifier of the request; all links of one request are used up together */
	bool in_session; /* requested in an open session of the user */
	const struct sha256 *known; /* digest of the cookie by which the browser is known; NULL: none */
	const char *network;        /* network of the request; NULL: none */
	int64_t now_us;
	int64_t expires_at_us;
	int64_t hourly_max; /* requests, each counted once, with all its retries; 0: no limit */
	int64_t unknown_networks_max; /* limit for unknown networks; 0: no limit */
};
/* Creates a link. With the operator, the audit record is written for each account of the user,
 * because the link gives access to all of them. Returns ERR_NOT_FOUND when no user with a role has
 * that address. Returns ERR_REFUSED when hourly_max links were created in the last hour; requests
 * in open sessions are counted separately, and per network also those of browsers in which the user
 * has signed in before and those of other browsers. Also returns ERR_REFUSED when
 * unknown_networks_max links of one of these kinds were created, from any networks, and the user
 * has never signed in from this network. */
int store_make_link(struct store *store, const struct link_grant *grant, struct error *error)
	MUST_CHECK;
struct link_request {
	const char *email; /* in lower case */
	enum language language;
	struct slice values;        /* values of the mail "sign_in" */
	bool in_session;            /* requested in an open session of the user */
	const struct sha256 *known; /* digest of the cookie by which the browser is known; NULL: none */
	const char *network;        /* also in `values` as the text "network"; NULL: none */
	int64_t now_us;
};
#define SIGN_IN_MAILS_MAX 1000          /* mails, for all addresses */
#define SIGN_IN_MAILS_OF_NETWORK_MAX 5  /* strangers' mails for one address from one network */
#define SIGN_IN_MAILS_OF_ADDRESS_MAX 20 /* strangers' mails for one address */
/* Queues a sign-in mail, whether or not the address belongs to a user. A stranger's request is one
 * outside a session of the user and from a browser in which the user has not signed in before.
 * Returns ERR_REFUSED for a stranger's request when too many mails are queued: in all, for that
 * address from that network, or for that address when the user has never signed in from there.
 * Returns ERR_UNAVAILABLE for other requests when too many mails are queued; they have the same
 * capacity again. */
int store_request_link(struct store *store, const struct link_request *request, struct error *error)
	MUST_CHECK;

/* ---- sessions (sessions.c) ---- */
/* How the user signed in: by a link sent by e-mail, by a passkey, by a link that the operator made
 * and that any bearer may use, or by a passkey that was added in a session which began by one of
 * the last two. Adding a passkey later does not change it. */
#define BY_LINK "link"
#define BY_PASSKEY "passkey"
#define BY_OPERATOR_LINK "operator_link"
#define BY_OPERATOR_PASSKEY "operator_passkey"

/* Maximum number of sign-ins of a user in a UTC day, except by the operator's links. */
#define SIGN_INS_PER_DAY 200

/* The start of a session, and the end of the former one, are recorded in the audit log as "sign in"
 * and "sign out" of their users, in the accounts that are chosen in them. */
struct session_start {
	struct sha256 cookie;        /* of the new session */
	const struct sha256 *former; /* previous session of the browser, which ends; NULL: none */
	const struct sha256 *known;  /* cookie by which the browser is known later; NULL: none */
	const char *network;         /* recorded with `known` */
	const char *address;
	const char *agent;
	const char *node; /* name of this machine */
	int64_t now_us;
};
/* Uses up a link and begins a session. The chosen account is that of the former session if that
 * belonged to the same user, else the user's first account. Returns ERR_NOT_FOUND, without any
 * change, when the link does not exist, is used, has expired or belongs to another browser, or when
 * the user has no account; ERR_FULL after SIGN_INS_PER_DAY sign-ins. */
int store_take_link(struct store *store, const struct sha256 *link, const struct sha256 *browser,
                    const struct session_start *start, struct error *error) MUST_CHECK;

struct membership {
	char account_id[ID_SIZE];
	const char *account_name;
	enum role role;
	bool passkeys_required;
	bool taken_up;       /* the user has worked in it; false: only invited, by anyone */
	const char *made_by; /* e-mail; NULL: the operator, or a user who no longer exists */
	int64_t seen_at_us;  /* last use of the account; TIME_NONE: never */
};
struct session_view {
	char session_id[ID_SIZE];
	char user_id[ID_SIZE];
	const char *email;
	enum language language;
	int64_t made_at_us;
	int64_t seen_at_us;
	int64_t signed_in_at_us;
	const char *signed_in_by; /* BY_…; NULL: not recorded by the older version */
	bool by_passkey;
	int64_t passkeys;               /* number of passkeys of the user */
	struct membership *memberships; /* by account name; at least one */
	size_t membership_count;
	const struct membership *chosen; /* one of them */
	bool partial;                    /* incomplete: a shard server is unavailable */
};
/* Finds a session that has not ended, began after made_after_us and was last used after
 * seen_after_us. Returns ERR_NOT_FOUND when there is none. If the chosen account no longer belongs
 * to the user or is on an unavailable server, another account is chosen. */
int store_find_session(struct store *store, const struct sha256 *cookie, int64_t made_after_us,
                       int64_t seen_after_us, struct arena *arena, struct session_view *ret,
                       struct error *error) MUST_CHECK;
/* Records the time of use in the session and in the user's membership of its chosen account.
 * Durable on this server only; may be lost in a fail-over. Skips a row that is locked by another
 * transaction. */
int store_touch_session(struct store *store, const struct sha256 *cookie, int64_t now_us,
                        struct error *error) MUST_CHECK;
/* Records that the user has worked in the account. Durable on this server only, so that removing
 * the role never waits for this commit. */
int store_mark_worked_in(struct store *store, const char *user_id, const char *account_id,
                         struct error *error) MUST_CHECK;
/* Chooses another account in the session. Returns ERR_NOT_FOUND when the account is not the user's
 * or the session does not exist. */
int store_choose_account(struct store *store, const struct sha256 *cookie, struct slice account_id,
                         struct error *error) MUST_CHECK;
struct sign_out_request {
	struct sha256 cookie;
	const char *address; /* client address */
	const char *node;
	bool unrecorded; /* no audit record is written */
	int64_t now_us;
};
/* Signs the user out, durable on this server only. Returns OK also when the session does not exist.
 * The audit record "sign out" is an urgent one, which does not wait for a standby. */
int store_sign_out(struct store *store, const struct sign_out_request *leave, struct error *error)
	MUST_CHECK;

struct session_record {
	char session_id[ID_SIZE];
	char account_id[ID_SIZE]; /* the chosen account */
	const char *account_name;
	const char *email;
	const char *address;
	const char *agent;
	int64_t made_at_us;
	int64_t seen_at_us;
	int64_t signed_in_at_us;
	const char *signed_in_by; /* BY_…; NULL: not recorded by the older version */
	bool by_passkey;
};
struct session_list {
	struct session_record *items;
	size_t count;
	bool more;
	bool partial; /* incomplete: a shard server is unavailable */
};
/* Selects sessions. */
struct session_scope {
	struct slice account_id; /* sessions in which this account is chosen; empty: any */
	const char *own; /* e-mail of a user whose sessions are selected in addition, whichever account
	                    is chosen in them; NULL: none */
	const char *email; /* of the selected sessions only those of this user; NULL: all */
};
/* Lists at most `limit` open sessions, newest first. */
int store_list_sessions(struct store *store, const struct session_scope *scope,
                        int64_t made_after_us, int64_t seen_after_us, int64_t limit,
                        struct arena *arena, struct session_list *ret, struct error *error)
	MUST_CHECK;
/* Ends a session by its identifier. Returns ERR_NOT_FOUND when it is not open or not selected by
 * the scope. */
int store_end_session(struct store *store, struct slice session_id,
                      const struct session_scope *scope, int64_t now_us, struct error *error)
	MUST_CHECK;

/* ---- passkeys (passkeys.c) ---- */
#define CHALLENGE_SIZE 32
#define PASSKEY_KEY_MAX 64
#define PASSKEYS_OF_USER_MAX 20

/* Stores the challenge that a browser, identified by the digest of its cookie, has to answer with a
 * passkey; replaces the previous one. Both functions are durable on this server only. The result of
 * an answer is committed after the challenge was taken, so a standby that has the one has the
 * other. */
int store_set_challenge(struct store *store, const struct sha256 *browser,
                        const uint8_t challenge[CHALLENGE_SIZE], int64_t now_us,
                        struct error *error) MUST_CHECK;
/* Takes and removes the challenge, so that it is used once. Returns ERR_NOT_FOUND when there is
 * none that was set after made_after_us. */
int store_take_challenge(struct store *store, const struct sha256 *browser, int64_t made_after_us,
                         uint8_t ret[CHALLENGE_SIZE], struct error *error) MUST_CHECK;

struct passkey_record {
	char passkey_id[ID_SIZE];
	char user_id[ID_SIZE];
	struct slice credential_id;
	int algorithm; /* COSE algorithm identifier */
	struct slice public_key;
	int64_t sign_count;
	const char *name;
	int64_t made_at_us;
	int64_t used_at_us; /* TIME_NONE: never */
};
struct passkey_list {
	struct passkey_record *items;
	size_t count;
};
/* Adds a passkey with user_id, credential_id, algorithm, public_key, sign_count and name of
 * `given`. A mail is sent to the address `tell`; NULL: no mail. The session with that cookie counts
 * from then on as begun by a passkey. Returns ERR_REFUSED when the credential is already registered
 * or the user has PASSKEYS_OF_USER_MAX passkeys. Returns ERR_PASSKEY when the user has passkeys,
 * the session began without one, and its chosen account or one in which the user has worked
 * requires them. Returns ERR_NOT_FOUND when the session has ended or belongs to another user. */
int store_add_passkey(struct store *store, const struct passkey_record *given,
                      const struct sha256 *cookie, const char *tell, int64_t now_us,
                      char ret_passkey_id[ID_SIZE], struct error *error) MUST_CHECK;
int store_find_passkey(struct store *store, struct slice credential_id, struct arena *arena,
                       struct passkey_record *ret, struct error *error) MUST_CHECK;
int store_list_passkeys(struct store *store, const char *email, struct arena *arena,
                        struct passkey_list *ret, struct error *error) MUST_CHECK;
/* Updates the signature count and begins a session. Returns ERR_NOT_FOUND when the count differs
 * from that of `known`, because the passkey was used in the meantime, when the passkey was removed,
 * or when its user has no account. */
int store_use_passkey(struct store *store, const struct passkey_record *known, int64_t sign_count,
                      const struct session_start *start, struct error *error) MUST_CHECK;
/* Removes a passkey and ends all sessions of the user that passkeys began. `tells`: the user is
 * notified by e-mail. With the operator, the audit record is written for each account in which the
 * user has worked; owners of other accounts are not to learn whether the user has passkeys. Returns
 * ERR_NOT_FOUND when the passkey does not belong to the user. */
int store_remove_passkey(struct store *store, struct slice passkey_id, const char *email,
                         bool tells, int64_t now_us, struct error *error) MUST_CHECK;

/* Removes expired rows: browsers without a sign-in in the year before before_us, challenges made
 * before challenges_before_us, links that expired, sessions that ended or were last used, and mails
 * "sign_in" that ended before before_us. */
int store_remove_old_sessions(struct store *store, int64_t before_us, int64_t challenges_before_us,
                              struct error *error) MUST_CHECK;

#endif
