/* Client for many concurrent outbound HTTP exchanges (libcurl's multi interface), on its own
 * thread.
 *
 * Each exchange behaves as described in http.h, including the guard, and uses HTTP/1.1. Connections
 * are reused for the same server. A reused connection was checked when it was opened, so all
 * exchanges must use the same guard. Redirects are not followed, and nothing is decompressed.
 *
 * One thread starts exchanges and takes them back. */
#ifndef NET_HTTP_MULTI_H
#define NET_HTTP_MULTI_H

#include "net/http.h"

struct http_multi;

struct http_exchange {
	/* Set by the caller, without a session. Data that the request points to must live until the
	 * exchange is taken back. */
	struct http_request request;
	void *context;
	/* Outcome, as of http_send. If result is 0 the caller frees `answer`. */
	int result;
	struct http_answer answer;
	struct error error;
	int64_t duration_us;        /* set on success and on failure */
	struct http_exchange *next; /* next exchange taken back in the same call */
};

int http_multi_start(struct http_multi **ret_many, struct error *error) MUST_CHECK;
/* Stops the thread at once and returns all exchanges that were not taken back. Those in progress
 * have failed with ERR_NETWORK. NULL-safe. */
struct http_exchange *http_multi_stop(struct http_multi *many) MUST_CHECK;
/* Starts an exchange, which belongs to http_multi until it is taken back. */
void http_multi_submit(struct http_multi *many, struct http_exchange *exchange);
/* Returns the finished exchanges in the order of completion. Waits up to `timeout_us` for one;
 * NULL: none has finished. */
struct http_exchange *http_multi_collect(struct http_multi *many, int64_t timeout_us);

#endif
