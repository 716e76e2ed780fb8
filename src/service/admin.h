/* The operations of administration: one table, from which the command line makes its commands and
 * their help, the socket its requests, and this folder their execution.
 *
 * An operation takes named arguments and answers one JSON document. It runs inside the service when
 * one is running, else in the command itself, which has then opened the store under its lock.
 * Thread safe; several may run at once. */
#ifndef SERVICE_ADMIN_H
#define SERVICE_ADMIN_H

#include "base/json.h"
#include "service/service.h"

#define ADMIN_PARAMETERS_MAX 10
#define ADMIN_RESULT_MAX ((size_t)8 << 20)
#define ADMIN_LABEL_SIZE 40

enum admin_kind {
	ADMIN_ID,      /* an identifier: letters, digits, '_', '-' */
	ADMIN_LINE,    /* `least` to `most` bytes of UTF-8 without control characters */
	ADMIN_TEXT,    /* the same with line feeds */
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
	const struct settings *settings;
	struct store *store;
	struct content_store *content;
	struct service *service; /* NULL: none is running */
};

struct admin_call;

struct admin_operation {
	const char *name; /* "account create"; NULL ends a list */
	const char *summary;
	const char *columns; /* of a list for people: members, separated by spaces; NULL: no list */
	bool changes;        /* what the service has cached may be out of date afterwards */
	struct admin_parameter parameters[ADMIN_PARAMETERS_MAX + 1];
	int (*run)(const struct admin_call *call, struct json_writer *out, struct error *error);
};

/* All operations in the order of help; NULL past the end. */
const struct admin_operation *admin_operation_at(size_t index);
const struct admin_operation *admin_find(struct slice name); /* NULL: unknown */

/* How people know a parameter: "ACCOUNT" or "--unpaid-limit". */
void admin_label(const struct admin_parameter *parameter, char label[ADMIN_LABEL_SIZE]);
/* Says in `error` (ERR_USAGE) what is wrong with a value; integers as they were written. A switch
 * has the value "true". */
int admin_check_value(const struct admin_parameter *parameter, struct slice value,
                      struct error *error) MUST_CHECK;

/* Checks the arguments (an object, or NULL for none), runs, and appends the JSON document to `out`;
 * nothing is appended on failure. ERR_USAGE: arguments that are not as the table says. */
int admin_run(struct admin *admin, const struct admin_operation *operation,
              const struct json *arguments, struct buf *out, struct error *error) MUST_CHECK;

#endif
