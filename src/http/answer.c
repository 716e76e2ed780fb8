/* Building and sending of answers. */
#include <assert.h>
#include <stdio.h>

#include "base/log.h"
#include "base/log_throttle.h"
#include "console/console.h"
#include "http/header.h"
#include "http/html.h"
#include "http/http_internal.h"
#include "http/object_stream.h"
#include "http/request_head.h"

void answer_drop_object(struct exchange *exchange)
{
	object_stream_discard(exchange->answer.stream);
	exchange->answer.stream = NULL;
}

void answer_with(struct exchange *exchange, int status, const char *content_type, struct slice body)
{
	answer_drop_object(exchange);
	exchange->answer =
		(struct answer){.status = status, .content_type = content_type, .body = body};
	exchange->error_code = 0;
	*exchange->incident_id = '\0';
	exchange->step = STEP_ANSWER;
}

void answer_out(struct exchange *exchange, int status)
{
	if (buf_check(&exchange->out) != 0)
		answer_error(exchange, ERR_NO_MEMORY);
	else
		answer_with(exchange, status, "application/json", buf_slice(&exchange->out));
}

void answer_header(struct exchange *exchange, const char *name, const char *value)
{
	struct answer *answer = &exchange->answer;
	if (answer->extra_count < EXTRA_HEADERS_MAX && value) {
		answer->extra[answer->extra_count][0] = name;
		answer->extra[answer->extra_count++][1] = value;
	}
}

/* Returns whether to answer with an HTML page. The path decides, not the method. */
static bool is_page(const struct exchange *exchange)
{
	const struct operation *operation = exchange->operation;
	if (!operation && exchange->route)
		operation = exchange->route->operations[METHOD_GET];
	bool page = (operation && operation->page) || console_has_path(exchange);
	return page && !header_prefers_json(exchange->head.accept);
}

/* Logs an incident. A wrong clock is logged as an error once when it is detected, and an overload
 * by uploads for verification is not a failure of the service, nor is a test scenario: they are
 * logged as information here. */
static void log_incident(const struct exchange *exchange, int code, const char *incident_id)
{
	static struct log_throttle pace = LOG_THROTTLE(10, 1);
	char omitted[LOG_THROTTLE_NUMBER_SIZE];
	if (!log_throttle_take(&pace, clock_monotonic_us(), omitted))
		return;
	const char *cause = exchange->error.cause;
	bool expected = code == ERR_CLOCK || code == ERR_BUSY || code == exchange->forced.refusal;
	log_write(expected ? LOG_INFO : LOG_ERROR, "request_failed", "incident_id", incident_id,
	          "request_id", exchange->request_id, "route",
	          exchange->route ? exchange->route->pattern : NULL, "code", error_code_text(code),
	          "key_id", exchange->key_known ? exchange->key.key_id : NULL, "cause",
	          *cause ? cause : error_message(&exchange->error, LANGUAGE_ENGLISH), "omitted",
	          omitted, NULL);
}

void answer_incident(struct exchange *exchange, int code, const char *incident_id)
{
	memcpy(exchange->incident_id, incident_id, sizeof exchange->incident_id);
	log_incident(exchange, code, incident_id);
}

void answer_error(struct exchange *exchange, int code)
{
	struct error *error = &exchange->error;
	code = memory_error(exchange, code);
	memory_allow_refusal(exchange);
	if (error->code != code) {
		error_clear(error);
		error->code = code;
	}
	int status = error_http_status(code);
	char incident_id[sizeof exchange->incident_id];
	memcpy(incident_id, exchange->incident_id, sizeof incident_id);
	if (status >= 500) {
		incident_id_make(incident_id);
		answer_incident(exchange, code, incident_id);
	}
	struct error_answer said = {
		.code = code,
		.error = error,
		.language = exchange->language,
		.public_url = exchange->service->settings->service_public_url,
		.incident_id = incident_id,
		.event_id = exchange->original_id,
	};
	buf_clear(&exchange->out);
	error_json(&said, &exchange->out);
	struct console_answer drawn;
	bool as_page = is_page(exchange);
	bool in_console = as_page && console_has_path(exchange) &&
	                  console_answer_error(exchange, code, incident_id, &drawn);
	if (as_page && !in_console && !buf_check(&exchange->out))
		html_error(exchange, status);
	/* An answer that cannot be created is an internal error. */
	if (buf_check(&exchange->out) && status < 500)
		status = error_http_status(ERR_NO_MEMORY);
	if (buf_check(&exchange->out))
		answer_with(exchange, status, NULL, (struct slice){"", 0});
	else
		answer_with(exchange, status, as_page ? HTML_TYPE : "application/json",
		            buf_slice(&exchange->out));
	exchange->error_code = code;
	memcpy(exchange->incident_id, incident_id, sizeof exchange->incident_id);
	if (in_console)
		console_headers(exchange, &drawn);
	else if (as_page)
		html_headers(exchange);
	struct answer *answer = &exchange->answer;
	answer->retry_after_seconds = error_retry_after(code, error);
	if (status == 401)
		answer_header(exchange, "WWW-Authenticate", "Bearer");
	if (code == ERR_METHOD && exchange->route)
		answer_header(exchange, "Allow", exchange->route->allow);
}

static char *number(char *end, int64_t value)
{
	*--end = '\0';
	do
		*--end = (char)('0' + value % 10);
	while (value /= 10);
	return end;
}

#define VARY_SIZE 64

struct header_list {
	const char *names[EXTRA_HEADERS_MAX + 12 + CORS_HEADERS_MAX][2];
	int count;
	char numbers[4][24];
	char vary[VARY_SIZE];
	struct cors_headers cors;
};

static void put(struct header_list *list, const char *name, const char *value)
{
	assert((size_t)list->count < sizeof list->names / sizeof *list->names);
	list->names[list->count][0] = name;
	list->names[list->count++][1] = value;
}

/* Returns whether to send HSTS (RFC 6797 section 7.2): only over the service's own TLS. A proxy
 * sends its own policy. */
static bool is_secure(const struct exchange *exchange)
{
	const struct client *client = exchange->client;
	return client && client->tls && !client->by_proxy && !exchange->loop->is_operators &&
	       strncmp(exchange->service->settings->service_public_url, "https://", 8) == 0;
}

static void put_cross_origin(const struct exchange *exchange, struct header_list *list)
{
	const struct answer *answer = &exchange->answer;
	struct cors_headers *cors = &list->cors;
	cors_headers(exchange, cors);
	int size =
		snprintf(list->vary, sizeof list->vary, "%s%s",
	             answer->vary ? answer->vary : "Accept-Language", cors->varies ? ", Origin" : "");
	assert(size > 0 && (size_t)size < sizeof list->vary);
	put(list, "Vary", list->vary);
	for (int i = 0; i < cors->count; i++)
		put(list, cors->names[i][0], cors->names[i][1]);
}

/* Collects all headers except those of the framing. */
static void collect(struct exchange *exchange, struct header_list *list)
{
	const struct answer *answer = &exchange->answer;
	const struct rate_state *rate = exchange->is_charged ? &exchange->charged : &exchange->rate;
	list->count = 0;
	if (answer->content_type)
		put(list, "Content-Type", answer->content_type);
	const char *language = exchange->language == LANGUAGE_SPANISH ? "es" : "en";
	put(list, "Content-Language", answer->language ? answer->language : language);
	put_cross_origin(exchange, list);
	put(list, "Cache-Control", answer->cache ? answer->cache : "no-store");
	put(list, "X-Request-Id", exchange->request_id);
	if (!exchange->loop->is_operators) {
		put(list, "RateLimit-Limit", number(list->numbers[0] + 24, rate->limit));
		put(list, "RateLimit-Remaining", number(list->numbers[1] + 24, rate->remaining));
		put(list, "RateLimit-Reset", number(list->numbers[2] + 24, rate->reset_seconds));
	}
	if (answer->retry_after_seconds)
		put(list, "Retry-After", number(list->numbers[3] + 24, answer->retry_after_seconds));
	for (int i = 0; i < answer->extra_count; i++)
		put(list, answer->extra[i][0], answer->extra[i][1]);
	if (is_secure(exchange))
		put(list, HSTS_NAME, HSTS_VALUE);
	if (exchange->draining)
		put(list, "Connection", "close");
}

static int64_t read_object(void *context, char *data, size_t size, struct error *error)
{
	return content_read(context, data, size, error);
}

static size_t read_object_now(void *context, char *data, size_t size)
{
	return content_read_now(context, data, size);
}

static void end_object(void *context)
{
	content_read_end(context);
}

static const struct stream_source object_source = {
	.lane = LANE_CONTENT, .read = read_object, .read_now = read_object_now, .end = end_object};

int answer_object(struct exchange *exchange, const struct content_parts *parts, uint64_t offset,
                  uint64_t size, struct error *error)
{
	struct content_store *store = exchange->service->content;
	struct answer *answer = &exchange->answer;
	struct content_reader *reader = NULL;
	uint64_t whole = 0;
	int result = content_parts_read(store, parts, offset, &reader, &whole, error);
	if (!result)
		result = object_stream_new(exchange, &object_source, reader, &answer->stream, error);
	if (!result && (whole < offset || whole - offset < size))
		result =
			error_cause(error, ERR_CORRUPT, "the content object %s is too short", parts->object);
	else if (result == ERR_NOT_FOUND)
		result = error_cause(error, ERR_CORRUPT, "the content object %s is missing", parts->object);
	answer->size = size;
	return result;
}

static ssize_t read_nothing(void *context, uint64_t position, char *data, size_t size)
{
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

static struct MHD_Response *make_response(struct exchange *exchange)
{
	struct answer *answer = &exchange->answer;
	if (answer->stream) {
		answer->is_stream = true;
		struct MHD_Response *response =
			object_stream_response(answer->stream, exchange, answer->size);
		answer->stream = NULL;
		return response;
	}
	/* RFC 9110 section 8.6: Content-Length of a 304 is the size of the representation that is not
	 * sent. */
	if (answer->status == 304)
		return MHD_create_response_from_callback(answer->size, 1, read_nothing, NULL, NULL);
	return MHD_create_response_from_buffer(answer->body.size, (void *)answer->body.data,
	                                       MHD_RESPMEM_PERSISTENT);
}

/* Releases all memory except the answer, because a client may take long to read it. */
static void release_unused(struct exchange *exchange)
{
	struct answer *answer = &exchange->answer;
	struct buf *out = &exchange->out;
	size_t offset = (size_t)((uintptr_t)answer->body.data - (uintptr_t)out->data);
	buf_free(&exchange->body);
	buf_free(&exchange->canonical);
	if (!out->data || !answer->body.data || offset > out->size) {
		buf_free(out);
	} else {
		buf_fit(out);
		answer->body.data = out->data + offset;
	}
}

/* Frees the arena if the body is not in it. The library has copied the headers. */
static void drop_arena(struct exchange *exchange)
{
	if (arena_has(&exchange->arena, exchange->answer.body.data))
		return;
	exchange->path = exchange->query = slice_make("", 0);
	exchange->answer.extra_count = 0;
	exchange->console = NULL;
	exchange->original_id = NULL;
	arena_free(&exchange->arena);
}

enum MHD_Result answer_queue(struct exchange *exchange)
{
	struct header_list list;
	bool holds_more = exchange->memory.budget.granted > 0;
	assert(!exchange->waiting && exchange->client && exchange->client->exchange == exchange);
	assert(exchange->step == STEP_ANSWER && !exchange->answer.is_queued);
	assert(exchange->answer.status >= 200 && exchange->answer.status <= 599);
	if (holds_more)
		release_unused(exchange);
	exchange->draining = atomic_load_explicit(&exchange->server->draining, memory_order_relaxed);
	collect(exchange, &list);
	struct MHD_Response *response = make_response(exchange);
	if (!response)
		return MHD_NO;
	enum MHD_Result result = MHD_YES;
	for (int i = 0; i < list.count && result == MHD_YES; i++)
		result = MHD_add_response_header(response, list.names[i][0], list.names[i][1]);
	if (result == MHD_YES)
		result =
			MHD_queue_response(exchange->connection, (unsigned)exchange->answer.status, response);
	exchange->answer.is_queued = result == MHD_YES;
	MHD_destroy_response(response);
	if (holds_more) {
		drop_arena(exchange);
		budget_release(&exchange->memory.budget);
	}
	client_mark_answered(exchange->client, clock_monotonic_us());
	return result;
}

static const char *reason(int status)
{
	switch (status) {
	case 400: return "Bad Request";
	case 401: return "Unauthorized";
	case 403: return "Forbidden";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 413: return "Content Too Large";
	case 429: return "Too Many Requests";
	case 431: return "Request Header Fields Too Large";
	default: return status < 400 ? "OK" : status < 500 ? "Refused" : "Unavailable";
	}
}

/* RFC 9110 sections 6.4.1 and 8.6. */
static bool has_no_body(const struct exchange *exchange)
{
	int status = exchange->answer.status;
	return status == 204 || status == 304 ||
	       (exchange->method && strcmp(exchange->method, "HEAD") == 0);
}

static void write_direct(struct exchange *exchange, struct buf *text)
{
	const struct answer *answer = &exchange->answer;
	struct header_list list;
	collect(exchange, &list);
	buf_printf(text, "HTTP/1.1 %d %s\r\n", answer->status, reason(answer->status));
	for (int i = 0; i < list.count; i++)
		if (strcmp(list.names[i][0], "Connection") != 0)
			buf_printf(text, "%s: %s\r\n", list.names[i][0], list.names[i][1]);
	buf_add_text(text, "Connection: close\r\n");
	if (answer->status != 204 && answer->status != 304)
		buf_printf(text, "Content-Length: %zu\r\n", answer->body.size);
	buf_add_text(text, "\r\n");
	if (!has_no_body(exchange))
		buf_add_slice(text, answer->body);
}

bool answer_send_now(struct exchange *exchange)
{
	BUF_AUTO struct buf text;
	bool whole = false;
	buf_init(&text, ANSWER_HEAD_MAX + exchange->answer.body.size);
	write_direct(exchange, &text);
	/* Does not block: a client that has not read earlier data receives nothing. */
	if (buf_check(&text) == 0)
		whole = client_send_last(exchange->client, buf_slice(&text));
	exchange->step = STEP_SENT;
	return whole;
}
