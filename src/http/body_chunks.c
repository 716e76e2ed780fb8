/* Bodies that workers read in chunks while they arrive. A polling thread only collects the data. */
#include "http/http_internal.h"

#include <assert.h>

static struct exchange *exchange_of(struct task *task)
{
	return (struct exchange *)((char *)task - offsetof(struct exchange, task));
}

/* Reads a chunk. On a worker. Memory of the result is counted instead of that of the chunk. */
static void read_piece(struct task *task)
{
	struct exchange *exchange = exchange_of(task);
	struct error *error = &exchange->error;
	exchange->chunk_result = 0;
	if (!atomic_load(&exchange->abandoned))
		exchange->chunk_result = exchange->operation->piece(exchange, error);
	buf_clear(&exchange->body);
	if (!exchange->chunk_result)
		exchange->chunk_result = body_count(exchange, error);
	loop_return(exchange);
}

static void take_back(struct loop_item *item)
{
	struct exchange *exchange = (struct exchange *)((char *)item - offsetof(struct exchange, item));
	if (atomic_load(&exchange->abandoned)) {
		exchange_free(exchange);
		return;
	}
	assert(exchange->body_is_pending);
	exchange->body_is_pending = false;
	loop_resume(exchange);
	exchange->step = STEP_BODY;
	if (exchange->chunk_result)
		request_refuse(exchange, exchange->chunk_result);
}

static int hand_over(struct exchange *exchange, struct error *error)
{
	if (exchange->loop->ending)
		return error_cause(error, ERR_UNAVAILABLE, "the server is stopping");
	assert(!exchange->body_is_pending && exchange->operation->piece);
	exchange->body_is_pending = exchange->has_read_chunk = true;
	loop_wait(exchange);
	exchange->item.take = take_back;
	exchange->task.run = read_piece;
	exchange->task.owner = guard_owner_id(exchange);
	enum lane lane = exchange->operation->chunk_lane;
	if (worker_submit(exchange->server->workers[lane], &exchange->task))
		return 0;
	exchange->chunk_result = error_cause(error, ERR_UNAVAILABLE, "the work queue is full");
	loop_return(exchange);
	return 0;
}

/* Returns whether to pass the chunk to a worker. A body that fits into one chunk is read at its
 * end. The first chunk of a longer body is short, so that a malformed form is refused early. */
static bool is_due(const struct exchange *exchange)
{
	const struct head *head = &exchange->head;
	size_t size = exchange->body_chunk_size;
	bool fits = !head->chunked && head->content_length <= size;
	if (!head->chunked && exchange->body_seen == head->content_length)
		return false;
	if (!exchange->has_read_chunk && !fits && size > BODY_AT_ONCE)
		size = BODY_AT_ONCE;
	return exchange->body.size >= size;
}

int chunk_collect(struct exchange *exchange, struct slice part, struct error *error)
{
	int result = body_collect(exchange, part, error);
	return !result && is_due(exchange) ? hand_over(exchange, error) : result;
}
