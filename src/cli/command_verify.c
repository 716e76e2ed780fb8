#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "verify/verify.h"

#define ROOTS_MAX ((size_t)16 << 20)

const struct option verify_options[] = {
	{"trust", "FILE",
     "PEM certificates that you trust, above the signers and the timestamp authorities, or their "
     "own; without them it is not established who signed (exit 2)"},
	{"trust-signer", "FILE", "PEM certificates for the signers alone"},
	{"trust-timestamps", "FILE", "PEM certificates for the timestamp authorities alone"},
	{"signer", "SHA256...", "only a certificate of this fingerprint may sign; may be repeated"},
	{"signers", "FILE...",
     "a service's list of its signers (/v1/signers.p7m): what was signed by none of them, or after "
     "the key's end, is not valid; may be repeated, the newest counts"},
	{"receipt", "FILE...",
     "answers to registrations: the archives must hold exactly these events; "
     "may be repeated"},
	{"trusted-list", "FILE", "an EU trusted list (ETSI TS 119 612): says who was qualified when"},
	{"trusted-list-root", "FILE...", "PEM certificates that sign it, or are above those that do"},
	{"at", "TIME", "judge as of a time (RFC 3339) instead of now"},
	{"lang", "en|es", "the language of the findings; JSON has both"},
	{0},
};

struct question {
	struct buf signer_roots, timestamp_roots, list_roots;
	struct trust_roots roots;
	struct sha256 signers[COMMAND_OPTIONS_MAX];
	const char *receipts[COMMAND_OPTIONS_MAX];
	const char *signer_lists[COMMAND_OPTIONS_MAX];
	struct verify_options options;
	enum language language;
};

static void question_cleanup(struct question *question)
{
	buf_free(&question->signer_roots);
	buf_free(&question->timestamp_roots);
	buf_free(&question->list_roots);
}

/* What both options name; NULL data when neither is given. */
static int read_roots(const struct command_line *line, const char *own, struct buf *text,
                      struct slice *ret_roots, struct error *error)
{
	const char *paths[] = {command_option(line, "trust"), command_option(line, own)};
	int result = 0;
	buf_init(text, ROOTS_MAX);
	for (size_t i = 0; i < 2 && !result; i++)
		if (paths[i])
			result = verify_read_roots(paths[i], text, error);
	if (!result && (paths[0] || paths[1]))
		*ret_roots = buf_slice(text);
	return result;
}

static int read_pins(const struct command_line *line, struct question *question,
                     struct error *error)
{
	const char *values[COMMAND_OPTIONS_MAX];
	size_t count = command_options(line, "signer", values);
	for (size_t i = 0; i < count; i++)
		if (!hex_decode(slice_of(values[i]), question->signers[i].bytes, SHA256_SIZE))
			return error_cause(error, ERR_USAGE,
			                   "--signer takes the 64 hexadecimal digits of a "
			                   "certificate's SHA-256");
	question->options.signers = question->signers;
	question->options.signer_count = count;
	return 0;
}

static int read_list(const struct command_line *line, struct question *question,
                     struct error *error)
{
	const char *paths[COMMAND_OPTIONS_MAX];
	size_t count = command_options(line, "trusted-list-root", paths);
	question->options.trusted_list = command_option(line, "trusted-list");
	if (!question->options.trusted_list != (count == 0))
		return error_cause(error, ERR_USAGE,
		                   "--trusted-list and --trusted-list-root belong together: a list counts "
		                   "when its signature leads to a certificate that you trust");
	int result = 0;
	buf_init(&question->list_roots, ROOTS_MAX);
	for (size_t i = 0; i < count && !result; i++)
		result = verify_read_roots(paths[i], &question->list_roots, error);
	question->options.trusted_list_roots = buf_slice(&question->list_roots);
	return result;
}

static int read_time(const struct command_line *line, struct verify_options *options,
                     struct error *error)
{
	const char *text = command_option(line, "at");
	options->has_time = text;
	if (!text)
		return 0;
	int result = time_parse(slice_of(text), "at", &options->at_us, error);
	return result ? error_cause(error, ERR_USAGE,
	                            "--at takes a time as RFC 3339 has it: 2026-01-02T03:04:05Z")
	              : 0;
}

static int read_language(const struct command_line *line, enum language *ret_language,
                         struct error *error)
{
	const char *text = command_option(line, "lang");
	bool spanish = text && strcmp(text, "es") == 0;
	*ret_language = spanish ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH;
	return !text || spanish || strcmp(text, "en") == 0
	           ? 0
	           : error_cause(error, ERR_USAGE, "--lang takes en or es");
}

static int read_question(const struct command_line *line, struct question *question,
                         struct error *error)
{
	int result =
		read_roots(line, "trust-signer", &question->signer_roots, &question->roots.signers, error);
	if (!result)
		result = read_roots(line, "trust-timestamps", &question->timestamp_roots,
		                    &question->roots.timestamps, error);
	question->options.receipts = question->receipts;
	question->options.receipt_count = command_options(line, "receipt", question->receipts);
	question->options.signer_lists = question->signer_lists;
	question->options.signer_list_count = command_options(line, "signers", question->signer_lists);
	if (!result)
		result = read_time(line, &question->options, error);
	if (!result)
		result = read_language(line, &question->language, error);
	if (!result)
		result = read_list(line, question, error);
	return result ? result : read_pins(line, question, error);
}

int command_verify(const struct command_line *line)
{
	__attribute__((cleanup(question_cleanup))) struct question question = {0};
	bool shown = false;
	struct verify_result result;
	struct error error = {0};
	if (!line->json && isatty(STDERR_FILENO)) {
		question.options.progress = command_show_progress;
		question.options.progress_context = &shown;
	}
	question.options.beside = true;
	int code = read_question(line, &question, &error);
	if (!code)
		code = verify_paths(line->arguments, line->argument_count, &question.roots,
		                    &question.options, &result, &error);
	command_hide_progress(shown);
	if (code) {
		error.code = code;
		command_fail(line, &error);
		return 2;
	}
	if (line->json)
		verify_print(&result, true, stdout);
	else
		verify_print_in(&result, question.language, stdout);
	int exit_code = verify_exit_code(&result);
	verify_result_free(&result);
	return exit_code;
}
