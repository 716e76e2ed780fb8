#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json_canonical.h"
#include "base/json_path.h"
#include "base/json_scan.h"
#include "base/number.h"
#include "base/utf8.h"

#define DEPTH_DEFAULT 64
#define DEPTH_HIGHEST 1024 /* bounds the recursion of the parser */
#define INTEGER_LARGEST 9007199254740991
#define POSITION_SIZE (JSON_PATH_SIZE + 32)
/* Up to this number of members, names are compared pairwise for repetition; beyond it they are
 * sorted. */
#define PAIRWISE_MAX 12

/* An object or array whose children are being parsed, and the current child. */
struct level {
	const struct level *parent;
	bool is_array;
	struct slice name; /* of a member; without data: none yet */
	uint32_t index;    /* of an element */
};

struct parser {
	struct arena *arena;
	const struct level *level; /* NULL: the value itself */
	const char *start;
	const char *at;
	const char *end;
	uint32_t depth_max;
	uint32_t values_left;
	uint32_t value_max;
	struct error *error;
};

static void print_path(const struct level *level, char path[JSON_PATH_SIZE])
{
	*path = '\0';
	for (; level; level = level->parent) {
		bool known = level->is_array || level->name.data;
		if (known && !json_path_prepend(path, level->is_array ? NULL : &level->name, level->index))
			return;
	}
}

/* Prints the byte position, counted from 1, and the path of the value that is being parsed. */
static void print_position(const struct parser *parser, const char *at, char text[POSITION_SIZE])
{
	char path[JSON_PATH_SIZE];
	int size = snprintf(text, POSITION_SIZE, "%zu", (size_t)(at - parser->start) + 1);
	print_path(parser->level, path);
	if (*path)
		snprintf(text + size, (size_t)(POSITION_SIZE - size), " (%s)", path);
}

static int syntax(struct parser *parser, const char *at, const char *english, const char *spanish)
{
	char position[POSITION_SIZE];
	print_position(parser, at, position);
	return error_set(parser->error, ERR_VALIDATION, MSG_JSON_SYNTAX, english, spanish, position,
	                 NULL);
}

static int refuse(struct parser *parser, const char *at, enum message message)
{
	char position[POSITION_SIZE];
	print_position(parser, at, position);
	return error_set(parser->error, ERR_VALIDATION, message, position, NULL);
}

static int no_memory(struct parser *parser)
{
	return error_cause(parser->error, ERR_NO_MEMORY, "the JSON document exceeds its memory limit");
}

static void skip_space(struct parser *parser)
{
	const char *at = parser->at;
	while (at < parser->end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
		at++;
	parser->at = at;
}

static int unexpected(struct parser *parser, const char *english, const char *spanish)
{
	if (parser->at == parser->end)
		return syntax(parser, parser->at, "it ends too early", "termina antes de tiempo");
	return syntax(parser, parser->at, english, spanish);
}

/* Returns the value of four hexadecimal digits at `at`, or -1. */
static int32_t read_unit(const struct parser *parser, const char *at)
{
	int32_t unit = 0;
	if (parser->end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char digit = at[i];
		if (digit >= '0' && digit <= '9')
			unit = unit * 16 + (digit - '0');
		else if (digit >= 'a' && digit <= 'f')
			unit = unit * 16 + (digit - 'a' + 10);
		else if (digit >= 'A' && digit <= 'F')
			unit = unit * 16 + (digit - 'A' + 10);
		else
			return -1;
	}
	return unit;
}

static char *put_utf8(char *out, uint32_t point)
{
	if (point < 0x80) {
		*out++ = (char)point;
	} else if (point < 0x800) {
		*out++ = (char)(0xc0 | point >> 6);
		*out++ = (char)(0x80 | (point & 0x3f));
	} else if (point < 0x10000) {
		*out++ = (char)(0xe0 | point >> 12);
		*out++ = (char)(0x80 | (point >> 6 & 0x3f));
		*out++ = (char)(0x80 | (point & 0x3f));
	} else {
		*out++ = (char)(0xf0 | point >> 18);
		*out++ = (char)(0x80 | (point >> 12 & 0x3f));
		*out++ = (char)(0x80 | (point >> 6 & 0x3f));
		*out++ = (char)(0x80 | (point & 0x3f));
	}
	return out;
}

/* parser->at is after "\u". */
static int parse_unicode_escape(struct parser *parser, char **out)
{
	const char *at = parser->at;
	int32_t first = read_unit(parser, at);
	if (first < 0)
		return syntax(parser, at, "expected four hexadecimal digits",
		              "se esperaban cuatro cifras hexadecimales");
	parser->at += 4;
	if (first < 0xd800 || first > 0xdfff) {
		*out = put_utf8(*out, (uint32_t)first);
		return OK;
	}
	int32_t second = -1;
	if (first < 0xdc00 && parser->end - parser->at >= 6 && memcmp(parser->at, "\\u", 2) == 0)
		second = read_unit(parser, parser->at + 2);
	if (second < 0xdc00 || second > 0xdfff)
		return syntax(parser, at, "an unpaired surrogate", "un sustituto sin pareja");
	parser->at += 6;
	*out = put_utf8(*out, 0x10000 + ((uint32_t)first - 0xd800) * 0x400 + (uint32_t)second - 0xdc00);
	return OK;
}

/* parser->at is at the backslash. */
static int parse_escape(struct parser *parser, char **out)
{
	static const char names[] = "\"\\/bfnrt";
	static const char values[] = "\"\\/\b\f\n\r\t";
	parser->at++;
	if (parser->at == parser->end)
		return unexpected(parser, "", "");
	if (*parser->at == 'u') {
		parser->at++;
		return parse_unicode_escape(parser, out);
	}
	const char *name = memchr(names, *parser->at, sizeof names - 1);
	if (!name)
		return syntax(parser, parser->at, "an unknown escape",
		              "una secuencia de escape desconocida");
	*(*out)++ = values[name - names];
	parser->at++;
	return OK;
}

/* Skips text without escapes. Returns 0 at a quote or backslash. */
static int skip_plain(struct parser *parser)
{
	for (;;) {
		parser->at += json_plain_run(parser->at, (size_t)(parser->end - parser->at), 0x80);
		if (parser->at == parser->end)
			return unexpected(parser, "", "");
		if (*parser->at == '"' || *parser->at == '\\')
			return OK;
		if (*parser->at >= 0 && *parser->at < 0x20)
			return syntax(parser, parser->at, "an unescaped control character",
			              "un carácter de control sin escapar");
		size_t size = utf8_character(slice_make(parser->at, (size_t)(parser->end - parser->at)));
		if (!size)
			return syntax(parser, parser->at, "invalid UTF-8", "UTF-8 no válido");
		parser->at += size;
	}
}

/* Returns the number of bytes to the closing quote, an upper bound of the decoded size. */
static size_t quoted_size(const struct parser *parser)
{
	const char *at = parser->at;
	while (at < parser->end && *at != '"')
		at += *at == '\\' && parser->end - at > 1 ? 2 : 1;
	return (size_t)(at - parser->at);
}

/* parser->at is at the opening quote. */
static int parse_string(struct parser *parser, struct slice *ret_text)
{
	const char *start = ++parser->at;
	int result = skip_plain(parser);
	if (result)
		return result;
	if (*parser->at == '"') {
		*ret_text = slice_make(start, (size_t)(parser->at++ - start));
		return OK;
	}
	size_t plain = (size_t)(parser->at - start);
	char *text = arena_alloc(parser->arena, plain + quoted_size(parser));
	if (!text)
		return no_memory(parser);
	char *out = text;
	for (;;) {
		plain = (size_t)(parser->at - start);
		memcpy(out, start, plain);
		out += plain;
		if (*parser->at == '"')
			break;
		result = parse_escape(parser, &out);
		start = parser->at;
		if (!result)
			result = skip_plain(parser);
		if (result)
			return result;
	}
	parser->at++;
	*ret_text = slice_make(text, (size_t)(out - text));
	return OK;
}

static bool at_digit(const struct parser *parser)
{
	return parser->at < parser->end && *parser->at >= '0' && *parser->at <= '9';
}

static int skip_digits(struct parser *parser)
{
	if (!at_digit(parser))
		return unexpected(parser, "expected a digit", "se esperaba una cifra");
	while (at_digit(parser))
		parser->at++;
	return OK;
}

static int skip_number(struct parser *parser, bool *ret_integer)
{
	bool integer = true;
	if (*parser->at == '-')
		parser->at++;
	const char *first = parser->at;
	int result = skip_digits(parser);
	if (!result && *first == '0' && parser->at - first > 1)
		return syntax(parser, first, "a number with a leading zero",
		              "un número con un cero delante");
	if (!result && parser->at < parser->end && *parser->at == '.') {
		integer = false;
		parser->at++;
		result = skip_digits(parser);
	}
	if (!result && parser->at < parser->end && (*parser->at | 0x20) == 'e') {
		integer = false;
		parser->at++;
		if (parser->at < parser->end && (*parser->at == '+' || *parser->at == '-'))
			parser->at++;
		result = skip_digits(parser);
	}
	*ret_integer = integer;
	return result;
}

static int parse_number(struct parser *parser, struct json *json)
{
	const char *start = parser->at;
	int result = skip_number(parser, &json->is_integer);
	if (result)
		return result;
	json->type = JSON_NUMBER;
	json->text = slice_make(start, (size_t)(parser->at - start));
	if (!json->is_integer) {
		switch (number_parse(start, json->text.size, &json->number)) {
		case NUMBER_GOOD: return OK;
		case NUMBER_OVERFLOW: return refuse(parser, start, MSG_BASE_JSON_OVERFLOW);
		case NUMBER_MALFORMED:
			return syntax(parser, start, "an invalid number", "un número no válido");
		}
	}
	bool negative = *start == '-';
	if (json->text.size - negative > 16)
		return refuse(parser, start, MSG_BASE_JSON_INTEGER);
	int64_t value = 0;
	for (const char *at = start + negative; at < parser->at; at++)
		value = value * 10 + (*at - '0');
	if (value > INTEGER_LARGEST)
		return refuse(parser, start, MSG_BASE_JSON_INTEGER);
	json->number = (double)(negative ? -value : value);
	return OK;
}

static int parse_word(struct parser *parser, struct json *json)
{
	static const struct {
		struct slice word;
		enum json_type type;
	} words[] = {{{"null", 4}, JSON_NULL}, {{"true", 4}, JSON_TRUE}, {{"false", 5}, JSON_FALSE}};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		struct slice word = words[i].word;
		if ((size_t)(parser->end - parser->at) < word.size ||
		    memcmp(parser->at, word.data, word.size) != 0)
			continue;
		parser->at += word.size;
		json->type = words[i].type;
		return OK;
	}
	return unexpected(parser, "expected a value", "se esperaba un valor");
}

static int refuse_repeated(struct parser *parser, const char *object, struct slice name)
{
	char position[24], path[JSON_PATH_SIZE];
	const struct level level = {.parent = parser->level, .name = name};
	snprintf(position, sizeof position, "%zu", (size_t)(object - parser->start) + 1);
	print_path(&level, path);
	return error_set(parser->error, ERR_VALIDATION, MSG_BASE_JSON_REPEATED, path, position, NULL);
}

static int compare_entries(const void *a, const void *b)
{
	const struct json *const *left = a;
	const struct json *const *right = b;
	return json_compare_names((*left)->name, (*right)->name);
}

/* `object` is the position of the opening brace. */
static int check_names(struct parser *parser, const struct json *json, const char *object)
{
	if (json->count <= PAIRWISE_MAX) {
		for (const struct json *a = json->first; a; a = a->next)
			for (const struct json *b = a->next; b; b = b->next)
				if (slice_equal(a->name, b->name))
					return refuse_repeated(parser, object, b->name);
		return OK;
	}
	const struct json **entries = arena_alloc(parser->arena, json->count * sizeof *entries);
	if (!entries)
		return no_memory(parser);
	size_t count = 0;
	for (const struct json *member = json->first; member; member = member->next)
		entries[count++] = member;
	qsort(entries, count, sizeof *entries, compare_entries);
	for (size_t i = 1; i < count; i++)
		if (slice_equal(entries[i - 1]->name, entries[i]->name))
			return refuse_repeated(parser, object, entries[i]->name);
	return OK;
}

static int parse_value(struct parser *parser, uint32_t depth, struct slice name,
                       struct json **ret_json);

static int parse_name(struct parser *parser, struct slice *ret_name)
{
	skip_space(parser);
	if (parser->at == parser->end || *parser->at != '"')
		return unexpected(parser, "expected a member name", "se esperaba un nombre de miembro");
	int result = parse_string(parser, ret_name);
	if (result)
		return result;
	skip_space(parser);
	if (parser->at == parser->end || *parser->at != ':')
		return unexpected(parser, "expected a colon", "se esperaban dos puntos");
	parser->at++;
	return OK;
}

/* Parses the children of an array or object; parser->at is at the opening bracket. */
static int parse_group(struct parser *parser, uint32_t depth, struct json *json)
{
	const char *start = parser->at++;
	bool object = *start == '{';
	char closing = object ? '}' : ']';
	bool ascending = true;
	struct slice name = {0};
	struct level level = {.parent = parser->level, .is_array = !object};
	struct json **tail = &json->first;
	json->type = object ? JSON_OBJECT : JSON_ARRAY;
	skip_space(parser);
	if (parser->at < parser->end && *parser->at == closing) {
		parser->at++;
		return OK;
	}
	parser->level = &level;
	for (;;) {
		struct slice previous = name;
		level.index = json->count;
		level.name = (struct slice){0};
		int result = object ? parse_name(parser, &name) : OK;
		level.name = name;
		if (!result)
			result = parse_value(parser, depth + 1, name, tail);
		if (result)
			return result;
		if (object && ascending && json->count > 0)
			ascending = json_compare_names(previous, name) < 0;
		json->count++;
		tail = &(*tail)->next;
		skip_space(parser);
		if (parser->at == parser->end || (*parser->at != ',' && *parser->at != closing))
			return unexpected(parser, "expected a comma or closing bracket",
			                  "se esperaba una coma o el cierre");
		if (*parser->at++ == closing)
			break;
	}
	parser->level = level.parent;
	return ascending ? OK : check_names(parser, json, start);
}

static int refuse_depth(struct parser *parser)
{
	char position[POSITION_SIZE];
	char levels[24];
	print_position(parser, parser->at, position);
	snprintf(levels, sizeof levels, "%u", parser->depth_max);
	return error_set(parser->error, ERR_VALIDATION, MSG_BASE_JSON_DEPTH, levels, position, NULL);
}

static int refuse_count(struct parser *parser)
{
	char count[24];
	snprintf(count, sizeof count, "%u", parser->value_max);
	return error_set(parser->error, ERR_VALIDATION, MSG_BASE_JSON_VALUES, count, NULL);
}

static int parse_value(struct parser *parser, uint32_t depth, struct slice name,
                       struct json **ret_json)
{
	skip_space(parser);
	if (parser->values_left-- == 0)
		return refuse_count(parser);
	struct json *json = arena_alloc(parser->arena, sizeof *json);
	if (!json)
		return no_memory(parser);
	json->name = name;
	*ret_json = json;
	switch (parser->at < parser->end ? *parser->at : '\0') {
	case '{':
	case '[':
		return depth > parser->depth_max ? refuse_depth(parser) : parse_group(parser, depth, json);
	case '"': json->type = JSON_STRING; return parse_string(parser, &json->text);
	case '-':
	case '0' ... '9': return parse_number(parser, json);
	default: return parse_word(parser, json);
	}
}

int json_parse(struct arena *arena, struct slice text, const struct json_limits *limits,
               struct json **ret_json, struct error *error)
{
	struct parser parser = {
		.arena = arena,
		.start = text.data,
		.at = text.data,
		.end = text.data + text.size,
		.depth_max = limits && limits->depth_max ? limits->depth_max : DEPTH_DEFAULT,
		.value_max = limits && limits->value_max ? limits->value_max : UINT32_MAX,
		.error = error,
	};
	if (parser.depth_max > DEPTH_HIGHEST)
		parser.depth_max = DEPTH_HIGHEST;
	parser.values_left = parser.value_max;
	if (text.size >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
		return error_set(error, ERR_VALIDATION, MSG_BASE_JSON_BOM, NULL);
	struct json *json = NULL;
	int result = parse_value(&parser, 1, (struct slice){0}, &json);
	if (result)
		return result;
	skip_space(&parser);
	if (parser.at < parser.end)
		return syntax(&parser, parser.at, "unexpected data after the value",
		              "datos inesperados tras el valor");
	*ret_json = json;
	return OK;
}

struct json *json_member(const struct json *json, const char *name)
{
	if (!json || json->type != JSON_OBJECT)
		return NULL;
	struct slice wanted = slice_of(name);
	for (struct json *member = json->first; member; member = member->next)
		if (slice_equal(member->name, wanted))
			return member;
	return NULL;
}

bool json_get_text(const struct json *json, const char *name, struct slice *ret_text)
{
	const struct json *member = json_member(json, name);
	if (!member || member->type != JSON_STRING)
		return false;
	*ret_text = member->text;
	return true;
}

bool json_get_integer(const struct json *json, const char *name, int64_t *ret_value)
{
	const struct json *member = json_member(json, name);
	if (!member || member->type != JSON_NUMBER || !member->is_integer)
		return false;
	*ret_value = (int64_t)member->number;
	return true;
}
