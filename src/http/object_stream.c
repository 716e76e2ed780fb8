#include "http/object_stream.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/log_throttle.h"
#include "base/tuned.h"
#include "http/http_internal.h"

#define PIECE_SIZE ((size_t)128 * 1024)
#define BLOCK_SIZE ((size_t)32 * 1024)
#define HELD (sizeof(struct object_stream) + BLOCK_SIZE)

struct object_stream {
	struct task task;
	struct memory memory;
	struct http_server *server;
	struct loop_item item;
	struct loop *loop;
	struct client *client;
	struct MHD_Connection *connection;
	const struct stream_source *source;
	void *context;
	struct object_stream *previous, *next; /* in the loop's list of suspended streams */
	bool filling;                          /* a worker is filling it */
	bool suspended;                        /* its connection is suspended */
	bool closed; /* the connection is closed, and the worker has not finished */
	bool over;   /* no more data: end, or error `result` */
	int64_t result;
	struct error error;
	size_t used, size; /* of the buffer */
	size_t piece_max;  /* PIECE_SIZE, less in tests */
	char piece[PIECE_SIZE];
};

/* ---- on a worker ---- */

static void end(struct task *task)
{
	struct object_stream *stream = (struct object_stream *)task;
	struct memory memory = stream->memory;
	size_t held = HELD + stream->source->held;
	stream->source->end(stream->context);
	free(stream);
	budget_give(&memory.budget, MEMORY_ANSWER, held);
}

static void fill(struct task *task)
{
	struct object_stream *stream = (struct object_stream *)task;
	int64_t got = 1;
	while (stream->size < stream->piece_max && got > 0) {
		got = stream->source->read(stream->context, stream->piece + stream->size,
		                           stream->piece_max - stream->size, &stream->error);
		assert(got <= (int64_t)(stream->piece_max - stream->size)); /* a source writes no further */
		stream->size += got > 0 ? (size_t)got : 0;
	}
	stream->over = got <= 0;
	stream->result = got < 0 ? got : 0;
	loop_post(stream->loop, &stream->item);
}

/* ---- on the loop ---- */

static void stream_free(struct object_stream *stream)
{
	assert(!stream->filling); /* the worker uses it */
	stream->task.run = end;
	worker_submit_cleanup(stream->server->workers[LANE_CONTENT], &stream->task);
}

static void resume(struct object_stream *stream)
{
	assert(stream->suspended);
	struct loop *loop = stream->loop;
	*(stream->previous ? &stream->previous->next : &loop->streams) = stream->next;
	if (stream->next)
		stream->next->previous = stream->previous;
	stream->previous = stream->next = NULL;
	stream->suspended = false;
	client_end_wait(stream->client, clock_monotonic_us());
	MHD_resume_connection(stream->connection);
}

static void take(struct loop_item *item)
{
	struct object_stream *stream =
		(struct object_stream *)((char *)item - offsetof(struct object_stream, item));
	assert(stream->filling);
	stream->filling = false;
	if (stream->closed)
		stream_free(stream);
	else if (stream->suspended)
		resume(stream);
}

static void start_filling(struct object_stream *stream)
{
	assert(!stream->filling && !stream->suspended && !stream->over);
	struct loop *loop = stream->loop;
	stream->used = stream->size = 0;
	stream->filling = stream->suspended = true;
	stream->previous = NULL;
	stream->next = loop->streams;
	if (loop->streams)
		loop->streams->previous = stream;
	loop->streams = stream;
	loop->out++;
	client_begin_wait(stream->client, clock_monotonic_us());
	MHD_suspend_connection(stream->connection);
	stream->task.run = fill;
	stream->item.take = take;
	if (worker_submit(stream->server->workers[stream->source->lane], &stream->task))
		return;
	stream->over = true;
	stream->result = error_cause(&stream->error, ERR_UNAVAILABLE, "the work queue is full");
	loop_post(stream->loop, &stream->item);
}

/* Shuts down the socket: with MHD_USE_TURBO, libmicrohttpd does not notify the client before it
 * polls the socket again. */
static ssize_t cut(const struct object_stream *stream)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(stream->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (info)
		shutdown(info->connect_fd, SHUT_RDWR);
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

static void log_cut(const struct object_stream *stream)
{
	static struct log_throttle pace = LOG_THROTTLE(1, 60);
	char omitted[LOG_THROTTLE_NUMBER_SIZE];
	if (log_throttle_take(&pace, clock_monotonic_us(), omitted))
		log_warning("download_aborted", "cause", stream->error.cause, "omitted", omitted);
}

static ssize_t read_piece(void *context, uint64_t position, char *data, size_t size)
{
	struct object_stream *stream = context;
	(void)position;
	stream->loop->has_pending_work = true;
	if (stream->client->exchange)
		stream->client->exchange->answer.has_begun = true;
	if (stream->filling) /* resumed to be cut at the end of the loop */
		return cut(stream);
	assert(stream->used <= stream->size && stream->size <= PIECE_SIZE);
	if (stream->used < stream->size) {
		size_t left = stream->size - stream->used;
		size_t given = left < size ? left : size;
		memcpy(data, stream->piece + stream->used, given);
		stream->used += given;
		return (ssize_t)given;
	}
	if (stream->over && !stream->result)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (stream->over)
		log_cut(stream);
	if (stream->over || stream->loop->ending)
		return cut(stream);
	size_t now =
		stream->source->read_now ? stream->source->read_now(stream->context, data, size) : 0;
	if (now == 0)
		start_filling(stream);
	return (ssize_t)now;
}

static void close_stream(void *context)
{
	struct object_stream *stream = context;
	if (stream->filling)
		stream->closed = true;
	else
		stream_free(stream);
}

void object_stream_end_all(struct loop *loop)
{
	while (loop->streams)
		resume(loop->streams);
}

/* ---- creation ---- */

int object_stream_new(struct exchange *exchange, const struct stream_source *source, void *context,
                      struct object_stream **ret_stream, struct error *error)
{
	size_t held = HELD + source->held;
	struct memory memory;
	memory_init(&memory, exchange->server, 0);
	memory_set_owner(&memory, exchange->memory.owner);
	bool granted = budget_take(&memory.budget, MEMORY_ANSWER, held);
	struct object_stream *stream = granted ? malloc(sizeof *stream) : NULL;
	if (!stream && granted)
		budget_give(&memory.budget, MEMORY_ANSWER, held);
	if (!stream) {
		source->end(context);
		return granted ? error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL)
		               : memory_set_refused(error);
	}
	memset(stream, 0, offsetof(struct object_stream, piece));
	stream->memory = memory;
	stream->piece_max = (size_t)tuned_up_to("stream_piece", PIECE_SIZE);
	stream->server = exchange->server;
	stream->source = source;
	stream->context = context;
	stream->task.owner =
		exchange->content_owner ? guard_account_id(exchange->content_owner) : exchange->task.owner;
	*ret_stream = stream;
	return 0;
}

void object_stream_discard(struct object_stream *stream)
{
	if (stream)
		stream_free(stream);
}

struct MHD_Response *object_stream_response(struct object_stream *stream,
                                            const struct exchange *exchange, uint64_t size)
{
	assert(!stream->loop && exchange->client);
	stream->loop = exchange->loop;
	stream->client = exchange->client;
	stream->connection = exchange->connection;
	struct MHD_Response *response =
		MHD_create_response_from_callback(size, BLOCK_SIZE, read_piece, stream, close_stream);
	if (!response)
		stream_free(stream);
	return response;
}
