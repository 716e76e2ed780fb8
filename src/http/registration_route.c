/* POST /v1/events. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "http/header.h"
#include "http/http_internal.h"
#include "http/multipart.h"
#include "service/read_only.h"

#define FORM_SLACK ((size_t)64 * 1024)     /* size of a form in addition to the file */
#define RECORD_RESERVE ((size_t)16 * 1024) /* memory for an event and the answer */

/* A field of the form is an index of event_texts, or one of these. */
#define FIELD_FILE EVENT_TEXTS_MAX
#define FIELD_NONE (EVENT_TEXTS_MAX + 1)

/* a chunk contains at most two spans of a file: the end of a false delimiter, and data */
#define SPANS_MAX 2

struct upload {
	struct exchange *exchange;
	struct multipart multipart;
	struct content_writer *writer; /* NULL until the first write */
	struct slice spans[SPANS_MAX]; /* unwritten spans of the file, in `body` or the delimiter */
	size_t span_count;
	struct digest_stream *digest;
	struct sha256 hash;
	unsigned field;
	bool seen[FIELD_FILE + 1];
	size_t file_size;
	char *file_name; /* in the arena; NULL: no usable name */
	struct {
		char *data; /* in the arena, size_max bytes */
		size_t size;
	} texts[EVENT_TEXTS_MAX];
};

void upload_free(struct upload *upload)
{
	if (!upload)
		return;
	writer_discard(upload->exchange->server, upload->writer, &upload->exchange->space);
	digest_cancel(upload->digest);
	free(upload);
}

/* ---- forms, read by workers ---- */

static int take_space(struct exchange *exchange, size_t size, struct error *error)
{
	return upload_space_reserve(&exchange->space, exchange->server, guard_owner_id(exchange), size,
	                            error);
}

static int write_spans(struct upload *upload, struct error *error)
{
	struct content_store *store = upload->exchange->service->content;
	size_t size = 0;
	for (size_t i = 0; i < upload->span_count; i++)
		size += upload->spans[i].size;
	int result = take_space(upload->exchange, size, error);
	if (!result && !upload->writer)
		result = content_write_begin(store, &upload->writer, error);
	for (size_t i = 0; i < upload->span_count && !result; i++)
		result = content_write(upload->writer, upload->spans[i].data, upload->spans[i].size, error);
	upload->span_count = 0;
	return result;
}

/* Keeps a span for the next write. The last chunk is written after all checks. */
static int keep_span(struct upload *upload, struct slice span, struct error *error)
{
	int result = upload->span_count == SPANS_MAX ? write_spans(upload, error) : 0;
	upload->spans[upload->span_count++] = span;
	return result;
}

static const char *field_name(unsigned field)
{
	return field == FIELD_FILE ? "file" : event_texts[field].name;
}

static unsigned find_field(struct slice name)
{
	unsigned field = 0;
	if (slice_is(name, field_name(FIELD_FILE)))
		return FIELD_FILE;
	while (event_texts[field].name && !slice_is(name, event_texts[field].name))
		field++;
	return event_texts[field].name ? field : FIELD_NONE;
}

static int begin_file(struct upload *upload, struct slice name, struct slice file_name,
                      struct error *error)
{
	struct slice base;
	int result = multipart_file_check(name, file_name, error);
	if (!result)
		result = file_name_check(file_name, &base, error);
	if (!result && base.size) {
		upload->file_name = arena_copy(&upload->exchange->arena, base.data, base.size);
		result = upload->file_name ? 0 : error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
	}
	if (!result && !(upload->digest = digest_begin()))
		result = error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
	return result;
}

static int begin_text(struct upload *upload, struct error *error)
{
	char **data = &upload->texts[upload->field].data;
	*data = arena_alloc(&upload->exchange->arena, event_texts[upload->field].size_max);
	return *data ? 0 : error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
}

static int part_begin(void *context, struct slice name, struct slice file_name, struct error *error)
{
	struct upload *upload = context;
	upload->field = find_field(name);
	if (upload->field == FIELD_NONE) {
		char shown[64];
		utf8_show(name, shown, sizeof shown);
		return error_set(error, ERR_VALIDATION, MSG_FIELD_UNKNOWN, shown, NULL);
	}
	if (upload->seen[upload->field])
		return error_set(error, ERR_VALIDATION, MSG_HTTP_FIELD_REPEATED, field_name(upload->field),
		                 NULL);
	upload->seen[upload->field] = true;
	return upload->field == FIELD_FILE ? begin_file(upload, name, file_name, error)
	                                   : begin_text(upload, error);
}

static int add_text(struct upload *upload, struct slice data, struct error *error)
{
	const struct event_text *text = &event_texts[upload->field];
	size_t *size = &upload->texts[upload->field].size;
	if (data.size > text->size_max - *size) {
		char most[24];
		snprintf(most, sizeof most, "%zu", text->size_max);
		return error_set(error, ERR_VALIDATION, MSG_HTTP_FIELD_LONG, text->name, most, NULL);
	}
	memcpy(upload->texts[upload->field].data + *size, data.data, data.size);
	*size += data.size;
	return 0;
}

static int part_data(void *context, struct slice data, struct error *error)
{
	struct upload *upload = context;
	if (upload->field != FIELD_FILE)
		return add_text(upload, data, error);
	if (data.size > FILE_MAX - upload->file_size)
		return error_set(error, ERR_TOO_LARGE, MSG_HTTP_FILE_LARGE, NULL);
	upload->file_size += data.size;
	digest_add(upload->digest, data.data, data.size);
	return keep_span(upload, data, error);
}

static int part_end(void *context, struct error *error)
{
	struct upload *upload = context;
	if (upload->field == FIELD_FILE) {
		upload->hash = digest_end(upload->digest);
		upload->digest = NULL;
	}
	upload->field = FIELD_NONE;
	return 0;
}

static int begin_form(struct exchange *exchange, struct error *error)
{
	bool content = exchange->key.modality == MODALITY_CONTENT;
	exchange->body_limit = content ? FILE_MAX + FORM_SLACK : BODY_SLACK;
	if (!content) {
		/* The size is checked before the modality. */
		bool large = exchange->head.content_length > exchange->body_limit;
		return error_set(error, large ? ERR_TOO_LARGE : ERR_VALIDATION, MSG_HTTP_DIGEST_WANTED,
		                 "a file (multipart/form-data)", "un fichero (multipart/form-data)", NULL);
	}
	exchange->upload = calloc(1, sizeof *exchange->upload);
	if (!exchange->upload)
		return error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
	exchange->upload->exchange = exchange;
	exchange->body_chunk_size = UPLOAD_CHUNK;
	struct multipart_sink sink = {part_begin, part_data, part_end, exchange->upload};
	return multipart_begin(&exchange->upload->multipart, exchange->head.content_type,
	                       &exchange->arena, &sink, error);
}

static int begin(struct exchange *exchange, struct error *error)
{
	struct slice type = exchange->head.content_type;
	bool content = exchange->key.modality == MODALITY_CONTENT;
	exchange->body_limit = event_body_limit(exchange->key.modality);
	int result = read_only_refuse(exchange->service, error);
	if (!result)
		result = body_check_encoding(exchange, error);
	if (result)
		return result;
	if (header_media_type_is(type, "multipart/form-data"))
		return begin_form(exchange, error);
	if (!header_media_type_is(type, "application/json"))
		return body_refuse_type(
			exchange, content ? "application/json, multipart/form-data" : "application/json",
			error);
	return 0;
}

static int data(struct exchange *exchange, struct slice part, struct error *error)
{
	return exchange->upload ? chunk_collect(exchange, part, error)
	                        : body_collect(exchange, part, error);
}

static int read_piece(struct exchange *exchange, struct error *error)
{
	struct upload *upload = exchange->upload;
	int result = multipart_feed(&upload->multipart, buf_slice(&exchange->body), error);
	return !result && upload->span_count ? write_spans(upload, error) : result;
}

/* ---- submission to the sequencer ---- */

static void done(struct pending_registration *pending)
{
	loop_return(pending->context);
}

void registration_init(const struct key_identity *key, const struct declaration *declaration,
                       size_t content_size, struct arena *arena, struct registration *ret)
{
	assert(key->account > 0 && key->chain / 2 == key->channel);
	assert(key->chain % 2 == (key->mode == MODE_TEST));
	bool content = declaration->modality == MODALITY_CONTENT;
	ret->account = key->account;
	ret->channel = key->channel;
	ret->chain = key->chain;
	ret->key = key->key;
	ret->declaration = *declaration;
	ret->content = (struct slice){"", 0};
	ret->content_object = NULL;
	ret->file_name = NULL;
	ret->content_bytes = content ? (int64_t)content_size : -1;
	ret->result = 0;
	ret->replayed = false;
	ret->room = NULL;
	ret->event = NULL;
	ret->receipt = NULL;
	ret->arena = arena;
	ret->error = NULL;
}

static int fill(struct exchange *exchange, const struct declaration *declaration,
                struct error *error)
{
	size_t size = exchange->upload ? exchange->upload->file_size : exchange->canonical.size;
	struct registration *registration = &exchange->pending.registration;
	assert(exchange->key_known);
	struct event *room = arena_alloc(&exchange->arena, sizeof *room);
	if (!room)
		return error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
	registration_init(&exchange->key, declaration, size, &exchange->arena, registration);
	registration->room = room;
	exchange->pending.done = done;
	exchange->pending.context = exchange;
	return 0;
}

/* Completes with an error without a registration. */
static void fail(struct exchange *exchange, int result)
{
	registration_refuse(&exchange->pending.registration, result, &exchange->error);
	loop_return(exchange);
}

/* Queues the registration. If the sequencer refuses it, it is certainly not registered. */
static void submit(struct exchange *exchange)
{
	int result = register_submit(exchange->service, &exchange->pending, &exchange->error);
	if (!result)
		return;
	if (exchange->content_stored)
		object_discard(exchange->server, exchange->content_object, &exchange->space);
	exchange->content_stored = false;
	fail(exchange, result);
}

static int write_canonical(struct exchange *exchange, struct content_writer **ret_writer,
                           struct error *error)
{
	int result = take_space(exchange, exchange->canonical.size, error);
	if (!result)
		result = content_write_begin(exchange->service->content, ret_writer, error);
	if (!result)
		result =
			content_write(*ret_writer, exchange->canonical.data, exchange->canonical.size, error);
	buf_free(&exchange->canonical); /* not needed until the commit, which may take long */
	return result;
}

static int write_rest(struct exchange *exchange, struct content_writer **ret_writer,
                      struct error *error)
{
	struct upload *upload = exchange->upload;
	int result = write_spans(upload, error);
	buf_free(&exchange->body);
	*ret_writer = upload->writer;
	upload->writer = NULL;
	return result;
}

/* Makes the content durable under its name, then queues the registration. On a worker. */
static void store_content(struct task *task)
{
	struct exchange *exchange = (struct exchange *)((char *)task - offsetof(struct exchange, task));
	struct error *error = &exchange->error;
	struct content_writer *writer = NULL;
	content_fresh_name("event", exchange->content_object);
	int result = exchange->upload ? write_rest(exchange, &writer, error)
	                              : write_canonical(exchange, &writer, error);
	if (result)
		content_write_abort(writer);
	else
		result = content_write_commit(writer, exchange->content_object, error);
	exchange->content_stored = !result;
	exchange->pending.registration.content = (struct slice){"", 0};
	exchange->pending.registration.content_object = exchange->content_object;
	if (!result && atomic_load(&exchange->abandoned)) {
		error_set(error, ERR_UNAVAILABLE, MSG_NONE, NULL);
		result = ERR_REFUSED; /* abandoned: not registered, and the content is deleted */
	}
	if (result)
		fail(exchange, result);
	else
		submit(exchange);
}

/* ---- the end of the body ---- */

static int require_field(const struct upload *upload, unsigned field, struct error *error)
{
	return upload->seen[field]
	           ? 0
	           : error_set(error, ERR_VALIDATION, MSG_FIELD_REQUIRED, field_name(field), NULL);
}

static int form_declaration(struct exchange *exchange, struct declaration *ret, struct error *error)
{
	struct upload *upload = exchange->upload;
	struct declaration declaration = {
		.occurred_at_us = TIME_NONE, .modality = MODALITY_CONTENT, .hash_algorithm = HASH_SHA256};
	int result = multipart_end(&upload->multipart, error);
	for (unsigned i = 0; event_texts[i].name && !result; i++)
		if (event_texts[i].required)
			result = require_field(upload, i, error);
	if (!result)
		result = require_field(upload, FIELD_FILE, error);
	for (unsigned i = 0; event_texts[i].name && !result; i++)
		if (upload->seen[i])
			result = event_texts[i].read(slice_make(upload->texts[i].data, upload->texts[i].size),
			                             &declaration, error);
	memcpy(declaration.hash, upload->hash.bytes, SHA256_SIZE);
	if (!result)
		*ret = declaration;
	return result;
}

static void fit(struct buf *buf)
{
	if (buf->capacity > BUFFER_KEEP)
		buf_fit(buf);
}

/* Parses the body. While the registration waits, it holds only the reference and the canonical
 * form. */
static int body_declaration(struct exchange *exchange, struct arena *scratch,
                            struct declaration *ret, struct error *error)
{
	struct declaration declaration;
	int result = event_body_parse(buf_slice(&exchange->body), exchange->key.modality, scratch,
	                              &exchange->canonical, &declaration, error);
	if (!result)
		result = declaration_keep(&exchange->arena, &declaration, error);
	arena_reset(scratch);
	buf_clear(&exchange->body);
	fit(&exchange->body);
	fit(&exchange->canonical);
	if (result)
		buf_free(&exchange->canonical);
	else
		*ret = declaration;
	return result;
}

/* Prepares the registration of a checked declaration. */
static int admit(struct exchange *exchange, const struct declaration *declaration,
                 struct error *error)
{
	int result = guard_forced_error(exchange, error);
	if (!result)
		result = memory_reserve_answer(exchange, RECORD_RESERVE, error);
	return result ? result : fill(exchange, declaration, error);
}

/* Prepares the registration from the body for the sequencer. */
static int take_body(struct exchange *exchange, struct arena *scratch, struct error *error)
{
	struct declaration declaration;
	int result = body_declaration(exchange, scratch, &declaration, error);
	if (!result)
		result = admit(exchange, &declaration, error);
	if (result)
		return result;
	if (declaration.modality == MODALITY_CONTENT)
		exchange->pending.registration.content = buf_slice(&exchange->canonical);
	return 0;
}

static bool needs_object(const struct exchange *exchange)
{
	return exchange->pending.registration.content.size > EVENT_INLINE_MAX;
}

static void refuse(struct exchange *exchange, int result)
{
	buf_free(&exchange->body);
	answer_error(exchange, result);
	loop_return(exchange);
}

static void pass_to_content(struct exchange *exchange)
{
	exchange->task.run = store_content;
	if (!worker_submit(exchange->server->workers[LANE_CONTENT], &exchange->task))
		fail(exchange, error_cause(&exchange->error, ERR_UNAVAILABLE, "the work queue is full"));
}

/* On a worker. */
static void read_body(struct task *task)
{
	struct exchange *exchange = (struct exchange *)((char *)task - offsetof(struct exchange, task));
	ARENA_AUTO struct arena scratch;
	arena_init(&scratch, BODY_ARENA_MAX);
	if (atomic_load(&exchange->abandoned)) {
		loop_return(exchange);
		return;
	}
	int result = take_body(exchange, &scratch, &exchange->error);
	if (result)
		refuse(exchange, result);
	else if (needs_object(exchange))
		pass_to_content(exchange);
	else
		submit(exchange);
}

static int take_form(struct exchange *exchange, struct error *error)
{
	struct upload *upload = exchange->upload;
	struct declaration declaration;
	int result = multipart_feed(&upload->multipart, buf_slice(&exchange->body), error);
	if (!result)
		result = form_declaration(exchange, &declaration, error);
	if (!result)
		result = admit(exchange, &declaration, error);
	if (result)
		return result;
	exchange->pending.registration.file_name = upload->file_name ? upload->file_name : "file";
	return 0;
}

/* Reads the last chunk of the form, or all of it. On a worker. */
static void read_form(struct task *task)
{
	struct exchange *exchange = (struct exchange *)((char *)task - offsetof(struct exchange, task));
	if (atomic_load(&exchange->abandoned)) {
		loop_return(exchange);
		return;
	}
	int result = take_form(exchange, &exchange->error);
	if (result)
		refuse(exchange, result);
	else
		store_content(task);
}

static bool finish(struct exchange *exchange)
{
	if (exchange->upload || exchange->body.size > BODY_AT_ONCE) {
		bool form = exchange->upload;
		work_submit_to_lane(exchange, form ? LANE_CONTENT : LANE_BODIES,
		                    form ? read_form : read_body);
		return false;
	}
	int result = take_body(exchange, &exchange->loop->scratch, &exchange->error);
	if (result) {
		answer_error(exchange, result);
		return true;
	}
	if (needs_object(exchange)) {
		work_submit_to_lane(exchange, LANE_CONTENT, store_content);
	} else {
		loop_wait_briefly(exchange);
		submit(exchange);
	}
	return false;
}

/* ---- the outcome ---- */

bool registration_has_unused_content(const struct registration *registration)
{
	switch (registration->result) {
	case OK: return registration->replayed;
	case ERR_VALIDATION:
	case ERR_CONFLICT:
	case ERR_LIMIT_BLOCKED:
	case ERR_UNPAID_LIMIT:
	case ERR_TEST_QUOTA:
	case ERR_SUSPENDED:
	case ERR_ACCOUNT_DISABLED:
	case ERR_CLOCK:
	case ERR_FULL:
	case ERR_REFUSED: return true;
	default: return false;
	}
}

/* Deletes uploaded content without an event. */
static void discard_content(struct exchange *exchange)
{
	if (exchange->content_stored &&
	    registration_has_unused_content(&exchange->pending.registration)) {
		exchange->content_stored = false;
		object_discard(exchange->server, exchange->content_object, &exchange->space);
	}
	upload_space_release(&exchange->space, exchange->server);
}

void request_release(struct exchange *exchange)
{
	if (exchange->operation == &operation_register)
		discard_content(exchange);
}

static void resumed(struct exchange *exchange)
{
	struct registration *registration = &exchange->pending.registration;
	discard_content(exchange);
	if (registration->result) {
		registration_get_error(registration, &exchange->error);
		if (registration->result == ERR_CONFLICT)
			exchange->original_id = registration->original_id;
		answer_error(exchange, registration->result);
		return;
	}
	buf_clear(&exchange->out);
	assert(strcmp(registration->event->channel_id, exchange->key.channel_id) == 0);
	registered_event_json(registration->event, registration->receipt, &exchange->out);
	answer_out(exchange, registration->replayed ? 200 : 201);
	if (registration->replayed)
		answer_header(exchange, "Idempotent-Replayed", "true");
}

const struct operation operation_register = {
	.writes = true,
	.validates = true,
	.scenario = SCENARIO_EVENT,
	.begin = begin,
	.data = data,
	.piece = read_piece,
	.chunk_lane = LANE_CONTENT,
	.finish = finish,
	.resumed = resumed,
};
