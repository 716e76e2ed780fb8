/* Query parameters, with numbers, times and cursors. */
#ifndef HTTP_QUERY_PARAMETERS_H
#define HTTP_QUERY_PARAMETERS_H

#include "base/arena.h"
#include "base/digest.h"
#include "base/error.h"

#define QUERY_PARAMETERS_MAX 12

struct query {
	/* names of the operation, NULL-terminated; at most QUERY_PARAMETERS_MAX */
	const char *const *names;
	struct slice values[QUERY_PARAMETERS_MAX];
	struct slice sent[QUERY_PARAMETERS_MAX]; /* the raw values */
	bool given[QUERY_PARAMETERS_MAX];
};

/* Parses a query. 0 or ERR_VALIDATION: an unknown or repeated parameter, or a malformed escape.
 * Values are in the arena or in `text`. */
int query_parse(struct slice text, const char *const *names, struct arena *arena,
                struct query *ret_query, struct error *error) MUST_CHECK;
/* ERR_VALIDATION: a parameter has an empty value. Filters and positions must not be empty. */
int query_require_values(const struct query *query, struct error *error) MUST_CHECK;
/* Returns the value of a parameter. False: absent. */
bool query_get(const struct query *query, const char *name, struct slice *ret_value) MUST_CHECK;
/* Same for free text: '+' is a space, as forms and most clients encode it. In other parameters '+'
 * is literal, so that the offset of a time can be written unescaped. 1: present, 0: absent,
 * ERR_NO_MEMORY. */
int query_text(const struct query *query, const char *name, struct arena *arena,
               struct slice *ret_value, struct error *error) MUST_CHECK;
/* Reads an integer; keeps *ret_value if the parameter is absent. ERR_VALIDATION: out of bounds or
 * not an integer. */
int query_integer(const struct query *query, const char *name, int64_t lowest, int64_t highest,
                  int64_t *ret_value, struct error *error) MUST_CHECK;
int query_time(const struct query *query, const char *name, int64_t *ret_us, struct error *error)
	MUST_CHECK;

/* A cursor is a position and a MAC over the position and `binding`: the operation, chain and
 * filters for which it is valid. */
#define CURSOR_SIZE 40
void cursor_make(const struct sha256 *secret, struct slice binding, int64_t position,
                 char text[CURSOR_SIZE]);
int cursor_open(const struct sha256 *secret, struct slice binding, struct slice text,
                int64_t *ret_position, struct error *error) MUST_CHECK;

#endif
