/* The command `verify`, which checks files offline. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/log_policy.h"
#include "verify/verify.h"

#define ROOTS_MAX ((size_t)16 << 20)
#define POLICY_MEMORY_MAX ((size_t)1 << 20)

const struct option verify_options[] = {
	{"trust", "FILE",
     "trusted PEM certificates: roots or issuers of the signers and timestamp "
     "authorities, or their own certificates; without them the signer is not "
     "established (exit code 2)"},
	{"trust-signer", "FILE", "trusted PEM certificates for signers only"},
	{"trust-timestamps", "FILE", "trusted PEM certificates for timestamp authorities only"},
	{"signer", "SHA256...",
     "accept only signer certificates with this fingerprint; may be repeated"},
	{"signers", "FILE...",
     "a service's list of its signers (/v1/signers.p7m): signatures by other "
     "keys, or made after the end of a key, are invalid; may be repeated, the "
     "newest list applies"},
	{"receipt", "FILE...",
     "responses to registrations: the archives must contain exactly these "
     "events; may be repeated"},
	{"bridge", "FILE...",
     "seal documents of the segments between archives of one channel "
     "(/v1/channel/seals): they must lead from one archive to the next; may be "
     "repeated"},
	{"trusted-list", "FILE",
     "EU trusted list (ETSI TS 119 612), which states when a service was "
     "qualified"},
	{"trusted-list-root", "FILE...", "PEM certificates of the list's signer or of its issuers"},
	LOG_POLICY_OPTIONS,
	{"at", "TIME", "verify as of a time (RFC 3339) instead of now"},
	{"lang", "en|es", "language of the findings; JSON output contains both"},
	{0},
};

struct verification {
	struct buf signer_roots, timestamp_roots, list_roots;
	struct trust_roots roots;
	struct sha256 signers[COMMAND_OPTIONS_MAX];
	const char *receipts[COMMAND_OPTIONS_MAX];
	const char *bridges[COMMAND_OPTIONS_MAX];
	const char *signer_lists[COMMAND_OPTIONS_MAX];
	struct arena arena; /* of the policy */
	struct policy policy;
	struct verify_options options;
	enum language language;
};

static void verification_cleanup(struct verification *verification)
{
	buf_free(&verification->signer_roots);
	buf_free(&verification->timestamp_roots);
	buf_free(&verification->list_roots);
	arena_free(&verification->arena);
}

/* Reads the certificates of --trust and of the option `own`. ret_roots->data stays NULL when
 * neither is given. */
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

static int read_pins(const struct command_line *line, struct verification *verification,
                     struct error *error)
{
	const char *values[COMMAND_OPTIONS_MAX];
	size_t count = command_options(line, "signer", values);
	for (size_t i = 0; i < count; i++)
		if (!hex_decode(slice_of(values[i]), verification->signers[i].bytes, SHA256_SIZE))
			return error_cause(error, ERR_USAGE,
			                   "--signer must be a certificate's SHA-256 as 64 hexadecimal digits");
	verification->options.signers = verification->signers;
	verification->options.signer_count = count;
	return 0;
}

static int read_list(const struct command_line *line, struct verification *verification,
                     struct error *error)
{
	const char *paths[COMMAND_OPTIONS_MAX];
	size_t count = command_options(line, "trusted-list-root", paths);
	verification->options.trusted_list = command_option(line, "trusted-list");
	if (!verification->options.trusted_list != (count == 0))
		return error_cause(error, ERR_USAGE,
		                   "--trusted-list and --trusted-list-root must be given together: the "
		                   "list's signature must lead to a certificate that you trust");
	int result = 0;
	buf_init(&verification->list_roots, ROOTS_MAX);
	for (size_t i = 0; i < count && !result; i++)
		result = verify_read_roots(paths[i], &verification->list_roots, error);
	verification->options.trusted_list_roots = buf_slice(&verification->list_roots);
	return result;
}

static int read_policy(const struct command_line *line, struct verification *verification,
                       struct error *error)
{
	bool given;
	arena_init(&verification->arena, POLICY_MEMORY_MAX);
	const struct log_policy_names names = {"log-key", "log-policy"};
	int result =
		log_policy_read(line, &names, &verification->arena, &verification->policy, &given, error);
	if (!result && given)
		verification->options.log_policy = &verification->policy;
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
	return result
	           ? error_cause(error, ERR_USAGE,
	                         "--at must be a time in RFC 3339 format, such as 2026-01-02T03:04:05Z")
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
	           : error_cause(error, ERR_USAGE, "--lang must be en or es");
}

static int read_options(const struct command_line *line, struct verification *verification,
                        struct error *error)
{
	int result = read_roots(line, "trust-signer", &verification->signer_roots,
	                        &verification->roots.signers, error);
	if (!result)
		result = read_roots(line, "trust-timestamps", &verification->timestamp_roots,
		                    &verification->roots.timestamps, error);
	verification->options.receipts = verification->receipts;
	verification->options.receipt_count = command_options(line, "receipt", verification->receipts);
	verification->options.bridges = verification->bridges;
	verification->options.bridge_count = command_options(line, "bridge", verification->bridges);
	verification->options.signer_lists = verification->signer_lists;
	verification->options.signer_list_count =
		command_options(line, "signers", verification->signer_lists);
	if (!result)
		result = read_time(line, &verification->options, error);
	if (!result)
		result = read_language(line, &verification->language, error);
	if (!result)
		result = read_list(line, verification, error);
	if (!result)
		result = read_policy(line, verification, error);
	return result ? result : read_pins(line, verification, error);
}

int command_verify(const struct command_line *line)
{
	__attribute__((cleanup(verification_cleanup))) struct verification verification = {0};
	bool shown = false;
	struct verify_result result;
	struct error error = {0};
	if (!line->json && isatty(STDERR_FILENO)) {
		verification.options.progress = command_show_progress;
		verification.options.progress_context = &shown;
	}
	verification.options.use_threads = true;
	int code = read_options(line, &verification, &error);
	if (!code)
		code = verify_paths(line->arguments, line->argument_count, &verification.roots,
		                    &verification.options, &result, &error);
	command_hide_progress(shown);
	if (code) {
		error.code = code;
		command_fail(line, &error);
		return 2;
	}
	if (line->json)
		verify_print(&result, true, stdout);
	else
		verify_print_in(&result, verification.language, stdout);
	int exit_code = verify_exit_code(&result);
	verify_result_free(&result);
	return exit_code;
}
