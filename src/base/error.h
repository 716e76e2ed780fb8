/* One table of errors for the whole program.
 *
 * A function that can fail returns 0 or one of these negative numbers. The table gives, for each,
 * the code of the HTTP interface, the HTTP status, the process exit code and a general message in
 * both languages. Detail goes into an optional struct error: a second table (message.def) holds
 * the exact sentences, English and Spanish, with places {0} to {3}.
 *
 * `cause` is for the log alone and never reaches a client. Every function accepts a NULL error. */
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

/* A field of an operation within a sentence, by the name of its parameter (admin/admin.h): a
 * command line and a form call it differently, and put their own word there (error_name_fields). */
#define FIELD_OPENS "\x01"
#define FIELD_CLOSES "\x02"
#define FIELD(name) FIELD_OPENS name FIELD_CLOSES
#define FIELD_SIZE 64 /* of its name, marked */

#define ERROR_NUMBERS 64 /* ERR_* are larger than its negative */

enum message {
	MSG_NONE = 0,
#define MESSAGE_ENTRY(name, english, spanish) MSG_##name,
#include "base/message.def"
#undef MESSAGE_ENTRY
	MSG_COUNT
};

enum language { LANGUAGE_ENGLISH, LANGUAGE_SPANISH };

#define ERROR_MESSAGE_MAX 512
#define ERROR_CAUSE_MAX 512

struct error {
	int code;             /* 0 or ERR_* */
	enum message message; /* from MSG_COUNT on: of another table (verify/verify_finding.h) */
	char english[ERROR_MESSAGE_MAX];
	char spanish[ERROR_MESSAGE_MAX];
	char cause[ERROR_CAUSE_MAX];
	int retry_after_seconds; /* 0: the answer's own default */
};

/* Whether the table has it. */
bool error_is_known(int code);
/* The interface's code ("validation_error", …), never NULL. */
const char *error_code_text(int code);
/* 400, 401, …; 500 for what is no client's fault. */
int error_http_status(int code);
/* 1 refused, 2 wrong usage or could not be done, 3 a PIN was refused. */
int error_exit_code(int code);
/* The first error with that code of the interface and that exit code; ERR_INTERNAL: there is
 * none. */
int error_find(const char *code_text, size_t size, int exit_code);
/* The general sentence of a code. */
const char *error_general_message(int code, enum language language);

void error_clear(struct error *error);
/* Of a code that came without a sentence: what an earlier fault left is taken away. */
void error_keep(struct error *error, int code);
/* Records code and sentence; the variadic part is `const char *` places, closed by NULL. Returns
 * code, so that `return error_set(…)` reads well. */
int error_set(struct error *error, int code, enum message message, ...) __attribute__((sentinel));
/* Records what went wrong inside, for the log; the client gets the general sentence. Returns
 * code. */
int error_cause(struct error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Puts a word for each field that the sentences name, in the language of each. */
#define FIELD_WORD_SIZE 128
typedef void field_namer(const void *context, const char *name, enum language language,
                         char word[FIELD_WORD_SIZE]);
void error_name_fields(struct error *error, field_namer *namer, const void *context);
/* FIELD(name) of a name that is not written out. */
const char *error_field(const char *name, char marked[FIELD_SIZE]);
/* The sentence to show: the exact one if set, else the general one. */
const char *error_message(const struct error *error, enum language language);
/* Why it failed with `code`, for the log: the cause, or the sentence, or the code's general one. */
const char *error_reason(const struct error *error, int code);

#endif
