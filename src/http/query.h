/* Query parameters, and numbers and cursors in them. */
#ifndef HTTP_QUERY_H
#define HTTP_QUERY_H

#include "base/arena.h"
#include "base/digest.h"
#include "base/error.h"

#define QUERY_PARAMETERS_MAX 10

struct query {
	const char *const *names; /* of the operation, closed by NULL; at most QUERY_PARAMETERS_MAX */
	struct slice values[QUERY_PARAMETERS_MAX];
	struct slice sent[QUERY_PARAMETERS_MAX]; /* the same with its escapes */
	bool given[QUERY_PARAMETERS_MAX];
};

/* 0 or ERR_VALIDATION: an unknown or repeated parameter, or a broken escape. Values lie in the
 * arena or in `text`. */
int query_parse(struct slice text, const char *const *names, struct arena *arena,
                struct query *ret_query, struct error *error) MUST_CHECK;
/* ERR_VALIDATION when one was given without a value, which none of those that stand for a filter or
 * a place has. */
int query_require_values(const struct query *query, struct error *error) MUST_CHECK;
/* False when it was not given. */
bool query_get(const struct query *query, const char *name, struct slice *ret_value) MUST_CHECK;
/* The same of any text: a '+' is a space, as forms and most clients encode it. Elsewhere it is
 * itself, so that a time's offset may stand in an address as it is. 1: given, 0: not,
 * ERR_NO_MEMORY. */
int query_text(const struct query *query, const char *name, struct arena *arena,
               struct slice *ret_value, struct error *error) MUST_CHECK;
/* The value, or what *ret_value holds already when it was not given. ERR_VALIDATION outside the
 * bounds or when it is no integer. */
int query_integer(const struct query *query, const char *name, int64_t lowest, int64_t highest,
                  int64_t *ret_value, struct error *error) MUST_CHECK;
int query_time(const struct query *query, const char *name, int64_t *ret_us, struct error *error)
	MUST_CHECK;

/* A cursor is a position and a MAC over it and `binding`: what it may be used with (operation,
 * chain and filters). */
#define CURSOR_SIZE 40
void cursor_make(const struct sha256 *secret, struct slice binding, int64_t position,
                 char text[CURSOR_SIZE]);
int cursor_open(const struct sha256 *secret, struct slice binding, struct slice text,
                int64_t *ret_position, struct error *error) MUST_CHECK;

#endif
