/* The command `register`, which registers files through the interface and keeps their receipts. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "archive/receipt.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "cli/api_access.h"
#include "tools/receipt_file.h"
#include "tools/remote_registration.h"

#define MEMORY_MAX ((size_t)128 << 20)
#define PROGRESS_LEAST ((uint64_t)8 << 20) /* smaller files are sent too fast to show it */

const struct option register_options[] = {
	API_OPTIONS,
	{"payload", "FILE", "register the JSON object in this file, instead of files"},
	{"ref", "REF",
     "client_ref, the permanently unique reference of a single file; by default the "
     "file's name, a colon and its SHA-256"},
	{"occurred-at", "TIME", "declared time of the event (RFC 3339)"},
	{"digest-only", NULL, "send only the digest, without asking what the channel keeps"},
	{"receipts", "FILE", "file to which receipts are appended; by default receipts.ndjson"},
	{0},
};

struct work {
	const struct command_line *line;
	struct api api;
	struct arena arena;
	const char *receipts;
	struct file_declaration declaration; /* what all files have in common */
	bool shown;                          /* progress is on the terminal */
};

static void work_cleanup(struct work *work)
{
	api_close(&work->api);
	arena_free(&work->arena);
}

static void show_progress(void *context, const char *path, uint64_t done, uint64_t total)
{
	struct work *work = context;
	if (total >= PROGRESS_LEAST)
		(void)command_show_progress(&work->shown, path, done, total);
}

static int print_registration(const char *name, const struct file_registration *registration)
{
	BUF_AUTO struct buf text;
	buf_init(&text, RECEIPT_LINE_MAX);
	struct json_writer writer = {.out = &text};
	BUF_AUTO struct buf receipt;
	buf_init(&receipt, RECEIPT_LINE_MAX);
	json_canonical(registration->receipt, &receipt);
	json_begin_object(&writer, NULL);
	json_text(&writer, "file", name);
	json_raw(&writer, "receipt", buf_slice(&receipt));
	json_boolean(&writer, "replayed", registration->replayed);
	json_end_object(&writer);
	if (buf_check(&receipt) || buf_check(&text))
		return ERR_NO_MEMORY;
	printf("%s\n", text.data);
	return 0;
}

static int report(const struct work *work, const char *name,
                  const struct file_registration *registration)
{
	struct slice id = {0}, received = {0};
	char shown_id[128], shown_time[64];
	int64_t sequence = 0;
	if (work->line->json)
		return print_registration(name, registration);
	(void)json_get_text(registration->receipt, "event_id", &id);
	(void)json_get_text(registration->receipt, "received_at", &received);
	(void)json_get_integer(registration->receipt, "sequence", &sequence);
	utf8_show(id, shown_id, sizeof shown_id);
	utf8_show(received, shown_time, sizeof shown_time);
	printf("%s: %s %s, sequence %lld, received at %s\n", name,
	       registration->replayed ? "registered before as" : "registered as", shown_id,
	       (long long)sequence, shown_time);
	return 0;
}

/* Makes sure that a signed receipt can be used later: `verify --receipt` reads it, and its
 * signature is valid. */
static int judge(const struct work *work, const char *name,
                 const struct file_registration *registration, struct slice line,
                 struct error *error)
{
	const struct json *stated = json_member(registration->receipt, "receipt");
	ARENA_AUTO struct arena arena;
	struct receipt *receipt;
	size_t count;
	bool is_valid = true;
	if (!stated || stated->type == JSON_NULL)
		return OK;
	arena_init(&arena, 8 * RECEIPT_LINE_MAX);
	int result = receipts_read(&arena, line, &receipt, &count, error);
	if (!result && receipt->signature)
		result = receipt_verify(receipt, &is_valid);
	if (!result && !is_valid)
		result = error_cause(error, ERR_INVALID_EVIDENCE, "its signature is not valid");
	if (result != ERR_INVALID_EVIDENCE)
		return result;
	char reason[160];
	snprintf(reason, sizeof reason, "%s", error_reason(error, result));
	return tool_fail(
		error, result,
		"%s is registered, and its receipt was added to %s, but it proves nothing (%s). "
		"Report this to the operator of the service.",
		name, work->receipts, reason);
}

/* Stores the receipt before anything is printed, because the event exists. */
static int keep(struct work *work, const char *name, const struct file_registration *registration,
                struct error *error)
{
	BUF_AUTO struct buf line;
	buf_init(&line, RECEIPT_LINE_MAX);
	json_canonical(registration->receipt, &line);
	int result = buf_check(&line);
	if (!result)
		result = receipt_file_append(work->receipts, buf_slice(&line), error);
	if (result) {
		char reason[160];
		snprintf(reason, sizeof reason, "%s", error_reason(error, result));
		return tool_fail(error, result,
		                 "%s is registered, but its receipt could not be added to %s (%s). Run the "
		                 "same command again when it can: nothing is registered twice.",
		                 name, work->receipts, reason);
	}
	if (!registration->matches)
		return error_set(error, ERR_INVALID_EVIDENCE, MSG_TOOLS_RECEIPT, NULL);
	result = judge(work, name, registration, buf_slice(&line), error);
	if (result)
		return result;
	result = report(work, name, registration);
	(void)fflush(stdout);
	return result;
}

/* Returns whether the error is one of this file, so that the others can still be registered. */
static bool is_of_file(int code)
{
	return code == ERR_VALIDATION || code == ERR_TOO_LARGE || code == ERR_CONFLICT;
}

/* Registers one file. Returns the exit code; sets `ret_end` if the others would fail too. */
static int register_one(struct work *work, const char *path, bool *ret_end)
{
	struct file_declaration declaration = work->declaration;
	struct file_registration registration;
	struct error error = {0};
	struct error named = {0};
	bool is_input = strcmp(path, "-") == 0 && declaration.kind != DECLARE_PAYLOAD;
	declaration.path = is_input ? NULL : path;
	arena_reset(&work->arena);
	int result = remote_register(&work->api, &declaration, &work->arena, &registration, &error);
	command_hide_progress(work->shown);
	work->shown = false;
	*ret_end = result && !is_of_file(result) && result != ERR_IO;
	if (!result) {
		result = keep(work, is_input ? "standard input" : path, &registration, &error);
		*ret_end = result && result != ERR_INVALID_EVIDENCE;
	}
	if (!result)
		return 0;
	error.code = result;
	tool_fail(&named, result, "%s: %s", path, command_message(&error));
	memcpy(named.cause, error.cause, sizeof named.cause);
	return command_fail(work->line, &named);
}

static int check_words(const struct command_line *line)
{
	const char *payload = command_option(line, "payload");
	unsigned count = line->argument_count;
	bool has_input = false;
	for (unsigned i = 0; i < count; i++)
		has_input |= strcmp(line->arguments[i], "-") == 0;
	if (!payload == (count == 0))
		return command_usage_error(line, "Specify files, or --payload with one file.");
	if (payload && command_option(line, "digest-only"))
		return command_usage_error(line, "--payload and --digest-only exclude each other.");
	if (command_option(line, "ref") && count > 1)
		return command_usage_error(line, "--ref belongs to a single file; %u were given.", count);
	if (has_input && !command_option(line, "ref"))
		return command_usage_error(line, "Standard input has no name: specify --ref.");
	return 0;
}

/* Finds out whether the channel keeps content. */
static int choose_kind(struct work *work)
{
	struct channel_facts channel;
	struct error error = {0};
	work->declaration.kind = DECLARE_DIGEST;
	if (command_option(work->line, "payload"))
		work->declaration.kind = DECLARE_PAYLOAD;
	else if (!command_option(work->line, "digest-only")) {
		error.code = remote_channel(&work->api, &work->arena, &channel, &error);
		if (error.code)
			return command_fail(work->line, &error);
		if (channel.keeps_content)
			work->declaration.kind = DECLARE_FILE;
	}
	return 0;
}

static int check_time(const struct command_line *line)
{
	const char *text = command_option(line, "occurred-at");
	int64_t time_us;
	struct error error = {0};
	if (text && time_parse(slice_of(text), "--occurred-at", &time_us, &error))
		return command_usage_error(line, "%s", command_message(&error));
	return 0;
}

int command_register(const struct command_line *line)
{
	__attribute__((cleanup(work_cleanup))) struct work work = {.line = line};
	const char *payload = command_option(line, "payload");
	const char *receipts = command_option(line, "receipts");
	bool end = false;
	int exit_code = check_words(line);
	if (!exit_code)
		exit_code = check_time(line);
	if (!exit_code)
		exit_code = command_open_api(line, &work.api);
	arena_init(&work.arena, MEMORY_MAX);
	if (!exit_code)
		exit_code = choose_kind(&work);
	if (exit_code)
		return exit_code;
	work.receipts = receipts ? receipts : "receipts.ndjson";
	work.declaration.client_ref = command_option(line, "ref");
	work.declaration.occurred_at = command_option(line, "occurred-at");
	if (!line->json && isatty(STDERR_FILENO)) {
		work.declaration.progress = show_progress;
		work.declaration.progress_context = &work;
	}
	if (payload)
		return register_one(&work, payload, &end);
	for (unsigned i = 0; i < line->argument_count && !end; i++) {
		int one = register_one(&work, line->arguments[i], &end);
		if (one > exit_code)
			exit_code = one;
	}
	return exit_code;
}
