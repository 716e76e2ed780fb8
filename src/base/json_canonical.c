#include <math.h>

#include "base/json.h"
#include "base/json_canonical.h"
#include "base/json_scan.h"
#include "base/number.h"

/* UTF-8 sorts by code point. UTF-16 differs in one case: surrogates, which encode code points above
 * U+FFFF (first byte 0xf0 and up), sort before U+E000 to U+FFFF (0xee and 0xef). */
static int unit_rank(uint8_t byte)
{
	return byte == 0xee || byte == 0xef ? byte + 0x100 : byte;
}

int json_compare_names(struct slice a, struct slice b)
{
	size_t shorter = a.size < b.size ? a.size : b.size;
	size_t at = 0;
	for (; shorter - at >= 8; at += 8)
		if (memcmp(a.data + at, b.data + at, 8) != 0)
			break;
	while (at < shorter && a.data[at] == b.data[at])
		at++;
	if (at == shorter)
		return (a.size > b.size) - (a.size < b.size);
	return unit_rank((uint8_t)a.data[at]) - unit_rank((uint8_t)b.data[at]);
}

static bool is_sorted(const struct json *member)
{
	for (; member && member->next; member = member->next)
		if (json_compare_names(member->name, member->next->name) > 0)
			return false;
	return true;
}

static struct json *merge(struct json *a, struct json *b)
{
	struct json *first = NULL;
	struct json **tail = &first;
	while (a && b) {
		struct json **lower = json_compare_names(a->name, b->name) <= 0 ? &a : &b;
		*tail = *lower;
		*lower = (*lower)->next;
		tail = &(*tail)->next;
	}
	*tail = a ? a : b;
	return first;
}

/* Merge sort without extra memory: runs[i] is a sorted run of 2^i members, or empty. */
static struct json *sort(struct json *member)
{
	struct json *runs[32];
	size_t used = 0;
	while (member) {
		struct json *run = member;
		member = member->next;
		run->next = NULL;
		size_t i = 0;
		for (; i < used && runs[i]; i++) {
			run = merge(runs[i], run);
			runs[i] = NULL;
		}
		runs[i] = run;
		used += i == used;
	}
	struct json *sorted = NULL;
	for (size_t i = 0; i < used; i++)
		sorted = merge(runs[i], sorted);
	return sorted;
}

void json_canonical(struct json *json, struct buf *out)
{
	bool object = json->type == JSON_OBJECT;
	switch (json->type) {
	case JSON_NULL: buf_add_text(out, "null"); return;
	case JSON_FALSE: buf_add_text(out, "false"); return;
	case JSON_TRUE: buf_add_text(out, "true"); return;
	case JSON_NUMBER: json_add_number(out, json->number); return;
	case JSON_STRING: json_add_string(out, json->text); return;
	case JSON_ARRAY:
	case JSON_OBJECT: break;
	}
	if (object && !is_sorted(json->first))
		json->first = sort(json->first);
	buf_add_byte(out, object ? '{' : '[');
	for (struct json *child = json->first; child; child = child->next) {
		if (child != json->first)
			buf_add_byte(out, ',');
		if (object) {
			json_add_string(out, child->name);
			buf_add_byte(out, ':');
		}
		json_canonical(child, out);
	}
	buf_add_byte(out, object ? '}' : ']');
}

void json_add_number(struct buf *out, double number)
{
	/* Up to 2^53-1 integers are written with all digits, and the conversion is exact. */
	if (fabs(number) <= 9007199254740991 && number == (double)(int64_t)number) {
		buf_add_signed(out, (int64_t)number);
		return;
	}
	char text[NUMBER_TEXT_SIZE];
	buf_add(out, text, number_format(number, text));
}

static void add_escape(struct buf *out, char byte)
{
	static const char names[] = "\"\\bfnrt";
	static const char values[] = "\"\\\b\f\n\r\t";
	const char *value = memchr(values, byte, sizeof values - 1);
	if (value) {
		char escape[2] = {'\\', names[value - values]};
		buf_add(out, escape, sizeof escape);
		return;
	}
	buf_add_text(out, "\\u00");
	buf_add_hex(out, &byte, 1);
}

void json_add_string(struct buf *out, struct slice text)
{
	size_t plain = json_plain_run(text.data, text.size, 0);
	if (plain == text.size) {
		char *room = buf_extend(out, plain + 2);
		if (!room)
			return;
		room[0] = room[plain + 1] = '"';
		if (plain)
			memcpy(room + 1, text.data, plain);
		return;
	}
	buf_add_byte(out, '"');
	while (text.size) {
		plain = json_plain_run(text.data, text.size, 0);
		buf_add(out, text.data, plain);
		if (plain < text.size)
			add_escape(out, text.data[plain++]);
		text = slice_make(text.data + plain, text.size - plain);
	}
	buf_add_byte(out, '"');
}
