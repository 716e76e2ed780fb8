/* Start of a session, by a link or a passkey. Private to src/store. */
#ifndef STORE_PEOPLE_SESSION_START_H
#define STORE_PEOPLE_SESSION_START_H

#include "db/db.h"
#include "store/people/console_users.h"

/* Begins a session in the caller's transaction; `by` is BY_…. Returns ERR_NOT_FOUND when the user
 * has no account, and ERR_FULL after SIGN_INS_PER_DAY sign-ins. */
int session_begin(struct db_connection *connection, const char *user_id, const char *by,
                  bool by_passkey, const struct session_start *start, struct error *error)
	MUST_CHECK;

/* The audit record of a user's sign-in or sign-out (session_audit.c). */
struct session_audit {
	const char *operation;
	const struct sha256 *cookie;
	const char *address, *node;
	bool urgent, is_secondary; /* as in struct act */
};
/* Adds the audit record to the caller's transaction, in the account that is chosen in the session.
 * Writes nothing when the user was deleted. */
int session_audit_write(struct db_connection *connection, const struct session_audit *what,
                        struct error *error) MUST_CHECK;

#endif
