#include "console/template_value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/percent.h"
#include "base/utf8.h"

#define DRAWN_MAX ((size_t)4 << 20) /* maximum size of one value */
#define JSON_DEPTH_MAX 64
#define DATE_SIZE 10 /* "2026-01-31" */
#define KIB 1024
#define MINUTE 60
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

/* ---- escaping ---- */

uint32_t template_code_point(struct slice character)
{
	const unsigned char *bytes = (const unsigned char *)character.data;
	uint32_t point = character.size == 1 ? bytes[0] : bytes[0] & (0x7FU >> character.size);
	for (size_t i = 1; i < character.size; i++)
		point = point << 6 | (bytes[i] & 0x3FU);
	return point;
}

/* Joiners are not included, because spelling requires them. */
bool template_is_unseen(uint32_t point)
{
	switch (point) {
	case 0x00AD:
	case 0x061C:
	case 0x115F ... 0x1160:
	case 0x17B4 ... 0x17B5:
	case 0x180B ... 0x180F:
	case 0x200B:
	case 0x200E ... 0x200F:
	case 0x2028 ... 0x202E:
	case 0x2060 ... 0x206F:
	case 0x2800:
	case 0x3164:
	case 0xE000 ... 0xF8FF:
	case 0xFE00 ... 0xFE0E:
	case 0xFEFF:
	case 0xFFA0:
	case 0xFFF0 ... 0xFFFB:
	case 0xFFFE ... 0xFFFF:
	case 0xE0000 ... 0x10FFFF: return true;
	case '\t':
	case '\n': return false;
	default: return point < 0x20 || (point >= 0x7F && point < 0xA0);
	}
}

/* Returns whether to show the character by its code point. A field keeps characters where possible;
 * HTML cannot contain NUL. */
static bool is_shown_by_number(uint32_t point, enum template_place place)
{
	if (place == TEMPLATE_IN_TEXT)
		return template_is_unseen(point);
	return point == 0 || (point < 0x20 && point != '\t' && point != '\n' && point != '\r');
}

static void escape_ascii(struct buf *out, char byte)
{
	switch (byte) {
	case '<': buf_add_text(out, "&lt;"); break;
	case '>': buf_add_text(out, "&gt;"); break;
	case '&': buf_add_text(out, "&amp;"); break;
	case '"': buf_add_text(out, "&quot;"); break;
	case '\'': buf_add_text(out, "&#39;"); break;
	/* Browsers would convert a literal CR to a line feed. */
	case '\r': buf_add_text(out, "&#13;"); break;
	default: buf_add_byte(out, byte);
	}
}

/* Escapes an address part. A segment of only dots would lead to another path. */
static void escape_address(struct buf *out, struct slice text)
{
	bool dots = slice_is(text, ".") || slice_is(text, "..");
	buf_add_percent(out, dots || !utf8_valid(text) ? slice_of("?") : text, "");
}

static bool is_local(struct slice text)
{
	if (!text.size || text.data[0] != '/' || (text.size > 1 && text.data[1] == '/'))
		return false;
	for (size_t i = 0; i < text.size; i++)
		if (!memchr(
				"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-._~?=&%+:,@",
				text.data[i],
				sizeof "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-._~?=&%+:,@" -
					1))
			return false;
	return true;
}

void template_escape(struct buf *out, struct slice text, enum template_place place)
{
	if (place == TEMPLATE_IN_ADDRESS) {
		escape_address(out, text);
		return;
	}
	if (place == TEMPLATE_IN_LOCAL && !is_local(text)) {
		buf_add_byte(out, '#');
		return;
	}
	for (size_t at = 0; at < text.size && !out->failed;) {
		size_t size = utf8_character(slice_make(text.data + at, text.size - at));
		uint32_t point = size ? template_code_point(slice_make(text.data + at, size)) : 0;
		if (!size)
			buf_printf(out, "‹0x%02X›", (unsigned)(unsigned char)text.data[at]);
		else if (is_shown_by_number(point, place))
			buf_printf(out, "‹U+%04" PRIX32 "›", point);
		else if (size == 1)
			escape_ascii(out, text.data[at]);
		else
			buf_add(out, text.data + at, size);
		at += size ? size : 1;
	}
}

/* ---- numbers ---- */

static bool whole_number(const struct json *json, int64_t *ret)
{
	char digits[24];
	char *end;
	if (json && json->type == JSON_ARRAY) {
		*ret = json->count;
		return true;
	}
	if (!json || (json->type != JSON_NUMBER && json->type != JSON_STRING) || !json->text.size ||
	    json->text.size >= sizeof digits || !memchr("-0123456789", json->text.data[0], 11))
		return false;
	memcpy(digits, json->text.data, json->text.size);
	digits[json->text.size] = '\0';
	errno = 0;
	*ret = strtoll(digits, &end, 10);
	return !errno && end == digits + json->text.size;
}

/* Groups digits by thousands; Spanish does not group four digits. */
static void group(struct buf *out, struct slice digits, enum language language)
{
	bool spanish = language == LANGUAGE_SPANISH;
	for (size_t i = 0; i < digits.size; i++) {
		if (i && (digits.size - i) % 3 == 0 && !(spanish && digits.size <= 4))
			buf_add_byte(out, spanish ? '.' : ',');
		buf_add_byte(out, digits.data[i]);
	}
}

void template_number(struct buf *out, int64_t number, enum language language)
{
	char digits[24];
	int size = snprintf(digits, sizeof digits, "%" PRId64, number);
	bool negative = number < 0;
	if (negative)
		buf_add_text(out, "−");
	group(out, slice_make(digits + negative, (size_t)(size - negative)), language);
}

static bool draw_number(const struct template_value *value, struct buf *out)
{
	int64_t number;
	if (!whole_number(value->json, &number))
		return false;
	template_number(out, number, value->language);
	if (value->type != TEMPLATE_CREDITS)
		return true;
	bool one = number == 1 || number == -1;
	if (value->language == LANGUAGE_SPANISH)
		buf_add_text(out, one ? " crédito" : " créditos");
	else
		buf_add_text(out, one ? " credit" : " credits");
	return true;
}

static bool digits_only(struct slice text)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
	return text.size > 0;
}

static bool draw_money(const struct template_value *value, struct buf *out)
{
	if (!value->json || (value->json->type != JSON_STRING && value->json->type != JSON_NUMBER))
		return false;
	struct slice text = value->json->text;
	bool negative = text.size && text.data[0] == '-';
	text = slice_make(text.data + negative, text.size - negative);
	const char *point = text.size ? memchr(text.data, '.', text.size) : NULL;
	struct slice units = slice_make(text.data, point ? (size_t)(point - text.data) : text.size);
	struct slice cents = point ? slice_make(point + 1, text.size - units.size - 1) : slice_of("");
	if (!digits_only(units) || (point && !digits_only(cents)))
		return false;
	if (negative)
		buf_add_text(out, "−");
	group(out, units, value->language);
	if (point)
		buf_add_byte(out, value->language == LANGUAGE_SPANISH ? ',' : '.');
	buf_add_slice(out, cents);
	if (value->other && value->other->type == JSON_STRING) {
		buf_add_byte(out, ' ');
		template_escape(out, value->other->text, value->place);
	}
	return true;
}

static bool draw_bytes(const struct template_value *value, struct buf *out)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	int64_t bytes;
	if (!whole_number(value->json, &bytes) || bytes < 0)
		return false;
	if (bytes < KIB) {
		buf_printf(out, "%" PRId64 " %s", bytes, bytes == 1 ? "byte" : "bytes");
		return true;
	}
	size_t unit = 0;
	double amount = (double)bytes / KIB;
	for (; amount >= KIB - 0.05 && unit + 1 < sizeof units / sizeof *units; unit++)
		amount /= KIB;
	int tenths = (int)(amount * 10 + 0.5);
	buf_printf(out, "%d", tenths / 10);
	if (tenths % 10)
		buf_printf(out, "%c%d", value->language == LANGUAGE_SPANISH ? ',' : '.', tenths % 10);
	buf_printf(out, " %s", units[unit]);
	return true;
}

static bool draw_duration(const struct template_value *value, struct buf *out)
{
	static const struct {
		int64_t seconds;
		const char *unit;
	} units[] = {{DAY, "d"}, {HOUR, "h"}, {MINUTE, "min"}, {1, "s"}};
	int64_t left;
	if (!whole_number(value->json, &left) || left < 0)
		return false;
	size_t unit = 0;
	while (left < units[unit].seconds && units[unit].seconds > 1)
		unit++;
	buf_printf(out, "%" PRId64 " %s", left / units[unit].seconds, units[unit].unit);
	left %= units[unit].seconds;
	if (unit < 2 && left >= units[unit + 1].seconds)
		buf_printf(out, " %" PRId64 " %s", left / units[unit + 1].seconds, units[unit + 1].unit);
	return true;
}

/* ---- times ---- */

static bool read_time(const struct template_value *value, char text[TIME_TEXT_SIZE])
{
	char moment[TIME_TEXT_SIZE];
	int64_t time_us;
	if (!value->json || value->json->type != JSON_STRING)
		return false;
	struct slice given = value->json->text;
	if (given.size == DATE_SIZE && value->type == TEMPLATE_DATE) {
		snprintf(moment, sizeof moment, "%.10sT00:00:00Z", given.data);
		given = slice_of(moment);
	}
	if (time_parse(given, "time", &time_us, NULL))
		return false;
	time_format(time_us, text);
	return true;
}

static bool draw_time(const struct template_value *value, struct buf *out)
{
	static const char *const months[][12] = {
		{"January", "February", "March", "April", "May", "June", "July", "August", "September",
	     "October", "November", "December"},
		{"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre",
	     "octubre", "noviembre", "diciembre"}};
	char text[TIME_TEXT_SIZE]; /* 2026-11-21T09:15:02.123456Z */
	if (!read_time(value, text))
		return false;
	bool element = value->place == TEMPLATE_IN_TEXT;
	bool date = value->type == TEMPLATE_DATE;
	const char *of = value->language == LANGUAGE_SPANISH ? " de " : " ";
	int month = (text[5] - '0') * 10 + text[6] - '0';
	int day = (text[8] - '0') * 10 + text[9] - '0';
	if (element)
		buf_printf(out, "<time datetime=\"%.*s\">", date ? DATE_SIZE : TIME_TEXT_SIZE - 1, text);
	buf_printf(out, "%d%s%s%s%.4s", day, of, months[value->language][month - 1], of, text);
	if (!date)
		buf_printf(out, ", %.8s UTC", text + DATE_SIZE + 1);
	if (element)
		buf_add_text(out, "</time>");
	return true;
}

/* ---- JSON ---- */

static void put_string(struct buf *out, struct slice text)
{
	buf_add_byte(out, '"');
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] == '"' || text.data[i] == '\\')
			buf_add_byte(out, '\\');
		if ((unsigned char)text.data[i] < 0x20)
			buf_printf(out, "\\u%04x", (unsigned)(unsigned char)text.data[i]);
		else
			buf_add_byte(out, text.data[i]);
	}
	buf_add_byte(out, '"');
}

static void put_json(struct buf *out, const struct json *json, int depth)
{
	bool object = json->type == JSON_OBJECT;
	if (depth > JSON_DEPTH_MAX) {
		buf_add_text(out, "…");
		return;
	}
	switch (json->type) {
	case JSON_NULL: buf_add_text(out, "null"); return;
	case JSON_FALSE: buf_add_text(out, "false"); return;
	case JSON_TRUE: buf_add_text(out, "true"); return;
	case JSON_NUMBER: buf_add_slice(out, json->text); return;
	case JSON_STRING: put_string(out, json->text); return;
	default: break;
	}
	buf_add_byte(out, object ? '{' : '[');
	for (const struct json *child = json->first; child && !out->failed; child = child->next) {
		if (object) {
			put_string(out, child->name);
			buf_add_text(out, ": ");
		}
		put_json(out, child, depth + 1);
		if (child->next)
			buf_add_text(out, ", ");
	}
	buf_add_byte(out, object ? '}' : ']');
}

void template_json(struct buf *out, const struct json *json)
{
	put_json(out, json, 0);
}

static void draw_json(const struct template_value *value, struct buf *out)
{
	BUF_AUTO struct buf text;
	buf_init(&text, DRAWN_MAX);
	put_json(&text, value->json, 0);
	template_escape(out, buf_check(&text) ? slice_of("…") : buf_slice(&text), value->place);
}

/* ---- any ---- */

static void draw_plain(const struct template_value *value, struct buf *out)
{
	if (value->json->type == JSON_STRING || value->json->type == JSON_NUMBER)
		template_escape(out, value->json->text, value->place);
	else if (value->place == TEMPLATE_IN_LOCAL)
		buf_add_byte(out, '#');
}

static void draw_hash(const struct template_value *value, struct buf *out)
{
	bool element = value->place == TEMPLATE_IN_TEXT && value->json->type == JSON_STRING;
	if (element)
		buf_add_text(out, "<code class=\"hash\">");
	draw_plain(value, out);
	if (element)
		buf_add_text(out, "</code>");
}

void template_value_draw(const struct template_value *value, struct buf *out)
{
	bool drawn = false;
	if (!value->json || value->json->type == JSON_NULL) {
		if (value->place == TEMPLATE_IN_LOCAL)
			buf_add_byte(out, '#');
		return;
	}
	switch (value->type) {
	case TEMPLATE_TEXT:
	case TEMPLATE_LOCAL: break;
	case TEMPLATE_NUMBER:
	case TEMPLATE_CREDITS: drawn = draw_number(value, out); break;
	case TEMPLATE_MONEY: drawn = draw_money(value, out); break;
	case TEMPLATE_BYTES: drawn = draw_bytes(value, out); break;
	case TEMPLATE_DURATION: drawn = draw_duration(value, out); break;
	case TEMPLATE_TIME:
	case TEMPLATE_DATE: drawn = draw_time(value, out); break;
	case TEMPLATE_HASH: draw_hash(value, out); return;
	case TEMPLATE_JSON: draw_json(value, out); return;
	}
	/* A value of an unexpected type is drawn as text. */
	if (!drawn)
		draw_plain(value, out);
}
