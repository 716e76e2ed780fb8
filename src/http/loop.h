/* A polling thread. It drives one libmicrohttpd daemon with its own epoll wait. Completions of
 * other threads therefore arrive in batches with one wake-up, connections are resumed in the thread
 * that polls them, and deadlines need no lock. */
#ifndef HTTP_LOOP_H
#define HTTP_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "http/clients.h"
#include "libmicrohttpd.h"

/* Maximum number of waiting connections that are kept instead of suspended. The library treats a
 * kept connection as ready and calls its handler on every run. Up to this number, and for 100 ms,
 * that costs less than suspending a connection, which removes it from the poll set and adds it
 * again. */
#define KEPT_MAX 1024
#define RANDOM_IDS 64
#define SPARE_EXCHANGES 1024 /* kept for the next requests of any connection */

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
	int64_t deadline_us; /* of a waiting request */
	int64_t connections_max;
	bool is_operators; /* the operators' listener: no rate limits, not counted */
	struct connection_table *connections;
	struct client_queue idle, busy;   /* idle ones in the order in which they became idle */
	struct client *added_clients;     /* added to the library, which has not reported them yet */
	_Atomic int64_t connection_count; /* includes clients passed to the loop */
	int64_t check_at_us;              /* time of the next timeout check of the clients */
	_Atomic(struct loop_item *) given;
	_Atomic int giving;            /* threads about to wake the loop, which must live until then */
	struct object_stream *streams; /* suspended between two chunks of an object */
	/* uploads for verification were evicted by those of other loops */
	_Atomic bool files_evicted;
	struct key_lookup *lookups; /* in progress */
	_Atomic bool stopping;
	_Atomic uint64_t turns;    /* completed iterations; at least two per second */
	uint64_t iterations_seen;  /* value seen by http_has_iterated */
	_Atomic int64_t under_way; /* requests started and not yet answered */
	int64_t out;               /* pending calls of loop_post */
	struct exchange *spare;    /* exchanges without a request */
	unsigned spare_count;
	struct exchange *waiting_first; /* in order of their deadlines */
	struct exchange *waiting_last;
	unsigned kept;                /* number of kept connections among the waiting ones */
	unsigned handshakes;          /* number of handshakes whose sockets are polled */
	bool has_pending_work;        /* the library's last run left work to do */
	int64_t iteration_started_us; /* start time of this iteration */
	struct arena scratch;         /* for data that is freed before the handler returns */
	uint64_t
		random[RANDOM_IDS]; /* random numbers for request ids; those from random_left on are used */
	unsigned random_left;
	int64_t rescue_logged_us; /* time of the last log line about a rescued answer; 0: never */
	bool started;
	bool ending; /* used by the thread only: requests may no longer wait */
};

/* Starts the loop. The caller has set `routes`, `tls`, `workers`, `deadline_us`, `connections`,
 * `connections_max` (the limit of the library) and `is_operators`. A listen_descriptor of -1 means
 * that the loop serves only clients passed to it. */
int loop_start(struct loop *loop, struct http_server *server, int listen_descriptor,
               struct error *error) MUST_CHECK;
/* Suspends the connection until loop_resume or the deadline. In the thread of the loop. */
void loop_suspend(struct exchange *exchange);
void loop_resume(struct exchange *exchange);
/* Same, and passes the exchange to another thread until that thread calls loop_return. Call
 * before the work is submitted; if submitting fails, complete it immediately. */
void loop_wait(struct exchange *exchange);
/* Same for work that normally completes quickly: the connection is kept for a while before it is
 * suspended. If it breaks meanwhile, the exchange is abandoned. */
void loop_wait_briefly(struct exchange *exchange);
/* Handles a libmicrohttpd call for a waiting exchange. */
void loop_check_wait(struct exchange *exchange);
/* Ends the wait, whichever thread owns the exchange. */
void loop_end_wait(struct exchange *exchange);
/* Returns the exchange to the loop. Any thread, once for each loop_wait. */
void loop_return(struct exchange *exchange);
/* Passes the item to the loop's thread, which calls its `take` and decrements `out`. Any thread. */
void loop_post(struct loop *loop, struct loop_item *item);
/* Wakes the loop. Any thread. */
void loop_wake(struct loop *loop);
/* Answers 503 to waiting requests, ends connections, waits for pending work, and ends the
 * thread. */
void loop_stop(struct loop *loop);

#endif
