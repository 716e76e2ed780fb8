/* Connections of clients: admission and timeouts. Unless stated otherwise, functions are called in
 * the thread of the loop.
 *
 * - A connection has http.idle_timeout from its start or its last answer to the next request line,
 *   and http.transfer_timeout from the first byte of a head to its end. A body or an answer has
 *   http.transfer_timeout plus one second per 16 KiB. Time that the service itself takes does not
 *   count.
 * - An address has at most http.connections_per_address connections. Behind a trusted proxy, the
 *   limit applies to its requests in progress.
 * - Beyond http.connections, another connection is evicted (http/connection_table.h). */
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

/* An item that another thread returns to the loop. */
struct loop_item {
	void (*take)(struct loop_item *item); /* called in the thread of the loop */
	struct loop_item *next;
};

/* Our state of a connection; libmicrohttpd stores it as the socket context. */
struct client {
	struct loop *loop;
	struct MHD_Connection *connection; /* NULL: not added to the library yet */
	struct exchange *exchange;
	struct tls_session *tls;        /* NULL: plain HTTP */
	struct client *previous, *next; /* in one of the loop's lists */
	struct connection_entry entry;
	bool is_idle;
	bool is_fresh;           /* no request line has arrived yet */
	bool is_late;            /* timed out and answered 408 */
	bool by_proxy;           /* from a trusted proxy: X-Forwarded-For is used */
	uint64_t forwarded;      /* address counted for its request; 0: none */
	int64_t since_us;        /* start of the idle period or of the request */
	int64_t answered_us;     /* when the answer was queued; 0: not yet */
	int64_t waits_us;        /* start of the current wait for the service; 0: none */
	int64_t service_wait_us; /* total time that it waited for the service */
	int64_t bytes;           /* received when it became idle; -1: unknown */
	int64_t head_since_us;   /* when more bytes were noticed; 0: none */
	int64_t check_at_us;     /* time of the next check for more bytes */
	int unread;              /* bytes in its socket at the last check, when body_seen was `seen` */
	uint64_t seen;
	/* Used until the connection is added to the library. */
	struct loop_item item;
	int descriptor;
	struct sockaddr_in6 address; /* or a sockaddr_in */
	socklen_t address_size;
};

struct client_queue {
	struct client *first, *last;
};

/* Creates the client of a new connection from that address, with a nonblocking descriptor. In the
 * acceptor's thread. NULL: refused, or out of memory; the descriptor is closed. */
struct client *client_accept(struct http_server *server, int descriptor,
                             const struct sockaddr *address, socklen_t address_size) MUST_CHECK;
/* Passes the client to the loop, which serves it from now on. Any thread. */
void client_pass(struct client *client, struct loop *loop);
/* Handles the library's notification of a started connection: one passed by client_pass, or
 * accepted by the library itself. Returns NULL without memory. A refused connection is cut. */
struct client *client_attach(struct loop *loop, struct MHD_Connection *connection);
void client_end(struct client *client);
/* Frees passed clients that the library did not accept. Call after each run of the library. */
void clients_free_rejected(struct loop *loop);

/* Handles the arrival of the request line. */
void client_begin_request(struct client *client, int64_t now_us);
/* Handles the arrival of the complete head. False: the connection was cut, and the request must not
 * be processed. */
bool client_finish_head(struct client *client) MUST_CHECK;
/* Handles the arrival of the complete request. False: as with client_finish_head. */
bool client_finish_request(struct client *client) MUST_CHECK;
/* Marks the request as refused while its body still arrives. */
void client_mark_refused(struct client *client, int64_t now_us);
/* The answer was queued; the request has ended. */
void client_mark_answered(struct client *client, int64_t now_us);
void client_end_request(struct client *client, int64_t now_us);
/* Starts and ends a wait of the client for the service. */
void client_begin_wait(struct client *client, int64_t now_us);
void client_end_wait(struct client *client, int64_t now_us);
bool client_is_cut(const struct client *client);
/* Counts a request that a trusted proxy forwarded for `address`. ERR_RATE_LIMITED: the address has
 * too many requests in progress; ERR_NO_MEMORY. */
int client_count_forwarded(struct client *client, uint64_t address) MUST_CHECK;

/* Sends `text` directly to the client and shuts down the sending direction. False: `text` could not
 * be sent immediately and in full. */
bool client_send_last(struct client *client, struct slice text);
/* Reads and discards received bytes. Without this, closing the connection would reset it and lose
 * the answer. Its requests must have ended. */
void client_discard(struct client *client);

/* Cuts the connections whose timeout has passed. Call about once a second. */
void clients_check_timeouts(struct loop *loop, int64_t now_us);

#endif
