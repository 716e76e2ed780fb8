/* Prints JSON documents for a terminal: aligned members, and tables for lists. */
#include <ctype.h>
#include <string.h>

#include "base/csv.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "service/list.h"

#define COLUMNS_MAX 24
#define NAME_MAX_SIZE 64
#define VALUE_LIMIT ((size_t)64 * 1024)

static size_t display_width(struct slice text)
{
	size_t width = 0;
	for (size_t i = 0; i < text.size; i++)
		width += ((unsigned char)text.data[i] & 0xc0) != 0x80;
	return width;
}

static void pad(struct buf *out, size_t from, size_t to)
{
	for (; from < to; from++)
		buf_add_byte(out, ' ');
}

/* Appends text with control characters replaced by '?'. Lines after the first are indented by
 * `indent` spaces. */
static void add_text(struct buf *out, struct slice text, size_t indent)
{
	while (text.size) {
		size_t size = utf8_character(text);
		unsigned char first = (unsigned char)text.data[0];
		bool control = size == 0 || first < 0x20 || first == 0x7f ||
		               (first == 0xc2 && (unsigned char)text.data[1] < 0xa0);
		if (first == '\n') {
			buf_add_byte(out, '\n');
			pad(out, 0, indent);
		} else if (control) {
			buf_add_byte(out, '?');
		} else {
			buf_add(out, text.data, size);
		}
		size += !size;
		text = slice_make(text.data + size, text.size - size);
	}
}

static void add_scalar(struct buf *out, const struct json *json, size_t indent)
{
	if (!json || json->type == JSON_NULL)
		buf_add_byte(out, '-');
	else if (json->type == JSON_TRUE || json->type == JSON_FALSE)
		buf_add_text(out, json->type == JSON_TRUE ? "yes" : "no");
	else
		add_text(out, json->text, indent);
}

static bool is_group(const struct json *json)
{
	return json->type == JSON_OBJECT || json->type == JSON_ARRAY;
}

static void add_label(struct buf *out, struct slice name)
{
	for (size_t i = 0; i < name.size; i++)
		buf_add_byte(out, name.data[i] == '_' ? ' ' : name.data[i]);
}

static void print_object(const struct json *object, size_t indent, struct buf *out);

static void print_group(const struct json *group, size_t indent, struct buf *out)
{
	pad(out, 0, indent);
	add_label(out, group->name);
	buf_add_text(out, group->first ? ":\n" : ": none\n");
	if (group->type == JSON_OBJECT) {
		print_object(group, indent + 2, out);
		return;
	}
	for (const struct json *item = group->first; item; item = item->next) {
		if (item->type == JSON_OBJECT) {
			print_object(item, indent + 2, out);
			if (item->next)
				buf_add_byte(out, '\n');
		} else {
			pad(out, 0, indent + 2);
			add_scalar(out, item, indent + 2);
			buf_add_byte(out, '\n');
		}
	}
}

static void print_object(const struct json *object, size_t indent, struct buf *out)
{
	size_t width = 0;
	for (const struct json *member = object->first; member; member = member->next)
		if (!is_group(member) && member->name.size > width)
			width = member->name.size;
	for (const struct json *member = object->first; member; member = member->next) {
		if (is_group(member))
			continue;
		pad(out, 0, indent);
		add_label(out, member->name);
		pad(out, member->name.size, width + 2);
		add_scalar(out, member, indent + width + 2);
		buf_add_byte(out, '\n');
	}
	for (const struct json *member = object->first; member; member = member->next)
		if (is_group(member))
			print_group(member, indent, out);
}

/* ---- tables ---- */

struct table {
	char names[COLUMNS_MAX][NAME_MAX_SIZE];
	size_t widths[COLUMNS_MAX];
	size_t count;
};

static void table_begin(struct table *table, const char *columns)
{
	*table = (struct table){0};
	while (*columns && table->count < COLUMNS_MAX) {
		size_t size = strcspn(columns, " ");
		size_t kept = size < NAME_MAX_SIZE ? size : NAME_MAX_SIZE - 1;
		memcpy(table->names[table->count], columns, kept);
		table->widths[table->count++] = kept;
		columns += size + (columns[size] == ' ');
	}
}

static void add_cell(struct buf *out, const struct table *table, size_t column, struct slice text)
{
	buf_add_slice(out, text);
	if (column + 1 < table->count)
		pad(out, display_width(text), table->widths[column] + 2);
	else
		buf_add_byte(out, '\n');
}

static void cell_text(const struct json *row, const char *name, struct buf *cell)
{
	buf_clear(cell);
	add_scalar(cell, json_member(row, name), 0);
}

static void print_table(const struct json *rows, const char *columns, struct buf *out)
{
	struct table table;
	BUF_AUTO struct buf cell;
	buf_init(&cell, VALUE_LIMIT);
	table_begin(&table, columns);
	for (const struct json *row = rows->first; row; row = row->next)
		for (size_t i = 0; i < table.count; i++) {
			cell_text(row, table.names[i], &cell);
			size_t width = display_width(buf_slice(&cell));
			if (width > table.widths[i])
				table.widths[i] = width;
		}
	for (size_t i = 0; i < table.count; i++) {
		char name[NAME_MAX_SIZE];
		memcpy(name, table.names[i], sizeof name);
		for (char *at = name; *at; at++)
			*at = *at == '_' ? ' ' : (char)toupper((unsigned char)*at);
		add_cell(out, &table, i, slice_of(name));
	}
	for (const struct json *row = rows->first; row; row = row->next)
		for (size_t i = 0; i < table.count; i++) {
			cell_text(row, table.names[i], &cell);
			add_cell(out, &table, i, buf_slice(&cell));
		}
}

void output_print(const struct json *json, const char *columns, struct buf *out)
{
	bool more = false;
	const struct json *rows = columns ? list_read(json, &more) : NULL;
	if (!rows) {
		print_object(json, 0, out);
		return;
	}
	if (!rows->first) {
		buf_add_text(out, "none\n");
		return;
	}
	print_table(rows, columns, out);
	if (more) {
		const struct json *last = rows->first;
		while (last->next)
			last = last->next;
		bool numbered = strncmp(columns, "number ", 7) == 0;
		buf_add_text(out, numbered ? "More follow: --before " : "More follow: --after ");
		add_scalar(out, last->first, 0);
		buf_add_byte(out, '\n');
	}
}

void output_csv(const struct json *rows, const char *columns, bool named, struct buf *out)
{
	struct table table;
	struct csv_writer writer = {.out = out};
	table_begin(&table, columns);
	for (size_t i = 0; named && i < table.count; i++)
		csv_plain(&writer, slice_of(table.names[i]));
	if (named)
		csv_end_row(&writer);
	for (const struct json *row = rows ? rows->first : NULL; row; row = row->next) {
		for (size_t i = 0; i < table.count; i++) {
			const struct json *cell = json_member(row, table.names[i]);
			if (cell && cell->type == JSON_STRING)
				csv_text(&writer, cell->text);
			else
				csv_plain(&writer, cell && cell->type == JSON_NUMBER ? cell->text : slice_of(""));
		}
		csv_end_row(&writer);
	}
}
