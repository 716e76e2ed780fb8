/* The outbox of e-mails to account owners: a mail is written in the transaction that causes it and
 * sent by the mailer (jobs/mailer.h).
 *
 * A mail has the name of a template and the values for it. Recipient and language are those of the
 * account at the time of sending, or those stored with the mail for a user of the console. An
 * attempt holds a lease; without the lease the mail cannot be ended. A retry after a lost response
 * has the same identifier and therefore the same Message-ID, so that the receiving server can
 * discard the duplicate. Thread safe. Results live in the caller's arena. */
#ifndef STORE_MAILS_H
#define STORE_MAILS_H

#include "store/store.h"

/* Template names and the members of their values (texts unless stated otherwise):
 *   endpoint_disabled   endpoint_id, url
 *   endpoint_gone       endpoint_id, url
 *   topup_failed        reason (as in recharge.auto_failed), pack_id, sale_code (or null),
 *                       payment_url (or null)
 *   account_disabled    active_at (time of the last activity)
 *   invitation          account_name, role, url; to the invited user
 *   passkey_added       name, at, address (of the browser); to its user, without an account
 *   passkey_removed     name, at, address, or reason "operator"; to its user, without an account
 *   sign_in             browser (digest, hex), until (microseconds, an integer); to the address
 *                       that was entered, without an account. The link is made when it is sent */
#define MAIL_ENDPOINT_DISABLED "endpoint_disabled"
#define MAIL_ENDPOINT_GONE "endpoint_gone"
#define MAIL_TOPUP_FAILED "topup_failed"
#define MAIL_ACCOUNT_DISABLED "account_disabled"
#define MAIL_INVITATION "invitation"
#define MAIL_SIGN_IN "sign_in"
#define MAIL_PASSKEY_ADDED "passkey_added"
#define MAIL_PASSKEY_REMOVED "passkey_removed"

struct mail {
	int64_t account;
	char account_id[ID_SIZE]; /* empty: no account */
	char mail_id[ID_SIZE];
	const char *template_name;
	const char *values;    /* JSON object */
	const char *recipient; /* NULL: the account no longer has an address */
	enum language language;
	int64_t queued_at_us;
	int64_t attempts; /* completed before this one */
};

/* Leases to `holder`, until now_us + lease_us, the mail that has been due longest, of the given
 * template or (NULL) of all. Returns ERR_NOT_FOUND when none is due. */
int store_claim_mail(struct store *store, const char *template_name, const char *holder,
                     int64_t now_us, int64_t lease_us, struct arena *arena, struct mail *ret,
                     struct error *error) MUST_CHECK;

enum mail_end {
	MAIL_SENT,    /* accepted by the mail server */
	MAIL_FAILED,  /* refused permanently, or the last attempt failed */
	MAIL_DROPPED, /* no mail server or no recipient */
};
/* Ends the mail. Returns ERR_REFUSED when another holder has the lease or the mail has ended.
 * `cause` may be NULL. */
int store_end_mail(struct store *store, const struct mail *mail, const char *holder,
                   enum mail_end end, const char *cause, int64_t now_us, struct error *error)
	MUST_CHECK;
/* Counts a failed attempt and releases the lease; the next attempt is due at next_us. Returns
 * ERR_REFUSED as above. */
int store_delay_mail(struct store *store, const struct mail *mail, const char *holder,
                     int64_t next_us, const char *cause, struct error *error) MUST_CHECK;

/* Removes mails that ended before before_us. */
int store_forget_mails(struct store *store, int64_t before_us, struct error *error) MUST_CHECK;

#endif
