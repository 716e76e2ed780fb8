/* The head of a request: what libmicrohttpd is kept from doing with it, what is refused of it, and
 * what is read of it. In the loop's thread.
 *
 * A connection has one block of memory, in which the library keeps the bytes of the head, a record
 * for each of its lines, and the head of the answer. A request within the limits below leaves room
 * for the largest answer; one beyond them is refused before anything is done. */
#ifndef HTTP_REQUEST_HEAD_H
#define HTTP_REQUEST_HEAD_H

#include "http/exchange.h"

#define HEAD_SIZE_MAX ((size_t)16 * 1024) /* from the request line to the empty line */
#define HEAD_LINES_MAX 100                /* of headers */
/* With cookies, policies and the longest file name below 4 KiB, and the header of TLS. */
#define ANSWER_HEAD_MAX ((size_t)5632)
#define TLS_STAYS_NAME "Strict-Transport-Security"
#define TLS_STAYS "max-age=31536000"

/* As the library has them: 56 bytes on 64-bit machines, rounded up. Three more for the cookies that
 * it does not parse. */
#define LINE_RECORD_SIZE ((size_t)64)
#define CONNECTION_MEMORY ((size_t)28 * 1024) /* cleared after each request, so no more */
_Static_assert(CONNECTION_MEMORY >=
                   HEAD_SIZE_MAX + (HEAD_LINES_MAX + 3) * LINE_RECORD_SIZE + ANSWER_HEAD_MAX,
               "what is taken can be answered");
_Static_assert(ANSWER_HEAD_MAX >= 4096 + sizeof TLS_STAYS_NAME + sizeof TLS_STAYS + 2,
               "with a header more over TLS");

/* The request line has come: keeps the library from storing each parameter and cookie, and fills
 * path and query. `uri` is the library's, before it looks at it. False without memory. */
bool request_head_begin(struct exchange *exchange, const char *uri);
/* Fills exchange->head, and its `fault` with the first thing that is wrong. Slices live as long as
 * the request. `method` and `version` are the library's, in the head itself. */
void request_head_read(struct exchange *exchange, const char *method, const char *version);
/* What to answer because of the fault: ERR_*, 0 without one. */
int request_head_judge(const struct exchange *exchange, struct error *error) MUST_CHECK;

#endif
