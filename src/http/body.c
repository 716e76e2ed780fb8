/* Bodies of requests, and the limits on the memory that a request uses. */
#include <stdio.h>

#include "base/utf8.h"
#include "http/header.h"
#include "http/http_internal.h"

int memory_set_refused(struct error *error)
{
	return error_cause(error, ERR_UNAVAILABLE,
	                   "http.body_memory or the account's share of it is exhausted");
}

size_t body_largest(const struct exchange *exchange)
{
	return memory_largest(exchange->server);
}

int body_admit(struct exchange *exchange, uint64_t size, struct error *error)
{
	size_t most = exchange->body_chunk_size ? CHUNK_HELD_MAX : BODY_HELD_MAX;
	if (size > most)
		size = most;
	return memory_is_available(&exchange->memory, (size_t)size) ? 0 : memory_set_refused(error);
}

/* Replaces the accounted size by `now` bytes. */
static bool count(struct budget *budget, unsigned kind, size_t *counted, size_t now)
{
	if (now > *counted && !budget_take(budget, kind, now - *counted))
		return false;
	if (now < *counted)
		budget_give(budget, kind, *counted - now);
	*counted = now;
	return true;
}

int body_count(struct exchange *exchange, struct error *error)
{
	struct budget *budget = &exchange->memory.budget;
	size_t now = checked_file_held(exchange->checked);
	return count(budget, MEMORY_CHECK, &exchange->check_counted, now) ? 0
	                                                                  : memory_set_refused(error);
}

void body_release(struct exchange *exchange)
{
	(void)count(&exchange->memory.budget, MEMORY_CHECK, &exchange->check_counted, 0);
}

int body_collect(struct exchange *exchange, struct slice part, struct error *error)
{
	buf_add_slice(&exchange->body, part);
	if (!buf_check(&exchange->body))
		return 0;
	return exchange->memory.budget.refused ? memory_set_refused(error)
	                                       : error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
}

int memory_reserve_answer(struct exchange *exchange, size_t size, struct error *error)
{
	return budget_reserve(&exchange->memory.budget, MEMORY_ANSWER, size)
	           ? 0
	           : memory_set_refused(error);
}

void memory_allow_refusal(struct exchange *exchange)
{
	struct budget *budget = &exchange->memory.budget;
	if (budget->allowance == MEMORY_ALLOWANCE)
		budget->allowance += REFUSAL_ROOM;
}

int memory_error(struct exchange *exchange, int code)
{
	if (code != ERR_NO_MEMORY || !exchange->memory.budget.refused)
		return code;
	return memory_set_refused(&exchange->error);
}

/* ---- refusals ---- */

#define SHOWN_MAX 100 /* maximum shown bytes of a header of the client */

int body_check_encoding(const struct exchange *exchange, struct error *error)
{
	char shown[SHOWN_MAX];
	struct slice encoding = exchange->head.content_encoding;
	if (!encoding.size || header_name_is(encoding, "identity"))
		return 0;
	utf8_show(encoding, shown, sizeof shown);
	return error_set(error, ERR_VALIDATION, MSG_HTTP_CONTENT_ENCODING, shown, NULL);
}

int body_check_repeated(const struct exchange *exchange, struct error *error)
{
	const char *repeated = exchange->head.repeated_of_body;
	return repeated ? error_set(error, ERR_VALIDATION, MSG_HTTP_HEADER_REPEATED, repeated, NULL)
	                : 0;
}

int body_refuse_type(const struct exchange *exchange, const char *wanted, struct error *error)
{
	char shown[SHOWN_MAX];
	struct slice type = exchange->head.content_type;
	if (!type.size)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_CONTENT_TYPE_MISSING, wanted, NULL);
	utf8_show(type, shown, sizeof shown);
	return error_set(error, ERR_VALIDATION, MSG_HTTP_CONTENT_TYPE, wanted, shown, NULL);
}

int body_refuse_size(const struct exchange *exchange, struct error *error)
{
	char most[24];
	snprintf(most, sizeof most, "%zu", exchange->body_limit);
	return error_set(error, ERR_TOO_LARGE, MSG_HTTP_BODY_LARGE, most, NULL);
}
