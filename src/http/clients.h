/* Who may be connected, and for how long. Belongs to a loop's thread.
 *
 * - A connection has http.idle_timeout from its last answer, or its begin, to its next request
 * line, http.transfer_timeout from there to the end of the head, and for a body and an answer the
 * same beside a second for each 16 KiB; what we ourselves wait for is not counted.
 * - An address has at most http.connections_per_address connections; behind a trusted proxy, as
 * many requests under way.
 * - Beyond http.connections the one that has been idle for longest gives way. */
#ifndef HTTP_CLIENTS_H
#define HTTP_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/must_check.h"

struct MHD_Connection;
struct shares;
struct exchange;
struct loop;
struct tls_session;

/* What a connection is to us; libmicrohttpd keeps it for its requests. */
struct client {
	struct loop *loop;
	struct MHD_Connection *connection;
	struct exchange *exchange;
	struct tls_session *tls;        /* NULL: plain HTTP */
	struct client *previous, *next; /* in one of the loop's lists */
	bool is_idle;
	bool is_fresh; /* nothing has come from it yet */
	bool is_cut;
	bool is_late;    /* and was told so, with 408 */
	bool by_proxy;   /* what it says of addresses is believed */
	bool is_counted; /* its address */
	uint64_t address;
	uint64_t forwarded;  /* the address of its request; 0: none is counted */
	int64_t since_us;    /* idle, or in its request */
	int64_t answered_us; /* 0: not yet */
	int64_t waits_us;    /* since when it waits for us; 0: it does not */
	int64_t excused_us;  /* how long it has done that */
};

struct client_list {
	struct client *first, *last;
};

/* NULL without memory. One that is turned away is cut. */
struct client *client_begin(struct loop *loop, struct MHD_Connection *connection);
void client_end(struct client *client);

/* Its request line has come; its answer is given to the library; its request is over. */
void client_begins_request(struct client *client, int64_t now_us);
void client_is_answered(struct client *client, int64_t now_us);
void client_ends_request(struct client *client, int64_t now_us);
/* It waits for us, and not any more. */
void client_waits(struct client *client, int64_t now_us);
void client_goes_on(struct client *client, int64_t now_us);
/* `address` is that of a request through a trusted proxy. ERR_RATE_LIMITED: it has too many under
 * way; ERR_NO_MEMORY. */
int client_comes_from(struct client *client, uint64_t address) MUST_CHECK;

/* Says `text` straight to the client, and that nothing follows, which is then so. What cannot be
 * said at once is not. */
void client_say_last(struct client *client, struct slice text);

/* Cuts those whose time is up. To be called about once a second. */
void clients_look(struct loop *loop, int64_t now_us);

#endif
