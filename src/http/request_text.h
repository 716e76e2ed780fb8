/* Paths and queries of requests for the request log: printable, cut to a size, and without API
 * keys. Pure. */
#ifndef HTTP_REQUEST_TEXT_H
#define HTTP_REQUEST_TEXT_H

#include "base/digest.h"

#define REQUEST_TEXT_HIDDEN "***" /* in place of what is hidden */

/* Writes a path as sent. A segment that contains an API key is hidden, also when it is
 * percent-encoded. What does not fit is replaced with "…". */
void request_path_write(const char *prefix, struct slice path, char *ret, size_t size);
/* Does the same with a query, in which a parameter is hidden in place of a segment. Only the values
 * of the parameters in `names` are shown (NULL: of none; else NULL-terminated). */
void request_query_write(const char *prefix, struct slice query, const char *const *names,
                         char *ret, size_t size);

#endif
