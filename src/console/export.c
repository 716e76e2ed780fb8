/* Downloads, and exports of lists as JSON or as comma-separated values for spreadsheets. */
#include <stdio.h>

#include "base/base64.h"
#include "base/csv.h"
#include "console/visit.h"

#define ROWS_MAX 20000 /* maximum rows of a file */
#define PAGE_ROWS "1000"
#define FILE_MAX ((size_t)64 << 20)
#define AFTER_MAX 160

struct exporting {
	struct visit *visit;
	const struct console_export *export;
	bool csv;
	struct buf *out;
	size_t rows;
	char after[AFTER_MAX];
};

static void put_cell(struct csv_writer *csv, const struct json *value)
{
	BUF_AUTO struct buf text;
	buf_init(&text, FILE_MAX);
	if (!value || value->type == JSON_NULL) {
		csv_plain(csv, slice_of(""));
	} else if (value->type == JSON_STRING) {
		csv_text(csv, value->text);
	} else if (value->type == JSON_NUMBER) {
		csv_plain(csv, value->text);
	} else {
		template_json(&text, value);
		csv_text(csv, buf_slice(&text));
	}
}

static void put_columns(struct exporting *exporting, const struct json *row)
{
	struct csv_writer csv = {.out = exporting->out};
	for (const char *at = exporting->export->columns; *at;) {
		char name[64];
		size_t size = strcspn(at, " ");
		snprintf(name, sizeof name, "%.*s", (int)size, at);
		if (row)
			put_cell(&csv, json_member(row, name));
		else
			csv_plain(&csv, slice_of(name));
		at += size;
		at += *at == ' ';
	}
	csv_end_row(&csv);
}

static void put_row(struct exporting *exporting, const struct json *row)
{
	const struct json *place = json_member(row, exporting->export->after);
	if (place && (place->type == JSON_STRING || place->type == JSON_NUMBER))
		snprintf(exporting->after, sizeof exporting->after, "%.*s", (int)place->text.size,
		         place->text.data);
	if (exporting->csv) {
		put_columns(exporting, row);
	} else {
		buf_add_text(exporting->out, exporting->rows ? ",\n" : "\n");
		template_json(exporting->out, row);
	}
	exporting->rows++;
}

/* Writes one page of the list. */
static int put_page(struct exporting *exporting, bool *ret_more)
{
	struct visit *visit = exporting->visit;
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf arguments;
	BUF_AUTO struct buf answer;
	arena_init(&arena, DATA_MAX);
	buf_init(&arguments, CONSOLE_BODY_MAX);
	buf_init(&answer, ADMIN_RESULT_MAX);
	const char *filter = exporting->export->arguments;
	const char *behind = exporting->export->behind ? exporting->export->behind : "after";
	const char *all = *exporting->after ? arena_printf(&arena, "limit=" PAGE_ROWS " %s=%s %s",
	                                                   behind, exporting->after, filter)
	                                    : arena_printf(&arena, "limit=" PAGE_ROWS " %s", filter);
	struct json *json = NULL;
	int result = all ? source_arguments(visit, exporting->export->operation, all, &arguments)
	                 : ERR_NO_MEMORY;
	if (!result)
		result = run_operation(visit, exporting->export->operation, buf_slice(&arguments), &answer);
	if (!result)
		result = json_parse(&arena, buf_slice(&answer), NULL, &json, visit->error);
	if (result)
		return result;
	const struct json *rows = json_member(json, "data");
	for (const struct json *row = rows ? rows->first : NULL; row; row = row->next)
		put_row(exporting, row);
	const struct json *more = json_member(json, "has_more");
	*ret_more = more && more->type == JSON_TRUE && rows->first;
	return buf_check(exporting->out);
}

static int put_file(struct exporting *exporting)
{
	bool more = true;
	int result = OK;
	if (exporting->csv)
		put_columns(exporting, NULL);
	else
		buf_add_text(exporting->out, "[");
	while (more && !result && exporting->rows < ROWS_MAX)
		result = put_page(exporting, &more);
	if (!exporting->csv)
		buf_add_text(exporting->out, "\n]\n");
	if ((!result && more) || exporting->out->full)
		result = error_set(exporting->visit->error, ERR_VALIDATION, MSG_CONSOLE_EXPORT, NULL);
	return result;
}

int answer_file(struct visit *visit, const char *type, const char *name)
{
	visit->answer->status = 200;
	visit->answer->type = type;
	visit->answer->policy = "default-src 'none'; frame-ancestors 'none'";
	visit->answer->disposition = arena_printf(visit->arena, "attachment; filename=\"%s\"", name);
	return visit->answer->disposition ? buf_check(visit->out) : ERR_NO_MEMORY;
}

int answer_base64(struct visit *visit, const char *type, const char *name, struct slice base64)
{
	size_t size = 0;
	char *bytes = buf_extend(visit->out, base64.size);
	if (!bytes)
		return ERR_NO_MEMORY;
	if (!base64_decode(base64, bytes, base64.size, &size))
		return error_cause(visit->error, ERR_INTERNAL, "%s is not valid base64", name);
	visit->out->size -= base64.size - size;
	return answer_file(visit, type, name);
}

int export_list(struct visit *visit, struct slice path, bool *ret_found)
{
	*ret_found = false;
	const struct console_export *export;
	for (size_t i = 0; (export = export_at(i)); i++) {
		struct exporting exporting = {.visit = visit, .export = export, .out = visit->out};
		char csv[64], json[64];
		snprintf(csv, sizeof csv, "%s.csv", export->path);
		snprintf(json, sizeof json, "%s.json", export->path);
		exporting.csv = slice_is(path, csv);
		if (!exporting.csv && !slice_is(path, json))
			continue;
		*ret_found = true;
		int result = put_file(&exporting);
		return result ? result
		              : answer_file(visit,
		                            exporting.csv ? "text/csv; charset=utf-8" : "application/json",
		                            (exporting.csv ? csv : json) + 1);
	}
	return OK;
}
