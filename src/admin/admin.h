/* The operations of the administration. They are defined in one table. The command line derives its
 * commands and help from it, and the administration socket accepts its requests. This folder
 * implements the operations.
 *
 * An operation takes named arguments and returns one JSON document. It runs inside the service if
 * one is running. Otherwise it runs in the command itself, which has opened the store under its
 * lock. Thread safe; several operations may run at the same time. */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include <sys/types.h>

#include "base/json.h"
#include "service/service.h"
#include "store/audit/audit_log.h"
#include "store/people/console_users.h"

#define ADMIN_PARAMETERS_MAX 13 /* with --reason */
#define ADMIN_RESULT_MAX ((size_t)8 << 20)
#define ADMIN_LABEL_SIZE 40

enum admin_kind {
	ADMIN_ID,      /* an identifier: letters, digits, '_', '-' */
	ADMIN_LINE,    /* `least` to `most` bytes of UTF-8 without control characters */
	ADMIN_TEXT,    /* the same, with line feeds */
	ADMIN_CONTENT, /* the same, with any characters except NUL */
	ADMIN_PATH,    /* a line; the command line makes relative paths absolute */
	ADMIN_INTEGER, /* from `least` to `most` */
	ADMIN_CHOICE,  /* one of `choices`, separated by '|' */
	ADMIN_SWITCH,  /* given (true) or not */
};

struct admin_parameter {
	const char
		*name; /* member of the arguments; '-' replaces '_' in the flag; NULL ends the list */
	enum admin_kind kind;
	bool required;
	bool positional;
	const char *place; /* placeholder of the value in the usage text: "ACCOUNT"; NULL for choices
	                      and switches */
	int64_t least;
	int64_t most;
	const char *choices;
	const char *help;
};

/* The context in which operations run. */
struct admin {
	const struct settings *_Atomic settings; /* replaced by a reload */
	struct store *store;
	struct content_store *content;
	struct service *service; /* NULL: no service is running */
};

struct admin_call;

struct admin_operation {
	const char *name; /* "account create"; NULL ends a list */
	const char *summary;
	const char *columns; /* columns of a list in text output: members, separated by spaces; NULL:
	                        not a list */
	/* Columns of the flag --csv, which the operation then accepts; NULL: no such flag. Unless
	 * --limit is given, the command line requests all pages. It passes the first member of a page's
	 * last row as "after". */
	const char *csv;
	/* The operation changes the store. Its transaction writes an audit record
	 * (store/audit/audit_log.h), it accepts --reason, and the caches of the service may be stale
	 * afterwards. */
	bool changes;
	/* The operation acts outside of the store (a copy, a request). Its audit record is written
	 * before it starts. */
	bool outside;
	/* The operation commits elsewhere (a registration). It writes its audit record with the
	 * outcome afterwards (admin_write_audit_outcome). */
	bool behind;
	/* Parameter that the audit log stores only as a SHA-256; NULL: none. */
	const char *digested;
	/* Parameter that is a URL, which the audit log stores masked (base/url_mask.h); NULL: none. */
	const char *address;
	/* The operation revokes rights in one transaction. It runs even if no standby can confirm the
	 * commit. The result then has a member `replicated` and, if that is false, a `note`. */
	bool urgent;
	/* For an urgent operation: returns whether it revokes rights with these arguments; NULL:
	 * always. If it does not, a standby must have confirmed a commit first. */
	bool (*takes)(const struct admin_call *call);
	struct admin_parameter parameters[ADMIN_PARAMETERS_MAX + 1];
	int (*run)(const struct admin_call *call, struct json_writer *out, struct error *error);
};

/* Returns whether the operation writes an audit record. */
static inline bool admin_writes_audit_log(const struct admin_operation *operation)
{
	return operation->changes || operation->outside || operation->behind;
}

/* The caller: the operator, who may do everything, or a user of the console with the
 * permissions of their role in the chosen account (permissions.def). */
struct admin_caller {
	struct actor actor; /* for a user: user_id, email, address */
	bool is_user;
	char account_id[ID_SIZE]; /* for a user: the chosen account, and their role in it */
	enum role role;
	const char *session_id;
	int64_t signed_in_at_us;
	bool by_passkey;
	bool has_passkey;
	bool
		lacks_passkey; /* the account requires a passkey, and the session was started without one */
	bool must_use_passkey; /* one of the user's accounts requires one (service/user_auth.h) */
	/* The form that the user sent, with the number from its page; NULL: none. */
	struct submitted_form *form;
};
/* Fills in a user from their session and client address. All pointers are borrowed. */
void admin_caller_user(const struct session_view *session, const char *address, const char *node,
                       struct admin_caller *ret);

/* Returns the operations in the order of the help text; NULL past the end. */
const struct admin_operation *admin_operation_at(size_t index);
const struct admin_operation *admin_find(struct slice name); /* NULL: unknown */

/* Returns the parameters of an operation, including `reason` if it writes to the audit log; NULL
 * past the end. */
const struct admin_parameter *admin_parameter_at(const struct admin_operation *operation,
                                                 size_t index);

/* The parameter --reason of operations that write to the audit log. */
extern const struct admin_parameter admin_reason;

/* Fills in the actor for a process of that Unix user. `via` must live as long as the actor; its
 * texts are in `arena`. claimed: unverified name of the user of the process, or NULL. It is
 * ignored unless it is a short printable line. */
int admin_actor(uid_t uid, const char *via, const char *claimed, struct arena *arena,
                struct actor *ret) MUST_CHECK;

/* Writes an audit record for an action of this process that is not in the table. `arguments` are
 * JSON, as in admin_run. */
int admin_write_audit_record(struct store *store, const char *operation, struct slice arguments,
                             const char *reason, struct error *error) MUST_CHECK;

/* Checks a value, given as text. ERR_USAGE with a message. The value of a switch is "true". */
int admin_check_value(const struct admin_parameter *parameter, struct slice value,
                      struct error *error) MUST_CHECK;

/* Error messages refer to parameters as FIELD(name) of base/error.h; the presentation layer
 * substitutes its own labels. */

/* Checks the arguments (an object, or NULL for none), runs the operation for `caller` (NULL: this
 * process's user, as the operator), and appends the JSON document to `out`. Nothing is appended on
 * failure.
 * ERR_USAGE: the arguments do not match the table. For a user, the account is added to the
 * arguments. ERR_FORBIDDEN, ERR_SIGN_IN, ERR_PASSKEY: see permission_check.h. ERR_NOT_FOUND: an
 * object does not exist or belongs to another account; the message is the same. ERR_CONFLICT with
 * the form's `repeated` set: the same form was processed before, a standby has confirmed that, and
 * nothing was done now. */
int admin_run(struct admin *admin, const struct admin_operation *operation,
              const struct json *arguments, const struct admin_caller *caller, struct buf *out,
              struct error *error) MUST_CHECK;

#endif
