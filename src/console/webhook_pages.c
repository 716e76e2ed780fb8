#include "console/webhook_pages.h"

#include <ctype.h>
#include <stdio.h>

#include "base/clock.h"
#include "ledger/ledger.h"
#include "service/settings.h"

#define DAYS 90
#define DATE_TEXT 11
#define WORD_SIZE 64

/* ---- types ---- */

static bool was_typed(const struct fields *typed, const char *type)
{
	for (size_t i = 0; i < typed->count; i++)
		if (slice_is(typed->items[i].name, "types") && slice_is(typed->items[i].value, type))
			return true;
	return false;
}

static bool has(const struct json *list, const char *type)
{
	for (const struct json *at = list->first; at; at = at->next)
		if (at->type == JSON_STRING && slice_is(at->text, type))
			return true;
	return false;
}

/* Writes the types. `own`: the endpoint's selection as an array; NULL or not an array: all
 * types. */
static void put_types(const struct visit *visit, const struct json *own, struct json_writer *data)
{
	const struct fields *typed = visit->typed;
	bool every = typed ? was_typed(typed, "all") : !own || own->type != JSON_ARRAY;
	json_boolean(data, "every", every);
	json_begin_array(data, "types");
	for (int type = 0; type < NOTICE_WEBHOOK_TEST; type++) {
		char what[WORD_SIZE];
		const char *name = notice_type_text((enum notice_type)type);
		snprintf(what, sizeof what, "%s", name);
		for (char *at = what; *at; at++)
			*at = *at == '.' ? '_' : *at;
		json_begin_object(data, NULL);
		json_text(data, "type", name);
		json_text(data, "what", what);
		json_boolean(data, "chosen", !every && (typed ? was_typed(typed, name) : has(own, name)));
		json_end_object(data);
	}
	json_end_array(data);
}

int webhooks_page(struct visit *visit, struct json_writer *data)
{
	put_types(visit, NULL, data);
	return OK;
}

/* ---- endpoint page ---- */

int endpoint_page(struct visit *visit, struct json_writer *data)
{
	struct json *endpoint;
	struct slice text;
	int result = ask_source(visit, "webhook show", "endpoint={endpoint}", &text, &endpoint);
	if (!result)
		put_types(visit, json_member(endpoint, "types"), data);
	return result;
}

/* ---- delivery page ---- */

int delivery_page(struct visit *visit, struct json_writer *data)
{
	struct json *attempts;
	struct slice text;
	char header[WORD_SIZE];
	snprintf(header, sizeof header, "X-%s", visit->admin->service->settings->service_prefix);
	for (char *at = header; *at; at++)
		*at = (char)toupper((unsigned char)*at);
	json_text(data, "header", header);
	int result = ask_source(visit, "webhook attempts", "endpoint={endpoint} notice={notice}", &text,
	                        &attempts);
	if (result == ERR_NOT_FOUND) {
		error_clear(visit->error);
		return OK;
	}
	if (!result)
		json_raw(data, "attempts", text);
	return result;
}
