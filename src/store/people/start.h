/* The store's own: how a session begins, whatever it is begun by. */
#ifndef STORE_PEOPLE_START_H
#define STORE_PEOPLE_START_H

#include "db/db.h"
#include "store/people/people.h"

/* In the caller's transaction; `by` is BY_…. ERR_NOT_FOUND: the user has no account. */
int session_begin(struct db_connection *connection, const char *user_id, const char *by,
                  bool by_passkey, const struct session_start *start, struct error *error)
	MUST_CHECK;

/* What becomes of a session at its user's own wish (session_act.c). */
struct session_act {
	const char *operation;
	const struct sha256 *cookie;
	const char *address, *node;
	bool urgent, beside; /* as of struct act */
};
/* Adds the act to the caller's transaction, on the account that is chosen in the session; nothing
 * where its user is forgotten. */
int session_act_write(struct db_connection *connection, const struct session_act *what,
                      struct error *error) MUST_CHECK;

#endif
