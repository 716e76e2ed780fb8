/* The command `bundle`, which puts documents and their evidence record into one container. */
#include <stdio.h>
#include <string.h>

#include "archive/bundle.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/command.h"

const struct option bundle_options[] = {
	{"output", "FILE", "output container; short form -o (required)"},
	{0},
};

static void print_json(const struct bundle *bundle, const struct bundled *bundled)
{
	BUF_AUTO struct buf text;
	buf_init(&text, (size_t)1 << 20);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_integer(&writer, "bytes", (int64_t)bundled->sum.size_bytes);
	json_time(&writer, "exists_since", bundled->exists_since_us);
	json_integer(&writer, "files", (int64_t)bundle->file_count);
	json_text(&writer, "output", bundle->output);
	json_hex(&writer, "sha256", bundled->sum.sha256.bytes, SHA256_SIZE);
	json_time(&writer, "valid_until", bundled->valid_until_us);
	json_end_object(&writer);
	printf("%s\n", buf_check(&text) ? "" : text.data);
}

static void print_text(const struct bundle *bundle, const struct bundled *bundled)
{
	char since[TIME_TEXT_SIZE], until[TIME_TEXT_SIZE];
	time_format(bundled->exists_since_us, since);
	time_format(bundled->valid_until_us, until);
	printf("%s: %zu files with their evidence record, which proves that they "
	       "existed at %s; the certificate of its newest timestamp expires at %s\n",
	       bundle->output, bundle->file_count, since, until);
}

static bool is_output_an_input(const struct bundle *bundle)
{
	bool given = strcmp(bundle->output, bundle->record) == 0;
	for (size_t i = 0; i < bundle->file_count; i++)
		given |= strcmp(bundle->output, bundle->files[i]) == 0;
	return given;
}

int command_bundle(const struct command_line *line)
{
	struct bundle bundle = {.record = line->arguments[0],
	                        .files = line->arguments + 1,
	                        .file_count = line->argument_count - 1,
	                        .output = command_option(line, "output")};
	struct bundled bundled;
	struct error error = {0};
	if (!bundle.output)
		return command_usage_error(line, "--output FILE is missing. See --help.");
	if (is_output_an_input(&bundle))
		return command_usage_error(line, "--output must differ from every input file.");
	int result = bundle_write(&bundle, &bundled, &error);
	if (result) {
		error.code = result;
		command_fail(line, &error);
		return result == ERR_INVALID_EVIDENCE ? 1 : 2;
	}
	if (line->json)
		print_json(&bundle, &bundled);
	else
		print_text(&bundle, &bundled);
	return 0;
}
