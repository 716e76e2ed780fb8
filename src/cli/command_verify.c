#include <stdio.h>
#include <unistd.h>

#include "cli/command.h"
#include "proof/verify.h"

const struct option verify_options[] = {
	{"trust", "FILE", "PEM roots of the signer and the timestamp authorities; without it who signed "
	                  "is not established"},
	{0},
};

static void show_progress(void *context, const char *path, uint64_t done, uint64_t total)
{
	if (total)
		fprintf(stderr, "\r%3u %%  %s", (unsigned)(done * 100 / total), path);
	*(bool *)context = true;
}

int command_verify(const struct command_line *line)
{
	bool shown = false;
	bool terminal = !line->json && isatty(STDERR_FILENO);
	struct verify_options options = {.progress = terminal ? show_progress : NULL,
	                                 .progress_context = &shown};
	struct verify_result result;
	struct error error = {0};
	int code = verify_paths(line->arguments, line->argument_count, command_option(line, "trust"),
	                        &options, &result, &error);
	if (shown)
		fputs("\r\033[K", stderr);
	if (code) {
		error.code = code;
		(void)command_fail(line, &error);
		return 2;
	}
	verify_print(&result, line->json, stdout);
	int exit_code = verify_exit_code(&result);
	verify_result_free(&result);
	return exit_code;
}
