/* Declarations shared within the HTTP server. */
#ifndef HTTP_HTTP_INTERNAL_H
#define HTTP_HTTP_INTERNAL_H

#include "http/acceptor.h"
#include "http/cors.h"
#include "http/exchange.h"
#include "http/guard.h"
#include "http/loop.h"
#include "http/memory.h"
#include "http/prometheus.h"
#include "http/request_log.h"
#include "http/route.h"
#include "http/server.h"
#include "http/shares.h"
#include "http/tls.h"
#include "net/address.h"

#define LOOPS_MAX 8
/* Connections beyond http.connections that were evicted and are not closed yet. */
#define CONNECTIONS_SPARE 64
#define WORKER_QUEUE_MAX 1024
#define RATE_BUCKETS 65536

/* kept of a buffer that is reused for the next request */
#define BUFFER_KEEP ((size_t)8 * 1024)
/* reserved for the page or record that reports the result */
#define ANSWER_RESERVE ((size_t)128 * 1024)
#define REFUSAL_ROOM ((size_t)8 * 1024)
#define ARENA_MAX ((size_t)16 * 1024 * 1024)

#define BODY_AT_ONCE ((size_t)16 * 1024)  /* largest body that a polling thread parses itself */
#define UPLOAD_CHUNK ((size_t)256 * 1024) /* chunk of a form that a worker reads */
#define UPLOAD_SLACK ((size_t)64 * 1024)  /* maximum received by one call */
/* Maximum memory for a chunk of a form, and for any body (with a terminating NUL). */
#define CHUNK_HELD_MAX (UPLOAD_CHUNK + UPLOAD_SLACK + 1)
#define BODY_HELD_MAX (EVENT_BODY_MAX + 1)

#define BODY_DISCARD_MAX                                                                           \
	((uint64_t)512 * 1024)                       /* read of a refused body to keep the connection  \
	                                              */
#define DISCARD_MAX ((uint64_t)32 * 1024 * 1024) /* read after an immediate answer */

struct proxies {
	struct network_list networks;
	struct proxies *former;
	uint64_t number; /* result of epoch_advance after replacement */
};

struct listeners;

struct http_server {
	struct service *service;
	struct admin *admin; /* used by the console; NULL: no console */
	struct metrics metrics;
	struct rate_limiter *limiter;
	struct shares *bodies; /* memory of http.body_memory held by each owner */
	int64_t held;          /* total of the above; under bodies_lock */
	/* space of http.upload_space held by each owner; under bodies_lock */
	struct shares *uploads;
	int64_t upload_held; /* total of the above; under bodies_lock */
	/* files uploaded for verification, by address; under bodies_lock */
	struct shares *checks;
	struct checked_file *newest_upload; /* newest upload for verification; under bodies_lock */
	int check_count;
	size_t check_bytes; /* memory held by these uploads; under bodies_lock */
	pthread_mutex_t bodies_lock;
	struct worker_pool *workers[LANE_COUNT];
	/* The current list, and replaced ones that a thread may still read. */
	struct proxies *_Atomic trusted_proxies;
	_Atomic int requests_logged;  /* enum request_log_which */
	_Atomic int addresses_logged; /* enum request_log_addresses */
	uint64_t address_salt[2];
	/* Header names with the prefix of the service, for keys and scenarios. */
	char key_header[40];
	char scenario_header[SCENARIO_HEADER_SIZE];
	struct connection_table *connections; /* of the public listener */
	_Atomic int64_t fresh;                /* connections from which no request line has arrived */
	struct acceptor *acceptor;
	struct loop *loops; /* of the public listener */
	unsigned loop_count;
	_Atomic int lookup_count; /* key lookups in progress */
	struct connection_table *operators_connections;
	struct loop operators_loop;
	struct listeners *listeners;
	struct request_log_state request_log_state;
	int listen_descriptor;
	int monitor_descriptor;
	uint16_t port;
	uint16_t monitor_port;
	struct tls_listener tls[HTTP_LISTENERS];
	bool started; /* the initial settings are applied */
	_Atomic bool draining;
	/* a check of the content store is in progress; result of the last check */
	_Atomic bool content_check_pending, content_failed;
	/* monotonic time when the store last reported ready */
	_Atomic int64_t store_ready_us;
	char *error_docs; /* the page of error codes */
	size_t error_docs_size;
};

/* The libmicrohttpd handler of the public interface, and related callbacks (request.c). */
enum MHD_Result request_handle(void *context, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **client);
void *request_begin(void *context, const char *uri, struct MHD_Connection *connection);
void request_completed(void *context, struct MHD_Connection *connection, void **client,
                       enum MHD_RequestTerminationCode code);
void request_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code);
/* Handles the end of a connection for which request_completed was not called. libmicrohttpd 1.0
 * omits the call, and the answer, if a chunk-size line fills the connection memory. */
void request_connection_lost(struct client *client);
/* Continues the connection with a new exchange that answers 503, because the deadline has passed or
 * the server is stopping. */
void request_abandon(struct exchange *exchange);
/* Same during a body that a worker reads, for the given error. */
void request_abandon_upload(struct exchange *exchange, int code, const struct error *error);
/* Releases resources of an abandoned exchange when it is returned. */
void request_release(struct exchange *exchange);

/* ---- body.c: bodies and memory limits of a request (http/memory.h) ---- */
/* Checks before the body arrives whether a body of `size` may be received; of a long one, as much
 * as is held at a time. ERR_UNAVAILABLE. In the thread of the loop. */
int body_admit(struct exchange *exchange, uint64_t size, struct error *error) MUST_CHECK;
/* ERR_VALIDATION: the body has a content encoding. */
int body_check_encoding(const struct exchange *exchange, struct error *error) MUST_CHECK;
/* ERR_VALIDATION: a header that describes the body is repeated. */
int body_check_repeated(const struct exchange *exchange, struct error *error) MUST_CHECK;
/* ERR_VALIDATION: states the received Content-Type and the `wanted` ones. */
int body_refuse_type(const struct exchange *exchange, const char *wanted, struct error *error)
	MUST_CHECK;
/* ERR_TOO_LARGE: the body exceeds body_limit. */
int body_refuse_size(const struct exchange *exchange, struct error *error) MUST_CHECK;
/* Accounts for the memory of the exchange's file for verification; arenas and buffers account for
 * themselves. ERR_UNAVAILABLE: the limit is exceeded; the additional memory is not counted, and the
 * file must be dropped. */
int body_count(struct exchange *exchange, struct error *error) MUST_CHECK;
/* Releases the memory that body_count counted. */
void body_release(struct exchange *exchange);
/* Appends to the body and accounts for the memory. */
int body_collect(struct exchange *exchange, struct slice part, struct error *error) MUST_CHECK;
/* Sets and returns ERR_UNAVAILABLE because of the memory limit. */
int memory_set_refused(struct error *error);
/* Reserves `size` bytes for the answer before an operation with effects starts. ERR_UNAVAILABLE. */
int memory_reserve_answer(struct exchange *exchange, size_t size, struct error *error) MUST_CHECK;
/* Returns ERR_UNAVAILABLE with its cause if `code` is ERR_NO_MEMORY because of the memory limit;
 * otherwise `code`. */
int memory_error(struct exchange *exchange, int code) MUST_CHECK;
/* Allows the additional memory that is always available for a refusal. */
void memory_allow_refusal(struct exchange *exchange);
/* Returns the size of the largest body that can be held in one piece, regardless of other
 * requests. */
size_t body_largest(const struct exchange *exchange);

/* ---- body_chunks.c: bodies that workers read in chunks while they arrive ---- */
/* Appends to the body, accounts for the memory, and passes a full chunk to a worker. More of the
 * body is read after the worker has finished. The rest at the end of the body is left to the
 * operation's `finish`. */
int chunk_collect(struct exchange *exchange, struct slice part, struct error *error) MUST_CHECK;

/* Answers before the body is complete; the rest of the body is discarded. */
void request_refuse(struct exchange *exchange, int code);

/* ---- content_discard.c: a worker deletes the data and then releases `space`; any thread may
 * call ---- */
void writer_discard(struct http_server *server, struct content_writer *writer,
                    struct upload_space *space);
void object_discard(struct http_server *server, const char name[CONTENT_NAME_MAX],
                    struct upload_space *space);

/* ---- registration_route.c ---- */
void upload_free(struct upload *upload); /* NULL-safe */
/* Initializes a registration by the key. Its output and what it refers to are in the arena.
 * `content_size` is ignored for a digest. */
void registration_init(const struct key_identity *key, const struct declaration *declaration,
                       size_t content_size, struct arena *arena, struct registration *ret);
/* Returns whether certainly no event refers to the content stored for this registration. If the
 * outcome is unknown, the object is kept, and the sweep decides later. */
bool registration_has_unused_content(const struct registration *registration) MUST_CHECK;

/* ---- batch_route.c ---- */
/* Deletes stored content without an event, and frees the batch of the exchange. */
void batch_release(struct exchange *exchange);

/* ---- verification_upload.c ---- */
/* Returns the maximum size of a file for verification in bytes; 0: verification is not
 * available. */
size_t check_size_max(const struct exchange *exchange);
size_t checked_file_held(const struct checked_file *file); /* NULL-safe */
void checked_file_free(struct checked_file *file);         /* NULL-safe */
/* Refuses uploads of the loop that were evicted in favour of uploads of other loops. */
void checked_files_refuse_evicted(struct loop *loop);

/* ---- console_routes.c ---- */
/* Returns whether the path is that of the console or below it. */
bool console_has_path(const struct exchange *exchange);
/* Draws the console's error page into `out`. False: it cannot be drawn, and `out` contains at most
 * the beginning of a page. Also on a polling thread. */
bool console_answer_error(struct exchange *exchange, int code, const char *incident_id,
                          struct console_answer *ret);
/* Adds the headers of a drawn page. Call after answer_with. */
void console_headers(struct exchange *exchange, const struct console_answer *answer);

/* Runs the operation's `work` on a worker, or answers 503. */
void work_submit(struct exchange *exchange);
/* Runs `run` on a worker of the lane, or answers 503. */
void work_submit_to_lane(struct exchange *exchange, enum lane lane, void (*run)(struct task *task));
/* Called by a worker that has finished: runs `work` on a worker of the operation's own lane. */
void work_resubmit(struct exchange *exchange);

/* Creates the page of error codes once. */
int error_docs_make(struct http_server *server) MUST_CHECK;

#endif
