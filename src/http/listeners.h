/* Requests that wait for notices (GET /v1/notices). A thread passes each of them to a worker twice
 * a second, until the worker has notices for it or its time is over. A request of a closed
 * connection stays until its time is over, because suspended connections are not polled. */
#ifndef HTTP_LISTENERS_H
#define HTTP_LISTENERS_H

#include "base/must_check.h"
#include "http/exchange.h"

#define LISTENERS_MAX 256 /* requests that wait at the same time */
#define LISTENERS_OF_CHANNEL_MAX 8

struct listeners;

struct listener {
	struct exchange *exchange;
	int64_t chain;
	int64_t until_us; /* monotonic time; 0: the request does not wait any longer */
	struct listener *next;
};

/* Starts the thread. NULL: no memory or thread. */
struct listeners *listeners_start(void) MUST_CHECK;
/* Passes `run` of exchange->task to a worker later. False: too many requests wait, or the service
 * stops; the caller still owns the exchange. Any thread. */
bool listeners_add(struct listeners *listeners, struct listener *listener) MUST_CHECK;
/* Passes all requests to workers for the last time and ends the thread; listeners_add then always
 * refuses. May be repeated. NULL-safe. */
void listeners_end(struct listeners *listeners);
void listeners_free(struct listeners *listeners); /* after listeners_end; NULL-safe */

#endif
