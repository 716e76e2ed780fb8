/* What a user of the console may do: the rules over the table permissions.def. */
#ifndef ADMIN_PERMIT_H
#define ADMIN_PERMIT_H

#include "admin/admin.h"

/* Whether he may do it now. ERR_FORBIDDEN: his role does not allow it; ERR_SIGN_IN: he has to sign
 * in again first; ERR_PASSKEY: the account asks for a passkey, and he came in without one, and it
 * is not one of the few that need none, or that need none of who has none. */
int permit_operation(const struct admin_caller *user, const struct admin_operation *operation,
                     int64_t now_us, struct error *error) MUST_CHECK;
/* Puts his account, and where the table says so himself, into the arguments (an object, or NULL,
 * that is made then), which lie in the arena. ERR_FORBIDDEN: a parameter that is the operator's
 * alone; ERR_NOT_FOUND: another account, or another user's where only his own is his. */
int permit_arguments(const struct admin_caller *user, const struct admin_operation *operation,
                     struct json **arguments, struct arena *arena, struct error *error) MUST_CHECK;
/* Whether all that the arguments name is his account's: ERR_NOT_FOUND. They have been checked. */
int permit_things(const struct admin_caller *user, const struct admin_operation *operation,
                  const struct json *arguments, struct store *store, struct error *error)
	MUST_CHECK;

/* What he must still be when it is done; borrows of him. */
const struct act_standing *permit_standing(const struct admin_caller *user,
                                           const struct admin_operation *operation,
                                           struct act_standing *ret);
/* Whether something that the one role may do is not the other's. */
bool permit_takes(enum role from, enum role to);

/* Of the table, for who shows a page: what a user with that role could do, signing in again apart.
 */
bool permit_allows(enum role role, const char *operation);

/* The table itself, for its test. */
struct permission {
	const char *operation; /* NULL past the end */
	unsigned roles;        /* 0: the operator's alone */
	unsigned how;
	const char *parameters;
};
#define PERMIT_FRESH 1u
#define PERMIT_OWN_USER 2u
#define PERMIT_HIMSELF 4u
#define PERMIT_BARE 8u
#define PERMIT_BARE_AT_FIRST 16u
const struct permission *permit_at(size_t index);
/* Whether users may give it; then the kind of thing that it names, if it is an identifier, empty
 * for the account itself, a position and what is his own. */
bool permit_parameter(const struct permission *permission, const struct admin_parameter *parameter,
                      char kind[ADMIN_LABEL_SIZE]);

#endif
