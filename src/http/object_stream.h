/* An object of the content store on its way to a client. The polling thread must not wait for it:
 * between two pieces the connection is suspended and a worker fetches the next one, so that a disk
 * or a service that stalls delays nobody else. A stream belongs to its loop's thread, but for the
 * reader and the piece while it is being filled. */
#ifndef HTTP_OBJECT_STREAM_H
#define HTTP_OBJECT_STREAM_H

#include <microhttpd.h>

#include "http/exchange.h"

struct object_stream;

/* A response of `size` bytes from the reader, which it takes in any case. NULL without memory. */
struct MHD_Response *object_stream_response(struct exchange *exchange,
                                            struct content_reader *reader, uint64_t size);
/* The loop ends: connections that wait for a piece are resumed, to be cut. */
void object_stream_end_all(struct loop *loop);

#endif
