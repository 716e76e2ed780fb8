/* A polling thread: one libmicrohttpd daemon driven by our own wait, so that completions of other
 * threads arrive in bunches (one wake-up, however many), connections are resumed where they are
 * polled, and deadlines need no lock. */
#ifndef HTTP_LOOP_H
#define HTTP_LOOP_H

#include "http/exchange.h"

struct object_stream;

struct loop {
	struct http_server *server;
	struct MHD_Daemon *daemon;
	pthread_t thread;
	int poll_descriptor;
	int wake_descriptor;
	_Atomic(struct exchange *) completed;
	_Atomic(struct object_stream *) filled;
	_Atomic int handing_over; /* threads that are about to wake the loop, which lives until then */
	struct object_stream *streams; /* suspended between two pieces of an object */
	_Atomic int command;
	_Atomic int64_t under_way;      /* requests begun and not yet answered */
	int64_t out;                    /* exchanges and streams that work is done on elsewhere */
	struct exchange *waiting_first; /* in order of their deadlines */
	struct exchange *waiting_last;
	uint64_t random; /* state for request ids */
	bool started;
	bool ending; /* of the thread alone: nothing may wait any more */
};

int loop_start(struct loop *loop, struct http_server *server, int listen_descriptor,
               struct error *error) __attribute__((warn_unused_result));
/* The request waits for somebody's loop_complete. Call in the loop's thread, before the work is
 * handed over; when it cannot be, complete it at once. */
void loop_wait(struct exchange *exchange);
/* From any thread, once for each loop_wait; the exchange is the loop's again. */
void loop_complete(struct exchange *exchange);
/* Ends the loop's wait; from any thread. */
void loop_wake(struct loop *loop);
/* Around what gives the loop something back, from another thread: as soon as the loop has it, it may
 * be at its end, and must not be gone before it was woken. */
void loop_hold(struct loop *loop);
void loop_let_go(struct loop *loop, bool wake);
/* Takes no more connections; may be called from any thread. */
void loop_drain(struct loop *loop);
/* Answers 503 to what waits, ends connections, waits for work that is still out, ends the thread.
 */
void loop_stop(struct loop *loop);

#endif
