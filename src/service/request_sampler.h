/* Buffer for rows of the request log (store/usage/request_records.h), until a job writes them to
 * the store, and the choice of the requests that get one.
 *
 * Each account has a token bucket on each node for requests that succeed and another one for those
 * that fail, so that failures are kept when traffic is heavy. It also has a share of the places of
 * the buffer. A row states how many requests it represents: its own, and those of its account and
 * kind without a row since the one before. Nothing is allocated after the start. Thread safe. */
#ifndef SERVICE_REQUEST_SAMPLER_H
#define SERVICE_REQUEST_SAMPLER_H

#include "store/usage/request_records.h"

#define REQUEST_ROWS_MAX 256 /* places of the buffer */
#define REQUEST_SHARE_MAX 64 /* of them, for the requests of an account of one kind */
/* The parts of requests.per_day: of rows for requests that failed, and of rows at once. */
#define REQUEST_FAILED_PART 4
#define REQUEST_BURST_PART 8

struct request_sampler;
struct request_sampler *request_sampler_make(void);         /* NULL: no memory */
void request_sampler_free(struct request_sampler *sampler); /* NULL-safe */

struct sampled_request {
	int64_t account;
	bool failed;
	int64_t per_day; /* rows of the account, at least 1 */
	/* Fills in a row that is all zeros, except `represents`. */
	void (*fill)(struct request_record *record, const void *context);
	const void *context;
};
/* Gives the request a row, or counts it. Returns whether it got one. Fast: one lookup in a table of
 * fixed size. `now_us` is monotonic. */
bool request_sampler_add(struct request_sampler *sampler, const struct sampled_request *request,
                         int64_t now_us);
/* Empties the buffer. The rows are valid until the next call, which one thread at a time makes. */
const struct request_record *request_sampler_take(struct request_sampler *sampler,
                                                  size_t *ret_count);
/* The rows were not written: the next row of their account and kind represents their requests. */
void request_sampler_drop(struct request_sampler *sampler, const struct request_record *rows,
                          size_t count);

/* Returns whether the request counts as failed. `status` 0: no answer. */
static inline bool request_has_failed(int status, bool aborted)
{
	return status == 0 || status >= 400 || aborted;
}

#endif
