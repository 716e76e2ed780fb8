#include "console/try_program.h"

#include "base/utf8.h"
#include "console/template.h"
#include "service/interface.h"

#define INDENTED_MAX ((size_t)64 << 10) /* longer output is written on one line */
#define INDENT 2

/* ---- JSON ---- */

static void put_escape(struct buf *out, uint32_t point)
{
	if (point <= 0xFFFF)
		buf_printf(out, "\\u%04x", point);
	else
		buf_printf(out, "\\u%04x\\u%04x", 0xD800 + ((point - 0x10000) >> 10),
		           0xDC00 + ((point - 0x10000) & 0x3FF));
}

static void put_character(struct buf *out, struct slice character)
{
	uint32_t point = template_code_point(character);
	if (point == '"' || point == '\\')
		buf_printf(out, "\\%c", (char)point);
	else if (point == '\n')
		buf_add_text(out, "\\n");
	else if (point == '\t')
		buf_add_text(out, "\\t");
	/* JSON is inside single quotes of a shell. */
	else if (template_is_unseen(point) || point == '\'')
		put_escape(out, point);
	else
		buf_add_slice(out, character);
}

static void put_string(struct buf *out, struct slice text)
{
	buf_add_byte(out, '"');
	while (text.size) {
		size_t size = utf8_character(text);
		size = size ? size : 1;
		put_character(out, slice_make(text.data, size));
		text = slice_make(text.data + size, text.size - size);
	}
	buf_add_byte(out, '"');
}

static void put_line(struct buf *out, int indent)
{
	if (indent >= 0)
		buf_printf(out, "\n%*s", indent, "");
}

/* Writes a value. `indent`: indentation of its first line; below 0: all on one line. */
static void put_value(struct buf *out, const struct json *json, int indent)
{
	bool object = json->type == JSON_OBJECT;
	int inner = indent < 0 ? indent : indent + INDENT;
	if (json->type == JSON_STRING) {
		put_string(out, json->text);
	} else if (json->type == JSON_NUMBER) {
		buf_add_slice(out, json->text);
	} else if (!object && json->type != JSON_ARRAY) {
		buf_add_text(out, json->type == JSON_NULL   ? "null"
		                  : json->type == JSON_TRUE ? "true"
		                                            : "false");
	} else {
		buf_add_byte(out, object ? '{' : '[');
		for (const struct json *at = json->first; at; at = at->next) {
			put_line(out, inner);
			if (object) {
				put_string(out, at->name);
				buf_add_text(out, ": ");
			}
			put_value(out, at, inner);
			buf_add_text(out, !at->next ? "" : inner < 0 ? ", " : ",");
		}
		if (json->first)
			put_line(out, indent);
		buf_add_byte(out, object ? '}' : ']');
	}
}

void try_json(const struct json *json, struct buf *out)
{
	BUF_AUTO struct buf lines;
	buf_init(&lines, INDENTED_MAX);
	put_value(&lines, json, 0);
	if (buf_check(&lines))
		put_value(out, json, -1);
	else
		buf_add_slice(out, buf_slice(&lines));
}

/* ---- curl ---- */

/* Writes a printf(1) format in single quotes. A format that starts like an option would be parsed
 * as one. */
static void put_format(struct buf *out, struct slice text)
{
	buf_add_byte(out, '\'');
	if (text.size && text.data[0] == '-') {
		buf_printf(out, "\\%03o", '-');
		text = slice_make(text.data + 1, text.size - 1);
	}
	while (text.size) {
		size_t size = utf8_character(text);
		size = size ? size : 1;
		uint32_t point = template_code_point(slice_make(text.data, size));
		bool plain = point != '\'' && point != '\\' && point != '\t' && !template_is_unseen(point);
		if (point == '%')
			buf_add_byte(out, '%');
		for (size_t i = 0; i < size && !plain; i++)
			buf_printf(out, point == '\n' ? "\\n" : "\\%03o", (unsigned char)text.data[i]);
		if (plain)
			buf_add(out, text.data, size);
		text = slice_make(text.data + size, text.size - size);
	}
	buf_add_byte(out, '\'');
}

void try_curl(const struct try_call *call, struct buf *out)
{
	char header[SCENARIO_HEADER_SIZE];
	scenario_header(call->prefix, header);
	buf_printf(out, "# CONSTANCIA_TEST_KEY: a test key of the channel %.*s\n",
	           (int)call->channel_id.size, call->channel_id.data);
	if (!call->payload) {
		buf_add_text(out, "HASH=$(printf ");
		put_format(out, call->text);
		buf_add_text(out, " | sha256sum | cut -d ' ' -f 1)\n");
	}
	buf_printf(out, "curl -sS --fail-with-body '%s/events' \\\n", call->base_url);
	buf_add_text(out, "  -H \"Authorization: Bearer $CONSTANCIA_TEST_KEY\" \\\n"
	                  "  -H 'Content-Type: application/json' \\\n");
	if (call->scenario.size)
		buf_printf(out, "  -H '%s: %.*s' \\\n", header, (int)call->scenario.size,
		           call->scenario.data);
	buf_add_text(out, "  --data-raw '{\"client_ref\": ");
	put_string(out, call->client_ref);
	if (call->payload) {
		buf_add_text(out, ", \"payload\": ");
		try_json(call->payload, out);
		buf_add_text(out, "}'\n");
	} else {
		buf_add_text(out, ", \"hash_alg\": \"sha-256\", \"hash\": \"'\"$HASH\"'\"}'\n");
	}
}
