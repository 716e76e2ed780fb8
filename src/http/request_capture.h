/* Rows of the request log of accounts (service/request_sampler.h) about ended requests. */
#ifndef HTTP_REQUEST_CAPTURE_H
#define HTTP_REQUEST_CAPTURE_H

#include "http/exchange.h"

/* Gives an ended request of a known key a row, unless its account has too many or
 * requests.per_day is 0. `answered` and `cut` are as in request_log_end; `now_us` is monotonic. In
 * the thread of the loop. */
void request_capture(const struct exchange *exchange, bool answered, bool cut, int64_t now_us);

#endif
