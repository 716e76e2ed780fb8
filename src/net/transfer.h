/* Internal to net: preparation and completion of an exchange, shared by http.c, which performs one,
 * and http_multi.c, which performs many concurrently. */
#ifndef NET_TRANSFER_H
#define NET_TRANSFER_H

#include "net/guarded.h"
#include "net/http.h"

/* An exchange on an easy handle. */
struct http_transfer {
	const struct http_request *request;
	CURL *easy;
	struct curl_slist *headers;
	struct http_answer answer;
	size_t limit;
	uint64_t uploaded; /* bytes of request->upload */
	curl_off_t moved;  /* bytes in both directions; moved_us: time of the last change */
	int64_t moved_us;
	bool stalled;
	bool over;
	struct guarded_sockets sockets;
	char reason[CURL_ERROR_SIZE];
};

/* Prepares `easy` for the request, which must live as long as the transfer. Free the transfer in
 * any case. Errors as http_send. */
int transfer_prepare(struct http_transfer *transfer, const struct http_request *request,
                     struct error *error) MUST_CHECK;
/* Completes a transfer and passes a complete answer to the caller. */
int transfer_finish(struct http_transfer *transfer, CURLcode code, struct http_answer *ret_answer,
                    struct error *error) MUST_CHECK;
void transfer_free(struct http_transfer *transfer);

#endif
