/* Internal to tools: the requests of one connection to the fault proxy (HTTP/1.1).
 *
 * It reads a head of at most 16 KiB, and a body, with Content-Length or in chunks, into an unnamed
 * file. Every read ends early once `stop` is set. One thread at a time. */
#ifndef TOOLS_PROXIED_REQUEST_H
#define TOOLS_PROXIED_REQUEST_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "net/http.h"

#define PROXY_HEAD_MAX 16384
#define PROXY_BODY_MAX ((uint64_t)1 << 30)
#define PROXY_HEADERS_MAX HTTP_REQUEST_HEADERS_MAX

struct proxy_peer {
	int socket;
	const atomic_bool *stop;
	struct buf input; /* received and not yet used */
};
void proxy_peer_init(struct proxy_peer *peer, int socket, const atomic_bool *stop);
void proxy_peer_free(struct proxy_peer *peer); /* closes the socket */
/* Writes all of it. False: the peer is gone. */
bool proxy_peer_write(struct proxy_peer *peer, struct slice bytes) MUST_CHECK;

struct proxied_request {
	const char *method, *target;            /* in the arena, as are the header lines */
	const char *content_type;               /* NULL: none */
	const char *headers[PROXY_HEADERS_MAX]; /* those to send on */
	size_t header_count;
	bool keep_alive;
	int body; /* unnamed file; -1: no body */
	uint64_t body_size;
};

/* Reads the next request. Returns 0; ERR_NOT_FOUND: the peer ended the connection, or `stop` is
 * set; ERR_VALIDATION: not a request that can be sent on; ERR_TOO_LARGE; ERR_IO; ERR_NO_MEMORY. The
 * caller frees the request in any case. */
int proxied_request_read(struct proxy_peer *peer, struct arena *arena,
                         struct proxied_request *ret_request, struct error *error) MUST_CHECK;
void proxied_request_free(struct proxied_request *request);

/* Returns whether a header belongs to one connection (RFC 9110 section 7.6.1), and is never sent
 * on. */
bool proxy_is_of_connection(struct slice header_line);

#endif
