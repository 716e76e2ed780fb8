/* POST /verify: full verification of an uploaded report or archive. The file is held in memory and
 * counted like any body. A worker passes it to a separate process. Then it is discarded.
 *
 * Slow uploads do not block others: an address uploads one file at a time; if the memory for
 * uploads is exhausted, the oldest upload is evicted; and only complete files enter the queue. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/confine.h"
#include "base/file.h"
#include "base/utf8.h"
#include "http/header.h"
#include "http/http_internal.h"
#include "http/multipart.h"
#include "http/verification_result_html.h"
#include "issue/check_file.h"
#include "issue/verification.h"

#define MIB ((size_t)1024 * 1024)
#define FORM_SLACK ((size_t)64 * 1024)      /* size of a form in addition to the file */
#define CHECKS_MAX 4                        /* queued or in progress */
#define CHECKS_OF_ADDRESS 1                 /* uploading, queued or in progress */
#define MEMORY_PART 2                       /* divisor of http.body_memory for all uploads */
#define CHECK_MEMORY_MAX ((size_t)32 << 20) /* memory for the result of the verifier */
#define PIECE ((size_t)64 * 1024)           /* chunk of a form that a worker reads */
#define PIECE_HELD (2 * PIECE + 1)          /* buffer for a chunk and the data of one read */

struct checked_file {
	struct exchange *exchange;
	struct multipart multipart;
	uint64_t owner; /* owner counted in the server's `checks` */
	bool is_queued;
	/* The following two are protected by the server's bodies_lock. */
	bool is_uploading; /* uploading: in the server's list */
	bool is_evicted;   /* evicted by an upload of another loop; its own loop refuses it */
	struct checked_file *earlier, *later;
	int file;
	size_t size, limit;
	size_t counted; /* part of the server's check_bytes */
	struct digest_stream *digest;
	struct sha256 sha256;
	bool seen;
};

size_t check_size_max(const struct exchange *exchange)
{
	size_t setting = (size_t)exchange->service->settings->http_check_size * MIB;
	size_t memory = body_largest(exchange) - PIECE_HELD;
	/* without a file sandbox, a compromised verifier could read our keys */
	if (!confine_knows_files())
		return 0;
	return setting < memory ? setting : memory;
}

/* ---- limits ---- */

static int refuse_busy(struct exchange *exchange, struct error *error)
{
	atomic_fetch_add(&exchange->server->metrics.checks_refused, 1);
	return error_cause(error, ERR_BUSY,
	                   "too many files are being uploaded or waiting for verification");
}

static int begin_upload(struct exchange *exchange, uint64_t owner, struct error *error)
{
	struct http_server *server = exchange->server;
	pthread_mutex_lock(&server->bodies_lock);
	int result = share_take(server->checks, owner, 1, CHECKS_OF_ADDRESS);
	pthread_mutex_unlock(&server->bodies_lock);
	if (result != ERR_RATE_LIMITED)
		return result;
	atomic_fetch_add(&server->metrics.checks_refused, 1);
	return error_set(error, result, MSG_HTTP_ADDRESS_CHECK, NULL);
}

static void link_upload(struct checked_file *file)
{
	struct http_server *server = file->exchange->server;
	pthread_mutex_lock(&server->bodies_lock);
	file->is_uploading = true;
	file->earlier = server->newest_upload;
	if (file->earlier)
		file->earlier->later = file;
	server->newest_upload = file;
	pthread_mutex_unlock(&server->bodies_lock);
}

/* Caller holds the lock. */
static void unlink_upload(struct checked_file *file)
{
	if (!file->is_uploading)
		return;
	struct http_server *server = file->exchange->server;
	*(file->later ? &file->later->earlier : &server->newest_upload) = file->earlier;
	if (file->earlier)
		file->earlier->later = file->later;
	file->is_uploading = false;
}

/* Ends the upload. False: it was evicted. */
static bool end_upload(struct checked_file *file)
{
	struct http_server *server = file->exchange->server;
	pthread_mutex_lock(&server->bodies_lock);
	bool is_evicted = file->is_evicted;
	unlink_upload(file);
	pthread_mutex_unlock(&server->bodies_lock);
	return !is_evicted;
}

static int enter_queue(struct checked_file *file, struct error *error)
{
	struct http_server *server = file->exchange->server;
	pthread_mutex_lock(&server->bodies_lock);
	file->is_queued = server->check_count < CHECKS_MAX;
	server->check_count += file->is_queued;
	pthread_mutex_unlock(&server->bodies_lock);
	return file->is_queued ? 0 : refuse_busy(file->exchange, error);
}

static void give_back(struct checked_file *file)
{
	struct http_server *server = file->exchange->server;
	pthread_mutex_lock(&server->bodies_lock);
	share_release(server->checks, file->owner, 1);
	server->check_count -= file->is_queued;
	server->check_bytes -= file->counted;
	pthread_mutex_unlock(&server->bodies_lock);
}

/* Reserves `more` bytes of the memory for all uploads. Caller holds the lock. */
static bool reserve_memory(struct checked_file *file, size_t more)
{
	struct http_server *server = file->exchange->server;
	size_t all = (size_t)server->service->settings->http_body_memory * MIB / MEMORY_PART;
	bool fits = server->check_bytes + more <= all;
	if (fits) {
		server->check_bytes += more;
		file->counted += more;
	}
	return fits;
}

/* Returns the oldest upload that was not evicted. Caller holds the lock. */
static struct checked_file *oldest_upload(const struct http_server *server)
{
	struct checked_file *first = NULL;
	for (struct checked_file *file = server->newest_upload; file; file = file->earlier)
		first = file->is_evicted ? first : file;
	return first;
}

/* Evicts an upload. Its memory is freed after the next iteration of its loop, or after a worker has
 * read its chunk, but counts as free immediately. Caller holds the lock. */
static void evict(struct checked_file *file)
{
	file->is_evicted = true;
	file->exchange->server->check_bytes -= file->counted;
	file->counted = 0;
	atomic_store(&file->exchange->loop->files_evicted, true);
	loop_wake(file->exchange->loop);
}

static bool find_memory(struct checked_file *file, size_t more)
{
	struct http_server *server = file->exchange->server;
	pthread_mutex_lock(&server->bodies_lock);
	bool found = false;
	for (bool more_to_ask = !file->is_evicted; more_to_ask && !found;) {
		found = reserve_memory(file, more);
		struct checked_file *first = found ? NULL : oldest_upload(server);
		more_to_ask = first && first != file;
		if (more_to_ask)
			evict(first);
	}
	pthread_mutex_unlock(&server->bodies_lock);
	return found;
}

static int require_memory(struct checked_file *file, size_t more, struct error *error)
{
	return find_memory(file, more) ? 0 : refuse_busy(file->exchange, error);
}

static struct checked_file *take_evicted(struct loop *loop)
{
	struct http_server *server = loop->server;
	pthread_mutex_lock(&server->bodies_lock);
	struct checked_file *file = server->newest_upload;
	while (file && !(file->is_evicted && file->exchange->loop == loop))
		file = file->earlier;
	if (file)
		unlink_upload(file);
	pthread_mutex_unlock(&server->bodies_lock);
	return file;
}

/* Refuses an evicted upload. A worker that reads its chunk finishes it first. */
static void refuse_evicted(struct exchange *exchange)
{
	struct error error;
	if (atomic_load(&exchange->abandoned))
		return;
	error_clear(&error);
	(void)refuse_busy(exchange, &error);
	if (exchange->waiting) {
		request_abandon_upload(exchange, ERR_BUSY, &error);
	} else {
		exchange->error = error;
		request_refuse(exchange, ERR_BUSY);
	}
}

void checked_files_refuse_evicted(struct loop *loop)
{
	struct checked_file *file;
	while ((file = take_evicted(loop)))
		refuse_evicted(file->exchange);
}

void checked_file_free(struct checked_file *file)
{
	if (!file)
		return;
	(void)end_upload(file);
	give_back(file);
	descriptor_close(&file->file);
	digest_cancel(file->digest);
	free(file);
}

size_t checked_file_held(const struct checked_file *file)
{
	return file ? file->size : 0;
}

/* ---- the form ---- */

static int part_begin(void *context, struct slice name, struct slice file_name, struct error *error)
{
	struct checked_file *file = context;
	if (!slice_is(name, "file")) {
		char shown[64];
		utf8_show(name, shown, sizeof shown);
		return error_set(error, ERR_VALIDATION, MSG_FIELD_UNKNOWN, shown, NULL);
	}
	if (file->seen)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_FIELD_REPEATED, "file", NULL);
	file->seen = true;
	return multipart_file_check(name, file_name, error);
}

static int part_data(void *context, struct slice data, struct error *error)
{
	struct checked_file *file = context;
	if (data.size > file->limit - file->size)
		return error_set(error, ERR_TOO_LARGE, MSG_NONE, NULL);
	file->size += data.size;
	digest_add(file->digest, data.data, data.size);
	return file_write_all(file->file, data)
	           ? 0
	           : error_cause(error, ERR_NO_MEMORY, "writing the file to verify: %s",
	                         strerror(errno));
}

static int part_end(void *context, struct error *error)
{
	struct checked_file *file = context;
	file->sha256 = digest_end(file->digest);
	file->digest = NULL;
	return 0;
}

static struct checked_file *checked_file_new(struct exchange *exchange, uint64_t owner)
{
	struct checked_file *file = calloc(1, sizeof *file);
	if (!file)
		return NULL;
	*file = (struct checked_file){
		.exchange = exchange,
		.owner = owner,
		.file = memfd_create("checked", MFD_CLOEXEC | MFD_ALLOW_SEALING),
		.limit = check_size_max(exchange),
		.digest = digest_begin(),
	};
	return file;
}

static int begin_file(struct exchange *exchange, struct error *error)
{
	uint64_t owner = guard_owner_id(exchange);
	int result = begin_upload(exchange, owner, error);
	if (result)
		return result;
	exchange->checked = checked_file_new(exchange, owner);
	if (!exchange->checked) {
		pthread_mutex_lock(&exchange->server->bodies_lock);
		share_release(exchange->server->checks, owner, 1);
		pthread_mutex_unlock(&exchange->server->bodies_lock);
		return error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
	}
	link_upload(exchange->checked);
	exchange->body_chunk_size = PIECE;
	if (exchange->checked->file < 0 || !exchange->checked->digest)
		return error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
	struct multipart_sink sink = {part_begin, part_data, part_end, exchange->checked};
	return multipart_begin(&exchange->checked->multipart, exchange->head.content_type,
	                       &exchange->arena, &sink, error);
}

static int begin(struct exchange *exchange, struct error *error)
{
	struct slice type = exchange->head.content_type;
	size_t size_max = check_size_max(exchange);
	if (size_max == 0)
		return error_set(error, ERR_METHOD, MSG_NONE, NULL);
	exchange->body_limit = size_max + FORM_SLACK;
	if (!header_media_type_is(type, "multipart/form-data"))
		return body_refuse_type(exchange, "multipart/form-data", error);
	if (exchange->head.content_length > exchange->body_limit)
		return error_set(error, ERR_TOO_LARGE, MSG_NONE, NULL);
	return begin_file(exchange, error);
}

static int data(struct exchange *exchange, struct slice part, struct error *error)
{
	struct checked_file *file = exchange->checked;
	int result = require_memory(file, part.size, error);
	return result ? result : chunk_collect(exchange, part, error);
}

static int read_piece(struct exchange *exchange, struct error *error)
{
	return multipart_feed(&exchange->checked->multipart, buf_slice(&exchange->body), error);
}

/* Completes the upload and enters the queue. */
static int end(struct exchange *exchange, struct error *error)
{
	struct checked_file *file = exchange->checked;
	int result = read_piece(exchange, error);
	buf_free(&exchange->body);
	if (!result)
		result = multipart_end(&file->multipart, error);
	if (!result && file->size == 0)
		result = error_set(error, ERR_VALIDATION, MSG_FIELD_REQUIRED, "file", NULL);
	if (!result)
		result = body_count(exchange, error);
	return result ? result : enter_queue(file, error);
}

/* On a worker. */
static void read_rest(struct task *task)
{
	struct exchange *exchange = (struct exchange *)((char *)task - offsetof(struct exchange, task));
	if (atomic_load(&exchange->abandoned)) {
		loop_return(exchange);
		return;
	}
	int result = end(exchange, &exchange->error);
	if (!result) {
		work_resubmit(exchange);
		return;
	}
	answer_error(exchange, result);
	checked_file_free(exchange->checked);
	exchange->checked = NULL;
	body_release(exchange);
	loop_return(exchange);
}

static bool finish(struct exchange *exchange)
{
	if (!end_upload(exchange->checked)) {
		answer_error(exchange, refuse_busy(exchange, &exchange->error));
		return true;
	}
	work_submit_to_lane(exchange, LANE_BODIES, read_rest);
	return false;
}

/* ---- the check ---- */

/* Looks up the digest. `out` receives the JSON; *ret_found is NULL if the service does not know the
 * file. */
static int look_up(struct exchange *exchange, struct buf *out, struct json **ret_found,
                   struct error *error)
{
	struct slice no_code = {0};
	int result =
		verification_lookup(exchange->service, no_code, &exchange->checked->sha256, out, error);
	*ret_found = NULL;
	if (result == ERR_NOT_FOUND) {
		error_clear(error);
		return 0;
	}
	return result ? result : json_parse(&exchange->arena, buf_slice(out), NULL, ret_found, error);
}

static void answer_json(struct exchange *exchange, const struct json *found,
                        const struct buf *issued, struct json *verification)
{
	struct buf *out = &exchange->out;
	buf_clear(out);
	buf_add_text(out, "{\"issued\":");
	if (found)
		buf_add_slice(out, buf_slice(issued));
	else
		buf_add_text(out, "null");
	buf_add_text(out, ",\"verification\":");
	json_canonical(verification, out);
	buf_add_text(out, "}");
	answer_out(exchange, 200);
	exchange->answer.vary = "Accept, Accept-Language";
}

static int take_file(struct exchange *exchange, struct error *error)
{
	struct checked_file *file = exchange->checked;
	BUF_AUTO struct buf issued;
	ARENA_AUTO struct arena arena;
	struct json *found;
	struct file_check check;
	buf_init(&issued, OUT_MAX);
	arena_init(&arena, CHECK_MEMORY_MAX);
	int result = look_up(exchange, &issued, &found, error);
	if (!result)
		result =
			service_check_file(exchange->service, file->file, &file->sha256, &arena, &check, error);
	if (result)
		return result;
	if (header_prefers_json(exchange->head.accept))
		answer_json(exchange, found, &issued, check.verification);
	else
		check_html_answer(exchange, &(struct check_outcome){file->sha256, found, &check});
	return 0;
}

const struct operation operation_check_file = {
	.open = true,
	.bucket = 2,
	.costs = 50,
	.page = true,
	.lane = LANE_CHECKS,
	.begin = begin,
	.data = data,
	.piece = read_piece,
	.chunk_lane = LANE_BODIES,
	.finish = finish,
	.work = take_file,
};
