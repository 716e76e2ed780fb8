/* A large answer on its way to a client: an object of the content store, or what is made of the
 * store piece by piece. The polling thread must not wait for it: between two pieces the connection
 * is suspended and a worker fetches the next one, so that a disk or a service that stalls delays
 * no other request, and a client that does not read makes us hold one piece. A stream belongs to
 * its loop's thread, but for the source and the piece while it is being filled. */
#ifndef HTTP_OBJECT_STREAM_H
#define HTTP_OBJECT_STREAM_H

#include <microhttpd.h>

#include "http/exchange.h"
#include "http/route.h"

struct object_stream;

struct stream_source {
	enum lane lane; /* of the workers that read */
	size_t held;    /* bytes of memory that a context holds */
	/* At most `size` bytes, at least 1; 0 at the end, or ERR_*. */
	int64_t (*read)(void *context, char *data, size_t size, struct error *error);
	/* What is there without waiting, 0: nothing; on the polling thread. NULL: nothing ever is. */
	size_t (*read_now)(void *context, char *data, size_t size);
	void (*end)(void *context);
};

/* Takes `context` in any case. ERR_UNAVAILABLE: the exchange's owner has no memory left for it, or
 * ERR_NO_MEMORY. In the thread that has the exchange. */
int object_stream_new(struct exchange *exchange, const struct stream_source *source, void *context,
                      struct object_stream **ret_stream, struct error *error) MUST_CHECK;
/* A stream that was not made a response. NULL-safe. */
void object_stream_discard(struct object_stream *stream);
/* A response of `size` bytes, which has the stream from now on; NULL without memory, and then the
 * stream is gone. On the polling thread. */
struct MHD_Response *object_stream_response(struct object_stream *stream,
                                            const struct exchange *exchange, uint64_t size);
/* The loop ends: connections that wait for a piece are resumed, to be cut. */
void object_stream_end_all(struct loop *loop);

#endif
