/* POST /v1/events/batch: several declarations in one request, each with its own outcome. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "http/batch_split.h"
#include "http/header.h"
#include "http/http_internal.h"
#include "service/read_only.h"

#define BATCH_ITEMS_MAX 1000
#define BATCH_BODY_MAX ((size_t)8 * 1024 * 1024)
#define BATCH_MEMORY_MAX ((size_t)32 * 1024 * 1024)
/* Memory for the outcome of an item: its error, or its receipt, and its line of the answer. */
#define OUTCOME_RESERVE (sizeof(struct error) + (size_t)2048)
#define ITEM_RESERVE (sizeof(struct batch_entry) + OUTCOME_RESERVE)

struct batch_entry {
	struct pending_registration pending; /* its result is an error if the item was refused */
	struct event event;                  /* its outcome */
	char *object;                        /* name of its content in the content store; NULL: none */
	bool stored;                         /* the object exists, and no committed event names it */
	struct batch_entry *next;
};

/* Belongs to the thread that owns the exchange. */
struct events_batch {
	struct exchange *exchange;
	struct batch_split split;
	struct arena arena;    /* entries, their content and their outcomes */
	struct arena *scratch; /* of the worker that parses a chunk */
	struct batch_entry *first, **end;
	size_t count, count_max;
	size_t large_count;       /* items longer than inline content */
	int64_t charged;          /* tokens of the rate, with that of guard_check */
	size_t object_count;      /* items whose content is kept in the content store */
	_Atomic size_t undecided; /* queued registrations without an outcome */
	size_t ready_count;
	struct pending_registration **ready; /* registrations for the sequencer, in order */
	struct error rest;                   /* of those that the sequencer did not take */
};

static struct exchange *exchange_of(struct task *task)
{
	return (struct exchange *)((char *)task - offsetof(struct exchange, task));
}

static struct batch_entry *entry_of(struct pending_registration *pending)
{
	return (struct batch_entry *)((char *)pending - offsetof(struct batch_entry, pending));
}

/* ---- content without an event ---- */

/* Deletes the objects that no event refers to. The reserved space is released with the last one. */
static void discard_unused(struct events_batch *batch)
{
	struct exchange *exchange = batch->exchange;
	struct batch_entry *last = NULL;
	for (struct batch_entry *entry = batch->first; entry; entry = entry->next) {
		if (!entry->stored || !registration_has_unused_content(&entry->pending.registration))
			continue;
		struct upload_space none = {0};
		if (last)
			object_discard(exchange->server, last->object, &none);
		entry->stored = false;
		last = entry;
	}
	if (last)
		object_discard(exchange->server, last->object, &exchange->space);
	upload_space_release(&exchange->space, exchange->server);
}

void batch_release(struct exchange *exchange)
{
	struct events_batch *batch = exchange->batch;
	if (!batch)
		return;
	assert(atomic_load(&batch->undecided) == 0);
	exchange->batch = NULL;
	discard_unused(batch);
	batch_split_free(&batch->split);
	arena_free(&batch->arena);
	free(batch);
}

/* ---- items ---- */

static int no_memory(struct exchange *exchange, struct error *error)
{
	return exchange->memory.budget.refused ? memory_set_refused(error)
	                                       : error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
}

static int refuse_count(const struct events_batch *batch, struct error *error)
{
	char most[24];
	snprintf(most, sizeof most, "%zu", batch->count_max);
	return error_set(error, ERR_VALIDATION, MSG_HTTP_BATCH_LONG, most, NULL);
}

static int refuse_length(const struct exchange *exchange, struct error *error)
{
	char most[24];
	snprintf(most, sizeof most, "%zu", event_body_limit(exchange->key.modality));
	return error_set(error, ERR_TOO_LARGE, MSG_HTTP_BODY_LARGE, most, NULL);
}

/* Keeps a checked declaration and its canonical content. */
static int keep_declaration(struct events_batch *batch, struct batch_entry *entry,
                            struct declaration *declaration, struct error *error)
{
	struct exchange *exchange = batch->exchange;
	const struct buf *canonical = &exchange->canonical;
	struct registration *registration = &entry->pending.registration;
	int result = declaration_keep(&batch->arena, declaration, error);
	arena_reset(batch->scratch);
	if (result)
		return no_memory(exchange, error);
	registration_init(&exchange->key, declaration, canonical->size, &batch->arena, registration);
	registration->room = &entry->event;
	if (declaration->modality != MODALITY_CONTENT)
		return 0;
	registration->content.size = canonical->size;
	registration->content.data = arena_copy(&batch->arena, canonical->data, canonical->size);
	batch->object_count += canonical->size > EVENT_INLINE_MAX;
	return registration->content.data ? 0 : no_memory(exchange, error);
}

/* Parses an item. An invalid item is refused by itself; other errors concern the whole batch. */
static int parse_item(struct events_batch *batch, struct batch_entry *entry, struct slice item,
                      struct error *error)
{
	struct exchange *exchange = batch->exchange;
	struct declaration declaration;
	struct error refusal;
	error_clear(&refusal);
	entry->pending.registration.arena = &batch->arena;
	int result = item.data ? event_body_parse(item, exchange->key.modality, batch->scratch,
	                                          &exchange->canonical, &declaration, &refusal)
	                       : refuse_length(exchange, &refusal);
	if (!result) {
		bool grows = item.size <= EVENT_INLINE_MAX && exchange->canonical.size > EVENT_INLINE_MAX;
		batch->large_count += grows && declaration.modality == MODALITY_CONTENT;
		return keep_declaration(batch, entry, &declaration, error);
	}
	arena_reset(batch->scratch);
	if (result == ERR_NO_MEMORY)
		return no_memory(exchange, error);
	registration_refuse(&entry->pending.registration, result, &refusal);
	return 0;
}

static int take_item(void *context, struct slice item, struct error *error)
{
	struct events_batch *batch = context;
	if (batch->count == batch->count_max)
		return refuse_count(batch, error);
	struct batch_entry *entry = arena_alloc(&batch->arena, sizeof *entry);
	if (!entry)
		return no_memory(batch->exchange, error);
	*batch->end = entry;
	batch->end = &entry->next;
	batch->count++;
	batch->large_count += !item.data || item.size > EVENT_INLINE_MAX;
	return parse_item(batch, entry, item, error);
}

/* ---- the body ---- */

/* Returns the largest body: its content is held until the commit, next to the items' outcomes. */
static size_t body_max(const struct exchange *exchange)
{
	size_t most = body_largest(exchange) / 4;
	return most < BATCH_BODY_MAX ? most : BATCH_BODY_MAX;
}

static size_t items_max(const struct exchange *exchange)
{
	size_t most = body_largest(exchange) / 2 / ITEM_RESERVE;
	return most < BATCH_ITEMS_MAX ? most : BATCH_ITEMS_MAX;
}

static int begin_batch(struct exchange *exchange, enum batch_format format, struct error *error)
{
	struct budget *budget = &exchange->memory.budget;
	struct events_batch *batch = exchange->batch = calloc(1, sizeof *batch);
	if (!batch)
		return error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
	batch->exchange = exchange;
	batch->end = &batch->first;
	batch->count_max = items_max(exchange);
	batch->charged = 1;
	arena_init_counted(&batch->arena, BATCH_MEMORY_MAX, budget, MEMORY_BODY);
	batch_split_begin(&batch->split, format, event_body_limit(exchange->key.modality), take_item,
	                  batch, budget, MEMORY_BODY);
	exchange->body_chunk_size = UPLOAD_CHUNK;
	uint64_t size = exchange->head.chunked ? 0 : exchange->head.content_length;
	bool available = size > exchange->body_limit || memory_is_available(&exchange->memory, size);
	return available ? 0 : memory_set_refused(error);
}

static int begin(struct exchange *exchange, struct error *error)
{
	struct slice type = exchange->head.content_type;
	exchange->body_limit = body_max(exchange);
	int result = read_only_refuse(exchange->service, error);
	if (!result)
		result = body_check_encoding(exchange, error);
	if (result)
		return result;
	if (header_media_type_is(type, "application/x-ndjson"))
		return begin_batch(exchange, BATCH_LINES, error);
	if (header_media_type_is(type, "application/json"))
		return begin_batch(exchange, BATCH_ARRAY, error);
	return body_refuse_type(exchange, "application/x-ndjson, application/json", error);
}

/* Charges the rate for the items that were read, whether they are registered or not. A large one,
 * which may have to be written to the content store by itself, counts as a request. */
static void charge(struct exchange *exchange)
{
	struct events_batch *batch = exchange->batch;
	int64_t small = (int64_t)(batch->count - batch->large_count);
	int64_t per_token = exchange->service->settings->rate_batch;
	if (per_token < 1)
		per_token = 1;
	int64_t tokens = (int64_t)batch->large_count + (small + per_token - 1) / per_token;
	int64_t due = tokens - batch->charged;
	guard_charge(exchange, due > 0 ? due : 0);
	batch->charged += due > 0 ? due : 0;
}

/* Parses the items of the chunk in `body`. On a worker. */
static int read_chunk(struct exchange *exchange, struct error *error)
{
	struct events_batch *batch = exchange->batch;
	ARENA_AUTO struct arena scratch;
	arena_init(&scratch, BODY_ARENA_MAX);
	batch->scratch = &scratch;
	int result = batch_split_feed(&batch->split, buf_slice(&exchange->body), error);
	batch->scratch = NULL;
	charge(exchange);
	return result;
}

/* Reads the last chunk. */
static int read_end(struct exchange *exchange, struct error *error)
{
	struct events_batch *batch = exchange->batch;
	ARENA_AUTO struct arena scratch;
	arena_init(&scratch, BODY_ARENA_MAX);
	batch->scratch = &scratch;
	int result = batch_split_feed(&batch->split, buf_slice(&exchange->body), error);
	if (!result)
		result = batch_split_end(&batch->split, error);
	batch->scratch = NULL;
	buf_free(&exchange->body);
	buf_free(&exchange->canonical);
	batch_split_free(&batch->split);
	if (!result && batch->count == 0)
		result = error_set(error, ERR_VALIDATION, MSG_HTTP_BATCH_EMPTY, NULL);
	return result;
}

/* ---- the answer ---- */

/* Continues the object that `out` ends with. */
static struct json_writer reopen(struct buf *out)
{
	if (out->size > 0 && !out->failed)
		out->size--; /* the closing brace */
	return (struct json_writer){.out = out, .comma = true};
}

static void write_error(const struct exchange *exchange, const struct registration *registration,
                        const char *incident_id, struct buf *out)
{
	int code = registration->result, status = error_http_status(code);
	struct slice client_ref = registration->declaration.client_ref;
	struct error error;
	registration_get_error(registration, &error);
	const struct error_answer said = {
		.code = code,
		.error = &error,
		.language = exchange->language,
		.public_url = exchange->service->settings->service_public_url,
		.incident_id = status >= 500 ? incident_id : "",
		.event_id = code == ERR_CONFLICT ? registration->original_id : NULL,
	};
	error_json(&said, out);
	struct json_writer writer = reopen(out);
	if (client_ref.data)
		json_slice(&writer, "client_ref", client_ref);
	else
		json_null(&writer, "client_ref");
	int64_t retry_after_seconds = error_retry_after(code, &error);
	if (retry_after_seconds > 0)
		json_integer(&writer, "retry_after", retry_after_seconds);
	else
		json_null(&writer, "retry_after");
	json_integer(&writer, "http_status", status);
	json_end_object(&writer);
	buf_add_byte(out, '\n');
}

static void write_event(const struct registration *registration, struct buf *out)
{
	registered_event_json(registration->event, registration->receipt, out);
	struct json_writer writer = reopen(out);
	json_integer(&writer, "http_status", registration->replayed ? 200 : 201);
	json_end_object(&writer);
	buf_add_byte(out, '\n');
}

static void write_lines(const struct events_batch *batch, const char *incident_id, struct buf *out)
{
	const struct exchange *exchange = batch->exchange;
	for (struct batch_entry *entry = batch->first; entry; entry = entry->next) {
		const struct registration *registration = &entry->pending.registration;
		if (registration->result) {
			write_error(exchange, registration, incident_id, out);
			continue;
		}
		assert(strcmp(registration->event->channel_id, exchange->key.channel_id) == 0);
		write_event(registration, out);
	}
}

/* Returns the first item that failed because of the service; NULL: none. */
static const struct registration *find_failure(const struct events_batch *batch, bool *ret_all)
{
	const struct registration *found = NULL;
	*ret_all = true;
	for (struct batch_entry *entry = batch->first; entry; entry = entry->next) {
		const struct registration *registration = &entry->pending.registration;
		bool failed = registration->result && error_http_status(registration->result) >= 500;
		*ret_all = *ret_all && failed;
		if (failed && !found)
			found = registration;
	}
	return found;
}

/* Answers with a line for each item; with an error if all failed because of the service. One
 * incident stands for all failed items. */
static void answer_items(struct events_batch *batch)
{
	struct exchange *exchange = batch->exchange;
	char incident_id[INCIDENT_ID_SIZE] = "";
	bool all;
	const struct registration *failed = find_failure(batch, &all);
	if (failed)
		registration_get_error(failed, &exchange->error);
	if (failed && all) {
		answer_error(exchange, failed->result);
		return;
	}
	if (failed)
		incident_id_make(incident_id);
	buf_clear(&exchange->out);
	write_lines(batch, incident_id, &exchange->out);
	if (buf_check(&exchange->out)) {
		answer_error(exchange, ERR_NO_MEMORY);
		return;
	}
	answer_with(exchange, 200, "application/x-ndjson", buf_slice(&exchange->out));
	if (failed)
		answer_incident(exchange, failed->result, incident_id);
}

/* On a worker. */
static void complete(struct task *task)
{
	struct exchange *exchange = exchange_of(task);
	if (!atomic_load(&exchange->abandoned))
		answer_items(exchange->batch);
	batch_release(exchange);
	loop_return(exchange);
}

/* ---- registration ---- */

/* Records the outcomes of `count` registrations. The last outcome completes the batch. */
static void decide(struct events_batch *batch, size_t count)
{
	if (atomic_fetch_sub(&batch->undecided, count) > count)
		return;
	struct exchange *exchange = batch->exchange;
	exchange->task.run = complete;
	worker_submit_cleanup(exchange->server->workers[LANE_BODIES], &exchange->task);
}

/* On the sequencer's thread. */
static void done(struct pending_registration *pending)
{
	decide(pending->context, 1);
}

/* Refuses registrations that the sequencer did not take, and which are certainly not registered.
 * The sequencer may be using the arena for the others. */
static void refuse_rest(struct events_batch *batch, size_t first, int result)
{
	struct upload_space none = {0};
	for (size_t i = first; i < batch->ready_count; i++) {
		struct batch_entry *entry = entry_of(batch->ready[i]);
		entry->pending.registration.result = result;
		entry->pending.registration.error = &batch->rest;
		if (entry->stored)
			object_discard(batch->exchange->server, entry->object, &none);
		entry->stored = false;
	}
}

/* Queues all valid items. When the last one has its outcome, another thread owns the batch. */
static void submit(struct events_batch *batch)
{
	size_t ready = 0, queued = 0, count = batch->ready_count;
	for (size_t i = 0; i < count; i++) {
		if (!batch->ready[i]->registration.result)
			batch->ready[ready++] = batch->ready[i];
	}
	batch->ready_count = ready;
	/* One more than there are, so that the batch is not completed before this function has ended.
	 */
	atomic_store(&batch->undecided, ready + 1);
	int result = 0;
	if (ready)
		result = register_submit_all(batch->exchange->service, batch->ready, ready, &queued,
		                             &batch->rest);
	refuse_rest(batch, queued, result);
	decide(batch, ready - queued + 1);
}

/* ---- content in the content store ---- */

static int store_one(struct events_batch *batch, struct batch_entry *entry, struct error *error)
{
	struct exchange *exchange = batch->exchange;
	struct registration *registration = &entry->pending.registration;
	struct slice content = registration->content;
	struct content_writer *writer = NULL;
	entry->object = arena_alloc(&batch->arena, CONTENT_NAME_MAX);
	if (!entry->object)
		return no_memory(exchange, error);
	content_fresh_name("event", entry->object);
	int result = upload_space_reserve(&exchange->space, exchange->server, guard_owner_id(exchange),
	                                  content.size, error);
	if (!result)
		result = content_write_begin(exchange->service->content, &writer, error);
	if (!result)
		result = content_write(writer, content.data, content.size, error);
	if (result)
		content_write_abort(writer);
	else
		result = content_write_commit(writer, entry->object, error);
	entry->stored = !result;
	registration->content = (struct slice){"", 0};
	registration->content_object = entry->object;
	return result;
}

/* Makes the content of large items durable, then queues all. After the first failure the other
 * large items fail too, because the content store is probably unavailable. If it is so slow that
 * the request would not be answered in time, the rest is left to the next batch. On a worker. */
static void store_objects(struct task *task)
{
	struct exchange *exchange = exchange_of(task);
	struct events_batch *batch = exchange->batch;
	struct error error = {0};
	int result = 0;
	int64_t end_us = clock_monotonic_us() + exchange->service->settings->http_deadline / 3;
	for (size_t i = 0; i < batch->ready_count; i++) {
		struct batch_entry *entry = entry_of(batch->ready[i]);
		struct registration *registration = &entry->pending.registration;
		if (atomic_load(&exchange->abandoned))
			result = error_set(&error, ERR_REFUSED, MSG_NONE, NULL); /* nothing is registered */
		else if (registration->content.size <= EVENT_INLINE_MAX)
			continue;
		else if (!result && clock_monotonic_us() > end_us)
			result =
				error_cause(&error, ERR_UNAVAILABLE, "the content store is too slow for the batch");
		else if (!result)
			result = store_one(batch, entry, &error);
		if (result)
			registration_refuse(registration, result, &error);
	}
	submit(batch);
}

/* ---- the end of the body ---- */

static void refuse_by_scenario(const struct exchange *exchange, struct registration *registration,
                               int result, const struct error *error)
{
	registration_refuse(registration, result, error);
	if (exchange->original_id)
		memcpy(registration->original_id, exchange->original_id, ID_SIZE);
}

/* Lists the valid items; a forced scenario refuses them. */
static int list_ready(struct events_batch *batch, struct error *error)
{
	struct exchange *exchange = batch->exchange;
	struct error forced;
	error_clear(&forced);
	int result = guard_forced_error(exchange, &forced);
	batch->ready = arena_alloc(&batch->arena, batch->count * sizeof *batch->ready);
	if (!batch->ready)
		return no_memory(exchange, error);
	for (struct batch_entry *entry = batch->first; entry; entry = entry->next) {
		if (!entry->pending.registration.result && result)
			refuse_by_scenario(exchange, &entry->pending.registration, result, &forced);
		if (entry->pending.registration.result)
			continue;
		entry->pending.done = done;
		entry->pending.context = batch;
		batch->ready[batch->ready_count++] = &entry->pending;
	}
	return 0;
}

/* Whether a forced refusal is one of a whole batch: the same refusals are when they are genuine. */
static bool refuses_batch(int refusal)
{
	switch (refusal) {
	case ERR_RATE_LIMITED:
	case ERR_UNAVAILABLE:
	case ERR_SUSPENDED:
	case ERR_ACCOUNT_DISABLED: return true;
	default: return false;
	}
}

/* Checks what concerns the batch as a whole. Nothing was registered yet. */
static int take_batch(struct exchange *exchange, struct error *error)
{
	struct events_batch *batch = exchange->batch;
	int result = read_end(exchange, error);
	charge(exchange);
	if (!result && refuses_batch(exchange->forced.refusal))
		result = guard_forced_error(exchange, error);
	if (!result)
		result = list_ready(batch, error);
	if (!result)
		result = memory_reserve_answer(exchange, batch->count * OUTCOME_RESERVE, error);
	return result;
}

/* On a worker. */
static void read_batch(struct task *task)
{
	struct exchange *exchange = exchange_of(task);
	if (atomic_load(&exchange->abandoned)) {
		loop_return(exchange);
		return;
	}
	int result = take_batch(exchange, &exchange->error);
	if (result) {
		answer_error(exchange, result);
		loop_return(exchange);
		return;
	}
	if (exchange->batch->object_count == 0) {
		submit(exchange->batch);
		return;
	}
	exchange->task.run = store_objects;
	worker_submit_cleanup(exchange->server->workers[LANE_CONTENT], &exchange->task);
}

static bool finish(struct exchange *exchange)
{
	work_submit_to_lane(exchange, LANE_BODIES, read_batch);
	return false;
}

const struct operation operation_register_batch = {
	.writes = true,
	.validates = true,
	.scenario = SCENARIO_EVENT,
	.begin = begin,
	.data = chunk_collect,
	.piece = read_chunk,
	.chunk_lane = LANE_BODIES,
	.finish = finish,
};
