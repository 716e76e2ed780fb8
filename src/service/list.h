/* Envelope of lists, common to the HTTP API, the administration and the command line:
 * {"data":[…],"has_more":…}. Over HTTP it also has "next_cursor" (a text, or null on the last
 * page). */
#ifndef SERVICE_LIST_H
#define SERVICE_LIST_H

#include "base/json.h"

/* The caller writes the items of the list between list_begin and one of the list_end functions. */
void list_begin(struct json_writer *out);
void list_end(struct json_writer *out, bool more);
/* partial: items may be missing because a server of the store is unavailable. The envelope then has
 * "incomplete":true. */
void list_end_partial(struct json_writer *out, bool more, bool partial);
bool list_is_partial(const struct json *json);
/* next_cursor NULL: last page. */
void list_end_with_cursor(struct json_writer *out, const char *next_cursor);
/* Ends a list that may grow after its last page: the cursor is always present. */
void list_end_open(struct json_writer *out, bool more, const char *next_cursor);
/* Returns the array of items, and whether more follow; NULL if `json` is not a list. */
const struct json *list_read(const struct json *json, bool *ret_more);

#endif
