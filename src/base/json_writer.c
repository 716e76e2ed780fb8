/* Writer of JSON documents. */
#include "base/clock.h"
#include "base/json.h"
#include "base/json_canonical.h"

static void begin_value(struct json_writer *writer, const char *name)
{
	bool comma = writer->comma;
	writer->comma = true;
	if (!name) {
		if (comma)
			buf_add_byte(writer->out, ',');
		return;
	}
	size_t size = strlen(name);
	char *room = buf_extend(writer->out, comma + size + 3);
	if (!room)
		return;
	if (comma)
		*room++ = ',';
	*room++ = '"';
	memcpy(room, name, size);
	memcpy(room + size, "\":", 2);
}

static void begin_group(struct json_writer *writer, const char *name, char bracket)
{
	begin_value(writer, name);
	buf_add_byte(writer->out, bracket);
	writer->comma = false;
}

static void end_group(struct json_writer *writer, char bracket)
{
	buf_add_byte(writer->out, bracket);
	writer->comma = true;
}

void json_begin_object(struct json_writer *writer, const char *name)
{
	begin_group(writer, name, '{');
}

void json_end_object(struct json_writer *writer)
{
	end_group(writer, '}');
}

void json_begin_array(struct json_writer *writer, const char *name)
{
	begin_group(writer, name, '[');
}

void json_end_array(struct json_writer *writer)
{
	end_group(writer, ']');
}

void json_text(struct json_writer *writer, const char *name, const char *text)
{
	if (text)
		json_slice(writer, name, slice_of(text));
	else
		json_null(writer, name);
}

void json_slice(struct json_writer *writer, const char *name, struct slice text)
{
	begin_value(writer, name);
	json_add_string(writer->out, text);
}

void json_integer(struct json_writer *writer, const char *name, int64_t value)
{
	begin_value(writer, name);
	buf_add_signed(writer->out, value);
}

void json_boolean(struct json_writer *writer, const char *name, bool value)
{
	begin_value(writer, name);
	buf_add_text(writer->out, value ? "true" : "false");
}

void json_null(struct json_writer *writer, const char *name)
{
	begin_value(writer, name);
	buf_add_text(writer->out, "null");
}

void json_number(struct json_writer *writer, const char *name, double value)
{
	begin_value(writer, name);
	json_add_number(writer->out, value);
}

void json_hex(struct json_writer *writer, const char *name, const void *data, size_t size)
{
	begin_value(writer, name);
	buf_add_byte(writer->out, '"');
	buf_add_hex(writer->out, data, size);
	buf_add_byte(writer->out, '"');
}

void json_time(struct json_writer *writer, const char *name, int64_t time_us)
{
	if (time_us == TIME_NONE) {
		json_null(writer, name);
		return;
	}
	char text[TIME_TEXT_SIZE];
	time_format(time_us, text);
	json_text(writer, name, text);
}

void json_raw(struct json_writer *writer, const char *name, struct slice json)
{
	begin_value(writer, name);
	buf_add_slice(writer->out, json);
}
