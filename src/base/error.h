/* Error codes and messages of the whole program.
 *
 * A function that can fail returns 0 or one of these negative numbers. The table error.def gives
 * for each error its API code, HTTP status, process exit code and a general message in both
 * languages. Details go into an optional struct error. The table message.def has specific messages
 * in English and Spanish with the placeholders {0} to {3}. The table command_message.def replaces
 * those that name parts of HTTP, for the command line.
 *
 * `cause` is for the log alone and never reaches a client. Every function accepts a NULL error.
 *
 * A mistake of this program is not an error but a failed assert(). Assertions are compiled into
 * release builds. They never depend on the input of a client, a file, the network or the database
 * alone, which may be wrong without a mistake of ours and lead to an error. A failed assertion ends
 * the process with SIGABRT: the transaction under way is rolled back, and no request of its batch
 * gets a response, because outcomes are checked before the first of them is sent. The service
 * writes the text of the assertion to the log as `library_message`; systemd restarts the service
 * (Restart=always), and clients repeat the requests without a response. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must_check.h"

enum {
	OK = 0,
#define ERROR_ENTRY(name, number, code, status, exit_code, english, spanish) ERR_##name = -(number),
#include "base/error.def"
#undef ERROR_ENTRY
};

/* Marks a field of an operation in a message by its parameter name (admin/admin.h). A command
 * line and a form name the field differently, so each substitutes its own word
 * (error_name_fields). */
#define FIELD_OPENS "\x01"
#define FIELD_CLOSES "\x02"
#define FIELD(name) FIELD_OPENS name FIELD_CLOSES
#define FIELD_SIZE 64 /* maximum size of a marked name */

#define ERROR_NUMBERS 64 /* every ERR_* is greater than -ERROR_NUMBERS */

enum message {
	MSG_NONE = 0,
#define MESSAGE_ENTRY(name, english, spanish) MSG_##name,
#include "base/message.def"
#undef MESSAGE_ENTRY
	MSG_COUNT
};

enum language { LANGUAGE_ENGLISH, LANGUAGE_SPANISH };

/* The part of the configuration of a remote service that an error is about, for `config check`. */
enum error_blame {
	BLAME_NONE,               /* its address, or something that no setting changes */
	BLAME_NETWORK,            /* the address is outside the permitted networks */
	BLAME_USER,               /* user name or access key: unknown */
	BLAME_PASSWORD,           /* password, token or secret key: missing or refused */
	BLAME_CLIENT_CERTIFICATE, /* TLS client certificate: missing, unusable or refused */
	BLAME_TLS_ROOTS,          /* the issuer of the TLS server certificate is not trusted */
	BLAME_TLS,                /* the server offers no TLS */
	BLAME_ROOTS,              /* the issuer of signed data is not trusted */
};

#define ERROR_MESSAGE_MAX 512
#define ERROR_CAUSE_MAX 512

struct error {
	int code;             /* 0 or ERR_* */
	enum message message; /* from MSG_COUNT: of another table (verify/verify_finding.h) */
	char english[ERROR_MESSAGE_MAX];
	char spanish[ERROR_MESSAGE_MAX];
	char command[ERROR_MESSAGE_MAX]; /* English for a command line; empty: as `english` */
	char cause[ERROR_CAUSE_MAX];
	int retry_after_seconds; /* 0: default of the response */
	enum error_blame fault;
};

/* Returns whether the table has `code`. */
bool error_is_known(int code);
/* Returns the API code ("validation_error", …), never NULL. */
const char *error_code_text(int code);
/* Returns the HTTP status (400, 401, …); 500 for errors that the client did not cause. */
int error_http_status(int code);
/* Returns the exit code: 1 refused, 2 wrong usage or not possible, 3 PIN refused. */
int error_exit_code(int code);
/* Returns the first error with this API code and exit code, or ERR_INTERNAL if there is none. */
int error_find(const char *code_text, size_t size, int exit_code);
/* Returns the general message of a code. */
const char *error_general_message(int code, enum language language);

void error_clear(struct error *error);
/* Keeps an error that belongs to `code`; otherwise clears the error and records `code` without a
 * message. */
void error_keep(struct error *error, int code);
/* Records code and message. The variadic arguments are `const char *` placeholder values, ended by
 * NULL. Returns `code`, for use in a return statement. */
int error_set(struct error *error, int code, enum message message, ...) __attribute__((sentinel));
/* Records an internal cause for the log; the client gets the general message. Returns `code`. */
int error_cause(struct error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Records what the error is about, until the next error_set or error_cause. */
void error_blame(struct error *error, enum error_blame fault);
/* Replaces each marked field in the messages with the word that `namer` gives, for each
 * language. */
#define FIELD_WORD_SIZE 128
typedef void field_namer(const void *context, const char *name, enum language language,
                         char word[FIELD_WORD_SIZE]);
void error_name_fields(struct error *error, field_namer *namer, const void *context);
/* FIELD(name) for a name that is not a literal. */
const char *error_field(const char *name, char marked[FIELD_SIZE]);
/* Returns the message to show: the specific one if set, else the general one. */
const char *error_message(const struct error *error, enum language language);
/* Returns the message for a user of the command line, in English and without the vocabulary of
 * HTTP. */
const char *error_command_message(const struct error *error);
/* Returns the reason for `code` for the operator, in the log or on the command line: the cause, the
 * specific message or the general message, as error_command_message. */
const char *error_reason(const struct error *error, int code);

#endif
