#include "console/channel_pages.h"

#include <stdio.h>

#define VERSIONS_SHOWN 50
#define NAME_SIZE 64

static const char *const fields[] = {"name", "declarant", "modality", "description",
                                     "supplementary_info"};
#define FIELDS (sizeof fields / sizeof *fields)

/* Copies the members of an answer except lists. */
static void put_members(struct json_writer *out, const struct json *object)
{
	for (const struct json *at = object->first; at; at = at->next) {
		char name[NAME_SIZE];
		snprintf(name, sizeof name, "%.*s", (int)at->name.size, at->name.data);
		if (at->type == JSON_STRING)
			json_slice(out, name, at->text);
		else if (at->type == JSON_NUMBER)
			json_raw(out, name, at->text);
		else if (at->type == JSON_TRUE || at->type == JSON_FALSE)
			json_boolean(out, name, at->type == JSON_TRUE);
	}
}

static struct slice text_of(const struct json *version, const char *field)
{
	struct slice text = slice_of("");
	if (version)
		(void)json_get_text(version, field, &text);
	return text;
}

static void put_version(struct json_writer *out, const struct json *version,
                        const struct json *before)
{
	json_begin_object(out, NULL);
	put_members(out, version);
	json_boolean(out, "first", !before);
	json_begin_array(out, "changes");
	for (size_t i = 0; i < FIELDS; i++) {
		struct slice old = text_of(before, fields[i]), new = text_of(version, fields[i]);
		if (slice_equal(old, new))
			continue;
		json_begin_object(out, NULL);
		json_text(out, "field", fields[i]);
		json_slice(out, "old", old);
		json_slice(out, "new", new);
		json_end_object(out);
	}
	json_end_array(out);
	json_end_object(out);
}

/* Reads `before`; if it is not a number, starts with the newest version. */
static int64_t read_before(const struct visit *visit)
{
	struct slice text = fields_get(&visit->query, "before");
	int64_t number = 0;
	for (size_t i = 0; i < text.size && i < 15; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return 0;
		number = number * 10 + (text.data[i] - '0');
	}
	return number > 1 ? number : 0;
}

/* Writes the versions, newest first. One more than is shown was read, to determine the changes of
 * the last one. */
static void put_versions(const struct json *versions, struct json_writer *data)
{
	const struct json *all[VERSIONS_SHOWN + 1];
	size_t count = 0, more;
	for (const struct json *at = versions ? versions->first : NULL;
	     at && count < sizeof all / sizeof *all; at = at->next)
		all[count++] = at;
	more = count > VERSIONS_SHOWN;
	json_begin_array(data, "versions");
	for (size_t i = count; i > more; i--)
		put_version(data, all[i - 1], i > 1 ? all[i - 2] : NULL);
	json_end_array(data);
	const struct json *last = more ? json_member(all[1], "version") : NULL;
	if (last)
		json_raw(data, "older", last->text);
}

int channel_page(struct visit *visit, struct json_writer *data)
{
	struct json *newest, *page;
	struct slice text;
	char from[96], before[32] = "";
	int64_t number = read_before(visit);
	if (number)
		snprintf(before, sizeof before, " before=%lld", (long long)number);
	snprintf(from, sizeof from, "channel={channel} limit=%d%s", VERSIONS_SHOWN + 1, before);
	int result = ask_source(visit, "channel show", "channel={channel} limit=1", &text, &newest);
	if (!result)
		result = ask_source(visit, "channel show", from, &text, &page);
	if (result)
		return result;
	json_begin_object(data, "channel");
	put_members(data, newest);
	json_end_object(data);
	const struct json *current = json_member(newest, "config_versions");
	json_begin_object(data, "current");
	if (current && current->first)
		put_members(data, current->first);
	json_end_object(data);
	put_versions(json_member(page, "config_versions"), data);
	return OK;
}

int selected_channel(struct visit *visit, struct slice *ret_channel)
{
	struct json *json;
	struct slice text;
	*ret_channel = fields_get(&visit->query, "channel");
	if (ret_channel->size)
		return OK;
	int result = ask_source(visit, "channel list", "limit=1", &text, &json);
	if (result)
		return result;
	const struct json *rows = json_member(json, "data");
	if (rows && rows->first)
		(void)json_get_text(rows->first, "channel_id", ret_channel);
	return OK;
}
