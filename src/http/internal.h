/* What the parts of the HTTP server share. */
#ifndef HTTP_INTERNAL_H
#define HTTP_INTERNAL_H

#include "http/accept.h"
#include "http/exchange.h"
#include "http/guard.h"
#include "http/loop.h"
#include "http/memory.h"
#include "http/metrics.h"
#include "http/request_log.h"
#include "http/route.h"
#include "http/server.h"
#include "http/shares.h"
#include "http/tls.h"
#include "net/address.h"

#define LOOPS_MAX 8
/* Connections beyond http.connections: that have given way, and are not closed yet. */
#define CONNECTIONS_SPARE 64
#define WORKER_QUEUE_MAX 1024
#define RATE_BUCKETS 65536

#define BUFFER_KEEP ((size_t)8 * 1024)      /* of a buffer that serves one request after another */
#define ANSWER_RESERVE ((size_t)128 * 1024) /* for the page or record that tells what was done */
#define REFUSAL_ROOM ((size_t)8 * 1024)
#define ARENA_MAX ((size_t)16 * 1024 * 1024)

#define BODY_AT_ONCE ((size_t)16 * 1024)  /* the longest that a polling thread reads itself */
#define UPLOAD_PIECE ((size_t)256 * 1024) /* of a form, until a worker reads it */
#define UPLOAD_SLACK ((size_t)64 * 1024)  /* what may come at once */
/* Most that is held of one body: a piece of a form, or a JSON body (they end with a NUL). */
#define BODY_HELD_MAX (UPLOAD_PIECE + UPLOAD_SLACK + 1)

#define SWALLOW_MAX ((uint64_t)512 * 1024)       /* of a refused body, to keep the connection */
#define DISCARD_MAX ((uint64_t)32 * 1024 * 1024) /* behind an answer that was given at once */

struct proxies {
	struct network_list networks;
	struct proxies *former;
	uint64_t number; /* reading_replaced, once it was */
};

struct http_server {
	struct service *service;
	struct admin *admin; /* that the console asks; NULL: there is no console */
	struct metrics metrics;
	struct rate_limiter *limiter;
	struct shares *bodies;       /* what of http.body_memory is held, by whose it is */
	int64_t held;                /* of it in all; under bodies_lock */
	struct shares *uploads;      /* what of http.upload_space is held; under bodies_lock */
	int64_t upload_held;         /* of it in all; under bodies_lock */
	struct shares *checks;       /* files that come to be checked, or are; under bodies_lock */
	struct checked_file *coming; /* the last that began first; under bodies_lock */
	int check_count;
	size_t check_bytes; /* that they hold; under bodies_lock */
	pthread_mutex_t bodies_lock;
	struct worker_pool *workers[LANE_COUNT];
	/* The one in force, and those before it that somebody may still look at. */
	struct proxies *_Atomic trusted_proxies;
	_Atomic int requests_logged;  /* enum request_log_which */
	_Atomic int addresses_logged; /* enum request_log_addresses */
	uint64_t address_salt[2];
	/* Header names with the service's prefix, for keys and scenarios. */
	char key_header[40];
	char scenario_header[SCENARIO_HEADER_SIZE];
	struct connection_table *connections; /* of the public listener */
	_Atomic int64_t fresh;                /* of them, those from which nothing has come yet */
	struct acceptor *acceptor;
	struct loop *loops; /* of the public listener */
	unsigned loop_count;
	_Atomic int lookup_count; /* of keys, under way */
	struct connection_table *operators_connections;
	struct loop operators_loop;
	struct request_lines request_lines;
	int listen_descriptor;
	int monitor_descriptor;
	uint16_t port;
	uint16_t monitor_port;
	struct tls_listener tls[HTTP_LISTENERS];
	bool started; /* its first settings are in force */
	_Atomic bool draining;
	_Atomic bool content_asked, content_failed; /* by /readyz or /metrics; when it last was */
	_Atomic int64_t store_ready_us;             /* monotonic: when the store last said that it is */
	char *error_docs;                           /* the page of error codes */
	size_t error_docs_size;
};

/* The handler of libmicrohttpd for the public interface, and its companions (request.c). */
enum MHD_Result request_handle(void *context, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **client);
void *request_begin(void *context, const char *uri, struct MHD_Connection *connection);
void request_completed(void *context, struct MHD_Connection *connection, void **client,
                       enum MHD_RequestTerminationCode code);
void request_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code);
/* The connection ends and request_completed was not called: libmicrohttpd 1.0 forgets it when the
 * line of a chunk's size fills the connection's memory, and the answer, too. */
void request_dropped(struct client *client);
/* The deadline has passed or the server stops: the connection gets a fresh exchange with 503. */
void request_abandon(struct exchange *exchange);
/* The same in the middle of a body that a worker reads, for another reason. */
void request_abandon_body(struct exchange *exchange, int code, const struct error *error);
/* What an abandoned exchange leaves behind when it comes back at last. */
void request_tidy(struct exchange *exchange);

/* ---- body.c: bodies, and what a request may hold (http/memory.h) ---- */
/* Whether a body of `size` may come, before it comes: of a long one as much as is held at a time.
 * ERR_UNAVAILABLE. In the loop's thread. */
int body_expect(struct exchange *exchange, uint64_t size, struct error *error) MUST_CHECK;
/* ERR_VALIDATION for a body that is encoded. */
int body_check_encoding(const struct exchange *exchange, struct error *error) MUST_CHECK;
/* ERR_VALIDATION: what came for a Content-Type, and that it has to be one of `wanted`. */
int body_refuse_type(const struct exchange *exchange, const char *wanted, struct error *error)
	MUST_CHECK;
/* ERR_TOO_LARGE, for more than body_limit. */
int body_refuse_size(const struct exchange *exchange, struct error *error) MUST_CHECK;
/* Counts what the exchange's checked file holds now; arenas and buffers count themselves.
 * ERR_UNAVAILABLE when it became more than there is: that is not counted, and has to be dropped. */
int body_count(struct exchange *exchange, struct error *error) MUST_CHECK;
/* What body_count counted is not held any more. */
void body_release(struct exchange *exchange);
/* Appends to the body, and counts. */
int body_collect(struct exchange *exchange, struct slice part, struct error *error) MUST_CHECK;
/* ERR_UNAVAILABLE, and why. */
int memory_refuse(struct error *error);
/* Before something is done that has to be answered: `size` bytes for that, beyond what is held.
 * ERR_UNAVAILABLE. */
int memory_reserve_answer(struct exchange *exchange, size_t size, struct error *error) MUST_CHECK;
/* What failed for want of memory because it was refused some is ERR_UNAVAILABLE, with its cause. */
int memory_refusal(struct exchange *exchange, int code) MUST_CHECK;
/* From now on what is said is a refusal, for which there always is some room. */
void memory_allow_refusal(struct exchange *exchange);
/* The largest body that may be held as one, however much others hold. */
size_t body_largest(const struct exchange *exchange);

/* ---- piece.c: bodies that workers read while they come ---- */
/* Appends to the body, counts, and has a worker read a piece that is long enough: more of the body
 * comes once he has. What has come when the body ends is left to `finish` of the operation. */
int piece_collect(struct exchange *exchange, struct slice part, struct error *error) MUST_CHECK;

/* An answer in the middle of a request's body, which is of no use any more. */
void request_refuse(struct exchange *exchange, int code);

/* ---- discard.c: for any thread; a worker ends or deletes, and then gives the space back, which it
 * takes over ---- */
void writer_discard(struct http_server *server, struct content_writer *writer,
                    struct upload_space *space);
void object_discard(struct http_server *server, const char name[CONTENT_NAME_MAX],
                    struct upload_space *space);

void upload_free(struct upload *upload); /* NULL-safe */

/* ---- check_file.c ---- */
/* Bytes of the largest file that is checked; 0: none is. */
size_t check_size_max(const struct exchange *exchange);
size_t checked_file_held(const struct checked_file *file); /* NULL-safe */
void checked_file_free(struct checked_file *file);         /* NULL-safe */
/* Refuses those of the loop that gave way to files of another one. */
void checked_files_give_way(struct loop *loop);

/* ---- console.c ---- */
/* Whether what is asked for is the console, or below it. */
bool console_has(const struct exchange *exchange);
/* The console's own page of an error, in `out`. False: it cannot be drawn, and `out` is as it was
 * but for a page's beginning. On a thread that polls too. */
bool console_draw_error(struct exchange *exchange, int code, const char *incident_id,
                        struct console_answer *ret);
/* Those of what was drawn; behind answer_with. */
void console_headers(struct exchange *exchange, const struct console_answer *answer);

/* Runs `work` of the operation on a worker, or answers 503. */
void work_submit(struct exchange *exchange);
/* The same of `run`, on a worker of the lane. */
void work_hand_over(struct exchange *exchange, enum lane lane, void (*run)(struct task *task));
/* From a worker, who is done with it: `work` is run on one of the operation's lane, its own. */
void work_pass_on(struct exchange *exchange);

/* The page of error codes, made once. */
int error_docs_make(struct http_server *server) MUST_CHECK;

#endif
