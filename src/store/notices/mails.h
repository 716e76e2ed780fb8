/* The outbox of e-mails to account owners: written in the transaction that causes them, delivered
 * by the mailer (jobs/mailer.h).
 *
 * A mail is the name of a template and the values to fill in; recipient and language are the
 * account's as they stand when it is sent, or those that it was queued with, for a user of the
 * console. An attempt holds a lease; whoever lost it ends nothing. A retry after a lost answer
 * carries the same identifier, from which the Message-ID is made, so that the receiving side can
 * drop the second copy. Thread safe; what is given back lives in the caller's arena. */
#ifndef STORE_MAILS_H
#define STORE_MAILS_H

#include "store/store.h"

/* Template names and the members of their values (texts unless said otherwise):
 *   endpoint_disabled   endpoint_id, url
 *   topup_failed        reason (as in recharge.auto_failed), pack_id, sale_code (or null),
 *                       payment_url (or null)
 *   account_disabled    active_at (time of the last activity)
 *   invitation          account_name, role, url; to who is invited
 *   passkey_added       name, at, address (of the browser); to its user, on no account
 *   passkey_removed     name, at, address, or reason "operator"; the same
 *   sign_in             browser (digest, hex), until (microseconds, an integer); to whoever was
 *                       named, on no account. What it says is made when it is sent */
#define MAIL_ENDPOINT_DISABLED "endpoint_disabled"
#define MAIL_TOPUP_FAILED "topup_failed"
#define MAIL_ACCOUNT_DISABLED "account_disabled"
#define MAIL_INVITATION "invitation"
#define MAIL_SIGN_IN "sign_in"
#define MAIL_PASSKEY_ADDED "passkey_added"
#define MAIL_PASSKEY_REMOVED "passkey_removed"

struct mail {
	int64_t account;
	char account_id[ID_SIZE]; /* empty: on no account */
	char mail_id[ID_SIZE];
	const char *template_name;
	const char *values;    /* JSON object */
	const char *recipient; /* NULL: the account has no address any more */
	enum language language;
	int64_t queued_at_us;
	int64_t attempts; /* ended before this one */
};

/* The mail that has been due longest, leased to `holder` until now_us + lease_us; of those of a
 * template, or (NULL) of all. ERR_NOT_FOUND. */
int store_claim_mail(struct store *store, const char *template_name, const char *holder,
                     int64_t now_us, int64_t lease_us, struct arena *arena, struct mail *ret,
                     struct error *error) MUST_CHECK;

enum mail_end {
	MAIL_SENT,    /* the server took it */
	MAIL_FAILED,  /* refused for good, or tried often enough */
	MAIL_DROPPED, /* there is no mail server or no recipient */
};
/* ERR_REFUSED: the lease is another's, or the mail has ended. `cause` may be NULL. */
int store_end_mail(struct store *store, const struct mail *mail, const char *holder,
                   enum mail_end end, const char *cause, int64_t now_us, struct error *error)
	MUST_CHECK;
/* Gives it back, to be tried again from next_us on, one attempt counted. ERR_REFUSED as above. */
int store_delay_mail(struct store *store, const struct mail *mail, const char *holder,
                     int64_t next_us, const char *cause, struct error *error) MUST_CHECK;

/* Removes mails that ended before before_us. */
int store_forget_mails(struct store *store, int64_t before_us, struct error *error) MUST_CHECK;

#endif
