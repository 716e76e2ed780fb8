/* The request log (log.requests): one line for each ended request, successful or not, with its
 * X-Request-Id. It never contains a key, a query, a body, or a raw path that matches no route. */
#ifndef HTTP_REQUEST_LOG_H
#define HTTP_REQUEST_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "service/settings.h"

struct exchange;
struct http_server;

enum request_log_which { REQUESTS_NONE, REQUESTS_ERRORS, REQUESTS_ALL };
enum request_log_addresses { ADDRESSES_NONE, ADDRESSES_NETWORK, ADDRESSES_FULL };

/* Parse the values of the settings log.requests and log.addresses; false: unknown value. */
bool request_log_which_parse(const char *text, enum request_log_which *ret) MUST_CHECK;
bool request_log_addresses_parse(const char *text, enum request_log_addresses *ret) MUST_CHECK;

/* A counter of events that any client can cause at any rate. At most one line per second reports
 * their number. */
#define REFUSED_CLIENT_SIZE 64
struct refusals {
	int64_t logged_us; /* time of the last line */
	int64_t count;     /* number since then */
	int status;        /* status of the last one; `client` is its address */
	char client[REFUSED_CLIENT_SIZE];
};

/* Shared by all threads. */
struct request_log_state {
	pthread_mutex_t lock;
	struct refusals refusals; /* refused connections */
	struct refusals unlisted; /* requests without a key that got no line of their own */
	/* start of the current second for such requests; `listed` lines were written since */
	int64_t listing_since_us;
	int listed;
};

/* Applies the settings; before that nothing is logged. Any thread, at any time. */
void request_log_configure(struct http_server *server, const struct settings *settings);

/* Stores the method and the client address for the log line after the head was read. `method` is as
 * sent. In the thread of the loop, as is the next function. */
void request_log_head(struct exchange *exchange, const char *method);
/* Logs the end of a request. Requests without a key get a limited number of lines per second;
 * further ones are counted. `answered`: the service produced the answer; `cut`: the client did not
 * read all of it, or timed out. */
void request_log_end(const struct exchange *exchange, bool answered, bool cut, int64_t duration_us);
/* Return the status of an ended request, 0 for no answer, and the size of its answer's body. */
int request_log_status(const struct exchange *exchange, bool answered);
int64_t request_log_bytes_out(const struct exchange *exchange);
/* Counts a connection that was refused with `status` before any request was read. Any client can
 * cause this at any rate, so at most one line per second reports the count. Any thread. */
void request_log_refused(struct http_server *server, const struct sockaddr *address, int status);
/* Logs the pending counts if the last line is at least one second old at `now_us` (monotonic);
 * INT64_MAX: always. Any thread. */
void request_log_flush(struct http_server *server, int64_t now_us);

#endif
