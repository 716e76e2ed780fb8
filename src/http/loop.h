/* A polling thread: one libmicrohttpd daemon driven by our own wait, so that completions of other
 * threads arrive in bunches (one wake-up, however many), connections are resumed where they are
 * polled, and deadlines need no lock. */
#ifndef HTTP_LOOP_H
#define HTTP_LOOP_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "http/clients.h"

/* A connection that waits is kept among those that the library takes for ready, and its handler
 * called whenever the library runs. Of so many, and for a tenth of a second, that costs less than
 * to suspend it, which takes it out of what is polled and puts it back. */
#define KEPT_MAX 1024
#define RANDOM_IDS 64
#define SPARE_EXCHANGES 1024 /* kept for the next requests, whichever their connections are */

struct connection_table;
struct exchange;
struct http_server;
struct key_lookup;
struct object_stream;
struct route;
struct tls_listener;
struct worker_pool;
struct checked_file;

struct loop {
	struct http_server *server;
	struct MHD_Daemon *daemon;
	pthread_t thread;
	int poll_descriptor;
	int wake_descriptor;
	const struct route *routes;
	struct tls_listener *tls; /* NULL: plain HTTP */
	struct worker_pool *workers;
	int64_t deadline_us; /* of a request that waits */
	int64_t connections_max;
	bool is_operators; /* no rates, and not counted */
	struct connection_table *connections;
	struct client_list idle, busy;    /* the idle ones as they became so */
	struct client *coming_clients;    /* given to the library, which has not told of them yet */
	_Atomic int64_t connection_count; /* also of those that are given to the loop */
	int64_t look_at_us;               /* when to look at the clients next */
	_Atomic(struct loop_item *) given;
	_Atomic int giving; /* threads that are about to wake the loop, which lives until then */
	struct object_stream *streams; /* suspended between two pieces of an object */
	_Atomic bool files_give_way;   /* that come to be checked, to those of other loops */
	struct key_lookup *lookups;    /* under way */
	_Atomic bool stopping;
	_Atomic uint64_t turns;    /* it has gone round so often; at least twice a second */
	uint64_t turns_seen;       /* by http_has_turned */
	_Atomic int64_t under_way; /* requests begun and not yet answered */
	int64_t out;               /* things that loop_give is still to be called for */
	struct exchange *spare;    /* without a request */
	unsigned spare_count;
	struct exchange *waiting_first; /* in order of their deadlines */
	struct exchange *waiting_last;
	unsigned kept;        /* of those that wait */
	unsigned handshakes;  /* whose sockets are watched */
	bool goes_on;         /* the library's last run left it something to do */
	int64_t turned_us;    /* when this turn began */
	struct arena scratch; /* for what ends before its handler does */
	uint64_t
		random[RANDOM_IDS]; /* drawn at once, for request ids; those from random_left on are used */
	unsigned random_left;
	int64_t rescue_told_us; /* when the last line about a rescued answer was written; 0: never */
	bool started;
	bool ending; /* of the thread alone: nothing may wait any more */
};

/* `routes`, `tls`, `workers`, `deadline_us`, `connections`, `connections_max` (those of the
 * library) and `is_operators` are set before. Without a descriptor to listen on (-1), for clients
 * that are given to it. */
int loop_start(struct loop *loop, struct http_server *server, int listen_descriptor,
               struct error *error) MUST_CHECK;
/* Suspends the connection until loop_go_on or the deadline. In the loop's thread. */
void loop_suspend(struct exchange *exchange);
void loop_go_on(struct exchange *exchange);
/* The same, and the exchange belongs to somebody else until he calls loop_complete. Before the work
 * is handed over; when it cannot be, complete it at once. */
void loop_wait(struct exchange *exchange);
/* The same for what is mostly over soon: the connection is kept for a while before it is suspended.
 * When it breaks meanwhile, the exchange is abandoned. */
void loop_wait_briefly(struct exchange *exchange);
/* libmicrohttpd has called for one that waits. */
void loop_still_waits(struct exchange *exchange);
/* It waits no more, whoever has it. */
void loop_wait_no_more(struct exchange *exchange);
/* From any thread, once for each loop_wait; the exchange is the loop's again. */
void loop_complete(struct exchange *exchange);
/* From any thread: has the item taken in the loop's, which counts it in `out`. */
void loop_give(struct loop *loop, struct loop_item *item);
/* Ends the loop's wait; from any thread. */
void loop_wake(struct loop *loop);
/* Answers 503 to what waits, ends connections, waits for work that is still out, ends the
 * thread. */
void loop_stop(struct loop *loop);

#endif
