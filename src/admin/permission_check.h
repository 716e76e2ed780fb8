/* Authorization of console users by the table permissions.def. */
#ifndef ADMIN_PERMISSION_CHECK_H
#define ADMIN_PERMISSION_CHECK_H

#include "admin/admin.h"

/* Checks whether the user may perform the operation now. ERR_FORBIDDEN: their role does not allow
 * it. ERR_SIGN_IN: they must sign in again first. ERR_PASSKEY: the account requires a passkey, the
 * session was started without one, and the operation is not exempt (BARE, BARE_AT_FIRST). */
int permission_check_operation(const struct admin_caller *user,
                               const struct admin_operation *operation, int64_t now_us,
                               struct error *error) MUST_CHECK;
/* Adds the user's account, and the user where the table requires it, to the arguments (an object,
 * or NULL, which is replaced by a new object), which are in the arena. ERR_FORBIDDEN: a parameter
 * is reserved for the operator. ERR_NOT_FOUND: another account, or another user where only the user
 * themselves is allowed. */
int permission_bind_arguments(const struct admin_caller *user,
                              const struct admin_operation *operation, struct json **arguments,
                              struct arena *arena, struct error *error) MUST_CHECK;
/* Checks that all objects in the arguments belong to the user's account. The arguments must be
 * valid. ERR_NOT_FOUND. */
int permission_check_objects(const struct admin_caller *user,
                             const struct admin_operation *operation, const struct json *arguments,
                             struct store *store, struct error *error) MUST_CHECK;

/* Fills in the authorization that the user must still have when the operation commits. It borrows
 * from `user`. */
const struct audit_authorization *permission_fill_authorization(
	const struct admin_caller *user, const struct admin_operation *operation,
	struct audit_authorization *ret);
/* Returns whether the role `from` has a permission that `to` lacks. */
bool permission_is_lost(enum role from, enum role to);

/* Returns whether a role may perform an operation, for the display of pages; a recent sign-in is
 * not considered. */
bool permission_is_granted(enum role role, const char *operation);

/* The table, for its test. */
struct permission {
	const char *operation; /* NULL past the end */
	unsigned roles;        /* 0: reserved for the operator */
	unsigned how;
	const char *parameters;
};
#define PERMISSION_RECENT 1u
#define PERMISSION_OWN_USER 2u
#define PERMISSION_SELF_ONLY 4u
#define PERMISSION_NO_PASSKEY 8u
#define PERMISSION_FIRST_PASSKEY 16u
const struct permission *permission_at(size_t index);
/* Returns whether users may give the parameter. `kind` is the kind of object that it identifies;
 * empty for other parameters, the account itself, positions, and objects checked by the
 * operation. */
bool permission_has_parameter(const struct permission *permission,
                              const struct admin_parameter *parameter, char kind[ADMIN_LABEL_SIZE]);

#endif
