/* Space of http.upload_space that a request has reserved in the content store for content that is
 * not registered yet. Belongs to one thread at a time, as does its request. */
#ifndef HTTP_UPLOAD_SPACE_H
#define HTTP_UPLOAD_SPACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct http_server;

struct upload_space {
	uint64_t owner; /* owner of the share that is charged; constant until all is released */
	int64_t held;   /* bytes; 0: none */
};

/* Reserves `size` more bytes before they are written. ERR_UNAVAILABLE: the total or the owner's
 * share is exhausted; nothing was reserved. */
int upload_space_reserve(struct upload_space *space, struct http_server *server, uint64_t owner,
                         size_t size, struct error *error) MUST_CHECK;
/* Releases all space after the bytes were deleted or an event refers to them. */
void upload_space_release(struct upload_space *space, struct http_server *server);

#endif
