/* Who may be connected, and for how long. What is not said otherwise belongs to a loop's thread.
 *
 * - A connection has http.idle_timeout from its last answer, or its begin, to its next request
 * line, http.transfer_timeout from the first byte of a head to its end, and for a body and an
 * answer the same beside a second for each 16 KiB; what we ourselves wait for is not counted.
 * - An address has at most http.connections_per_address connections; behind a trusted proxy, as
 * many requests under way.
 * - Beyond http.connections another gives way (http/connection_table.h). */
#ifndef HTTP_CLIENTS_H
#define HTTP_CLIENTS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/must_check.h"
#include "http/connection_table.h"

struct MHD_Connection;
struct exchange;
struct http_server;
struct loop;
struct tls_session;

/* What another thread gives back to the loop. */
struct loop_item {
	void (*take)(struct loop_item *item); /* called in the loop's thread */
	struct loop_item *next;
};

/* What a connection is to us; libmicrohttpd keeps it for its requests. */
struct client {
	struct loop *loop;
	struct MHD_Connection *connection; /* NULL: not yet the library's */
	struct exchange *exchange;
	struct tls_session *tls;        /* NULL: plain HTTP */
	struct client *previous, *next; /* in one of the loop's lists */
	struct connection_entry entry;
	bool is_idle;
	bool is_fresh;         /* nothing has come from it yet */
	bool is_late;          /* and was answered 408 */
	bool by_proxy;         /* what it says of addresses is believed */
	uint64_t forwarded;    /* the address of its request; 0: none is counted */
	int64_t since_us;      /* idle, or in its request */
	int64_t answered_us;   /* 0: not yet */
	int64_t waits_us;      /* since when it waits for us; 0: it does not */
	int64_t excused_us;    /* how long it has done that */
	int64_t bytes;         /* that had come when it became idle; -1: not known */
	int64_t head_since_us; /* since when there are more; 0: there are not */
	int64_t look_at_us;    /* when to look for more next */
	int unread;            /* bytes in its socket at the last look, when body_seen was `seen` */
	uint64_t seen;
	/* Until the library has it. */
	struct loop_item item;
	int descriptor;
	struct sockaddr_in6 address; /* or a sockaddr_in */
	socklen_t address_size;
};

struct client_list {
	struct client *first, *last;
};

/* In the acceptor's thread: the client of a new connection from that address, with a nonblocking
 * descriptor. NULL: refused, or no memory; the descriptor is closed. */
struct client *client_accept(struct http_server *server, int descriptor,
                             const struct sockaddr *address, socklen_t address_size) MUST_CHECK;
/* Has the loop serve it from now on; any thread. */
void client_give(struct client *client, struct loop *loop);
/* The library has it now: one that was given, or that it accepted itself. NULL without memory. One
 * that is turned away is cut. */
struct client *client_begin(struct loop *loop, struct MHD_Connection *connection);
void client_end(struct client *client);
/* Frees those given that the library did not take. After each run of it. */
void clients_forget_failed(struct loop *loop);

/* Its request line has come. */
void client_begins_request(struct client *client, int64_t now_us);
/* All of its head has come. False: it was cut before, and nothing may be done for it. */
bool client_has_head(struct client *client) MUST_CHECK;
/* All of its request has come; the same. */
bool client_has_request(struct client *client) MUST_CHECK;
/* Nothing is done for its request any more, whose body still comes. */
void client_is_refused(struct client *client, int64_t now_us);
/* Its answer is given to the library; its request is over. */
void client_is_answered(struct client *client, int64_t now_us);
void client_ends_request(struct client *client, int64_t now_us);
/* It waits for us, and not any more. */
void client_waits(struct client *client, int64_t now_us);
void client_goes_on(struct client *client, int64_t now_us);
bool client_is_cut(const struct client *client);
/* `address` is that of a request through a trusted proxy. ERR_RATE_LIMITED: it has too many under
 * way; ERR_NO_MEMORY. */
int client_comes_from(struct client *client, uint64_t address) MUST_CHECK;

/* Says `text` straight to the client, and that nothing follows, which is then so. False: it could
 * not be said at once, or not whole. */
bool client_say_last(struct client *client, struct slice text);
/* Reads what has come and drops it: a connection that is closed with bytes unread is reset, and the
 * answer lost. Its requests are over. */
void client_discard(struct client *client);

/* Cuts those whose time is up. To be called about once a second. */
void clients_look(struct loop *loop, int64_t now_us);

#endif
