/* One request and its answer, and who may touch it when.
 *
 * An exchange belongs to its loop's thread. While it waits (`waiting`) the connection is suspended,
 * or `kept`, and the exchange belongs to whoever does its work, a worker or the sequencer, until
 * that one hands it back with loop_complete. When http.deadline passes first, the connection goes
 * on with a fresh exchange that answers 503, and this one, `abandoned`, is only tidied up and freed
 * when it comes back; so it is when a connection breaks that was kept. */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include <microhttpd.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/json.h"
#include "base/rate.h"
#include "http/clients.h"
#include "http/loop.h"
#include "http/memory.h"
#include "http/query.h"
#include "http/upload_space.h"
#include "http/worker.h"
#include "service/event_body.h"
#include "service/interface.h"
#include "service/service.h"

struct http_server;
struct key_lookup;
struct route;
struct operation;
struct upload;
struct checked_file;
struct object_stream;
struct console_request;
struct console_answer;

#define OUT_MAX ((size_t)4 * 1024 * 1024)
#define EXTRA_HEADERS_MAX 12
#define FORWARDED_LINES_MAX 8  /* of X-Forwarded-For; of more, the last ones */
#define NONE_MATCH_LINES_MAX 4 /* of If-None-Match; what more there are is not looked at */

struct answer {
	int status;
	const char *content_type;                /* NULL: no body */
	const char *vary;                        /* NULL: Accept-Language */
	const char *cache;                       /* NULL: no-store */
	const char *language;                    /* Content-Language; NULL: that of the request */
	const char *extra[EXTRA_HEADERS_MAX][2]; /* name, value: literals or in the arena */
	int extra_count;
	int64_t retry_after_seconds; /* 0: no header */
	struct slice body;           /* lives as long as the exchange */
	/* Or what is sent piece by piece, as a part of an object of the content store is. */
	struct object_stream *stream; /* NULL: none; the response's from queueing on */
	uint64_t size;                /* of that; with 304, of what is not sent */
	bool is_stream;               /* it had one */
	bool is_queued;               /* the library has taken it */
	bool has_begun;               /* and the library has asked for its first piece */
};

/* Request headers that matter; slices live as long as the request. */
struct head {
	struct slice authorization, api_key, accept, accept_language, content_type, content_encoding;
	struct slice scenario, range, cookie;
	struct slice forwarded_for[FORWARDED_LINES_MAX]; /* each a list; empty: not sent */
	struct slice idempotency_key; /* of an operation that takes one: copied, with a 0 behind it */
	bool idempotency_key_repeated;
	struct slice if_range;                         /* of two, an empty one */
	struct slice none_match[NONE_MATCH_LINES_MAX]; /* each a list; empty: not sent */
	struct slice misplaced_key; /* the name of a header that seems to have the API key */
	struct slice signature;     /* of a payment provider's notice, copied */
	bool authorization_repeated;
	bool has_if_range;
	bool expect_continue;
	enum message fault;     /* MSG_NONE: it is sound */
	bool framing_broken;    /* where the next request begins is not known */
	const char *target_end; /* in the library's buffer */
	const char *line_end;   /* the same, of the line before */
	unsigned lines, hosts, content_lengths;
	bool chunked;
	uint64_t content_length;
};

enum step {
	STEP_HEAD,    /* the request line has come */
	STEP_KEY,     /* the key has been looked up */
	STEP_BODY,    /* the operation takes the body */
	STEP_SWALLOW, /* the body is of no use; what is to be said is said behind it */
	STEP_SAID,    /* answered around libmicrohttpd while the body still comes; closes at its end */
	STEP_WAITING, /* `waiting`; after that, `resumed` of the operation makes the answer */
	STEP_ANSWER,  /* `answer` is there */
};

struct exchange {
	struct http_server *server;
	struct service *service;
	struct loop *loop;
	struct client *client;             /* NULL once abandoned */
	struct MHD_Connection *connection; /* the same */
	struct exchange *previous, *next;  /* the loop's list of waiting ones, or of completed ones */
	int64_t deadline_us;
	int64_t started_us;
	enum step step;
	bool under_way;
	bool draining;
	bool waiting;    /* libmicrohttpd may call all the same, and is not heard */
	bool kept;       /* it waits, and its connection is not suspended */
	bool body_comes; /* it waits in the middle of its body */
	_Atomic bool abandoned;

	char request_id[24];
	/* For the log of requests, and what counts them. */
	const char *method;              /* one of those with a name, "other", or NULL: no head came */
	struct sockaddr_storage address; /* the client's, as trusted proxies tell; if it is logged */
	int error_code;                  /* ERR_* of the answer; 0: it is none */
	char incident_id[INCIDENT_ID_SIZE]; /* of the answer; "": it has none */
	struct slice path;                  /* as sent */
	struct slice query;
	struct query parameters;
	struct slice arguments[2]; /* what the route's places matched */
	const struct route *route; /* NULL: unknown path */
	const struct operation *operation;
	struct head head;
	enum language language;
	struct key_question question;
	struct key_lookup *lookup;   /* that is waited for */
	struct exchange *next_asker; /* of the same */
	int key_result;
	struct key_identity key;
	bool key_known;
	bool address_charged; /* a token of the address was taken for the look-up */
	int forced;           /* ERR_* that a test scenario asks for; 0: none */
	struct rate_state rate;
	uint64_t address_id; /* of an open operation: what counts as its client's address, salted */
	bool rate_is_shared; /* it is that of all keys of the account */

	struct arena arena;
	struct buf body;      /* a JSON body, or what no worker has read yet of one in pieces */
	struct buf canonical; /* of a payload */
	struct buf out;       /* an answer's body */
	struct memory memory; /* that counts these, and the following */
	size_t check_counted;
	size_t body_limit;
	uint64_t body_seen;
	size_t piece_size;               /* of a body in pieces; 0: it is none */
	bool piece_taken;                /* a worker has had one of them */
	int piece_result;                /* of the last that a worker had */
	struct upload *upload;           /* a file that comes */
	struct checked_file *checked;    /* one that comes to be checked */
	struct console_request *console; /* of a page of the console, in the arena */

	int64_t content_owner; /* the account whose content is sent; 0: the key's, or nobody's */
	struct task task;
	struct loop_item item;
	struct pending_registration pending;
	char content_object[CONTENT_NAME_MAX];
	struct upload_space space; /* for it, from before it is written */
	bool content_stored;       /* content_object exists and no committed event names it yet */
	const char *original_id;   /* of the event that the Error record names, or NULL */

	struct answer answer;
	struct error error;
};

void exchange_free(struct exchange *exchange); /* NULL-safe */
void exchange_free_spare(struct loop *loop);   /* once its thread has ended */

/* ---- answers (answer.c); they set `answer` and leave queueing to the loop ---- */
void answer_with(struct exchange *exchange, int status, const char *content_type,
                 struct slice body);
/* `out` as JSON; ERR_NO_MEMORY becomes 503. */
void answer_out(struct exchange *exchange, int status);
/* The Error record; 5xx get an incident id, logged beside the cause. exchange->error tells more
 * when its code is `code`. */
void answer_error(struct exchange *exchange, int code);
/* Of a page that tells of a fault itself: logs it with its incident, which the request's line has.
 */
void answer_incident(struct exchange *exchange, int code, const char *incident_id);
/* After answer_with: the body is a part of what the content store has, and must exist. */
int answer_object(struct exchange *exchange, const struct content_parts *parts, uint64_t offset,
                  uint64_t size, struct error *error) MUST_CHECK;
void answer_drop_object(struct exchange *exchange);
/* Name and value must live as long as the exchange. */
void answer_header(struct exchange *exchange, const char *name, const char *value);
/* Gives the answer to libmicrohttpd. */
enum MHD_Result answer_queue(struct exchange *exchange);
/* Writes the answer straight to the socket, closing that direction: for what must be said while the
 * body still comes, which libmicrohttpd does not allow, or when it has no room for the head. False:
 * it could not be sent whole. */
bool answer_say_now(struct exchange *exchange);

#endif
