/* GET and POST /v1/notices: the notices of the test mode of a channel, for a developer's machine
 * that no webhook reaches. */
#include <stdio.h>

#include "base/utf8.h"
#include "http/header.h"
#include "http/http_internal.h"
#include "http/listeners.h"
#include "service/list.h"
#include "service/notice_sample.h"
#include "service/read_only.h"
#include "service/webhook.h"
#include "store/notices/test_notices.h"

#define LIMIT_MAX 100
#define WAIT_MAX 30 /* seconds */
#define NAME_SHOWN 64

struct notice_query {
	struct listener listener;
	bool from_end; /* no cursor: only the position of the last notice is asked for */
	int64_t after, limit;
};

static struct exchange *exchange_of(struct task *task)
{
	return (struct exchange *)((char *)task - offsetof(struct exchange, task));
}

static int check_mode(const struct exchange *exchange, struct error *error)
{
	return exchange->key.mode == MODE_TEST
	           ? OK
	           : error_set(error, ERR_VALIDATION, MSG_HTTP_NOTICES_TEST, NULL);
}

/* ---- GET ---- */

static struct slice binding_of(const struct exchange *exchange, char text[64])
{
	int size = snprintf(text, 64, "notices\n%lld\n%lld", (long long)exchange->key.account,
	                    (long long)exchange->key.chain);
	return slice_make(text, (size_t)size);
}

static int read_cursor(const struct exchange *exchange, struct notice_query *query,
                       struct error *error)
{
	char text[64];
	struct slice cursor;
	query->from_end = !query_get(&exchange->parameters, "cursor", &cursor);
	return query->from_end ? OK
	                       : cursor_open(&exchange->service->cursor_secret,
	                                     binding_of(exchange, text), cursor, &query->after, error);
}

/* Sets the end of the wait. It is well before the deadline, which would end the request with
 * 503. */
static void set_wait(struct notice_query *query, int64_t wait_seconds, int64_t deadline_us)
{
	int64_t wait_us = wait_seconds * US_PER_SECOND;
	if (wait_us > deadline_us / 2)
		wait_us = deadline_us / 2;
	query->listener.until_us = wait_us > 0 ? clock_monotonic_us() + wait_us : 0;
}

static int parse_query(struct exchange *exchange, struct notice_query *query, struct error *error)
{
	int64_t wait_seconds = 0;
	query->limit = LIMIT_MAX;
	int result = check_mode(exchange, error);
	if (!result)
		result = query_require_values(&exchange->parameters, error);
	if (!result)
		result = query_integer(&exchange->parameters, "limit", 1, LIMIT_MAX, &query->limit, error);
	if (!result)
		result = query_integer(&exchange->parameters, "wait", 0, WAIT_MAX, &wait_seconds, error);
	if (!result)
		result = read_cursor(exchange, query, error);
	set_wait(query, wait_seconds, exchange->loop->deadline_us);
	return result ? result : guard_forced_error(exchange, error);
}

static int read_notices(struct exchange *exchange, struct notice_query *query,
                        struct test_notice_list *ret, struct error *error)
{
	struct store *store = exchange->service->store;
	const struct key_identity *key = &exchange->key;
	*ret = (struct test_notice_list){0};
	if (query->from_end)
		return store_last_test_notice(store, key->account, key->chain, &query->after, error);
	return store_list_test_notices(store, key->account, key->chain, query->after, query->limit,
	                               &exchange->arena, ret, error);
}

static void write_notice(const struct test_notice *notice, struct buf *out)
{
	webhook_envelope(notice->notice_id, notice->type, notice->created_at_us, mode_text(MODE_TEST),
	                 notice->data, out);
}

static void answer_notices(struct exchange *exchange, const struct notice_query *query,
                           const struct test_notice_list *list)
{
	char text[64], cursor[CURSOR_SIZE];
	struct json_writer writer = {.out = &exchange->out};
	list_begin(&writer);
	for (size_t i = 0; i < list->count; i++) {
		if (i > 0)
			buf_add_byte(&exchange->out, ',');
		write_notice(&list->items[i], &exchange->out);
	}
	int64_t last = list->count ? list->items[list->count - 1].position : query->after;
	cursor_make(&exchange->service->cursor_secret, binding_of(exchange, text), last, cursor);
	list_end_open(&writer, list->more, cursor);
	answer_out(exchange, 200);
}

/* Answers, or waits for another reading. */
static void read_or_wait(struct task *task)
{
	struct exchange *exchange = exchange_of(task);
	struct notice_query *query = exchange->notices;
	struct listener *listener = &query->listener;
	if (!atomic_load(&exchange->abandoned)) {
		struct test_notice_list list;
		int result = read_notices(exchange, query, &list, &exchange->error);
		bool waits = !result && !query->from_end && list.count == 0 &&
		             clock_monotonic_us() < listener->until_us;
		if (waits && listeners_add(exchange->server->listeners, listener))
			return;
		if (result)
			answer_error(exchange, result);
		else
			answer_notices(exchange, query, &list);
	}
	loop_return(exchange);
}

static bool list_notices(struct exchange *exchange)
{
	struct notice_query *query = exchange->notices = arena_alloc(&exchange->arena, sizeof *query);
	int result = query ? parse_query(exchange, query, &exchange->error) : ERR_NO_MEMORY;
	if (result) {
		answer_error(exchange, result);
		return true;
	}
	query->listener.exchange = exchange;
	query->listener.chain = exchange->key.chain;
	work_submit_to_lane(exchange, LANE_READERS, read_or_wait);
	return false;
}

/* ---- POST ---- */

static int begin(struct exchange *exchange, struct error *error)
{
	exchange->body_limit = BODY_SLACK;
	int result = check_mode(exchange, error);
	if (!result)
		result = body_check_encoding(exchange, error);
	if (!result && !header_media_type_is(exchange->head.content_type, "application/json"))
		result = body_refuse_type(exchange, "application/json", error);
	return result;
}

static int refuse_type(struct slice type, struct error *error)
{
	BUF_AUTO struct buf all;
	char shown[NAME_SHOWN];
	buf_init(&all, 512);
	notice_sample_list_types(&all);
	utf8_show(type, shown, sizeof shown);
	return buf_check(&all)
	           ? ERR_NO_MEMORY
	           : error_set(error, ERR_VALIDATION, MSG_HTTP_NOTICE_TYPE, shown, all.data, NULL);
}

static int parse_type(struct exchange *exchange, enum notice_type *ret_type, struct error *error)
{
	struct json *body;
	int result = json_parse(&exchange->arena, buf_slice(&exchange->body), NULL, &body, error);
	if (result)
		return result;
	if (body->type != JSON_OBJECT)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_BODY_OBJECT, NULL);
	for (const struct json *member = body->first; member; member = member->next) {
		char name[NAME_SHOWN];
		if (slice_is(member->name, "type"))
			continue;
		utf8_show(member->name, name, sizeof name);
		return error_set(error, ERR_VALIDATION, MSG_FIELD_UNKNOWN, name, NULL);
	}
	const struct json *type = body->first;
	if (!type)
		return error_set(error, ERR_VALIDATION, MSG_FIELD_REQUIRED, "type", NULL);
	if (type->type != JSON_STRING)
		return error_set(error, ERR_VALIDATION, MSG_FIELD_TYPE, "type", "a string", "una cadena",
		                 NULL);
	return notice_sample_find_type(type->text, ret_type) ? OK : refuse_type(type->text, error);
}

static int create_notice(struct exchange *exchange, struct error *error)
{
	BUF_AUTO struct buf data;
	enum notice_type type;
	struct test_notice notice;
	struct service *service = exchange->service;
	const struct key_identity *key = &exchange->key;
	int result = parse_type(exchange, &type, error);
	if (!result)
		result = guard_forced_error(exchange, error);
	if (!result)
		result = read_only_refuse(service, error);
	buf_init(&data, NOTICE_SAMPLE_MAX);
	if (!result) {
		notice_sample_write(type, key->channel_id, &data);
		result = buf_check(&data);
	}
	if (!result)
		result = store_create_test_notice(service->store, key->account, key->chain, type,
		                                  buf_slice(&data), store_now_us(service->store), &notice,
		                                  error);
	if (result)
		return result;
	write_notice(&notice, &exchange->out);
	answer_out(exchange, 201);
	return 0;
}

const struct operation operation_list_notices = {
	.parameters = (const char *const[]){"cursor", "wait", "limit", NULL},
	.validates = true,
	.finish = list_notices,
	.lane = LANE_READERS,
};
const struct operation operation_create_notice = {
	.writes = true,
	.validates = true,
	.begin = begin,
	.work = create_notice,
};
