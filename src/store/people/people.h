/* Users of the console: who they are, their roles in accounts, the links and sessions by which they
 * come in, their passkeys.
 *
 * A user has an e-mail address, compared in lower case, and a role in each of one or more accounts.
 * Of links and cookies only SHA-256 digests come here. How long things live is the caller's affair
 * (service/people.h). Each change is one transaction. Thread safe; what is given back lives in the
 * caller's arena. */
#ifndef STORE_PEOPLE_H
#define STORE_PEOPLE_H

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
	enum language language; /* of a user who is new here */
	const char *invited_by; /* user_id; NULL: the operator */
	struct slice mail;      /* values of the mail "invitation", JSON; empty: none is sent */
	int64_t hourly_mails;   /* at most so many invitations of the account in an hour; 0: any */
};
/* Makes the user, if nobody has that address, and his role. ERR_REFUSED: he has one in the account
 * already; the account has USERS_OF_ACCOUNT_MAX, the user ACCOUNTS_OF_USER_MAX; too many were
 * invited. The act does not tell the user_id: one that stays the same when somebody is removed and
 * invited again would tell that he has other accounts. */
int store_invite_user(struct store *store, const struct invitation *invitation, int64_t now_us,
                      char ret_user_id[ID_SIZE], struct error *error) MUST_CHECK;

struct user_record {
	char user_id[ID_SIZE];
	const char *email;
	enum role role;
	int64_t made_at_us;
	const char *made_by; /* e-mail; NULL: the operator, or somebody who is no user any more */
	int64_t seen_at_us;  /* when he was last in this account; TIME_NONE: never */
	int64_t passkeys;    /* how many he has */
};
struct user_list {
	struct user_record *items;
	size_t count;
};
/* All of an account, by e-mail address. */
int store_list_users(struct store *store, struct slice account_id, struct arena *arena,
                     struct user_list *ret, struct error *error) MUST_CHECK;

/* Both end the sessions of the user in which that account is chosen, and no others; with the role
 * that he has already nothing happens. ERR_NOT_FOUND: he has no role in that account; ERR_REFUSED:
 * he is its last owner, also when two owners go at once. A user without any role is forgotten. */
int store_change_role(struct store *store, struct slice account_id, const char *email,
                      enum role role, int64_t now_us, struct error *error) MUST_CHECK;
int store_remove_user(struct store *store, struct slice account_id, const char *email,
                      int64_t now_us, struct error *error) MUST_CHECK;

int store_set_user_language(struct store *store, const char *user_id, enum language language,
                            struct error *error) MUST_CHECK;

/* ---- links (sign_in.c) ---- */
struct link_grant {
	const char *email;            /* in lower case */
	struct sha256 link;           /* digest of its secret */
	const struct sha256 *browser; /* of the browser that asked; NULL: any may take it */
	const char *asked;            /* the request: links of the same one are used up together */
	bool in_session;              /* asked for in an open session of the user */
	const struct sha256 *known;   /* what the browser that asked has kept; NULL: nothing */
	const char *network;          /* that it asked from; NULL: none */
	int64_t now_us;
	int64_t expires_at_us;
	int64_t hourly_max;    /* of requests, each however often it is tried; 0: any number */
	int64_t strangers_max; /* 0: any number */
};
/* The operator's act is one on each account of the user, since he may go to any of them with it.
 * ERR_NOT_FOUND: nobody has that address, or nobody with a role in an account; ERR_REFUSED: he was
 * given hourly_max in the last hour, counted apart for open sessions, and, for each network
 * that they asked from, for browsers in which he signed in before and for others; or one of these
 * kinds was given strangers_max, from wherever, and he never signed in from this network. */
int store_make_link(struct store *store, const struct link_grant *grant, struct error *error)
	MUST_CHECK;
struct link_request {
	const char *email; /* in lower case */
	enum language language;
	struct slice values;        /* of the mail "sign_in" */
	bool in_session;            /* asked for in an open session of the user */
	const struct sha256 *known; /* what the browser has kept; NULL: nothing */
	const char *network;        /* in `values` too, as a text "network"; NULL: none */
	int64_t now_us;
};
#define ASKED_WAITING_MAX 1000  /* mails, of whoever */
#define ASKED_OF_NETWORK_MAX 5  /* for one address, from one network of strangers */
#define ASKED_OF_ADDRESS_MAX 20 /* of strangers, for one address */
/* Has a mail queued, whoever has that address. ERR_REFUSED: a stranger asks (not in a session of
 * the user, nor in a browser in which he signed in before), and too many mails wait: in all, for
 * that address from his network, or, where the user never signed in from there, for that address.
 * ERR_UNAVAILABLE: too many wait for anybody, of whom there is room for as many
 * again. */
int store_ask_link(struct store *store, const struct link_request *request, struct error *error)
	MUST_CHECK;

/* ---- sessions (sessions.c) ---- */
/* How one came in: by a link that was mailed, by a passkey, or by a link that the operator made,
 * which whoever has it may take, or by a passkey that was added in a session which began by one of
 * the last two. A passkey that is added later changes nothing of it. */
#define BY_LINK "link"
#define BY_PASSKEY "passkey"
#define BY_OPERATOR_LINK "operator_link"
#define BY_OPERATOR_PASSKEY "operator_passkey"

/* Its beginning, and the end of the former one, are acts of their users, "sign in" and "sign out",
 * on the accounts that are chosen in them. */
struct session_start {
	struct sha256 cookie;        /* of the session to come */
	const struct sha256 *former; /* the browser's session until now, which ends; NULL: none */
	const struct sha256 *known;  /* what the browser keeps to be known by; NULL: nothing */
	const char *network;         /* is known with it */
	const char *address;
	const char *agent;
	const char *node; /* this machine's name */
	int64_t now_us;
};
/* Uses a link up and begins a session, in the account of the former one if that was his, else in
 * the first that he came to. ERR_NOT_FOUND: there is no such link, or it is used, has run out, is
 * another browser's, or the user has no account: nothing is changed. */
int store_take_link(struct store *store, const struct sha256 *link, const struct sha256 *browser,
                    const struct session_start *start, struct error *error) MUST_CHECK;

struct membership {
	char account_id[ID_SIZE];
	const char *account_name;
	enum role role;
	bool passkeys_required;
	bool taken_up;       /* he has worked in it; anybody may have invited him */
	const char *made_by; /* e-mail of who did; NULL: the operator, or one who is no user any more */
	int64_t seen_at_us;  /* when he was last in it; TIME_NONE: never */
};
struct session_view {
	char session_id[ID_SIZE];
	char user_id[ID_SIZE];
	const char *email;
	enum language language;
	int64_t made_at_us;
	int64_t seen_at_us;
	int64_t signed_in_at_us;
	const char *signed_in_by; /* BY_…; NULL: it is from before this was kept */
	bool by_passkey;
	int64_t passkeys;               /* how many the user has */
	struct membership *memberships; /* by account name; at least one */
	size_t membership_count;
	const struct membership *chosen; /* one of them */
	bool partial;                    /* some are left out, as a server is away */
};
/* One that has not ended, was begun after made_after_us and seen after seen_after_us;
 * ERR_NOT_FOUND. Where the chosen account is his no longer, or on a server that is away,
 * another one is chosen. */
int store_find_session(struct store *store, const struct sha256 *cookie, int64_t made_after_us,
                       int64_t seen_after_us, struct arena *arena, struct session_view *ret,
                       struct error *error) MUST_CHECK;
/* Notes of the session, and of its user in the account that it has chosen, that he was seen.
 * Durable on this server alone: may be lost. Both leave a row that another one holds as it is. */
int store_touch_session(struct store *store, const struct sha256 *cookie, int64_t now_us,
                        struct error *error) MUST_CHECK;
/* Durable on this server alone, so that nobody who takes the role away waits for it. */
int store_take_up(struct store *store, const char *user_id, const char *account_id,
                  struct error *error) MUST_CHECK;
/* ERR_NOT_FOUND: the account is not his, or there is no such session. */
int store_choose_account(struct store *store, const struct sha256 *cookie, struct slice account_id,
                         struct error *error) MUST_CHECK;
struct session_leave {
	struct sha256 cookie;
	const char *address; /* that he signs out from */
	const char *node;
	bool unrecorded; /* leaves no act */
	int64_t now_us;
};
/* The user signs out, durable on this server alone; OK also where there is no such session. The act
 * "sign out" is in the chain of what is urgent, which waits for no standby. */
int store_leave_session(struct store *store, const struct session_leave *leave, struct error *error)
	MUST_CHECK;

struct session_record {
	char session_id[ID_SIZE];
	char account_id[ID_SIZE]; /* the chosen one */
	const char *account_name;
	const char *email;
	const char *address;
	const char *agent;
	int64_t made_at_us;
	int64_t seen_at_us;
	int64_t signed_in_at_us;
	const char *signed_in_by; /* BY_…; NULL: it is from before this was kept */
	bool by_passkey;
};
struct session_list {
	struct session_record *items;
	size_t count;
	bool more;
	bool partial; /* a server is away that may have some, too */
};
/* Which sessions are meant. */
struct session_scope {
	struct slice account_id; /* that is chosen in them; empty: whichever */
	const char *own;   /* e-mail of a user whose sessions are meant beside those of the account,
	                    * whichever is chosen in them; NULL: nobody's */
	const char *email; /* of these, the user's with this one alone; NULL: whose they may be */
};
/* Those that are open, newest first, at most `limit`. */
int store_list_sessions(struct store *store, const struct session_scope *scope,
                        int64_t made_after_us, int64_t seen_after_us, int64_t limit,
                        struct arena *arena, struct session_list *ret, struct error *error)
	MUST_CHECK;
/* By its identifier. ERR_NOT_FOUND: it is not open, or none of those that are meant. */
int store_end_session(struct store *store, struct slice session_id,
                      const struct session_scope *scope, int64_t now_us, struct error *error)
	MUST_CHECK;

/* ---- passkeys (passkeys.c) ---- */
#define CHALLENGE_SIZE 32
#define PASSKEY_KEY_MAX 64
#define PASSKEYS_OF_USER_MAX 20

/* What a browser, known by the digest of its cookie, has to answer with a passkey; the one before
 * counts no more. Both durable on this server alone: what comes of an answer is on a standby after
 * its being taken. */
int store_set_challenge(struct store *store, const struct sha256 *browser,
                        const uint8_t challenge[CHALLENGE_SIZE], int64_t now_us,
                        struct error *error) MUST_CHECK;
/* Takes it away: it counts once. ERR_NOT_FOUND: there is none that was set after made_after_us. */
int store_take_challenge(struct store *store, const struct sha256 *browser, int64_t made_after_us,
                         uint8_t ret[CHALLENGE_SIZE], struct error *error) MUST_CHECK;

struct passkey_record {
	char passkey_id[ID_SIZE];
	char user_id[ID_SIZE];
	struct slice credential_id;
	int algorithm; /* of COSE */
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
/* From `given`: user_id, credential_id, algorithm, public_key, sign_count, name. `tell`: the user's
 * address, which is told by e-mail; NULL: it is not. The session of that cookie counts as begun by
 * a passkey from then on. ERR_REFUSED: the credential is known already, or he has
 * PASSKEYS_OF_USER_MAX; ERR_PASSKEY: the session was begun without one, its account, or one that
 * he has taken up, asks for them, and he has some; ERR_NOT_FOUND: the session has ended, or is
 * another's. */
int store_add_passkey(struct store *store, const struct passkey_record *given,
                      const struct sha256 *cookie, const char *tell, int64_t now_us,
                      char ret_passkey_id[ID_SIZE], struct error *error) MUST_CHECK;
int store_find_passkey(struct store *store, struct slice credential_id, struct arena *arena,
                       struct passkey_record *ret, struct error *error) MUST_CHECK;
int store_list_passkeys(struct store *store, const char *email, struct arena *arena,
                        struct passkey_list *ret, struct error *error) MUST_CHECK;
/* Notes the count and begins a session. ERR_NOT_FOUND: the count is no longer `known`'s, since
 * somebody used the passkey meanwhile, or it is gone, or its user has no account. */
int store_use_passkey(struct store *store, const struct passkey_record *known, int64_t sign_count,
                      const struct session_start *start, struct error *error) MUST_CHECK;
/* All sessions that passkeys of the user began end with it. `tells`: he is told by e-mail. The
 * operator's act is one on each account that the user has worked in: owners of others are not to
 * learn whether he has passkeys.
 * ERR_NOT_FOUND: it is not his. */
int store_remove_passkey(struct store *store, struct slice passkey_id, const char *email,
                         bool tells, int64_t now_us, struct error *error) MUST_CHECK;

/* Removes browsers in which nobody signed in in the year up to before_us, challenges of before
 * challenges_before_us, links that ran out before before_us, sessions that ended or were last seen
 * before then, and mails "sign_in" that ended before then. */
int store_forget_people(struct store *store, int64_t before_us, int64_t challenges_before_us,
                        struct error *error) MUST_CHECK;

#endif
