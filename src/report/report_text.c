#include "report/report_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <glib.h>

#include "base/clock.h"
#include "base/utf8.h"

#define MARKS_MAX 4
#define VISIBLE_MAX (1U << 20)

const char *report_text(enum report_text text, enum language language)
{
	static const char *const texts[TEXT_COUNT][2] = {
#define REPORT_TEXT(name, english, spanish) [TEXT_##name] = {english, spanish},
#include "report/report_text.def"
#undef REPORT_TEXT
	};
	return texts[text][language == LANGUAGE_SPANISH];
}

const char *report_fill(struct arena *arena, enum report_text text, enum language language, ...)
{
	const char *places[4] = {"", "", "", ""};
	va_list arguments;
	va_start(arguments, language);
	for (int i = 0; i < 4; i++) {
		const char *place = va_arg(arguments, const char *);
		if (!place)
			break;
		places[i] = place;
	}
	va_end(arguments);
	BUF_AUTO struct buf out;
	buf_init(&out, VISIBLE_MAX);
	for (const char *c = report_text(text, language); *c; c++)
		if (c[0] == '{' && c[1] >= '0' && c[1] <= '3' && c[2] == '}') {
			buf_add_text(&out, places[c[1] - '0']);
			c += 2;
		} else {
			buf_add_byte(&out, *c);
		}
	return buf_check(&out) ? NULL : arena_copy(arena, out.data ? out.data : "", out.size);
}

/* Default_Ignorable_Code_Point and similar characters in categories other than Cf. */
static bool is_blank_letter(gunichar character)
{
	switch (character) {
	case 0x034F:
	case 0x115F:
	case 0x1160:
	case 0x17B4:
	case 0x17B5:
	case 0x180B ... 0x180F:
	case 0x2800:
	case 0x3164:
	case 0xFE00 ... 0xFE0E:
	case 0xFFA0:
	case 0xE0000 ... 0xE0FFF: return true;
	default: return false;
	}
}

static bool is_visible(gunichar character)
{
	/* Emoji presentation, and the joiners that Persian and Indic scripts need. */
	if (character == 0xFE0F || character == 0x200C || character == 0x200D)
		return true;
	if (is_blank_letter(character))
		return false;
	switch (g_unichar_type(character)) {
	case G_UNICODE_CONTROL:
	case G_UNICODE_FORMAT:
	case G_UNICODE_UNASSIGNED:
	case G_UNICODE_PRIVATE_USE:
	case G_UNICODE_SURROGATE:
	case G_UNICODE_LINE_SEPARATOR:
	case G_UNICODE_PARAGRAPH_SEPARATOR: return false;
	case G_UNICODE_SPACE_SEPARATOR:
		return character == ' ' || character == 0x00A0 || character == 0x202F ||
		       character == 0x3000;
	default: return true;
	}
}

void report_visible(struct slice text, bool lines, struct buf *out)
{
	int marks = 0;
	while (text.size > 0) {
		size_t size = utf8_character(text);
		if (size == 0) {
			buf_printf(out, "‹0x%02X›", (unsigned)(unsigned char)text.data[0]);
			text = slice_make(text.data + 1, text.size - 1);
			continue;
		}
		gunichar character = g_utf8_get_char(text.data);
		bool joiner = character == 0x200C || character == 0x200D || character == 0xFE0F;
		marks = g_unichar_ismark(character) || joiner ? marks + 1 : 0;
		if (character == '\n' && lines)
			buf_add_byte(out, '\n');
		else if (is_visible(character) && marks <= MARKS_MAX)
			buf_add(out, text.data, size);
		else
			buf_printf(out, "‹U+%04X›", character);
		text = slice_make(text.data + size, text.size - size);
	}
}

const char *report_show(struct arena *arena, struct slice text, bool lines)
{
	BUF_AUTO struct buf out;
	buf_init(&out, VISIBLE_MAX);
	report_visible(text, lines, &out);
	return buf_check(&out) ? NULL : arena_copy(arena, out.data ? out.data : "", out.size);
}

const char *report_moment(struct arena *arena, int64_t time_us, enum language language)
{
	static const char *const months[2][12] = {
		{"January", "February", "March", "April", "May", "June", "July", "August", "September",
	     "October", "November", "December"},
		{"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre",
	     "octubre", "noviembre", "diciembre"}};
	char text[TIME_TEXT_SIZE]; /* 2026-11-21T09:15:02.123456Z */
	time_format(time_us, text);
	int month = (text[5] - '0') * 10 + text[6] - '0';
	int day = (text[8] - '0') * 10 + text[9] - '0';
	bool spanish = language == LANGUAGE_SPANISH;
	const char *of = spanish ? " de " : " ";
	return arena_printf(arena, "%d%s%s%s%.4s, %.15s UTC", day, of, months[spanish][month - 1], of,
	                    text, text + 11);
}

const char *report_number(struct arena *arena, int64_t number, enum language language)
{
	char digits[24];
	char text[32];
	int count = snprintf(digits, sizeof(digits), "%lld", (long long)number);
	bool spanish = language == LANGUAGE_SPANISH;
	size_t used = 0;
	for (int i = 0; i < count; i++) {
		if (i > 0 && (count - i) % 3 == 0 && digits[i - 1] != '-' && !(spanish && count <= 4))
			text[used++] = spanish ? '.' : ',';
		text[used++] = digits[i];
	}
	return arena_copy(arena, text, used);
}
