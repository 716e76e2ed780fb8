/* The envelope of lists, the same over HTTP, of the administration and in the command line:
 * {"data":[…],"has_more":…}, over HTTP with "next_cursor" (a text, or null with the last page). */
#ifndef SERVICE_LIST_H
#define SERVICE_LIST_H

#include "base/json.h"

/* What comes between are the list's items. */
void list_begin(struct json_writer *out);
void list_end(struct json_writer *out, bool more);
/* partial: some may be missing, as they are on a server of the store that is away: then the
 * envelope has "incomplete":true. */
void list_end_partial(struct json_writer *out, bool more, bool partial);
bool list_is_partial(const struct json *json);
/* NULL: no more. */
void list_end_with_cursor(struct json_writer *out, const char *next_cursor);
/* The items, an array, and whether more follow; NULL when `json` is no list. */
const struct json *list_read(const struct json *json, bool *ret_more);

#endif
