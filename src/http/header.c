#include "http/header.h"

#include <ctype.h>
#include <strings.h>

#include "base/percent.h"
#include "base/utf8.h"

#define IDEMPOTENCY_KEY_MAX 255

struct slice header_trim(struct slice value)
{
	while (value.size && (value.data[0] == ' ' || value.data[0] == '\t'))
		value = slice_make(value.data + 1, value.size - 1);
	while (value.size && (value.data[value.size - 1] == ' ' || value.data[value.size - 1] == '\t'))
		value.size--;
	return value;
}

bool header_name_is(struct slice name, const char *text)
{
	return name.size == strlen(text) && strncasecmp(name.data, text, name.size) == 0;
}

/* Returns the text up to `separator` and advances *rest past it. */
static struct slice cut(struct slice *rest, char separator)
{
	const char *end = rest->size ? memchr(rest->data, separator, rest->size) : NULL;
	struct slice part = *rest;
	if (!end) {
		*rest = slice_make(rest->data + rest->size, 0);
		return part;
	}
	part.size = (size_t)(end - rest->data);
	*rest = slice_make(end + 1, rest->size - part.size - 1);
	return part;
}

/* Returns "0.750" in thousandths; 0 for a malformed value, so that it is not preferred. */
static int quality(struct slice text)
{
	if (!text.size || text.size > 5 || (text.data[0] != '0' && text.data[0] != '1'))
		return 0;
	int value = (text.data[0] - '0') * 1000;
	if (text.size > 1 && text.data[1] != '.')
		return 0;
	int weight = 100;
	for (size_t i = 2; i < text.size; i++, weight /= 10) {
		if (!isdigit((unsigned char)text.data[i]))
			return 0;
		value += (text.data[i] - '0') * weight;
	}
	return value > 1000 ? 0 : value;
}

/* Splits an element of a weighted list into the range and its weight. */
static struct slice weighted(struct slice element, int *ret_quality)
{
	struct slice range = header_trim(cut(&element, ';'));
	*ret_quality = 1000;
	while (element.size) {
		struct slice parameter = header_trim(cut(&element, ';'));
		struct slice name = header_trim(cut(&parameter, '='));
		if (header_name_is(name, "q"))
			*ret_quality = quality(header_trim(parameter));
	}
	return range;
}

enum language header_language(struct slice accept_language)
{
	int best[2] = {-1, -1};
	int place[2] = {0, 0};
	int any = -1;
	for (int i = 0; accept_language.size; i++) {
		int value;
		struct slice range = weighted(cut(&accept_language, ','), &value);
		struct slice rest = range;
		struct slice primary = cut(&rest, '-');
		int language = header_name_is(primary, "es")   ? LANGUAGE_SPANISH
		               : header_name_is(primary, "en") ? LANGUAGE_ENGLISH
		                                               : -1;
		if (slice_is(range, "*") && any < value) {
			any = value;
		} else if (language >= 0 && value > best[language]) {
			best[language] = value;
			place[language] = i;
		}
	}
	int english = best[LANGUAGE_ENGLISH] >= 0 ? best[LANGUAGE_ENGLISH] : any;
	int spanish = best[LANGUAGE_SPANISH] >= 0 ? best[LANGUAGE_SPANISH] : any;
	if (spanish <= 0 || spanish < english)
		return LANGUAGE_ENGLISH;
	if (spanish > english)
		return LANGUAGE_SPANISH;
	bool spanish_first = best[LANGUAGE_SPANISH] >= 0 && best[LANGUAGE_ENGLISH] >= 0 &&
	                     place[LANGUAGE_SPANISH] < place[LANGUAGE_ENGLISH];
	return spanish_first ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH;
}

/* Returns the weights of JSON and HTML, -1 if not named. */
static void weigh(struct slice accept, int *ret_json, int *ret_html)
{
	*ret_json = *ret_html = -1;
	while (accept.size) {
		int value;
		struct slice range = weighted(cut(&accept, ','), &value);
		if (header_name_is(range, "application/json") && value > *ret_json)
			*ret_json = value;
		else if ((header_name_is(range, "text/html") || header_name_is(range, "text/*")) &&
		         value > *ret_html)
			*ret_html = value;
	}
}

bool header_prefers_json(struct slice accept)
{
	int json, html;
	weigh(accept, &json, &html);
	return json > 0 && json >= html;
}

bool header_prefers_html(struct slice accept)
{
	int json, html;
	weigh(accept, &json, &html);
	return html > 0 && html > json;
}

bool header_media_type_is(struct slice content_type, const char *media_type)
{
	return header_name_is(header_trim(cut(&content_type, ';')), media_type);
}

bool header_is_idempotency_key(struct slice value)
{
	for (size_t i = 0; i < value.size; i++)
		if (value.data[i] <= 0x20 || value.data[i] >= 0x7f)
			return false;
	return value.size > 0 && value.size <= IDEMPOTENCY_KEY_MAX;
}

static bool is_token(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool header_is_token(struct slice name)
{
	for (size_t i = 0; i < name.size; i++)
		if (!is_token(name.data[i]))
			return false;
	return name.size > 0;
}

bool header_is_text(struct slice value)
{
	bool is_text = true;
	for (size_t i = 0; i < value.size; i++) {
		unsigned char c = (unsigned char)value.data[i];
		is_text &= (c >= 0x20 && c != 0x7f) || c == '\t';
	}
	return is_text;
}

static bool is_escape(struct slice text, size_t at, enum header_escapes escapes)
{
	if (escapes == ESCAPES_NONE || text.data[at] != '\\' || at + 1 >= text.size)
		return false;
	return escapes == ESCAPES_ALL || text.data[at + 1] == '"' || text.data[at + 1] == '\\';
}

/* Returns the position of the closing quote; past the end if there is none. */
static size_t closing_quote(struct slice text, enum header_escapes escapes)
{
	size_t at = 1;
	while (at < text.size && text.data[at] != '"')
		at += is_escape(text, at, escapes) ? 2 : 1;
	return at;
}

static int quoted(struct slice *rest, enum header_escapes escapes, struct arena *arena,
                  struct slice *ret)
{
	size_t end = closing_quote(*rest, escapes);
	if (end >= rest->size)
		return ERR_VALIDATION;
	char *text = arena_alloc(arena, end);
	size_t size = 0;
	if (!text)
		return ERR_NO_MEMORY;
	for (size_t i = 1; i < end; i++) {
		i += is_escape(*rest, i, escapes);
		text[size++] = rest->data[i];
	}
	*ret = slice_make(text, size);
	*rest = slice_make(rest->data + end + 1, rest->size - end - 1);
	return 0;
}

static struct slice token(struct slice *rest)
{
	size_t size = 0;
	while (size < rest->size && is_token(rest->data[size]))
		size++;
	struct slice found = slice_make(rest->data, size);
	*rest = slice_make(rest->data + size, rest->size - size);
	return found;
}

int header_parameter(struct slice *rest, enum header_escapes escapes, struct arena *arena,
                     struct slice *ret_name, struct slice *ret_value)
{
	*rest = header_trim(*rest);
	if (rest->size && rest->data[0] != ';')
		return ERR_VALIDATION;
	while (rest->size && rest->data[0] == ';')
		*rest = header_trim(slice_make(rest->data + 1, rest->size - 1));
	if (!rest->size)
		return 0;
	*ret_name = token(rest);
	if (!ret_name->size || rest->size < 2 || rest->data[0] != '=')
		return ERR_VALIDATION;
	*rest = slice_make(rest->data + 1, rest->size - 1);
	if (rest->data[0] == '"') {
		int result = quoted(rest, escapes, arena, ret_value);
		return result ? result : 1;
	}
	*ret_value = token(rest);
	return ret_value->size ? 1 : ERR_VALIDATION;
}

void header_disposition(struct slice name, struct buf *out)
{
	buf_add_text(out, "attachment; filename=\"");
	bool exact = true;
	for (size_t i = 0; i < name.size; i++) {
		unsigned char c = (unsigned char)name.data[i];
		bool plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '%';
		exact = exact && plain;
		/* One underscore per character, not per byte. */
		if (plain || (c & 0xc0) != 0x80)
			buf_add_byte(out, plain ? (char)c : '_');
	}
	buf_add_byte(out, '"');
	if (exact)
		return;
	buf_add_text(out, "; filename*=UTF-8''");
	buf_add_percent(out, name, "!#$&+^`|");
}

static bool number(struct slice text, uint64_t *ret)
{
	uint64_t value = 0;
	if (!text.size || text.size > 18)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		if (!isdigit((unsigned char)text.data[i]))
			return false;
		value = value * 10 + (uint64_t)(text.data[i] - '0');
	}
	*ret = value;
	return true;
}

enum header_range header_range(struct slice value, uint64_t size, uint64_t *ret_offset,
                               uint64_t *ret_size)
{
	value = header_trim(value);
	if (value.size < 6 || strncasecmp(value.data, "bytes=", 6) != 0 ||
	    memchr(value.data, ',', value.size))
		return RANGE_NONE;
	value = header_trim(slice_make(value.data + 6, value.size - 6));
	if (!value.size || !memchr(value.data, '-', value.size))
		return RANGE_NONE;
	struct slice first = header_trim(cut(&value, '-'));
	struct slice last = header_trim(value);
	uint64_t from, to;
	if (!first.size) {
		if (!number(last, &to))
			return RANGE_NONE;
		if (to == 0 || size == 0)
			return RANGE_UNSATISFIABLE;
		from = to < size ? size - to : 0;
		to = size - 1;
	} else {
		if (!number(first, &from) || (last.size && !number(last, &to)))
			return RANGE_NONE;
		if (last.size && to < from)
			return RANGE_NONE;
		if (from >= size)
			return RANGE_UNSATISFIABLE;
		if (!last.size || to >= size)
			to = size - 1;
	}
	*ret_offset = from;
	*ret_size = to - from + 1;
	return RANGE_PART;
}

bool header_has_entity_tag(struct slice none_match, const char *tag)
{
	size_t tag_size = strlen(tag);
	struct slice rest = header_trim(none_match);
	if (slice_is(rest, "*"))
		return true;
	while (rest.size) {
		if (rest.size > 2 && memcmp(rest.data, "W/\"", 3) == 0)
			rest = slice_make(rest.data + 2, rest.size - 2);
		if (rest.data[0] == ',') {
			rest = header_trim(slice_make(rest.data + 1, rest.size - 1));
			continue;
		}
		const char *end = rest.data[0] == '"' ? memchr(rest.data + 1, '"', rest.size - 1) : NULL;
		if (!end)
			return false;
		size_t size = (size_t)(end + 1 - rest.data);
		if (size == tag_size && memcmp(rest.data, tag, size) == 0)
			return true;
		rest = header_trim(slice_make(rest.data + size, rest.size - size));
		if (rest.size && rest.data[0] != ',')
			return false;
	}
	return false;
}

int header_unescape(struct slice text, struct arena *arena, struct slice *ret)
{
	char *decoded = arena_alloc(arena, text.size + 1);
	size_t size = 0;
	if (!decoded)
		return ERR_NO_MEMORY;
	bool whole = percent_decode(text, decoded, text.size, &size);
	*ret = slice_make(decoded, size);
	return whole && utf8_valid(*ret) ? 0 : ERR_VALIDATION;
}
