/* Processing of a request: the callbacks of libmicrohttpd. */
#include <assert.h>
#include <netinet/tcp.h>
#include <stdlib.h>

#include "base/log.h"
#include "http/http_internal.h"
#include "http/key_lookup.h"
#include "http/request_capture.h"
#include "http/request_head.h"

/* Arena memory that an exchange keeps for the next request. */
#define ARENA_KEEP ((size_t)16 * 1024)
#define OPERATORS_ALLOWANCE (ARENA_MAX + OUT_MAX)

/* ---- creation and reuse ---- */

/* Operators are answered regardless of the memory that clients hold. */
static size_t allowance(const struct loop *loop)
{
	return loop->is_operators ? OPERATORS_ALLOWANCE : MEMORY_ALLOWANCE;
}

static struct exchange *exchange_new(struct http_server *server, struct loop *loop)
{
	struct exchange *exchange = calloc(1, sizeof *exchange);
	if (!exchange)
		return NULL;
	exchange->server = server;
	exchange->service = server->service;
	exchange->loop = loop;
	struct budget *budget = &exchange->memory.budget;
	memory_init(&exchange->memory, server, allowance(loop));
	arena_init_counted(&exchange->arena, ARENA_MAX, budget, MEMORY_ARENA);
	buf_init_counted(&exchange->body, BODY_HELD_MAX - 1, budget, MEMORY_BODY);
	buf_init_counted(&exchange->canonical, EVENT_CANONICAL_MAX, budget, MEMORY_BODY);
	buf_init_counted(&exchange->out, OUT_MAX, budget, MEMORY_ANSWER);
	return exchange;
}

void exchange_free(struct exchange *exchange)
{
	if (!exchange)
		return;
	body_release(exchange);
	upload_free(exchange->upload);
	batch_release(exchange);
	upload_space_release(&exchange->space, exchange->server);
	checked_file_free(exchange->checked);
	answer_drop_object(exchange);
	buf_free(&exchange->body);
	buf_free(&exchange->canonical);
	buf_free(&exchange->out);
	arena_free(&exchange->arena);
	budget_release(&exchange->memory.budget);
	assert(exchange->memory.budget.held == 0 && exchange->memory.budget.granted == 0);
	free(exchange);
}

void exchange_free_spare(struct loop *loop)
{
	while (loop->spare) {
		struct exchange *exchange = loop->spare;
		loop->spare = exchange->next;
		exchange_free(exchange);
	}
	loop->spare_count = 0;
}

static struct exchange *exchange_take(struct loop *loop)
{
	struct exchange *exchange = loop->spare;
	if (!exchange)
		return exchange_new(loop->server, loop);
	assert(loop->spare_count > 0 && !exchange->client && !exchange->waiting);
	loop->spare = exchange->next;
	loop->spare_count--;
	exchange->next = NULL;
	return exchange;
}

static void trim(struct buf *buf)
{
	if (buf->capacity > BUFFER_KEEP)
		buf_free(buf);
	else
		buf_clear(buf);
}

/* Reduces the memory of an idle connection to its allowance, so that nothing is granted to it. */
static void reset_memory(struct exchange *exchange)
{
	struct budget *budget = &exchange->memory.budget;
	trim(&exchange->body);
	trim(&exchange->canonical);
	trim(&exchange->out);
	exchange->out.limit = OUT_MAX;
	if (exchange->arena.used > ARENA_KEEP)
		arena_free(&exchange->arena);
	else
		arena_reset(&exchange->arena);
	if (budget->held > MEMORY_ALLOWANCE) {
		arena_free(&exchange->arena);
		buf_free(&exchange->body);
	}
	budget_release(budget);
	budget->allowance = allowance(exchange->loop);
	budget->refused = false;
	exchange->memory.owner = 0; /* a long head is read before its owner is known */
	assert(!budget->granted && budget->held <= MEMORY_ALLOWANCE);
}

/* Resets the exchange for the next request; keeps little memory. */
static void exchange_reset(struct exchange *exchange)
{
	body_release(exchange);
	upload_free(exchange->upload);
	batch_release(exchange);
	upload_space_release(&exchange->space, exchange->server);
	exchange->upload = NULL;
	checked_file_free(exchange->checked);
	exchange->checked = NULL;
	exchange->console = NULL;
	exchange->notices = NULL;
	answer_drop_object(exchange);
	reset_memory(exchange);
	error_clear(&exchange->error);
	memset(&exchange->head, 0, sizeof exchange->head);
	memset(&exchange->answer, 0, sizeof exchange->answer);
	memset(&exchange->rate, 0, sizeof exchange->rate);
	exchange->is_charged = false;
	memset(&exchange->key, 0, sizeof exchange->key);
	exchange->step = STEP_HEAD;
	exchange->route = NULL;
	exchange->operation = NULL;
	exchange->original_id = NULL;
	exchange->content_owner = 0;
	exchange->key_known = exchange->content_stored = exchange->address_charged = false;
	exchange->language = LANGUAGE_ENGLISH;
	exchange->forced = (struct scenario){0};
	exchange->error_code = 0;
	exchange->body_limit = exchange->body_seen = exchange->body_chunk_size = 0;
	exchange->has_read_chunk = false;
	exchange->method = NULL;
	exchange->address.ss_family = AF_UNSPEC;
	*exchange->incident_id = '\0';
}

/* Returns the exchange to the spare list. Connections without a request have no exchange. The list
 * is a stack. */
static void exchange_give_back(struct exchange *exchange)
{
	struct loop *loop = exchange->loop;
	assert(!exchange->waiting && !exchange->under_way && !atomic_load(&exchange->abandoned));
	if (loop->spare_count == SPARE_EXCHANGES) {
		exchange_free(exchange);
		return;
	}
	exchange_reset(exchange);
	exchange->client = NULL;
	exchange->connection = NULL;
	exchange->next = loop->spare;
	loop->spare = exchange;
	loop->spare_count++;
}

/* Creates a request id. Clients see it, so it must not reveal the number of requests between two of
 * theirs. */
static void make_request_id(struct loop *loop, char id[24])
{
	if (loop->random_left == 0) {
		random_bytes(loop->random, sizeof loop->random);
		loop->random_left = RANDOM_IDS;
	}
	const uint64_t *number = &loop->random[--loop->random_left];
	memcpy(id, "req_", 4);
	hex_encode(number, sizeof *number, id + 4);
}

void request_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*socket_context = client_attach(context, connection);
	} else if (*socket_context) {
		client_end(*socket_context);
		*socket_context = NULL;
	}
}

void *request_begin(void *context, const char *uri, struct MHD_Connection *connection)
{
	struct loop *loop = context;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct client *client = info ? info->socket_context : NULL;
	if (!client)
		return NULL;
	if (!client->exchange)
		client->exchange = exchange_take(loop);
	struct exchange *exchange = client->exchange;
	if (!exchange)
		return NULL;
	assert(!exchange->waiting && !atomic_load(&exchange->abandoned));
	exchange->client = client;
	exchange->connection = connection;
	exchange->started_us = clock_monotonic_us();
	client_begin_request(client, exchange->started_us);
	make_request_id(loop, exchange->request_id);
	if (!request_head_begin(exchange, uri))
		return NULL;
	if (!exchange->under_way) {
		exchange->under_way = true;
		atomic_fetch_add_explicit(&loop->under_way, 1, memory_order_relaxed);
	}
	return client;
}

static void count_finished(struct exchange *exchange)
{
	if (!exchange->under_way)
		return;
	exchange->under_way = false;
	int64_t under_way =
		atomic_fetch_sub_explicit(&exchange->loop->under_way, 1, memory_order_relaxed);
	assert(under_way > 0);
}

/* Returns whether the answer was sent in full. The library does not report the end of answers that
 * were sent directly. */
static bool is_whole(const struct exchange *exchange, enum MHD_RequestTerminationCode code)
{
	return code == MHD_REQUEST_TERMINATED_COMPLETED_OK || exchange->step == STEP_SENT;
}

#define RESCUE_LOG_INTERVAL_US (60 * US_PER_SECOND)

static void log_rescue(struct exchange *exchange, bool said)
{
	struct loop *loop = exchange->loop;
	struct metrics *metrics = &loop->server->metrics;
	int64_t now_us = clock_monotonic_us();
	atomic_fetch_add_explicit(said ? &metrics->answers_rescued : &metrics->answers_lost, 1,
	                          memory_order_relaxed);
	if (loop->rescue_logged_us && now_us < loop->rescue_logged_us + RESCUE_LOG_INTERVAL_US)
		return;
	loop->rescue_logged_us = now_us;
	log_warning(said ? "answer_rescued" : "answer_lost", "request_id", exchange->request_id,
	            "cause", "the HTTP library had no memory for the response headers");
}

/* Returns whether the client is still connected. If it closed the connection, the lost answer is
 * not our fault. */
static bool is_connected(const struct exchange *exchange)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct tcp_info state = {0};
	socklen_t size = sizeof state;
	return info && getsockopt(info->connect_fd, IPPROTO_TCP, TCP_INFO, &state, &size) == 0 &&
	       state.tcpi_state == TCP_ESTABLISHED;
}

/* Sends the answer directly if the library failed after accepting it and before its first byte,
 * because an executed request must be answered. A stream is not in memory and is replaced by an
 * error; the client can request it again. A failed socket looks the same, and then this fails
 * too. */
static bool rescue(struct exchange *exchange, enum MHD_RequestTerminationCode code)
{
	const struct answer *answer = &exchange->answer;
	if (code != MHD_REQUEST_TERMINATED_WITH_ERROR || exchange->step != STEP_ANSWER ||
	    client_is_cut(exchange->client) || exchange->waiting || answer->has_begun)
		return false;
	if (answer->is_stream && answer->is_queued)
		answer_error(exchange,
		             error_set(&exchange->error, ERR_HEAD_LARGE, MSG_HTTP_HEAD_LARGE, NULL));
	else if (answer->is_stream)
		answer_error(exchange, ERR_NO_MEMORY);
	client_discard(exchange->client);
	bool connected = is_connected(exchange), said = answer_send_now(exchange);
	if (connected)
		log_rescue(exchange, said);
	return said;
}

/* Failures that a test scenario forced are not counted: a client must not raise an operator's
 * alerts. */
static void count(const struct exchange *exchange, int64_t now_us)
{
	const struct answered answered = {
		.route = exchange->route,
		.method = metrics_method(exchange->method),
		.status = exchange->answer.status,
		.code = exchange->error_code,
		.registers = exchange->operation == &operation_register,
		.duration_us = now_us - exchange->started_us,
	};
	metrics_count(&exchange->server->metrics, &answered);
}

/* Abandons the exchange, which belongs to another thread until it is returned. */
static void abandon(struct exchange *exchange)
{
	loop_end_wait(exchange);
	exchange->under_way = false;
	exchange->client = NULL;
	exchange->connection = NULL;
	atomic_store(&exchange->abandoned, true);
}

static void end_request(struct client *client, enum MHD_RequestTerminationCode code)
{
	struct loop *loop = client->loop;
	struct exchange *exchange = client->exchange;
	bool answered = exchange->step == STEP_ANSWER || exchange->step == STEP_SENT;
	bool whole = rescue(exchange, code) || is_whole(exchange, code);
	int64_t now_us = clock_monotonic_us();
	if (!answered || exchange->head.framing_broken)
		client_discard(client);
	bool forced =
		exchange->answer.status >= 500 && exchange->error_code == exchange->forced.refusal;
	if (answered && !loop->is_operators && !forced)
		count(exchange, now_us);
	if (!loop->is_operators) {
		bool cut = client_is_cut(client) || !whole;
		request_log_end(exchange, answered, cut, now_us - exchange->started_us);
		request_capture(exchange, answered, cut, now_us);
	}
	client_end_request(client, now_us);
	count_finished(exchange);
	loop->has_pending_work = true; /* a pipelined request may follow */
	client->exchange = NULL;
	if (exchange->waiting)
		abandon(exchange);
	else
		exchange_give_back(exchange);
}

void request_completed(void *context, struct MHD_Connection *connection, void **client_context,
                       enum MHD_RequestTerminationCode code)
{
	struct client *client = *client_context;
	if (client && client->exchange)
		end_request(client, code);
}

void request_connection_lost(struct client *client)
{
	struct exchange *exchange = client->exchange;
	if (!exchange->under_way) {
		exchange_free(exchange);
		client->exchange = NULL;
		return;
	}
	if (!exchange->waiting && exchange->step != STEP_SENT && exchange->step != STEP_ANSWER) {
		answer_error(exchange, error_set(&exchange->error, ERR_VALIDATION, MSG_HTTP_CHUNK, NULL));
		client_discard(client);
		(void)answer_send_now(exchange);
	}
	end_request(client, MHD_REQUEST_TERMINATED_WITH_ERROR);
}

/* Creates an exchange that replaces one that is still in use. */
static struct exchange *successor(const struct exchange *exchange)
{
	struct exchange *fresh = exchange_new(exchange->server, exchange->loop);
	if (!fresh)
		return NULL;
	fresh->client = exchange->client;
	fresh->connection = exchange->connection;
	fresh->started_us = exchange->started_us;
	memcpy(fresh->request_id, exchange->request_id, sizeof fresh->request_id);
	fresh->method = exchange->method;
	fresh->address = exchange->address;
	char *path = arena_copy(&fresh->arena, exchange->path.data, exchange->path.size);
	fresh->path = slice_make(path ? path : "", path ? exchange->path.size : 0);
	char *query = arena_copy(&fresh->arena, exchange->query.data, exchange->query.size);
	fresh->query = slice_make(query ? query : "", query ? exchange->query.size : 0);
	fresh->route = exchange->route;
	fresh->operation = exchange->operation;
	fresh->head = exchange->head;
	fresh->body_seen = exchange->body_seen;
	fresh->language = exchange->language;
	fresh->key = exchange->key;
	fresh->key_known = exchange->key_known;
	fresh->rate = exchange->rate;
	memory_set_owner(&fresh->memory, exchange->memory.owner);
	fresh->under_way = exchange->under_way;
	return fresh;
}

/* Replaces the exchange of the connection. NULL: no memory. */
static struct exchange *replace(struct exchange *exchange)
{
	struct client *client = exchange->client;
	assert(exchange->waiting && client->exchange == exchange);
	struct exchange *fresh = client->exchange = successor(exchange);
	client_end_wait(client, clock_monotonic_us());
	if (!fresh)
		count_finished(exchange);
	return fresh;
}

void request_abandon_upload(struct exchange *exchange, int code, const struct error *error)
{
	struct exchange *fresh = replace(exchange);
	if (fresh) {
		fresh->error = *error;
		request_refuse(fresh, code);
	}
	abandon(exchange);
}

void request_abandon(struct exchange *exchange)
{
	struct error error;
	error_clear(&error);
	error_cause(&error, ERR_UNAVAILABLE, "http.deadline passed or the server is stopping");
	if (exchange->body_is_pending) {
		request_abandon_upload(exchange, ERR_UNAVAILABLE, &error);
		return;
	}
	struct exchange *fresh = replace(exchange);
	if (fresh) {
		fresh->error = error;
		if (fresh->operation->late)
			fresh->operation->late(fresh);
		else
			answer_error(fresh, ERR_UNAVAILABLE);
	}
	abandon(exchange);
}

/* ---- work ---- */

/* Requests with a body may have effects and must be answerable. */
static int reserve_for_work(struct exchange *exchange, struct error *error)
{
	bool sends = strcmp(exchange->method, "POST") == 0;
	return sends ? memory_reserve_answer(exchange, ANSWER_RESERVE, error) : 0;
}

static void run_work(struct task *task)
{
	struct exchange *exchange = (struct exchange *)((char *)task - offsetof(struct exchange, task));
	if (!atomic_load(&exchange->abandoned)) {
		buf_clear(&exchange->out);
		int result = reserve_for_work(exchange, &exchange->error);
		if (!result)
			result = exchange->operation->work(exchange, &exchange->error);
		if (result)
			answer_error(exchange, result);
	}
	loop_return(exchange);
}

/* Copies a slice, because the connection and its buffer may be gone when a worker reads it. */
static bool keep(struct exchange *exchange, struct slice *slice)
{
	const char *copy = slice->size ? arena_copy(&exchange->arena, slice->data, slice->size) : "";
	*slice = slice_make(copy, slice->size);
	return copy;
}

static int submit(struct exchange *exchange, struct worker_pool *workers,
                  void (*run)(struct task *task))
{
	struct head *head = &exchange->head;
	bool kept = keep(exchange, &head->accept) && keep(exchange, &head->range) &&
	            keep(exchange, &head->if_range);
	for (size_t i = 0; i < NONE_MATCH_LINES_MAX && kept; i++)
		kept = keep(exchange, &head->none_match[i]);
	if (!kept)
		return ERR_NO_MEMORY;
	exchange->task.run = run;
	exchange->task.owner = guard_owner_id(exchange);
	if (worker_submit(workers, &exchange->task))
		return 0;
	return error_cause(&exchange->error, ERR_UNAVAILABLE, "the work queue is full");
}

static struct worker_pool *workers_for(const struct exchange *exchange, enum lane lane)
{
	return lane == LANE_OWN ? exchange->loop->workers : exchange->server->workers[lane];
}

void work_submit_to_lane(struct exchange *exchange, enum lane lane, void (*run)(struct task *task))
{
	loop_wait(exchange);
	int result = submit(exchange, workers_for(exchange, lane), run);
	if (!result)
		return;
	answer_error(exchange, result);
	loop_return(exchange);
}

void work_submit(struct exchange *exchange)
{
	work_submit_to_lane(exchange, exchange->operation->lane, run_work);
}

void work_resubmit(struct exchange *exchange)
{
	exchange->task.run = run_work;
	if (worker_submit(exchange->server->workers[exchange->operation->lane], &exchange->task))
		return;
	answer_error(exchange,
	             error_cause(&exchange->error, ERR_UNAVAILABLE, "the work queue is full"));
	loop_return(exchange);
}

/* ---- steps ---- */

static bool has_body(const struct exchange *exchange)
{
	return exchange->head.chunked || exchange->head.content_length > 0;
}

/* Returns whether the rest of the body is small enough to be read in order to keep the
 * connection. */
static bool is_worth_reading(const struct exchange *exchange, int code)
{
	const struct head *head = &exchange->head;
	if (code == ERR_TOO_LARGE || head->framing_broken)
		return false;
	return head->chunked || head->content_length - exchange->body_seen <= BODY_DISCARD_MAX;
}

/* Drops the body. No upload may remain after the answer, because uploads can be evicted. */
static void drop_body(struct exchange *exchange)
{
	upload_free(exchange->upload);
	exchange->upload = NULL;
	batch_release(exchange);
	checked_file_free(exchange->checked);
	exchange->checked = NULL;
	buf_free(&exchange->body);
	body_release(exchange);
}

void request_refuse(struct exchange *exchange, int code)
{
	answer_error(exchange, code);
	drop_body(exchange);
	if (is_worth_reading(exchange, code)) {
		exchange->body_limit = (size_t)(exchange->body_seen + BODY_DISCARD_MAX);
		exchange->step = STEP_DISCARD;
		client_mark_refused(exchange->client, clock_monotonic_us());
		return;
	}
	atomic_fetch_add_explicit(&exchange->server->metrics.refused_early, 1, memory_order_relaxed);
	answer_send_now(exchange);
}

static enum MHD_Result head_checked(struct exchange *exchange, int result)
{
	struct error *error = &exchange->error;
	const struct operation *operation = exchange->operation;
	memory_set_owner(&exchange->memory, guard_owner_id(exchange));
	exchange->step = STEP_DISCARD;
	exchange->body_limit = BODY_SLACK;
	if (!result && operation->begin) {
		exchange->step = STEP_BODY;
		result = body_check_repeated(exchange, error);
		if (!result)
			result = operation->begin(exchange, error);
	}
	if (!result && !exchange->head.chunked && exchange->head.content_length > exchange->body_limit)
		result = body_refuse_size(exchange, error);
	if (!result && exchange->step == STEP_BODY)
		result = body_admit(exchange, exchange->head.content_length, error);
	if (!result)
		return MHD_YES;
	drop_body(exchange);
	if (!has_body(exchange) && !exchange->head.framing_broken) {
		answer_error(exchange, result);
		return MHD_YES;
	}
	if (exchange->head.expect_continue || exchange->head.framing_broken) {
		answer_error(exchange, result);
		/* libmicrohttpd then closes the connection, because the body was not read */
		return answer_queue(exchange);
	}
	request_refuse(exchange, result);
	return MHD_YES;
}

static enum MHD_Result head_step(struct exchange *exchange, const char *method, const char *version)
{
	struct error *error = &exchange->error;
	request_head_read(exchange, method, version);
	request_log_head(exchange, method);
	int result = guard_check(exchange, method, error);
	if (result != GUARD_KEY_LOOKUP)
		return head_checked(exchange, result);
	if (exchange->loop->ending)
		result = error_cause(error, ERR_UNAVAILABLE, "the server is stopping");
	else
		result = key_lookup_begin(exchange, error);
	return result ? head_checked(exchange, guard_check_looked_up(exchange, result, error))
	              : MHD_YES;
}

static enum MHD_Result key_step(struct exchange *exchange)
{
	int result = guard_check_looked_up(exchange, exchange->lookup_result, &exchange->error);
	return head_checked(exchange, result);
}

static int take_data(struct exchange *exchange, struct slice data, struct error *error)
{
	if (exchange->body_seen > exchange->body_limit)
		return body_refuse_size(exchange, error);
	if (exchange->operation->data)
		return exchange->operation->data(exchange, data, error);
	return body_collect(exchange, data, error);
}

static enum MHD_Result body_step(struct exchange *exchange, struct slice data)
{
	exchange->body_seen += data.size;
	int result;
	switch (exchange->step) {
	case STEP_BODY:
		result = take_data(exchange, data, &exchange->error);
		if (result)
			request_refuse(exchange, result);
		return MHD_YES;
	case STEP_DISCARD:
		if (exchange->body_seen > exchange->body_limit)
			request_refuse(exchange, ERR_TOO_LARGE);
		return MHD_YES;
	default: return exchange->body_seen > DISCARD_MAX ? MHD_NO : MHD_YES;
	}
}

/* Returns whether the answer is complete; otherwise the exchange belongs to another thread. */
static bool finish(struct exchange *exchange)
{
	const struct operation *operation = exchange->operation;
	if (exchange->loop->ending) {
		answer_error(exchange,
		             error_cause(&exchange->error, ERR_UNAVAILABLE, "the server is stopping"));
		return true;
	}
	if (operation->finish)
		return operation->finish(exchange);
	work_submit(exchange);
	return false;
}

static enum MHD_Result end_step(struct exchange *exchange)
{
	bool refused = exchange->step == STEP_DISCARD && exchange->answer.status;
	if (exchange->step == STEP_SENT || !client_finish_request(exchange->client))
		return MHD_NO;
	if (refused)
		exchange->step = STEP_ANSWER;
	else if (exchange->step == STEP_WAITING)
		exchange->operation->resumed(exchange);
	else if (exchange->step != STEP_ANSWER && !finish(exchange))
		return MHD_YES;
	return answer_queue(exchange);
}

static enum MHD_Result step(struct exchange *exchange, const char *method, const char *version,
                            const char *data, size_t *size)
{
	if (exchange->step == STEP_HEAD)
		return head_step(exchange, method, version);
	if (exchange->step == STEP_KEY)
		return key_step(exchange);
	if (*size) {
		struct slice part = slice_make(data, *size);
		*size = 0;
		return body_step(exchange, part);
	}
	return end_step(exchange);
}

enum MHD_Result request_handle(void *context, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **client_context)
{
	struct client *client = *client_context;
	struct exchange *exchange = client ? client->exchange : NULL;
	if (!exchange)
		return MHD_NO;
	if (exchange->waiting) {
		loop_check_wait(exchange);
		return MHD_YES;
	}
	if (exchange->step == STEP_HEAD && !client_finish_head(client))
		return MHD_NO;
	if (exchange->step == STEP_HEAD || *size)
		tls_note_progress(client->tls);
	enum MHD_Result result = step(exchange, method, version, data, size);
	if (!exchange->waiting)
		exchange->loop->has_pending_work = true;
	return result;
}
