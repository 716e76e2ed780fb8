#include "console/fields.h"

#include "base/percent.h"
#include "base/utf8.h"

/* ---- forms ---- */

static int refuse(struct error *error)
{
	return error_set(error, ERR_VALIDATION, MSG_CONSOLE_FORM, NULL);
}

/* Refuses a value. The message contains the field name if it is an identifier, so that its label
 * can be shown. */
static int refuse_value(struct slice name, struct error *error)
{
	char plain[FIELD_SIZE / 2], label[FIELD_SIZE];
	if (!name.size || name.size >= sizeof plain)
		return refuse(error);
	for (size_t i = 0; i < name.size; i++)
		if ((name.data[i] < 'a' || name.data[i] > 'z') && name.data[i] != '_')
			return refuse(error);
	memcpy(plain, name.data, name.size);
	plain[name.size] = '\0';
	error_field(plain, label);
	return error_set(error, ERR_VALIDATION, MSG_CONSOLE_FIELD, label, NULL);
}

static void join_line_ends(struct slice *text, char *data)
{
	size_t size = 0;
	for (size_t i = 0; i < text->size; i++) {
		bool both = data[i] == '\r' && i + 1 < text->size && data[i + 1] == '\n';
		if (!both)
			data[size++] = data[i] == '\r' ? '\n' : data[i];
	}
	data[size] = '\0';
	text->size = size;
}

static int decode(struct slice text, struct arena *arena, struct slice *ret, struct error *error)
{
	char *data = arena_copy(arena, text.size ? text.data : "", text.size);
	size_t size = 0;
	if (!data)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < text.size; i++)
		if (data[i] == '+')
			data[i] = ' ';
	if (!percent_decode(slice_make(data, text.size), data, text.size, &size))
		return refuse(error);
	*ret = slice_make(data, size);
	join_line_ends(ret, data);
	return utf8_valid(*ret) ? OK : refuse(error);
}

static int read_field(struct slice pair, struct arena *arena, struct fields *fields,
                      struct error *error)
{
	const char *sign = memchr(pair.data, '=', pair.size);
	size_t size = sign ? (size_t)(sign - pair.data) : pair.size;
	if (fields->count == FIELDS_MAX)
		return refuse(error);
	struct field *field = &fields->items[fields->count++];
	int result = decode(slice_make(pair.data, size), arena, &field->name, error);
	if (result)
		return result;
	result = decode(sign ? slice_make(sign + 1, pair.size - size - 1) : slice_of(""), arena,
	                &field->value, error);
	return result == ERR_VALIDATION ? refuse_value(field->name, error) : result;
}

int fields_read(struct slice text, struct arena *arena, struct fields *ret, struct error *error)
{
	int result = OK;
	ret->count = 0;
	while (text.size && !result) {
		const char *end = memchr(text.data, '&', text.size);
		size_t size = end ? (size_t)(end - text.data) : text.size;
		if (size)
			result = read_field(slice_make(text.data, size), arena, ret, error);
		size += end != NULL;
		text = slice_make(text.data + size, text.size - size);
	}
	return result;
}

const struct slice *fields_find(const struct fields *fields, const char *name)
{
	for (size_t i = 0; i < fields->count; i++)
		if (slice_is(fields->items[i].name, name))
			return &fields->items[i].value;
	return NULL;
}

struct slice fields_get(const struct fields *fields, const char *name)
{
	const struct slice *found = fields_find(fields, name);
	return found ? *found : slice_of("");
}

const char *fields_join(const struct fields *fields, struct slice name, struct arena *arena)
{
	const char *joined = NULL;
	for (size_t i = 0; i < fields->count; i++) {
		const struct field *field = &fields->items[i];
		if (!slice_equal(field->name, name))
			continue;
		const char *before = joined;
		joined = before ? arena_printf(arena, "%s,%.*s", before, (int)field->value.size,
		                               field->value.data)
		                : arena_copy(arena, field->value.data, field->value.size);
		if (!joined)
			return NULL;
	}
	return joined ? joined : "";
}

/* ---- cookies ---- */

struct slice cookie_find(struct slice header, const char *name)
{
	struct slice found = {NULL, 0};
	while (header.size) {
		const char *end = memchr(header.data, ';', header.size);
		size_t size = end ? (size_t)(end - header.data) : header.size;
		struct slice pair = slice_make(header.data, size);
		size += end != NULL;
		header = slice_make(header.data + size, header.size - size);
		while (pair.size && *pair.data == ' ')
			pair = slice_make(pair.data + 1, pair.size - 1);
		size_t name_size = strlen(name);
		if (pair.size <= name_size || pair.data[name_size] != '=' ||
		    memcmp(pair.data, name, name_size) != 0)
			continue;
		struct slice value = slice_make(pair.data + name_size + 1, pair.size - name_size - 1);
		if (found.data && !slice_equal(found, value))
			return slice_of("");
		found = value;
	}
	return found.data ? found : slice_of("");
}

/* ---- paths ---- */

bool path_decode(struct slice text, struct arena *arena, struct slice *ret)
{
	char *data = arena_copy(arena, text.size ? text.data : "", text.size);
	size_t size = 0;
	if (!data || !percent_decode(text, data, text.size, &size))
		return false;
	data[size] = '\0';
	*ret = slice_make(data, size);
	return utf8_valid(*ret);
}
