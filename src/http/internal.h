/* What the parts of the HTTP server share. */
#ifndef HTTP_INTERNAL_H
#define HTTP_INTERNAL_H

#include "http/exchange.h"
#include "http/guard.h"
#include "http/loop.h"
#include "http/metrics.h"
#include "http/route.h"
#include "http/server.h"
#include "net/address.h"

#define LOOPS 1 /* polling threads; two gave the same on two cores */
#define WORKERS 2
#define CONTENT_WORKERS 16 /* for content across a network: they wait, others must not */
#define WORKER_QUEUE_MAX 512
#define RATE_BUCKETS 65536

#define BODY_TIME_MAX_US (5 * 60 * US_PER_SECOND) /* a request must have come in whole by then */
#define SWALLOW_MAX ((uint64_t)512 * 1024)        /* of a refused body, to keep the connection */
#define DISCARD_MAX ((uint64_t)32 * 1024 * 1024)  /* behind an answer that was given at once */

struct http_server {
	struct service *service;
	struct metrics metrics;
	struct rate_limiter *limiter;
	struct worker_pool *workers;
	struct worker_pool *content_workers; /* the same where content is here */
	struct network_list trusted_proxies;
	uint64_t address_salt[2];
	/* Header names with the service's prefix, for keys and scenarios. */
	char key_header[40];
	char scenario_header[40];
	struct loop loops[LOOPS];
	struct MHD_Daemon *admin;
	int listen_descriptor;
	int admin_descriptor;
	uint16_t port;
	uint16_t admin_port;
	_Atomic bool draining;
	char *error_docs; /* the page of error codes */
	size_t error_docs_size;
};

/* The library's settings come from here for both listeners. */
int admin_start(struct http_server *server, struct error *error);
void admin_stop(struct http_server *server);

/* The handler of libmicrohttpd for the public interface, and its companions (request.c). */
enum MHD_Result request_handle(void *context, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **client);
void *request_begin(void *context, const char *uri, struct MHD_Connection *connection);
void request_completed(void *context, struct MHD_Connection *connection, void **client,
                       enum MHD_RequestTerminationCode code);
void request_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code);
/* The deadline has passed or the server stops: the connection gets a fresh exchange with 503. */
void request_abandon(struct exchange *exchange);
/* What an abandoned exchange leaves behind when it comes back at last. */
void request_tidy(struct exchange *exchange);

/* Uploaded content that no event names (register.c): deletes it on a worker. */
void content_discard(struct exchange *exchange);
void upload_free(struct upload *upload); /* NULL-safe */

/* Runs `work` of the operation on a worker, or answers 503. */
void work_submit(struct exchange *exchange);

/* The page of error codes, made once. */
int error_docs_make(struct http_server *server);

#endif
