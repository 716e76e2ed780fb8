/* How users of the console come in and stay: links, sessions, and what a form shows to be theirs.
 *
 * A browser that is not signed in has a cookie of its own (a secret of people_new_secret), which a
 * link that it asks for is bound to. Taking the link gives the cookie of a session. Both cookies
 * and the links' secrets are 64 hex digits; the store has digests of them alone. A link lives
 * PEOPLE_LINK_US and works once; a session PEOPLE_SESSION_US, or PEOPLE_IDLE_US without a request.
 * Nobody is told whether an address is known: people_ask_link does the same for each, and who is
 * behind it is looked up when the mail is sent.
 *
 * Thread safe. They wait for the store. What is given back lives in the caller's arena. */
#ifndef SERVICE_PEOPLE_H
#define SERVICE_PEOPLE_H

#include "service/service.h"
#include "store/people/people.h"

#define PEOPLE_LINK_US (15 * 60 * US_PER_SECOND)
#define PEOPLE_SESSION_US (12 * 3600 * US_PER_SECOND)
#define PEOPLE_IDLE_US (30 * 60 * US_PER_SECOND)
#define PEOPLE_FRESH_US (10 * 60 * US_PER_SECOND) /* of a sign-in, for what is dangerous */
#define PEOPLE_LINKS_AN_HOUR 5        /* to one user, of each kind of browser that asks */
#define PEOPLE_STRANGERS_AN_HOUR 20   /* links to one user that were asked for by strangers */
#define PEOPLE_INVITATIONS_AN_HOUR 20 /* of one account, by its users */

/* Where a link leads, below service.public_url: this, and the secret behind it. */
#define PEOPLE_LINK_PATH "/console/enter?link="
#define PEOPLE_CONSOLE_PATH "/console/"

#define PEOPLE_SECRET_SIZE 65 /* 64 hex digits and NUL */
void people_new_secret(char text[PEOPLE_SECRET_SIZE]);
/* Whether it has the shape of one. */
bool people_is_secret(struct slice text);

/* What a form carries to show that the page was made for the browser with this cookie (of a session
 * or of a browser that is not signed in): 64 hex digits that do not tell the cookie. Pure. */
void people_form_token(struct slice cookie, char text[PEOPLE_SECRET_SIZE]);
/* In constant time. */
bool people_form_token_fits(struct slice cookie, struct slice token) MUST_CHECK;

/* In lower case into `ret`; ERR_VALIDATION: no address that mail can be sent to (`field` is named
 * in the sentence). Pure. */
int people_read_email(struct slice text, const char *field, char ret[EMAIL_SIZE],
                      struct error *error) MUST_CHECK;

/* Whether there is a mail server: else nobody is told anything. */
bool people_sends_mail(const struct settings *settings);

/* Who asks for a link. What a stranger asks for in a user's name is counted apart. */
struct people_asker {
	struct slice browser; /* its cookie, which the link is bound to */
	struct slice known;   /* the cookie that it has kept from a sign-in; empty: none */
	bool in_session;      /* of the user whose address it is */
	const char *address;  /* of its client, as text; strangers are counted by their networks */
};
/* Has a link mailed to that address, if a user has it, for the browser that asks; a user's own
 * language goes before `language`. The same is done, and the same answered, whoever has the
 * address; a stranger is told nothing either when so many mails wait that his is not queued.
 * ERR_VALIDATION: it is no address, or the cookie no secret. ERR_REFUSED, with a sentence:
 * the service sends no mail (mail.url is empty). ERR_UNAVAILABLE, ERR_* of the store. */
int people_ask_link(struct service *service, struct slice email, enum language language,
                    const struct people_asker *asker, struct error *error) MUST_CHECK;

/* Whose request it is, for the list of sessions and for acts. */
struct people_client {
	const char *address; /* as text; cut to 64 bytes */
	const char *agent;   /* what the browser says of itself, anything; cut to 200 bytes */
	struct slice known;  /* the secret that it keeps to be known by; empty: none */
};
/* Uses up the link and begins a session, whose cookie is put into `ret`; `former` is the browser's
 * session until now, which ends (empty: none). `browser`: its cookie from before (empty: none; then
 * only the operator's links work). ERR_REFUSED, with one sentence for all that can be wrong: used,
 * run out, another browser's, unknown. */
int people_take_link(struct service *service, struct slice link, struct slice browser,
                     struct slice former, const struct people_client *client,
                     char ret[PEOPLE_SECRET_SIZE], struct error *error) MUST_CHECK;

/* The session of a cookie: who, with which roles in which accounts, the chosen one, when he signed
 * in (struct session_view). Roles are as they are now. ERR_NOT_FOUND: there is none, it has ended,
 * or it was idle too long; an empty or misshapen cookie costs no look-up. Every PEOPLE_TOUCH_US at
 * most it is noted that the session is in use, and that he was in the chosen account; and once that
 * he works in it. */
#define PEOPLE_TOUCH_US (60 * US_PER_SECOND)
int people_find_session(struct service *service, struct slice cookie, struct arena *arena,
                        struct session_view *ret, struct error *error) MUST_CHECK;
/* Whether what is dangerous may be done now without signing in again. */
bool people_is_fresh(const struct session_view *session, int64_t now_us);
/* Another of his accounts is the chosen one. ERR_NOT_FOUND, in the words for an account that does
 * not exist. */
int people_choose_account(struct service *service, struct slice cookie, struct slice account_id,
                          struct error *error) MUST_CHECK;
int people_set_language(struct service *service, const struct session_view *session,
                        enum language language, struct error *error) MUST_CHECK;
/* Signs out; of the client the address is kept, in the act. OK also where there is no session. An
 * act that cannot be written, which is logged, keeps nobody in. */
int people_leave(struct service *service, struct slice cookie, const struct people_client *client,
                 struct error *error) MUST_CHECK;

/* ---- passkeys: what is kept of them; console/webauthn.h verifies ---- */
#define PEOPLE_CHALLENGE_US (5 * 60 * US_PER_SECOND)
#define PEOPLE_PASSKEY_NAME_MAX 60

/* A fresh challenge for the browser with this cookie (of a session, or not signed in), which the
 * page shows to the authenticator. ERR_NOT_FOUND: it is no cookie. */
int people_challenge(struct service *service, struct slice cookie, uint8_t ret[CHALLENGE_SIZE],
                     struct error *error) MUST_CHECK;
/* What it was, once, within PEOPLE_CHALLENGE_US; to be taken before anything is verified, so that
 * each is answered once. ERR_NOT_FOUND. */
int people_take_challenge(struct service *service, struct slice cookie, uint8_t ret[CHALLENGE_SIZE],
                          struct error *error) MUST_CHECK;
/* Whether the chosen account, or one in which he has worked, asks for passkeys, and the session was
 * begun without one: then he neither adds another one to those that he has nor
 * removes any, or a link would do where they are asked for. */
bool people_owes_passkey(const struct session_view *session);
/* Adds a verified credential (credential_id, algorithm, public_key, sign_count, name, of which
 * PEOPLE_PASSKEY_NAME_MAX bytes are kept) to the session's user; the session counts as begun with a
 * passkey from then on. An act of the user on the chosen account. The caller asks for a fresh
 * sign-in. ERR_PASSKEY: he has some, and owes one (above). ERR_REFUSED as store_add_passkey. */
int people_add_passkey(struct service *service, const struct session_view *session,
                       struct slice cookie, const struct passkey_record *credential,
                       const struct people_client *client, char ret_passkey_id[ID_SIZE],
                       struct error *error) MUST_CHECK;
/* Begins a session with a passkey that store_find_passkey found and that was verified; otherwise as
 * people_take_link. ERR_REFUSED: it was used or removed meanwhile. */
int people_enter(struct service *service, const struct passkey_record *known, int64_t sign_count,
                 struct slice former, const struct people_client *client,
                 char ret[PEOPLE_SECRET_SIZE], struct error *error) MUST_CHECK;

/* ---- for operations, mails and housekeeping ---- */

/* A link for a user that any browser may take, appended to `url` with service.public_url.
 * ERR_NOT_FOUND. `store` may be a store_acting. */
int people_operator_link(const struct settings *settings, struct store *store, const char *email,
                         int64_t now_us, struct buf *url, int64_t *ret_expires_at_us,
                         struct error *error) MUST_CHECK;

struct mail;
/* What a mail says, as JSON in *ret_values: its own values, but of a mail "sign_in" a link that is
 * made now, so that its secret lies nowhere. ERR_NOT_FOUND: it is not to be sent, since nobody has
 * the address, he was sent enough, or it would come too late. */
int people_mail_values(struct service *service, const struct mail *mail, struct arena *arena,
                       const char **ret_values, struct error *error) MUST_CHECK;

/* Removes what ran out or ended a day ago. */
int people_forget(struct service *service, struct error *error) MUST_CHECK;

#endif
