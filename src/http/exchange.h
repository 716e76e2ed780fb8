/* One request with its answer, and the ownership rules.
 *
 * An exchange belongs to the thread of its loop. While it waits (`waiting`), its connection is
 * suspended, or `kept`, and the exchange belongs to the thread that works on it, a worker or the
 * sequencer, until that thread returns it with loop_return. If http.deadline passes first, the
 * connection continues with a new exchange that answers 503. The old exchange is `abandoned`: when
 * it is returned, it is only cleaned up and freed. The same happens if a kept connection breaks. */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include <stdatomic.h>
#include <sys/socket.h>

#include "base/json.h"
#include "base/rate.h"
#include "http/clients.h"
#include "http/loop.h"
#include "http/memory.h"
#include "http/query_parameters.h"
#include "http/upload_space.h"
#include "http/worker.h"
#include "service/event_body.h"
#include "service/interface.h"
#include "service/service.h"
#include "libmicrohttpd.h"

struct http_server;
struct key_lookup;
struct route;
struct operation;
struct upload;
struct events_batch;
struct checked_file;
struct object_stream;
struct console_request;
struct console_answer;
struct notice_query;

#define OUT_MAX ((size_t)4 * 1024 * 1024)
#define EXTRA_HEADERS_MAX 12
#define FORWARDED_LINES_MAX 8  /* lines of X-Forwarded-For; if there are more, the last ones */
#define NONE_MATCH_LINES_MAX 4 /* lines of If-None-Match; further lines are ignored */

struct answer {
	int status;
	const char *content_type;                /* NULL: no body */
	const char *vary;                        /* NULL: Accept-Language */
	const char *cache;                       /* NULL: no-store */
	const char *language;                    /* Content-Language; NULL: language of the request */
	const char *extra[EXTRA_HEADERS_MAX][2]; /* name, value: literals, or in the arena */
	int extra_count;
	int64_t retry_after_seconds; /* 0: no header */
	struct slice body;           /* valid as long as the exchange */
	/* Or a body that is sent in chunks, such as part of an object of the content store. */
	struct object_stream *stream; /* NULL: none; owned by the response after queueing */
	uint64_t size;                /* size of the stream; with 304, of the representation */
	bool is_stream;               /* the body is a stream */
	bool is_queued;               /* the library has accepted the response */
	bool has_begun;               /* the library has asked for the first chunk */
};

/* Evaluated request headers. Slices are valid as long as the request. */
struct head {
	struct slice authorization, api_key, accept, accept_language, content_type, content_encoding;
	struct slice scenario, range, cookie;
	struct slice origin;                             /* of the page that sends the request */
	struct slice forwarded_for[FORWARDED_LINES_MAX]; /* each a list; empty: absent */
	struct slice idempotency_key; /* copied and NUL-terminated if the operation uses it */
	bool idempotency_key_repeated;
	struct slice if_range;                         /* empty if the header occurs twice */
	struct slice none_match[NONE_MATCH_LINES_MAX]; /* each a list; empty: absent */
	struct slice misplaced_key; /* name of a header that seems to contain the API key */
	struct slice signature;     /* signature of a payment provider's notice, copied */
	bool authorization_repeated, origin_repeated;
	bool asks_for_method; /* Access-Control-Request-Method is present */
	/* Name of the first repeated header of each kind; NULL: none. */
	const char *repeated_key, *repeated_scenario, *repeated_of_body;
	bool has_if_range;
	bool expect_continue;
	enum message fault;     /* MSG_NONE: no fault */
	bool framing_broken;    /* the start of the next request is unknown */
	const char *target_end; /* end of the target in the library's buffer */
	const char *line_end;   /* end of the previous line in the library's buffer */
	unsigned lines, hosts, content_lengths;
	bool chunked;
	uint64_t content_length;
};

enum step {
	STEP_HEAD,    /* the request line has arrived */
	STEP_KEY,     /* the key lookup has completed */
	STEP_BODY,    /* the operation reads the body */
	STEP_DISCARD, /* the body is discarded; the answer is sent after it */
	/* answered directly on the socket while the body still arrives; the connection is closed */
	STEP_SENT,
	STEP_WAITING, /* `waiting`; then the operation's `resumed` creates the answer */
	STEP_ANSWER,  /* `answer` is complete */
};

struct exchange {
	struct http_server *server;
	struct service *service;
	struct loop *loop;
	struct client *client;             /* NULL after the exchange was abandoned */
	struct MHD_Connection *connection; /* NULL after the exchange was abandoned */
	struct exchange *previous, *next;  /* in the loop's list of waiting or of completed exchanges */
	int64_t deadline_us;
	int64_t started_us;
	enum step step;
	bool under_way;
	bool draining;
	bool waiting;         /* calls of libmicrohttpd are ignored */
	bool kept;            /* it waits without its connection being suspended */
	bool body_is_pending; /* it waits before the body is complete */
	_Atomic bool abandoned;

	char request_id[24];
	/* For the request log and the metrics. */
	const char *method; /* a known method, "other", or NULL: no head arrived */
	/* client address as reported by trusted proxies; set only if logged */
	struct sockaddr_storage address;
	int error_code;                     /* ERR_* of the answer; 0: no error */
	char incident_id[INCIDENT_ID_SIZE]; /* of the answer; "": none */
	struct slice path;                  /* as sent */
	struct slice query;
	struct query parameters;
	struct slice arguments[2]; /* values of the placeholders of the route */
	const struct route *route; /* NULL: unknown path */
	const struct operation *operation;
	struct head head;
	enum language language;
	struct key_lookup_query question;
	struct key_lookup *lookup;     /* the lookup that the exchange waits for */
	struct exchange *next_waiting; /* next exchange that waits for the same lookup */
	int lookup_result;
	struct key_identity key;
	bool key_known;
	bool address_charged;   /* a token of the address was taken for the lookup */
	struct scenario forced; /* by a test scenario */
	struct rate_state rate;
	uint64_t address_id; /* open operations: salted identifier of the client address */
	bool rate_is_shared; /* `rate` is that of all keys of the account */
	/* The state after guard_charge, which belongs to the worker until the exchange is returned. */
	struct rate_state charged;
	bool is_charged;

	struct arena arena;
	/* a JSON body, or the part of a chunked upload that no worker has read yet */
	struct buf body;
	struct buf canonical; /* canonical form of the payload */
	struct buf out;       /* body of the answer */
	struct memory memory; /* memory accounting of these buffers and of `check_counted` */
	size_t check_counted;
	size_t body_limit;
	uint64_t body_seen;
	size_t body_chunk_size;          /* chunk size of an upload; 0: not read in chunks */
	bool has_read_chunk;             /* a worker has read at least one chunk */
	int chunk_result;                /* result of the last chunk */
	struct upload *upload;           /* file upload in progress */
	struct events_batch *batch;      /* batch of declarations */
	struct checked_file *checked;    /* file upload for verification */
	struct notice_query *notices;    /* request that lists notices, in the arena */
	struct console_request *console; /* request for a page of the console, in the arena */

	int64_t content_owner; /* account whose content is sent; 0: that of the key, or none */
	struct task task;
	struct loop_item item;
	struct pending_registration pending;
	char content_object[CONTENT_NAME_MAX];
	struct upload_space space; /* reserved for the object before it is written */
	bool content_stored;       /* content_object exists and no committed event names it yet */
	const char *original_id;   /* event identifier for the Error record, or NULL */

	struct answer answer;
	struct error error;
};

void exchange_free(struct exchange *exchange); /* NULL-safe */
void exchange_free_spare(struct loop *loop);   /* call after the thread of the loop has ended */

/* ---- answers (answer.c); they set `answer` and leave queueing to the loop ---- */
void answer_with(struct exchange *exchange, int status, const char *content_type,
                 struct slice body);
/* Answers with `out` as JSON. If `out` is incomplete, answers 503. */
void answer_out(struct exchange *exchange, int status);
/* Answers with the Error record. A 5xx gets an incident id, which is logged with the cause. Details
 * are taken from exchange->error if its code is `code`. */
void answer_error(struct exchange *exchange, int code);
/* Logs an incident that a page reports itself, and sets its id for the request log. */
void answer_incident(struct exchange *exchange, int code, const char *incident_id);
/* Sets a part of an object of the content store as the body. Call after answer_with. The object
 * must exist. */
int answer_object(struct exchange *exchange, const struct content_parts *parts, uint64_t offset,
                  uint64_t size, struct error *error) MUST_CHECK;
void answer_drop_object(struct exchange *exchange);
/* Adds a header. Name and value must be valid as long as the exchange. */
void answer_header(struct exchange *exchange, const char *name, const char *value);
/* Queues the answer in libmicrohttpd. */
enum MHD_Result answer_queue(struct exchange *exchange);
/* Writes the answer directly to the socket and shuts down the sending direction. Used while the
 * body still arrives, when libmicrohttpd accepts no response, and when the library has no memory
 * for the headers. False: it could not be sent in full. */
bool answer_send_now(struct exchange *exchange);

#endif
