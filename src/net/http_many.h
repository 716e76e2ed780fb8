/* Many outbound HTTP exchanges at a time (libcurl's multi interface), on a thread of its own.
 *
 * Each is as http.h says, its guard too; HTTP/1.1. Connections are kept and used again for the same
 * server: one that is used again was judged when it was opened, so every exchange must have the
 * same guard. Nothing that an answer says leads anywhere else, and nothing is decompressed.
 *
 * Exchanges are given and taken back by one thread. */
#ifndef NET_HTTP_MANY_H
#define NET_HTTP_MANY_H

#include "net/http.h"

struct http_many;

struct http_exchange {
	/* Given, without a session; what the request points to must live until the exchange is taken
	 * back. */
	struct http_request request;
	void *context;
	/* Outcome, as of http_send: `answer` is the caller's to free when result is 0. */
	int result;
	struct http_answer answer;
	struct error error;
	int64_t duration_us;        /* in either case */
	struct http_exchange *next; /* of those taken back together */
};

int http_many_start(struct http_many **ret_many, struct error *error) MUST_CHECK;
/* Ends at once and gives back what was not taken back yet: what was under way has failed with
 * ERR_NETWORK. NULL-safe. */
struct http_exchange *http_many_stop(struct http_many *many) MUST_CHECK;
/* Begins. The exchange is http_many's until it is taken back. */
void http_many_begin(struct http_many *many, struct http_exchange *exchange);
/* Those that have ended, in that order; waits for one at most so long. NULL: none has. */
struct http_exchange *http_many_take(struct http_many *many, int64_t timeout_us);

#endif
