/* Authentication of console users: sign-in links, sessions, form tokens and passkeys.
 *
 * A browser that is not signed in has a cookie of its own (a secret of user_auth_new_secret). A
 * link is bound to the cookie of the browser that requested it. Following the link returns a
 * session cookie. Both cookies and the secrets of links are 64 hex digits; the store contains only
 * their digests. A link is valid for USER_AUTH_LINK_US and works once. A session is valid for
 * USER_AUTH_SESSION_US, or until USER_AUTH_IDLE_US have passed without a request. The responses do
 * not reveal whether an address is known: user_auth_request_link does the same for every address,
 * and the user is looked up when the mail is sent.
 *
 * Thread safe. The functions block on the store. Results are allocated in the caller's arena. */
#ifndef SERVICE_USER_AUTH_H
#define SERVICE_USER_AUTH_H

#include "service/service.h"
#include "store/people/console_users.h"

#define USER_AUTH_LINK_US (15 * 60 * US_PER_SECOND)
#define USER_AUTH_SESSION_US (12 * 3600 * US_PER_SECOND)
#define USER_AUTH_IDLE_US (30 * 60 * US_PER_SECOND)
#define USER_AUTH_RECENT_US (10 * 60 * US_PER_SECOND) /* sign-in age for sensitive operations */
#define USER_AUTH_LINKS_PER_HOUR 5                    /* to one user, per kind of browser */
#define USER_AUTH_UNKNOWN_PER_HOUR                                                                 \
	20 /* maximum links to one user requested by unknown browsers                                  \
	    */
#define USER_AUTH_INVITATIONS_PER_HOUR 20 /* maximum invitations of one account, by its users */

/* Path of a link below service.public_url; the secret follows it. */
#define USER_AUTH_LINK_PATH "/console/enter?link="
#define USER_AUTH_CONSOLE_PATH "/console/"

#define USER_AUTH_SECRET_SIZE 65 /* 64 hex digits and NUL */
void user_auth_new_secret(char text[USER_AUTH_SECRET_SIZE]);
/* Returns whether a text has the format of a secret. */
bool user_auth_is_secret(struct slice text);

/* Computes the token by which a form proves that its page was made for the browser with this cookie
 * (of a session, or of a browser that is not signed in): 64 hex digits that do not reveal the
 * cookie. Pure. */
void user_auth_form_token(struct slice cookie, char text[USER_AUTH_SECRET_SIZE]);
/* Compares in constant time. */
bool user_auth_check_form_token(struct slice cookie, struct slice token) MUST_CHECK;

/* Converts an e-mail address to lower case. ERR_VALIDATION, with `field` in the message: mail
 * cannot be sent to it. Pure. */
int user_auth_read_email(struct slice text, const char *field, char ret[EMAIL_SIZE],
                         struct error *error) MUST_CHECK;

/* Returns whether a mail server is configured. */
bool user_auth_sends_mail(const struct settings *settings);

/* The browser that requests a link. Requests by browsers that the user has not used before are
 * counted separately. */
struct link_requester {
	struct slice browser; /* its cookie, to which the link is bound */
	struct slice known;   /* its cookie from an earlier sign-in; empty: none */
	bool in_session;      /* it has a session of the user with this address */
	const char *address;  /* client address, as text; unknown browsers are counted by network */
};
/* Queues a mail with a link for the requesting browser, if the address belongs to a user. The
 * user's own language takes precedence over `language`. Behaviour and response are the same for all
 * addresses, also when the queue is full and the request of an unknown browser is dropped.
 * ERR_VALIDATION: the address is invalid, or the cookie is not a secret. ERR_REFUSED with a
 * message: the service sends no mail (mail.url is empty). ERR_UNAVAILABLE, ERR_* of the store. */
int user_auth_request_link(struct service *service, struct slice email, enum language language,
                           const struct link_requester *asker, struct error *error) MUST_CHECK;

/* The client of a request, for the list of sessions and the audit log. */
struct user_auth_client {
	const char *address; /* as text; truncated to 64 bytes */
	const char *agent;   /* User-Agent, unverified; truncated to 200 bytes */
	struct slice known;  /* cookie of the browser from an earlier sign-in; empty: none */
};
/* Consumes the link and starts a session, whose cookie is written to `ret`. `former` is the
 * browser's current session, which ends (empty: none). `browser` is its cookie before the sign-in
 * (empty: none; then only links of the operator work). ERR_REFUSED, with one message for all
 * causes: the link was used, has expired, belongs to another browser, or is unknown. */
int user_auth_redeem_link(struct service *service, struct slice link, struct slice browser,
                          struct slice former, const struct user_auth_client *client,
                          char ret[USER_AUTH_SECRET_SIZE], struct error *error) MUST_CHECK;

/* Finds the session of a cookie: the user, their accounts and current roles, the chosen account,
 * and the time of the sign-in (struct session_view). ERR_NOT_FOUND: there is no such session, it
 * has ended, or it was idle for too long; an empty or malformed cookie costs no lookup. The use of
 * the session and of the chosen account is recorded at most every USER_AUTH_TOUCH_US; that the user
 * works in the account is recorded once. */
#define USER_AUTH_TOUCH_US (60 * US_PER_SECOND)
int user_auth_find_session(struct service *service, struct slice cookie, struct arena *arena,
                           struct session_view *ret, struct error *error) MUST_CHECK;
/* Returns whether sensitive operations are allowed without signing in again. */
bool user_auth_is_recent(const struct session_view *session, int64_t now_us);
/* Chooses another account of the user. ERR_NOT_FOUND, with the same message as for an account that
 * does not exist. */
int user_auth_choose_account(struct service *service, struct slice cookie, struct slice account_id,
                             struct error *error) MUST_CHECK;
int user_auth_set_language(struct service *service, const struct session_view *session,
                           enum language language, struct error *error) MUST_CHECK;
/* Signs out. The audit log stores the client's address. Returns OK also if there is no session. The
 * session ends even if the audit record cannot be written, which is logged. */
int user_auth_sign_out(struct service *service, struct slice cookie,
                       const struct user_auth_client *client, struct error *error) MUST_CHECK;

/* ---- passkeys; console/webauthn.h verifies them ---- */
#define USER_AUTH_CHALLENGE_US (5 * 60 * US_PER_SECOND)
#define USER_AUTH_PASSKEY_NAME_MAX 60

/* Creates a challenge for the browser with this cookie (of a session, or not signed in), which the
 * page passes to the authenticator. ERR_NOT_FOUND: the cookie is malformed. */
int user_auth_create_challenge(struct service *service, struct slice cookie,
                               uint8_t ret[CHALLENGE_SIZE], struct error *error) MUST_CHECK;
/* Returns and removes the challenge, within USER_AUTH_CHALLENGE_US. To be called before
 * verification, so that each challenge is answered at most once. ERR_NOT_FOUND. */
int user_auth_take_challenge(struct service *service, struct slice cookie,
                             uint8_t ret[CHALLENGE_SIZE], struct error *error) MUST_CHECK;
/* Returns whether the chosen account, or another account in which the user has worked, requires
 * passkeys, and the session was started without one. Such a session may neither add a further
 * passkey nor remove one; otherwise a link would suffice where passkeys are required. */
bool user_auth_requires_passkey(const struct session_view *session);
/* Adds a verified credential (credential_id, algorithm, public_key, sign_count, name, truncated to
 * USER_AUTH_PASSKEY_NAME_MAX bytes) to the session's user. The session then counts as started with
 * a passkey. The audit record belongs to the chosen account. The caller requires a recent sign-in.
 * ERR_PASSKEY: the user has passkeys and must use one (user_auth_requires_passkey). ERR_REFUSED: as
 * store_add_passkey. */
int user_auth_add_passkey(struct service *service, const struct session_view *session,
                          struct slice cookie, const struct passkey_record *credential,
                          const struct user_auth_client *client, char ret_passkey_id[ID_SIZE],
                          struct error *error) MUST_CHECK;
/* Starts a session with a verified passkey from store_find_passkey; otherwise like
 * user_auth_redeem_link. ERR_REFUSED: it was used or removed in the meantime. */
int user_auth_sign_in_passkey(struct service *service, const struct passkey_record *known,
                              int64_t sign_count, struct slice former,
                              const struct user_auth_client *client,
                              char ret[USER_AUTH_SECRET_SIZE], struct error *error) MUST_CHECK;

/* ---- for operations, mails and housekeeping ---- */

/* Creates a link that works in any browser, and appends it to `url` with service.public_url.
 * ERR_NOT_FOUND. `store` may be a store_audited. */
int user_auth_create_operator_link(const struct settings *settings, struct store *store,
                                   const char *email, int64_t now_us, struct buf *url,
                                   int64_t *ret_expires_at_us, struct error *error) MUST_CHECK;

struct mail;
/* Returns the values of a mail as JSON. For a "sign_in" mail, the link is created now, so that its
 * secret is stored nowhere. ERR_NOT_FOUND: the mail is not to be sent, because the address is
 * unknown, the user has received too many mails, or it would arrive too late. */
int user_auth_mail_values(struct service *service, const struct mail *mail, struct arena *arena,
                          const char **ret_values, struct error *error) MUST_CHECK;

/* Deletes links and sessions that expired or ended a day ago, and expired challenges. */
int user_auth_delete_expired(struct service *service, struct error *error) MUST_CHECK;

#endif
