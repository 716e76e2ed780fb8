/* The operations of administration: one table, from which the command line makes its commands and
 * their help, the socket its requests, and this folder their execution.
 *
 * An operation takes named arguments and answers one JSON document. It runs inside the service when
 * one is running, else in the command itself, which has then opened the store under its lock.
 * Thread safe; several may run at once. */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include <sys/types.h>

#include "base/json.h"
#include "service/service.h"
#include "store/audit/acts.h"
#include "store/people/people.h"

#define ADMIN_PARAMETERS_MAX 13 /* with --reason */
#define ADMIN_RESULT_MAX ((size_t)8 << 20)
#define ADMIN_LABEL_SIZE 40

enum admin_kind {
	ADMIN_ID,      /* an identifier: letters, digits, '_', '-' */
	ADMIN_LINE,    /* `least` to `most` bytes of UTF-8 without control characters */
	ADMIN_TEXT,    /* the same with line feeds */
	ADMIN_CONTENT, /* the same of any characters but NUL */
	ADMIN_PATH,    /* a line; the command line makes a relative path absolute */
	ADMIN_INTEGER, /* from `least` to `most` */
	ADMIN_CHOICE,  /* one of `choices`, separated by '|' */
	ADMIN_SWITCH,  /* given (true) or not */
};

struct admin_parameter {
	const char *name; /* member of the arguments; as a flag with '-' for '_'; NULL ends the list */
	enum admin_kind kind;
	bool required;
	bool positional;
	const char *place; /* how usage shows the value: "ACCOUNT"; NULL for choices and switches */
	int64_t least;
	int64_t most;
	const char *choices;
	const char *help;
};

/* Where operations work. */
struct admin {
	const struct settings *_Atomic settings; /* a reload replaces it */
	struct store *store;
	struct content_store *content;
	struct service *service; /* NULL: none is running */
};

struct admin_call;

struct admin_operation {
	const char *name; /* "account create"; NULL ends a list */
	const char *summary;
	const char *columns; /* of a list for people: members, separated by spaces; NULL: no list */
	/* Members for the flag --csv, which the operation then has; NULL: it has none. The command line
	 * asks for page after page, unless --limit is given: with the first member of a page's last
	 * row as "after". */
	const char *csv;
	/* A member of its answer that is a file in base64; NULL: it has none. The command line writes
	 * it where the flag --output says, which the operation then has. */
	const char *file;
	/* Its transaction leaves an act in the store (store/audit/acts.h), it takes --reason, and what
	 * the service has cached may be out of date afterwards. */
	bool changes;
	/* What it does is outside of the store (a copy, a request): recorded before it begins. */
	bool outside;
	/* What it does commits elsewhere (a registration); behind that it records its act itself, with
	 * what came of it (admin_record_outcome). */
	bool behind;
	/* A parameter of which the act has the SHA-256 alone; NULL: none. */
	const char *digested;
	/* A parameter that is an address, which the act has as base/url_mask.h leaves it; NULL: none.
	 */
	const char *address;
	/* Takes rights away, in one transaction: done also while no standby holds it. The answer then
	 * has a member `replicated`, and where it is false a `note`. */
	bool urgent;
	/* Of an urgent one: whether it does so with these arguments; NULL: always. If not, a standby
	 * must have confirmed a commit first. */
	bool (*takes)(const struct admin_call *call);
	struct admin_parameter parameters[ADMIN_PARAMETERS_MAX + 1];
	int (*run)(const struct admin_call *call, struct json_writer *out, struct error *error);
};

/* Whether what it does leaves an act. */
static inline bool admin_leaves_act(const struct admin_operation *operation)
{
	return operation->changes || operation->outside || operation->behind;
}

/* Who asks: the operator, who may do everything, or a user of the console, who may do in his
 * account what permissions.def says of his role. */
struct admin_caller {
	struct actor actor; /* of a user: user_id, email, address */
	bool is_user;
	char account_id[ID_SIZE]; /* of a user: the chosen account, and his role in it */
	enum role role;
	const char *session_id;
	int64_t signed_in_at_us;
	bool by_passkey;
	bool has_passkey;
	bool lacks_passkey; /* the account asks for one, and he came in without */
	bool owes_passkey;  /* one of his accounts does (service/people.h) */
	/* That he sent, with the number that its page gave it; NULL: none. */
	struct act_form *form;
};
/* A user as his session tells of him, from that address; all of it is borrowed. */
void admin_caller_user(const struct session_view *session, const char *address, const char *node,
                       struct admin_caller *ret);

/* All operations in the order of help; NULL past the end. */
const struct admin_operation *admin_operation_at(size_t index);
const struct admin_operation *admin_find(struct slice name); /* NULL: unknown */

/* Its parameters, `reason` among them where it changes something; NULL past the end. */
const struct admin_parameter *admin_parameter_at(const struct admin_operation *operation,
                                                 size_t index);

/* --reason of those that change something. */
extern const struct admin_parameter admin_reason;

/* Who a process of that user is; `via` lives as long as the actor, whose texts are in `arena`.
 * claimed: what is said of who is behind him, NULL: nothing; anything but a short line is left
 * out. */
int admin_actor(uid_t uid, const char *via, const char *claimed, struct arena *arena,
                struct actor *ret) MUST_CHECK;

/* Records an act of this process that no operation of the table does; `arguments` as in
 * admin_run, as JSON. */
int admin_record(struct store *store, const char *operation, struct slice arguments,
                 const char *reason, struct error *error) MUST_CHECK;

/* Says in `error` (ERR_USAGE) what is wrong with a value; integers as they were written. A switch
 * has the value "true". */
int admin_check_value(const struct admin_parameter *parameter, struct slice value,
                      struct error *error) MUST_CHECK;

/* Sentences of errors name parameters as FIELD(name) of base/error.h: who shows them puts his own
 * words there. */

/* Checks the arguments (an object, or NULL for none), runs for `caller` (NULL: this process's user,
 * as the operator), and appends the JSON document to `out`; nothing is appended on failure.
 * ERR_USAGE: arguments that are not as the table says. For a user, whose account is put into the
 * arguments: ERR_FORBIDDEN, ERR_SIGN_IN, ERR_PASSKEY (permit.h); what is another account's is
 * ERR_NOT_FOUND in the words for what does not exist; ERR_CONFLICT with the form's `repeated`: he
 * did that with it before, which a standby holds by now, and nothing was done. */
int admin_run(struct admin *admin, const struct admin_operation *operation,
              const struct json *arguments, const struct admin_caller *caller, struct buf *out,
              struct error *error) MUST_CHECK;

#endif
