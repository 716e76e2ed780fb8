/* POST and GET /v1/certifications, and one certification. */
#include <stdio.h>

#include "base/utf8.h"
#include "http/header.h"
#include "http/http_internal.h"
#include "http/list_page.h"
#include "http/representation.h"
#include "issue/certify.h"

/* Copies the header value, because the connection and its buffer may be gone when a worker reads
 * it. */
static int take_idempotency_key(struct exchange *exchange, struct error *error)
{
	struct head *head = &exchange->head;
	if (!head->idempotency_key.data)
		return 0;
	if (head->idempotency_key_repeated)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_IDEMPOTENCY_KEYS, NULL);
	if (!header_is_idempotency_key(head->idempotency_key))
		return error_set(error, ERR_VALIDATION, MSG_HTTP_IDEMPOTENCY_KEY, NULL);
	size_t size = head->idempotency_key.size;
	const char *copy = arena_copy(&exchange->arena, head->idempotency_key.data, size);
	head->idempotency_key = slice_make(copy, size);
	return copy ? 0 : error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
}

static int begin(struct exchange *exchange, struct error *error)
{
	exchange->body_limit = BODY_SLACK;
	int result = body_check_encoding(exchange, error);
	if (!result && !header_media_type_is(exchange->head.content_type, "application/json"))
		result = body_refuse_type(exchange, "application/json", error);
	return result ? result : take_idempotency_key(exchange, error);
}

/* ---- the body ---- */

static int take_time(const struct json *member, const char *name, int64_t *ret_us,
                     struct error *error)
{
	if (member->type != JSON_STRING)
		return error_set(error, ERR_VALIDATION, MSG_FIELD_TYPE, name, "a date-time string",
		                 "una cadena con fecha y hora", NULL);
	return time_parse(member->text, name, ret_us, error);
}

static int take_integer(const struct json *member, const char *name, int64_t *ret_value,
                        struct error *error)
{
	if (member->type != JSON_NUMBER || !member->is_integer || member->number < 1)
		return error_set(error, ERR_VALIDATION, MSG_FIELD_TYPE, name, "an integer from 1 on",
		                 "un entero a partir de 1", NULL);
	*ret_value = (int64_t)member->number;
	return 0;
}

static int take_boolean(const struct json *member, const char *name, bool *ret_value,
                        struct error *error)
{
	if (member->type == JSON_NULL)
		return 0;
	if (member->type != JSON_TRUE && member->type != JSON_FALSE)
		return error_set(error, ERR_VALIDATION, MSG_FIELD_TYPE, name, "true or false",
		                 "true o false", NULL);
	*ret_value = member->type == JSON_TRUE;
	return 0;
}

static int take_member(const struct json *member, struct certification_range *range,
                       bool *seal_history, struct error *error)
{
	if (slice_is(member->name, "seal_history"))
		return take_boolean(member, "seal_history", seal_history, error);
	bool from = slice_is(member->name, "from"), to = slice_is(member->name, "to");
	bool seq_from = slice_is(member->name, "seq_from"), seq_to = slice_is(member->name, "seq_to");
	if (!from && !to && !seq_from && !seq_to) {
		char name[64];
		utf8_show(member->name, name, sizeof name);
		return error_set(error, ERR_VALIDATION, MSG_FIELD_UNKNOWN, name, NULL);
	}
	if (member->type == JSON_NULL)
		return 0;
	if (from || to)
		return take_time(member, from ? "from" : "to", from ? &range->from_us : &range->to_us,
		                 error);
	return take_integer(member, seq_from ? "seq_from" : "seq_to",
	                    seq_from ? &range->seq_from : &range->seq_to, error);
}

static int parse_range(struct exchange *exchange, struct certification_range *range,
                       bool *seal_history, struct error *error)
{
	struct json *body;
	*range = (struct certification_range){.from_us = TIME_NONE, .to_us = TIME_NONE};
	int result = json_parse(&exchange->arena, buf_slice(&exchange->body), NULL, &body, error);
	if (result)
		return result;
	if (body->type != JSON_OBJECT)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_BODY_OBJECT, NULL);
	for (const struct json *member = body->first; member && !result; member = member->next)
		result = take_member(member, range, seal_history, error);
	return result;
}

/* Answers with `out`. While the certification is in processing, the client learns when to ask. */
static void answer_waiting(struct exchange *exchange, int status, int64_t wait_seconds)
{
	answer_out(exchange, status);
	if (exchange->answer.status == status)
		exchange->answer.retry_after_seconds = wait_seconds;
}

static int certify(struct exchange *exchange, struct error *error)
{
	struct certification_range range;
	struct certification_order order = {
		.key = &exchange->key,
		.range = &range,
		.idempotency_key = exchange->head.idempotency_key.data,
		.language = exchange->language,
		.slow = exchange->forced.slow,
		.fails = exchange->forced.fails,
	};
	bool replayed = false;
	int64_t wait_seconds = 0;
	int result = parse_range(exchange, &range, &order.seal_history, error);
	if (!result)
		result = certification_range_check(&range, INT64_MAX, error); /* check without the chain */
	if (!result)
		result = guard_forced_error(exchange, error);
	if (!result)
		result = certification_request(exchange->service, &order, &exchange->out, &replayed,
		                               &wait_seconds, error);
	if (result)
		return result;
	answer_waiting(exchange, 202, wait_seconds);
	if (replayed && exchange->answer.status == 202)
		answer_header(exchange, "Idempotent-Replayed", "true");
	return 0;
}

/* ---- reads ---- */

static int parse_status(const struct query *query, const char **ret_status, struct error *error)
{
	static const char *const states[] = {"processing", "completed", "failed"};
	struct slice text;
	*ret_status = NULL;
	if (!query_get(query, "status", &text))
		return 0;
	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		if (slice_is(text, states[i]))
			*ret_status = states[i];
	}
	return *ret_status ? 0
	                   : error_set(error, ERR_VALIDATION, MSG_HTTP_QUERY_CHOICE, "status",
	                               "processing, completed, failed", NULL);
}

static int list_certifications(struct exchange *exchange, struct error *error)
{
	const struct key_identity *key = &exchange->key;
	const char *status;
	struct page page = {.usual = ORDER_DESCENDING};
	int64_t last = 0;
	bool more = false;
	int result = query_require_values(&exchange->parameters, error);
	if (!result)
		result = parse_status(&exchange->parameters, &status, error);
	if (result)
		return result;
	snprintf(page.binding, sizeof page.binding, "certifications\n%lld\n%lld\n%s",
	         (long long)key->account, (long long)key->chain, status ? status : "");
	result = page_read(&page, exchange, error);
	if (!result)
		result = guard_forced_error(exchange, error);
	if (result)
		return result;
	page_begin(&page, exchange);
	result = certification_list(exchange->service, key, status, &page.asked, exchange->language,
	                            &exchange->out, &more, &last, error);
	if (!result)
		page_end(&page, exchange, more, last);
	return result;
}

static int get_certification(struct exchange *exchange, struct error *error)
{
	int64_t wait_seconds = 0;
	int result = certification_get(exchange->service, &exchange->key, exchange->arguments[0],
	                               exchange->language, &exchange->out, &wait_seconds, error);
	if (!result)
		answer_waiting(exchange, 200, wait_seconds);
	return result;
}

static int get_evidence_record(struct exchange *exchange, struct error *error)
{
	struct slice id = exchange->arguments[0];
	int result = certification_get_evidence_record(exchange->service, &exchange->key, id,
	                                               &exchange->out, error);
	return result ? result : answer_evidence_record(exchange, id, error);
}

const struct operation operation_certify = {
	.writes = true,
	.validates = true,
	.scenario = SCENARIO_CERTIFICATION,
	.begin = begin,
	.work = certify,
};
const struct operation operation_list_certifications = {
	.parameters = (const char *const[]){"status", "order", "limit", "cursor", NULL},
	.validates = true,
	.work = list_certifications,
};
const struct operation operation_get_certification = {.work = get_certification};
const struct operation operation_get_certification_evidence_record = {.work = get_evidence_record};
