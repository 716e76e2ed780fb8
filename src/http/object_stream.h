/* A large answer that is sent in chunks: an object of the content store, or a document built from
 * the store. The polling thread must not block. Between two chunks the connection is suspended, and
 * a worker reads the next one. A slow disk or service therefore does not delay other requests, and
 * a slow client occupies the memory of one chunk. A stream belongs to the thread of its loop,
 * except for the source and the chunk while it is being filled. */
#ifndef HTTP_OBJECT_STREAM_H
#define HTTP_OBJECT_STREAM_H

#include "http/exchange.h"
#include "http/route.h"
#include "libmicrohttpd.h"

struct object_stream;

struct stream_source {
	enum lane lane; /* lane of the workers that read */
	size_t held;    /* memory of a context in bytes */
	/* Reads 1 to `size` bytes. 0 at the end, or ERR_*. */
	int64_t (*read)(void *context, char *data, size_t size, struct error *error);
	/* Reads data that is available without blocking; 0: none. On the polling thread. NULL: not
	 * supported. */
	size_t (*read_now)(void *context, char *data, size_t size);
	void (*end)(void *context);
};

/* Creates a stream; takes ownership of `context` in any case. ERR_UNAVAILABLE: the exchange's owner
 * has no memory left; ERR_NO_MEMORY. In the thread that owns the exchange. */
int object_stream_new(struct exchange *exchange, const struct stream_source *source, void *context,
                      struct object_stream **ret_stream, struct error *error) MUST_CHECK;
/* Frees a stream that did not become a response. NULL-safe. */
void object_stream_discard(struct object_stream *stream);
/* Creates a response of `size` bytes, which then owns the stream. NULL without memory; the stream
 * is freed. On the polling thread. */
struct MHD_Response *object_stream_response(struct object_stream *stream,
                                            const struct exchange *exchange, uint64_t size);
/* Resumes all connections that wait for a chunk, so that they are cut at the end of the loop. */
void object_stream_end_all(struct loop *loop);

#endif
