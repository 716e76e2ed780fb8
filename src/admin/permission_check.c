#include "admin/permission_check.h"

#include <stdio.h>

#include "base/utf8.h"
#include "service/user_auth.h"
#include "store/people/ownership.h"

#define FRESH PERMISSION_RECENT
#define OWN_USER PERMISSION_OWN_USER
#define SELF_ONLY PERMISSION_SELF_ONLY
#define BARE PERMISSION_NO_PASSKEY
#define BARE_AT_FIRST PERMISSION_FIRST_PASSKEY

static const struct permission permissions[] = {
#define PERMISSION(operation, roles, how, parameters) {operation, roles, how, parameters},
#define OPERATOR(operation) {operation, 0, 0, ""},
#include "admin/permissions.def"
#undef PERMISSION
#undef OPERATOR
};
#define PERMISSIONS (sizeof permissions / sizeof *permissions)

const struct permission *permission_at(size_t index)
{
	return index < PERMISSIONS ? &permissions[index] : NULL;
}

/* NULL: not in the table, so it is reserved for the operator. */
static const struct permission *find(const char *operation)
{
	for (size_t i = 0; i < PERMISSIONS; i++)
		if (strcmp(permissions[i].operation, operation) == 0)
			return &permissions[i];
	return NULL;
}

bool permission_is_granted(enum role role, const char *operation)
{
	const struct permission *permission = find(operation);
	return permission && (permission->roles & role);
}

bool permission_is_lost(enum role from, enum role to)
{
	bool takes = false;
	for (size_t i = 0; i < PERMISSIONS; i++)
		takes |= (permissions[i].roles & from) && !(permissions[i].roles & to);
	return takes;
}

const struct audit_authorization *permission_fill_authorization(
	const struct admin_caller *user, const struct admin_operation *operation,
	struct audit_authorization *ret)
{
	const struct permission *permission = find(operation->name);
	unsigned how = permission ? permission->how : 0;
	*ret = (struct audit_authorization){
		.session_id = user->session_id,
		.account_id = user->account_id,
		.role = role_text(user->role),
		.passkey = how & BARE            ? PASSKEY_NOT_REQUIRED
	               : how & BARE_AT_FIRST ? PASSKEY_IF_ANY
	                                     : PASSKEY_REQUIRED,
	};
	return ret;
}

bool permission_has_parameter(const struct permission *permission,
                              const struct admin_parameter *parameter, char kind[ADMIN_LABEL_SIZE])
{
	size_t size = strlen(parameter->name);
	bool names_one = parameter->kind == ADMIN_ID;
	*kind = '\0';
	if (strcmp(parameter->name, "account") == 0 || strcmp(parameter->name, "reason") == 0)
		return true;
	for (const char *at = permission->parameters; *at; at += *at == ' ') {
		size_t word = strcspn(at, " ");
		if (word >= size && memcmp(at, parameter->name, size) == 0 &&
		    (word == size || at[size] == '=')) {
			const char *from = word == size ? at : at + size + 1;
			int length = (int)(at + word - from);
			struct slice named = slice_make(from, (size_t)length);
			if (names_one && !slice_is(named, "position") && !slice_is(named, "own"))
				snprintf(kind, ADMIN_LABEL_SIZE, "%.*s", length, from);
			return true;
		}
		at += word;
	}
	return false;
}

int permission_check_operation(const struct admin_caller *user,
                               const struct admin_operation *operation, int64_t now_us,
                               struct error *error)
{
	const struct permission *permission = find(operation->name);
	if (!permission || !(permission->roles & user->role))
		return error_set(error, ERR_FORBIDDEN, MSG_NONE, NULL);
	bool bare =
		(permission->how & BARE) || ((permission->how & BARE_AT_FIRST) && !user->has_passkey);
	if (user->lacks_passkey && !bare)
		return error_set(error, ERR_PASSKEY, MSG_NONE, NULL);
	if ((permission->how & FRESH) && now_us - user->signed_in_at_us >= USER_AUTH_RECENT_US)
		return error_set(error, ERR_SIGN_IN, MSG_NONE, NULL);
	return OK;
}

/* ---- arguments ---- */

static const struct admin_parameter *find_parameter(const struct admin_operation *operation,
                                                    struct slice name)
{
	const struct admin_parameter *parameter;
	for (size_t i = 0; (parameter = admin_parameter_at(operation, i)); i++)
		if (slice_is(name, parameter->name))
			return parameter;
	return NULL;
}

/* Sets a parameter to a value. If the caller gave the same value, ignoring case, it is kept; for
 * another value the object does not exist. */
static int force(struct json *arguments, const char *name, const char *value, enum message message,
                 struct arena *arena, struct error *error)
{
	struct json *there = json_member(arguments, name);
	if (there && there->type == JSON_STRING && there->text.size == strlen(value) &&
	    strncasecmp(there->text.data, value, there->text.size) == 0)
		return OK;
	if (there) {
		char shown[ADMIN_LABEL_SIZE];
		struct slice text = utf8_cut(there->text, sizeof shown - 1);
		snprintf(shown, sizeof shown, "%.*s", (int)text.size, text.data ? text.data : "");
		return error_set(error, ERR_NOT_FOUND, message, shown, NULL);
	}
	struct json *member = arena_alloc(arena, sizeof *member);
	if (!member)
		return ERR_NO_MEMORY;
	*member = (struct json){.type = JSON_STRING,
	                        .name = slice_of(name),
	                        .text = slice_of(value),
	                        .next = arguments->first};
	arguments->first = member;
	arguments->count++;
	return OK;
}

static int check_parameters(const struct permission *permission,
                            const struct admin_operation *operation, const struct json *arguments,
                            struct error *error)
{
	for (const struct json *at = arguments->first; at; at = at->next) {
		char kind[ADMIN_LABEL_SIZE], label[FIELD_SIZE];
		const struct admin_parameter *parameter = find_parameter(operation, at->name);
		if (!parameter || permission_has_parameter(permission, parameter, kind))
			continue; /* an unknown parameter is reported with the other errors */
		return error_set(error, ERR_FORBIDDEN, MSG_PERMIT_PARAMETER,
		                 error_field(parameter->name, label), NULL);
	}
	return OK;
}

int permission_bind_arguments(const struct admin_caller *user,
                              const struct admin_operation *operation, struct json **arguments,
                              struct arena *arena, struct error *error)
{
	const struct permission *permission = find(operation->name);
	if (!permission)
		return error_set(error, ERR_FORBIDDEN, MSG_NONE, NULL);
	if (!*arguments) {
		*arguments = arena_alloc(arena, sizeof **arguments);
		if (!*arguments)
			return ERR_NO_MEMORY;
		(*arguments)->type = JSON_OBJECT;
	}
	if ((*arguments)->type != JSON_OBJECT)
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_REQUEST, NULL);
	int result = check_parameters(permission, operation, *arguments, error);
	if (!result && find_parameter(operation, slice_of("account")))
		result = force(*arguments, "account", user->account_id, MSG_STORE_NO_ACCOUNT, arena, error);
	bool himself =
		(permission->how & SELF_ONLY) || ((permission->how & OWN_USER) && user->role != ROLE_OWNER);
	if (!result && himself)
		result = force(*arguments, "user", user->actor.email, MSG_STORE_NO_USER, arena, error);
	return result;
}

int permission_check_objects(const struct admin_caller *user,
                             const struct admin_operation *operation, const struct json *arguments,
                             struct store *store, struct error *error)
{
	const struct permission *permission = find(operation->name);
	int result = OK;
	for (const struct json *at = arguments->first; at && !result; at = at->next) {
		char kind[ADMIN_LABEL_SIZE];
		const struct admin_parameter *parameter = find_parameter(operation, at->name);
		if (!permission || !parameter || !permission_has_parameter(permission, parameter, kind))
			result = error_set(error, ERR_FORBIDDEN, MSG_NONE, NULL);
		else if (*kind)
			result =
				store_check_ownership(store, kind, at->text, slice_of(user->account_id), error);
	}
	return result;
}
