/* Parses and checks the head of a request, and disables parsing by libmicrohttpd that is not
 * wanted. In the thread of the loop.
 *
 * A connection has one memory block, in which the library stores the bytes of the head, a record
 * for each line, and the head of the answer. A request within the limits below leaves enough memory
 * for the largest answer head. A larger one is refused before any processing. */
#ifndef HTTP_REQUEST_HEAD_H
#define HTTP_REQUEST_HEAD_H

#include "http/cors.h"
#include "http/exchange.h"

#define HEAD_SIZE_MAX ((size_t)16 * 1024) /* from the request line to the empty line */
#define HEAD_LINES_MAX 100                /* of headers */
/* With cookies, policies and the longest file name below 4 KiB, plus HSTS and CORS headers. */
#define ANSWER_HEAD_MAX ((size_t)5632)
#define HSTS_NAME "Strict-Transport-Security"
#define HSTS_VALUE "max-age=31536000"

/* Size of a record in the library: 56 bytes on 64-bit machines, rounded up. Three more records for
 * the cookies that it does not parse. */
#define LINE_RECORD_SIZE ((size_t)64)
#define CONNECTION_MEMORY ((size_t)28 * 1024) /* cleared after each request */
_Static_assert(CONNECTION_MEMORY >=
                   HEAD_SIZE_MAX + (HEAD_LINES_MAX + 3) * LINE_RECORD_SIZE + ANSWER_HEAD_MAX,
               "the memory suffices for the largest accepted head and answer");
_Static_assert(ANSWER_HEAD_MAX >= 4096 + sizeof HSTS_NAME + sizeof HSTS_VALUE + 2 + CORS_HEAD_MAX,
               "the answer head has space for HSTS and CORS headers");

/* Returns whether libmicrohttpd is older than 1.0 and accepts heads that RFC 9112 forbids. */
bool head_parser_is_lenient(void);
/* Handles the request line: prevents the library from storing each parameter and cookie, and sets
 * path and query. `uri` is the library's buffer before the library parses it. False without
 * memory. */
bool request_head_begin(struct exchange *exchange, const char *uri);
/* Fills exchange->head; sets its `fault` to the first fault. Slices are valid as long as the
 * request. `method` and `version` point into the head in the library's buffer. */
void request_head_read(struct exchange *exchange, const char *method, const char *version);
/* Returns the error for the fault: ERR_*, 0 without a fault. */
int request_head_judge(const struct exchange *exchange, struct error *error) MUST_CHECK;

#endif
