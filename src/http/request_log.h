/* The log of requests (log.requests): one line for each request that is over, however it ended, in
 * which its X-Request-Id is found. Never a key, a query, a body or a path that was not asked for as
 * its route says. */
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

/* The words of the settings log.requests and log.addresses; false for another word. */
bool request_log_which_parse(const char *text, enum request_log_which *ret) MUST_CHECK;
bool request_log_addresses_parse(const char *text, enum request_log_addresses *ret) MUST_CHECK;

/* Events that any client can cause at any rate: one line a second has their number. */
#define REFUSED_CLIENT_SIZE 64
struct refusals {
	int64_t told_us; /* when the last line was written */
	int64_t count;   /* since then */
	int status;      /* of the last one, as the address is */
	char client[REFUSED_CLIENT_SIZE];
};

/* Of all threads. */
struct request_lines {
	pthread_mutex_t lock;
	struct refusals refusals; /* of connections */
	struct refusals unlisted; /* requests without a key that have no line */
	int64_t listing_since_us; /* of such requests, and how many have a line since then */
	int listed;
};

/* Takes over what the settings say; until then nothing is logged. Any thread, at any time. */
void request_log_configure(struct http_server *server, const struct settings *settings);

/* The head has been read: remembers what is gone at the end. `method` is as sent. In the loop's
 * thread, as what follows. */
void request_log_head(struct exchange *exchange, const char *method);
/* Those without a key have some lines a second at most; the others are counted. */
/* It is over, after `duration_us`. `answered`: an answer of ours was made; `cut`: the client did
 * not take all of it, or was not waited for. */
void request_log_end(const struct exchange *exchange, bool answered, bool cut, int64_t duration_us);
/* A connection from there was turned away with `status` before any request of it was read. Anybody
 * can have that done as often as he likes, so there is one line a second at most, with their count.
 * Any thread. */
void request_log_refused(struct http_server *server, const struct sockaddr *address, int status);
/* Tells of those that no line has told of yet, if the last one is a second old at `now_us`
 * (monotonic); INT64_MAX: whenever it was. Any thread. */
void request_log_tell_refused(struct http_server *server, int64_t now_us);

#endif
