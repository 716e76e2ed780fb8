/* The log of requests (log.requests): one line for each request that is over, however it ended, in
 * which its X-Request-Id is found. Never a key, a query, a body or a path that was not asked for as
 * its route says. */
#ifndef HTTP_REQUEST_LOG_H
#define HTTP_REQUEST_LOG_H

#include <stdbool.h>

#include "service/settings.h"

struct client;
struct exchange;
struct http_server;

enum request_log_which { REQUESTS_NONE, REQUESTS_ERRORS, REQUESTS_ALL };
enum request_log_addresses { ADDRESSES_NONE, ADDRESSES_NETWORK, ADDRESSES_FULL };

/* The words of the settings log.requests and log.addresses; false for another word. */
bool request_log_which_parse(const char *text, enum request_log_which *ret) MUST_CHECK;
bool request_log_addresses_parse(const char *text, enum request_log_addresses *ret) MUST_CHECK;

/* Takes over what the settings say; until then nothing is logged. Any thread, at any time. */
void request_log_configure(struct http_server *server, const struct settings *settings);

/* The head has been read: remembers what is gone at the end. `method` is as sent. In the loop's
 * thread, as what follows. */
void request_log_head(struct exchange *exchange, const char *method);
/* Those without a key have some lines a second at most; the others are counted. */
/* It is over, after `duration_us`. `answered`: an answer of ours was made; `cut`: the client did
 * not take all of it, or was not waited for. */
void request_log_end(const struct exchange *exchange, bool answered, bool cut, int64_t duration_us);
/* A connection was turned away with `status` before any request of it was read. Anybody can have
 * that done as often as he likes, so there is one line a second at most, with their count. */
void request_log_refused(const struct client *client, int status);
/* Tells of those that no line has told of yet, if the last one is a second old at `now_us`
 * (monotonic); INT64_MAX: whenever it was. */
struct loop;
void request_log_tell_refused(struct loop *loop, int64_t now_us);

#endif
