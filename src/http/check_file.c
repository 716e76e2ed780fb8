/* POST /verify: a report or an archive that anybody hands in, checked in full. It is held in
 * memory, counted as any body is, by a worker given to a process of its own, and then forgotten. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "http/check_html.h"
#include "http/header.h"
#include "http/internal.h"
#include "http/multipart.h"

#define MIB ((size_t)1024 * 1024)
#define FORM_SLACK ((size_t)64 * 1024) /* what a form may have beside the file */
#define CHECKS_MAX 4                   /* that come, wait or are under way */
#define CHECKS_OF_ADDRESS 1

struct checked_file {
	struct exchange *exchange;
	struct multipart multipart;
	uint64_t owner; /* who has one more in the server's checks */
	int file;
	size_t size, limit;
	struct digest_stream *digest;
	struct sha256 sha256;
	bool seen;
};

/* ---- how many ---- */

static int take_turn(struct http_server *server, uint64_t owner, struct error *error)
{
	pthread_mutex_lock(&server->bodies_lock);
	int result = server->check_count < CHECKS_MAX
	                 ? share_take(server->checks, owner, 1, CHECKS_OF_ADDRESS)
	                 : ERR_UNAVAILABLE;
	server->check_count += !result;
	pthread_mutex_unlock(&server->bodies_lock);
	return result ? error_cause(error, result, "too many files are being checked") : 0;
}

static void give_turn(struct http_server *server, uint64_t owner)
{
	pthread_mutex_lock(&server->bodies_lock);
	share_give(server->checks, owner, 1);
	server->check_count--;
	pthread_mutex_unlock(&server->bodies_lock);
}

void checked_file_free(struct checked_file *file)
{
	if (!file)
		return;
	give_turn(file->exchange->server, file->owner);
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
	if (!slice_is(name, "file"))
		return error_set(error, ERR_VALIDATION, MSG_FIELD_UNKNOWN, name.data, NULL);
	if (file->seen)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_FIELD_REPEATED, "file", NULL);
	file->seen = true;
	return 0;
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
	           : error_cause(error, ERR_NO_MEMORY, "a file to be checked: %s", strerror(errno));
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
		.limit = (size_t)exchange->service->settings->http_check_size * MIB,
		.digest = digest_begin(),
	};
	return file;
}

static int begin_file(struct exchange *exchange, struct error *error)
{
	uint64_t owner = guard_owner_id(exchange);
	int result = take_turn(exchange->server, owner, error);
	if (result)
		return result;
	exchange->checked = checked_file_new(exchange, owner);
	if (!exchange->checked)
		give_turn(exchange->server, owner);
	if (!exchange->checked || exchange->checked->file < 0 || !exchange->checked->digest)
		return error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
	struct multipart_sink sink = {part_begin, part_data, part_end, exchange->checked};
	return multipart_begin(&exchange->checked->multipart, exchange->head.content_type,
	                       &exchange->arena, &sink, error);
}

static int begin(struct exchange *exchange, struct error *error)
{
	struct slice type = exchange->head.content_type;
	size_t size_mib = (size_t)exchange->service->settings->http_check_size;
	if (size_mib == 0)
		return error_set(error, ERR_METHOD, MSG_NONE, NULL);
	exchange->body_limit = size_mib * MIB + FORM_SLACK;
	if (!type.data || !header_media_type_is(type, "multipart/form-data"))
		return error_set(error, ERR_VALIDATION, MSG_HTTP_CONTENT_TYPE, "multipart/form-data", NULL);
	if (exchange->head.content_length > exchange->body_limit)
		return error_set(error, ERR_TOO_LARGE, MSG_NONE, NULL);
	return begin_file(exchange, error);
}

static int data(struct exchange *exchange, struct slice part, struct error *error)
{
	int result = multipart_feed(&exchange->checked->multipart, part, error);
	return result ? result : body_count(exchange, error);
}

/* ---- the check ---- */

/* What this service says of its digest; `out` gets the JSON, *ret NULL when it knows none. */
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

static int check(struct exchange *exchange, struct buf *out, struct json **ret_check,
                 struct error *error)
{
	int result = service_check_file(exchange->service, exchange->checked->file, out, error);
	while (out->size > 0 && out->data[out->size - 1] == '\n')
		out->size--;
	if (!result)
		result = json_parse(&exchange->arena, buf_slice(out), NULL, ret_check, error);
	/* It may have been taken over by what it read. */
	return result == ERR_VALIDATION
	           ? error_cause(error, ERR_UNAVAILABLE, "what the verifier said is no JSON")
	           : result;
}

static void answer_json(struct exchange *exchange, const struct json *found,
                        const struct buf *issued, const struct buf *checked)
{
	struct buf *out = &exchange->out;
	buf_clear(out);
	buf_add_text(out, "{\"issued\":");
	if (found)
		buf_add_slice(out, buf_slice(issued));
	else
		buf_add_text(out, "null");
	buf_add_text(out, ",\"verification\":");
	buf_add_slice(out, buf_slice(checked));
	buf_add_text(out, "}");
	answer_out(exchange, 200);
	exchange->answer.vary = "Accept, Accept-Language";
}

static int take_file(struct exchange *exchange, struct error *error)
{
	struct checked_file *file = exchange->checked;
	BUF_AUTO struct buf issued, checked;
	struct json *found, *told;
	buf_init(&issued, OUT_MAX);
	buf_init(&checked, OUT_MAX);
	int result = multipart_end(&file->multipart, error);
	if (!result && file->size == 0)
		result = error_set(error, ERR_VALIDATION, MSG_FIELD_REQUIRED, "file", NULL);
	if (!result)
		result = look_up(exchange, &issued, &found, error);
	if (!result)
		result = check(exchange, &checked, &told, error);
	if (result)
		return result;
	if (header_prefers_json(exchange->head.accept))
		answer_json(exchange, found, &issued, &checked);
	else
		check_html_answer(exchange, &(struct check_outcome){file->sha256, found, told});
	return 0;
}

const struct operation operation_check_file = {
	.open = true,
	.bucket = 2,
	.costs = 50,
	.page = true,
	.checks = true,
	.begin = begin,
	.data = data,
	.work = take_file,
};
