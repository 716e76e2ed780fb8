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
#define ADMIN_LINE_MAX 200       /* bytes of a name and other texts of one line */
#define ADMIN_CREDITS_MAX INT64_C(1000000000000)
#define ADMIN_RESULT_MAX ((size_t)8 << 20)

enum admin_kind {
	ADMIN_ID,      /* an identifier: letters, digits, '_', '-' */
	ADMIN_LINE,    /* UTF-8 without control characters, at most `most` bytes */
	ADMIN_TEXT,    /* the same with line feeds */
	ADMIN_INTEGER, /* from `least` to `most` */
	ADMIN_CHOICE,  /* one of `choices`, separated by '|' */
	ADMIN_SWITCH,  /* given or not */
};

struct admin_parameter {
	const char *name; /* member of the arguments; as a flag with '-' for '_'; NULL ends the list */
	enum admin_kind kind;
	const char *place; /* how usage shows the value: "ACCOUNT"; NULL for choices and switches */
	bool required;
	bool positional;
	int64_t least; /* ADMIN_LINE, ADMIN_TEXT: 0 allows the empty text */
	int64_t most;
	const char *choices;
	const char *help;
};

/* Where an operation works. */
struct admin {
	const struct settings *settings;
	struct store *store;
	struct content_store *content;
	struct service *service; /* NULL: none is running */
};

struct admin_call {
	struct admin *admin;
	const struct json *arguments;
	struct arena *arena;
	int64_t now_us;
};

struct admin_operation {
	const char *name; /* "account create" */
	const char *summary;
	const char *columns; /* of a list for people: members, separated by spaces; NULL: no list */
	const struct admin_parameter *parameters;
	int (*run)(const struct admin_call *call, struct json_writer *out, struct error *error);
};

extern const struct admin_operation *const admin_operations[]; /* NULL ends it */

const struct admin_operation *admin_find(struct slice name); /* NULL: unknown */

/* Says in `error` (ERR_USAGE) what is wrong with one value; INTEGER and SWITCH values as text too. */
int admin_check_value(const struct admin_parameter *parameter, struct slice value,
                      struct error *error) __attribute__((warn_unused_result));
/* Arguments as a whole: an object, members known, of the right type, required ones present. */
int admin_check_arguments(const struct admin_operation *operation, const struct json *arguments,
                          struct error *error) __attribute__((warn_unused_result));

/* Checks, runs, and appends the JSON document to `out`; nothing is appended on failure. */
int admin_run(struct admin *admin, const struct admin_operation *operation,
              const struct json *arguments, struct buf *out, struct error *error)
    __attribute__((warn_unused_result));

#endif
