/* The folder's own: an exchange prepared and finished apart from being performed, for http.c, which
 * performs one, and http_many.c, which performs many at a time. */
#ifndef NET_TRANSFER_H
#define NET_TRANSFER_H

#include "net/guarded.h"
#include "net/http.h"

/* One exchange on one easy handle. */
struct http_transfer {
	const struct http_request *request;
	CURL *easy;
	struct curl_slist *headers;
	struct http_answer answer;
	size_t limit;
	uint64_t uploaded; /* of request->upload */
	curl_off_t moved;  /* bytes of both directions, and since when it is so many */
	int64_t moved_us;
	bool stalled;
	bool over;
	struct guarded_sockets sockets;
	char reason[CURL_ERROR_SIZE];
};

/* Sets `easy` up for the request, which must live as long as the transfer. To be freed in any case;
 * codes as of http_send. */
int transfer_prepare(struct http_transfer *transfer, const struct http_request *request,
                     struct error *error) MUST_CHECK;
/* The answer goes to the caller when there is a whole one. */
int transfer_finish(struct http_transfer *transfer, CURLcode code, struct http_answer *ret_answer,
                    struct error *error) MUST_CHECK;
void transfer_free(struct http_transfer *transfer);

#endif
