#include "service/list.h"

#define ITEMS "data"
#define MORE "has_more"
#define PARTIAL "incomplete"

void list_begin(struct json_writer *out)
{
	json_begin_object(out, NULL);
	json_begin_array(out, ITEMS);
}

static void end(struct json_writer *out, bool more)
{
	json_end_array(out);
	json_boolean(out, MORE, more);
}

void list_end(struct json_writer *out, bool more)
{
	end(out, more);
	json_end_object(out);
}

void list_end_partial(struct json_writer *out, bool more, bool partial)
{
	end(out, more);
	if (partial)
		json_boolean(out, PARTIAL, true);
	json_end_object(out);
}

bool list_is_partial(const struct json *json)
{
	return json_member(json, PARTIAL) != NULL;
}

void list_end_open(struct json_writer *out, bool more, const char *next_cursor)
{
	end(out, more);
	json_text(out, "next_cursor", next_cursor);
	json_end_object(out);
}

void list_end_with_cursor(struct json_writer *out, const char *next_cursor)
{
	list_end_open(out, next_cursor != NULL, next_cursor);
}

const struct json *list_read(const struct json *json, bool *ret_more)
{
	const struct json *items = json_member(json, ITEMS);
	const struct json *more = json_member(json, MORE);
	*ret_more = more && more->type == JSON_TRUE;
	return items && items->type == JSON_ARRAY ? items : NULL;
}
