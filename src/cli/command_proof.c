/* The command `proof`, which extracts the evidence record of one event from an archive. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/durable.h"
#include "base/json.h"
#include "cli/command.h"
#include "verify/extract.h"

#define MEMORY_MAX ((size_t)64 << 20)

const struct option proof_options[] = {
	{"output", "FILE", "output file of the evidence record; short form -o (required)"},
	{"record", "FILE", "output file of the event's record, which the evidence record covers"},
	{"tlog-proof", "FILE",
     "output file of the proof that the event is in the log of segments (C2SP tlog-proof)"},
	{0},
};

static void print_json(const struct command_line *line, const struct extracted *extracted)
{
	BUF_AUTO struct buf text;
	buf_init(&text, (size_t)1 << 20);
	struct json_writer writer = {.out = &text};
	struct sha256 event = sha256_of(extracted->event.data, extracted->event.size);
	struct sha256 record = sha256_of(extracted->record.data, extracted->record.size);
	json_begin_object(&writer, NULL);
	json_text(&writer, "authority", extracted->authority);
	json_integer(&writer, "bytes", (int64_t)extracted->record.size);
	json_hex(&writer, "chain_hash", event.bytes, SHA256_SIZE);
	json_text(&writer, "event_id", line->arguments[0]);
	json_time(&writer, "gen_time", extracted->gen_time_us);
	json_text(&writer, "output", command_option(line, "output"));
	json_time(&writer, "received_at", extracted->received_at_us);
	json_text(&writer, "record", command_option(line, "record"));
	json_text(&writer, "segment_id", extracted->segment_id);
	json_integer(&writer, "sequence", extracted->sequence);
	json_hex(&writer, "sha256", record.bytes, SHA256_SIZE);
	json_text(&writer, "tlog_proof", command_option(line, "tlog-proof"));
	json_end_object(&writer);
	printf("%s\n", buf_check(&text) ? "" : text.data);
}

static void print_text(const struct command_line *line, const struct extracted *extracted)
{
	const char *record = command_option(line, "record");
	const char *log_proof = command_option(line, "tlog-proof");
	char received[TIME_TEXT_SIZE], given[TIME_TEXT_SIZE];
	time_format(extracted->received_at_us, received);
	time_format(extracted->gen_time_us, given);
	printf("%s: evidence record of event %lld, received at %s, with the timestamp "
	       "of %s by %s\n",
	       command_option(line, "output"), (long long)extracted->sequence, received, given,
	       extracted->authority);
	if (record)
		printf("%s: event record covered by it\n", record);
	if (log_proof)
		printf("%s: proof that the event is in the log of segments\n", log_proof);
}

static int write_files(const struct command_line *line, const struct extracted *extracted,
                       struct error *error)
{
	const char *record = command_option(line, "record");
	const char *log_proof = command_option(line, "tlog-proof");
	int result = durable_replace(command_option(line, "output"), 0644, extracted->record, error);
	if (!result && record)
		result = durable_replace(record, 0644, extracted->event, error);
	if (!result && log_proof)
		result = durable_replace(log_proof, 0644, extracted->log_proof, error);
	return result;
}

/* Returns whether the archive and the output files are different files, by name. */
static bool are_different(const struct command_line *line)
{
	const char *const paths[] = {line->arguments[1], command_option(line, "output"),
	                             command_option(line, "record"),
	                             command_option(line, "tlog-proof")};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		for (size_t j = 0; j < i; j++)
			if (paths[i] && paths[j] && strcmp(paths[i], paths[j]) == 0)
				return false;
	return true;
}

/* Exit codes as for verify: 1: invalid evidence; 2: the command could not run. */
static int fail(const struct command_line *line, struct error *error, int result)
{
	error->code = result;
	command_fail(line, error);
	return result == ERR_INVALID_EVIDENCE ? 1 : 2;
}

int command_proof(const struct command_line *line)
{
	ARENA_AUTO struct arena arena;
	struct extraction extraction = {.event_id = line->arguments[0],
	                                .archive = line->arguments[1],
	                                .wants_log_proof = command_option(line, "tlog-proof")};
	struct extracted extracted;
	struct error error = {0};
	bool shown = false;
	if (!command_option(line, "output"))
		return command_usage_error(line, "--output FILE is missing. See --help.");
	if (!are_different(line))
		return command_usage_error(
			line, "ARCHIVE, --output, --record and --tlog-proof must be different files.");
	arena_init(&arena, MEMORY_MAX);
	if (!line->json && isatty(STDERR_FILENO)) {
		extraction.progress = command_show_progress;
		extraction.progress_context = &shown;
	}
	int result = extract_record(&extraction, &arena, &extracted, &error);
	command_hide_progress(shown);
	if (!result)
		result = write_files(line, &extracted, &error);
	if (result)
		return fail(line, &error, result);
	if (line->json)
		print_json(line, &extracted);
	else
		print_text(line, &extracted);
	return 0;
}
