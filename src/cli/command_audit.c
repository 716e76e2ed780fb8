/* `audit export`: writes the audit log, page by page. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/csv.h"
#include "base/durable.h"
#include "base/file.h"
#include "cli/command.h"
#include "seal/evidence_record.h"
#include "service/list.h"

#define ARGUMENTS_LIMIT ((size_t)8 * 1024)
#define PAGE_LIMIT ((size_t)16 << 20)
#define TREE_LIMIT ((size_t)96 << 20)
#define LINE_LIMIT ((size_t)2 << 20)
#define PAGE_RECORDS 500

const struct option audit_export_options[] = {
	{"account", "ACCOUNT", "only entries of this account"},
	{"since", "TIME", "entries since this time; a duration such as 90d counts back from now"},
	{"until", "TIME", "entries before this time; a duration counts back from now"},
	{"operation", "TEXT", "only entries of this operation, such as \"key revoke\""},
	{"format", "ndjson|csv", "output format: one JSON document per line (default), or CSV"},
	{"output", "FILE", "output file, or - for standard output; short form -o (required)"},
	{"proofs", "DIR",
     "new directory for each sealed entry and each seal document with its "
     "evidence record, as input of constancia verify"},
	{0},
};

static const char *const columns[] = {
	"at",         "account_id", "number",  "act_id", "operation", "actor",
	"uid",        "user",       "claimed", "via",    "node",      "reason",
	"arguments",  "before",     "after",   "made",   "found",     "outcome",
	"chain_hash", "urgent",     "seal",    "email",  "address",   "signed_in_by",
};
#define COLUMNS (sizeof columns / sizeof *columns)

struct export
{
	const struct command_line *line;
	const struct settings *settings;
	FILE *file;
	bool csv;
	const char *proofs; /* NULL: no proofs requested */
	char after[ID_SIZE];
	bool more;
	int64_t count, unsealed;
};

static int add_row(struct buf *out, const struct json *act)
{
	struct csv_writer writer = {.out = out};
	for (size_t i = 0; i < COLUMNS; i++) {
		BUF_AUTO struct buf text;
		buf_init(&text, LINE_LIMIT);
		struct json *member = json_member(act, columns[i]);
		enum json_type type = member ? member->type : JSON_NULL;
		if (type == JSON_STRING)
			buf_add_slice(&text, member->text);
		else if (type != JSON_NULL)
			json_canonical(member, &text);
		if (buf_check(&text))
			return ERR_NO_MEMORY;
		if (type == JSON_NUMBER)
			csv_plain(&writer, buf_slice(&text));
		else
			csv_text(&writer, buf_slice(&text));
	}
	csv_end_row(&writer);
	return OK;
}

static int write_text(struct export *export, const struct buf *text, struct error *error)
{
	int result = buf_check(text);
	if (!result && fwrite(text->data, 1, text->size, export->file) != text->size)
		result = error_cause(error, ERR_IO, "writing: %s", strerror(errno));
	return result;
}

/* ---- proofs ---- */

static int write_proof(const struct export *export, struct slice name, const char *extension,
                       struct slice content, struct error *error)
{
	char path[PATH_MAX];
	int size = snprintf(path, sizeof path, "%s/%.*s%s", export->proofs, (int)name.size, name.data,
	                    extension);
	if (size < 0 || (size_t)size >= sizeof path || memchr(name.data, '/', name.size))
		return error_cause(error, ERR_USAGE, "--proofs: the path is too long");
	return durable_replace(path, 0600, content, error);
}

/* Writes a document and its evidence record, which is given as base64. */
static int write_pair(const struct export *export, struct slice name, struct json *document,
                      struct slice base64, struct error *error)
{
	BUF_AUTO struct buf text;
	BUF_AUTO struct buf record;
	buf_init(&text, LINE_LIMIT);
	buf_init(&record, BASE64_SIZE(EVIDENCE_RECORD_MAX) + 4);
	json_canonical(document, &text);
	char *der = buf_extend(&record, base64.size);
	size_t size = 0;
	int result = der ? buf_check(&text) : ERR_NO_MEMORY;
	if (!result && !base64_decode(base64, der, base64.size, &size))
		result = error_cause(error, ERR_INTERNAL, "the service's response contains no proof");
	if (!result)
		result = write_proof(export, name, ".json", buf_slice(&text), error);
	return result ? result : write_proof(export, name, ".ers", slice_make(der, size), error);
}

static int write_proofs(const struct export *export, struct slice act_id, struct error *error)
{
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf arguments;
	BUF_AUTO struct buf answer;
	arena_init(&arena, TREE_LIMIT);
	buf_init(&arguments, ARGUMENTS_LIMIT);
	buf_init(&answer, PAGE_LIMIT);
	struct json_writer writer = {.out = &arguments};
	json_begin_object(&writer, NULL);
	json_slice(&writer, "act", act_id);
	json_end_object(&writer);
	struct json *json = NULL;
	struct slice of_record, of_seal, segment_id;
	int result = administer(export->settings, admin_find(slice_of("audit proof")),
	                        buf_slice(&arguments), &answer, error);
	if (!result)
		result = json_parse(&arena, buf_slice(&answer), NULL, &json, error);
	if (result)
		return result;
	struct json *act = json_member(json, "act"), *document = json_member(json, "seal_document");
	if (!json_get_text(json, "act_evidence_record", &of_record) ||
	    !json_get_text(json, "seal_document_evidence_record", &of_seal) ||
	    !json_get_text(document, "segment_id", &segment_id) || !act)
		return error_cause(error, ERR_INTERNAL, "the service's response contains no proof");
	result = write_pair(export, act_id, act, of_record, error);
	return result ? result : write_pair(export, segment_id, document, of_seal, error);
}

static int export_proof(struct export *export, const struct json *act, struct slice act_id,
                        struct error *error)
{
	const struct json *seal = json_member(act, "seal");
	if (seal && seal->type == JSON_OBJECT)
		return write_proofs(export, act_id, error);
	export->unsealed++;
	return OK;
}

/* ---- the list ---- */

static int write_record(struct export *export, struct json *act, struct error *error)
{
	BUF_AUTO struct buf text;
	struct slice id;
	buf_init(&text, LINE_LIMIT);
	int result = OK;
	if (export->csv) {
		result = add_row(&text, act);
	} else {
		json_canonical(act, &text);
		buf_add_byte(&text, '\n');
	}
	if (json_get_text(act, "act_id", &id)) {
		snprintf(export->after, sizeof export->after, "%.*s", (int)id.size, id.data);
		if (export->proofs && !result)
			result = export_proof(export, act, id, error);
	}
	export->count++;
	return result ? result : write_text(export, &text, error);
}

static int make_arguments(const struct export *export, struct buf *out, struct error *error)
{
	static const char *const passed[] = {"account", "since", "until", "operation"};
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
		if (command_option(export->line, passed[i]))
			json_text(&writer, passed[i], command_option(export->line, passed[i]));
	if (*export->after)
		json_text(&writer, "after", export->after);
	json_boolean(&writer, "ascending", true);
	json_integer(&writer, "limit", PAGE_RECORDS);
	json_end_object(&writer);
	return buf_check(out) ? error_cause(error, ERR_USAGE, "an option is too long") : OK;
}

static int export_page(struct export *export, struct error *error)
{
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf arguments;
	BUF_AUTO struct buf page;
	arena_init(&arena, TREE_LIMIT);
	buf_init(&arguments, ARGUMENTS_LIMIT);
	buf_init(&page, PAGE_LIMIT);
	const struct admin_operation *list = admin_find(slice_of("audit list"));
	struct json *json = NULL;
	int result = make_arguments(export, &arguments, error);
	if (!result)
		result = administer(export->settings, list, buf_slice(&arguments), &page, error);
	if (!result)
		result = json_parse(&arena, buf_slice(&page), NULL, &json, error);
	if (!result && list_is_partial(json))
		result =
			error_cause(error, ERR_UNAVAILABLE,
		                "the audit log is incomplete because a server of the store is unavailable");
	if (result)
		return result;
	const struct json *data = json_member(json, "data"), *more = json_member(json, "has_more");
	for (struct json *act = data->first; act && !result; act = act->next)
		result = write_record(export, act, error);
	export->more = more && more->type == JSON_TRUE;
	return result;
}

static int export_all(struct export *export, struct error *error)
{
	BUF_AUTO struct buf header;
	buf_init(&header, LINE_LIMIT);
	for (size_t i = 0; i < COLUMNS && export->csv; i++)
		buf_printf(&header, "%s%s", columns[i], i + 1 < COLUMNS ? "," : "\r\n");
	int result = export->csv ? write_text(export, &header, error) : OK;
	export->more = true;
	while (export->more && !result)
		result = export_page(export, error);
	if (!result && fflush(export->file) != 0)
		result = error_cause(error, ERR_IO, "writing: %s", strerror(errno));
	return result;
}

/* Removes the output of a failed export, which would make a second attempt fail. */
static void remove_output(const char *output, const char *proofs)
{
	if (strcmp(output, "-") != 0)
		(void)remove(output);
	struct error error = {0};
	int result = proofs ? file_remove_tree(proofs, &error) : OK;
	if (result)
		fprintf(stderr, "warning: %s\n", error_reason(&error, result));
}

/* Opens the output files; never overwrites one. Returns 0 or the result of command_usage_error. */
static int open_output(const struct command_line *line, const char *output, struct export *export)
{
	bool to_standard = strcmp(output, "-") == 0;
	export->file = to_standard ? stdout : fopen(output, "wxe");
	if (!export->file)
		return command_usage_error(line, "%s: %s.", output, strerror(errno));
	export->proofs = command_option(line, "proofs");
	if (!export->proofs || mkdir(export->proofs, 0700) == 0)
		return 0;
	int why = errno;
	if (!to_standard)
		fclose(export->file);
	remove_output(output, NULL);
	return command_usage_error(line, "%s: %s.", export->proofs, strerror(why));
}

static void print_summary(const struct command_line *line, const char *output,
                          const struct export *export)
{
	if (line->json)
		printf("{\"acts\":%lld,\"unsealed\":%lld}\n", (long long)export->count,
		       (long long)export->unsealed);
	else
		printf("Wrote %lld audit log entries to %s.\n", (long long)export->count, output);
	if (!line->json && export->unsealed > 0)
		printf("%lld of them are not sealed yet. Their proofs are available after the "
		       "next sealing round.\n",
		       (long long)export->unsealed);
}

int command_audit_export(const struct command_line *line)
{
	CONFIG_AUTO struct config config = {0};
	const char *output = command_option(line, "output");
	const char *format = command_option(line, "format");
	struct error error = {0};
	if (!output)
		return command_usage_error(line, "--output FILE is missing. See --help.");
	if (format && strcmp(format, "csv") != 0 && strcmp(format, "ndjson") != 0)
		return command_usage_error(line, "--format must be ndjson or csv.");
	int exit_code = command_settings(line, &line->sources, &config);
	if (exit_code)
		return exit_code;
	bool to_standard = strcmp(output, "-") == 0;
	struct export export = {
		.line = line, .settings = &config.settings, .csv = format && strcmp(format, "csv") == 0};
	exit_code = open_output(line, output, &export);
	if (exit_code)
		return exit_code;
	error.code = export_all(&export, &error);
	if (!to_standard && fclose(export.file) != 0 && !error.code)
		error.code = error_cause(&error, ERR_IO, "closing %s: %s", output, strerror(errno));
	if (error.code) {
		remove_output(output, export.proofs);
		return command_fail(line, &error);
	}
	if (!to_standard)
		print_summary(line, output, &export);
	return 0;
}
