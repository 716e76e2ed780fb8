/* The room in the content store that a request has taken for content that is not registered yet, of
 * http.upload_space. Belongs to one thread at a time, as its request does. */
#ifndef HTTP_UPLOAD_SPACE_H
#define HTTP_UPLOAD_SPACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct http_server;

struct upload_space {
	uint64_t owner; /* whose share pays; the same until all is given back */
	int64_t held;   /* bytes; 0: none */
};

/* `size` bytes more, before they are written. ERR_UNAVAILABLE: they are beyond what there is, or
 * the owner's share of it; nothing was taken then. */
int upload_space_take(struct upload_space *space, struct http_server *server, uint64_t owner,
                      size_t size, struct error *error) MUST_CHECK;
/* All of it, once the bytes are gone, or an event names them. */
void upload_space_give(struct upload_space *space, struct http_server *server);

#endif
