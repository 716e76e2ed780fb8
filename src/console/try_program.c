#include "console/try_program.h"

#include "base/utf8.h"
#include "console/template.h"
#include "service/interface.h"

#define INDENTED_MAX ((size_t)64 << 10) /* longer output is written on one line */
#define INDENT 2

enum dialect { JSON_TEXT, PYTHON, TYPESCRIPT };

/* ---- literals ---- */

static void put_escape(struct buf *out, enum dialect dialect, uint32_t point)
{
	if (point <= 0xFFFF)
		buf_printf(out, "\\u%04x", point);
	else if (dialect == PYTHON)
		buf_printf(out, "\\U%08x", point);
	else if (dialect == TYPESCRIPT)
		buf_printf(out, "\\u{%x}", point);
	else
		buf_printf(out, "\\u%04x\\u%04x", 0xD800 + ((point - 0x10000) >> 10),
		           0xDC00 + ((point - 0x10000) & 0x3FF));
}

static void put_character(struct buf *out, enum dialect dialect, struct slice character)
{
	uint32_t point = template_code_point(character);
	if (point == '"' || point == '\\')
		buf_printf(out, "\\%c", (char)point);
	else if (point == '\n')
		buf_add_text(out, "\\n");
	else if (point == '\t')
		buf_add_text(out, "\\t");
	/* JSON is inside single quotes of a shell. */
	else if (template_is_unseen(point) || (point == '\'' && dialect == JSON_TEXT))
		put_escape(out, dialect, point);
	else
		buf_add_slice(out, character);
}

static void put_string(struct buf *out, enum dialect dialect, struct slice text)
{
	buf_add_byte(out, '"');
	while (text.size) {
		size_t size = utf8_character(text);
		size = size ? size : 1;
		put_character(out, dialect, slice_make(text.data, size));
		text = slice_make(text.data + size, text.size - size);
	}
	buf_add_byte(out, '"');
}

static const char *word(enum dialect dialect, enum json_type type)
{
	if (type == JSON_NULL)
		return dialect == PYTHON ? "None" : "null";
	if (type == JSON_TRUE)
		return dialect == PYTHON ? "True" : "true";
	return dialect == PYTHON ? "False" : "false";
}

/* In an object literal `__proto__` would set the prototype. */
static void put_name(struct buf *out, enum dialect dialect, struct slice name)
{
	bool computed = dialect == TYPESCRIPT && slice_is(name, "__proto__");
	buf_add_text(out, computed ? "[" : "");
	put_string(out, dialect, name);
	buf_add_text(out, computed ? "]: " : ": ");
}

static void put_line(struct buf *out, int indent)
{
	if (indent >= 0)
		buf_printf(out, "\n%*s", indent, "");
}

/* Writes a value. `indent`: indentation of its first line; below 0: all on one line. */
static void put_value(struct buf *out, enum dialect dialect, const struct json *json, int indent)
{
	bool object = json->type == JSON_OBJECT;
	int inner = indent < 0 ? indent : indent + INDENT;
	if (json->type == JSON_STRING) {
		put_string(out, dialect, json->text);
	} else if (json->type == JSON_NUMBER) {
		buf_add_slice(out, json->text);
	} else if (!object && json->type != JSON_ARRAY) {
		buf_add_text(out, word(dialect, json->type));
	} else {
		buf_add_byte(out, object ? '{' : '[');
		for (const struct json *at = json->first; at; at = at->next) {
			put_line(out, inner);
			if (object)
				put_name(out, dialect, at->name);
			put_value(out, dialect, at, inner);
			buf_add_text(out, !at->next ? "" : inner < 0 ? ", " : ",");
		}
		if (json->first)
			put_line(out, indent);
		buf_add_byte(out, object ? '}' : ']');
	}
}

static void put_literal(struct buf *out, enum dialect dialect, const struct json *json, int indent)
{
	BUF_AUTO struct buf lines;
	buf_init(&lines, INDENTED_MAX);
	put_value(&lines, dialect, json, indent);
	if (buf_check(&lines))
		put_value(out, dialect, json, -1);
	else
		buf_add_slice(out, buf_slice(&lines));
}

void try_json(const struct json *json, struct buf *out)
{
	put_literal(out, JSON_TEXT, json, 0);
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
	put_string(out, JSON_TEXT, call->client_ref);
	if (call->payload) {
		buf_add_text(out, ", \"payload\": ");
		put_literal(out, JSON_TEXT, call->payload, 0);
		buf_add_text(out, "}'\n");
	} else {
		buf_add_text(out, ", \"hash_alg\": \"sha-256\", \"hash\": \"'\"$HASH\"'\"}'\n");
	}
}

/* ---- the clients ---- */

static void put_scenario(const struct try_call *call, enum dialect dialect, struct buf *out)
{
	if (!call->scenario.size)
		return;
	buf_add_text(out, dialect == PYTHON ? ", scenario=" : ", scenario: ");
	put_string(out, dialect, call->scenario);
	if (strcmp(call->prefix, "svc") == 0)
		return; /* default of the clients */
	buf_add_text(out, dialect == PYTHON ? ", header_prefix=" : ", headerPrefix: ");
	put_string(out, dialect, slice_of(call->prefix));
}

void try_python(const struct try_call *call, struct buf *out)
{
	buf_printf(out, "%simport os\n\nfrom constancia import Client\n\n",
	           call->payload ? "" : "import hashlib\n");
	buf_printf(out, "# A test key of the channel %.*s\n", (int)call->channel_id.size,
	           call->channel_id.data);
	buf_add_text(out, "key = os.environ[\"CONSTANCIA_TEST_KEY\"]\nwith Client(");
	put_string(out, PYTHON, slice_of(call->base_url));
	buf_add_text(out, ", key");
	put_scenario(call, PYTHON, out);
	buf_add_text(out, ") as client:\n");
	if (!call->payload) {
		buf_add_text(out, "    content = ");
		put_string(out, PYTHON, call->text);
		buf_add_text(out, "\n    digest = hashlib.sha256(content.encode()).hexdigest()\n");
	}
	buf_printf(out, "    event = client.register%s(", call->payload ? "" : "_digest");
	put_string(out, PYTHON, call->client_ref);
	buf_add_text(out, ", ");
	if (call->payload)
		put_literal(out, PYTHON, call->payload, 4);
	else
		buf_add_text(out, "digest");
	buf_add_text(out, ")\n    print(event.event_id, event.hash)\n");
}

void try_typescript(const struct try_call *call, struct buf *out)
{
	buf_printf(out, "%simport { Client } from \"@constancia/client\";\n\n",
	           call->payload ? "" : "import { createHash } from \"node:crypto\";\n");
	buf_printf(out, "// A test key of the channel %.*s\n", (int)call->channel_id.size,
	           call->channel_id.data);
	buf_add_text(out, "const key = process.env.CONSTANCIA_TEST_KEY;\n"
	                  "const client = new Client({ baseUrl: ");
	put_string(out, TYPESCRIPT, slice_of(call->base_url));
	buf_add_text(out, ", key");
	put_scenario(call, TYPESCRIPT, out);
	buf_add_text(out, " });\n");
	if (!call->payload) {
		buf_add_text(out, "const content = ");
		put_string(out, TYPESCRIPT, call->text);
		buf_add_text(out,
		             ";\nconst digest = createHash(\"sha256\").update(content).digest(\"hex\");\n");
	}
	buf_printf(out, "const event = await client.register%s(", call->payload ? "" : "Digest");
	put_string(out, TYPESCRIPT, call->client_ref);
	buf_add_text(out, ", ");
	if (call->payload)
		put_literal(out, TYPESCRIPT, call->payload, 0);
	else
		buf_add_text(out, "digest");
	buf_add_text(out, ");\nconsole.log(event.event_id, event.hash);\n");
}
