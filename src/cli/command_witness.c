/* The commands `witness serve` and `witness key`: a witness of transparency logs. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/notify.h"
#include "cli/command.h"
#include "net/listen.h"
#include "tlog/policy.h"
#include "witness/witness.h"
#include "witness/witness_server.h"

#define POLICY_MEMORY_MAX ((size_t)4 << 20)

const struct option witness_key_options[] = {
	{"name", "NAME", "name of a new witness, such as witness.example.org/one"},
	{0},
};

const struct option witness_serve_options[] = {
	{"listen", "ADDR:PORT", "address to listen on, plain http; port 0: a free one (required)"},
	{"name", "NAME", "name of a new witness, such as witness.example.org/one"},
	{"log", "VKEY...", "verifier key of a log to witness (NAME+ID+KEY); may be repeated"},
	{"policy", "FILE", "file with more logs, as lines of a trust policy (C2SP tlog-policy)"},
	{"ready-file", "FILE", "file to write once requests are accepted: a JSON document"},
	{0},
};

static int fail(const struct command_line *line, int code, struct error *error)
{
	error->code = code;
	return command_fail(line, error);
}

/* ---- the logs ---- */

struct logs {
	size_t count;
	struct note_key keys[WITNESS_LOGS_MAX];
};

static int add_log(struct logs *logs, const struct note_key *key, struct error *error)
{
	for (size_t i = 0; i < logs->count; i++)
		if (note_key_equal(&logs->keys[i], key))
			return OK;
	if (logs->count == WITNESS_LOGS_MAX)
		return error_cause(error, ERR_USAGE, "a witness may have %d keys of logs at most",
		                   WITNESS_LOGS_MAX);
	logs->keys[logs->count++] = *key;
	return OK;
}

static int add_given_logs(const struct command_line *line, struct logs *logs, struct error *error)
{
	const char *values[COMMAND_OPTIONS_MAX];
	unsigned count = command_options(line, "log", values);
	int result = OK;
	for (unsigned i = 0; i < count && !result; i++) {
		struct error detail = {0};
		struct note_key key;
		if (note_key_parse(slice_of(values[i]), &key, &detail))
			result =
				error_cause(error, ERR_USAGE, "--log must be a verifier key: %s", detail.cause);
		else if (key.type != NOTE_ED25519)
			result = error_cause(error, ERR_USAGE, "--log must be the key of a log: of type 1");
		else
			result = add_log(logs, &key, error);
	}
	return result;
}

static int add_logs_of_policy(const char *path, struct logs *logs, struct error *error)
{
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf text;
	struct policy policy;
	struct error detail = {0};
	arena_init(&arena, POLICY_MEMORY_MAX);
	buf_init(&text, POLICY_SIZE_MAX + 1);
	int result = file_read_whole(path, &text, error);
	if (result)
		return result;
	result = policy_parse(&arena, buf_slice(&text), &policy, &detail);
	if (result == ERR_INVALID_EVIDENCE)
		return error_cause(error, ERR_USAGE, "--policy: %s: %s", path, detail.cause);
	for (size_t i = 0; !result && i < policy.log_count; i++)
		result = add_log(logs, &policy.logs[i].key, error);
	return result;
}

static int read_logs(const struct command_line *line, struct logs *logs, struct error *error)
{
	const char *path = command_option(line, "policy");
	int result = add_given_logs(line, logs, error);
	if (!result && path)
		result = add_logs_of_policy(path, logs, error);
	if (!result && logs->count == 0)
		result =
			error_cause(error, ERR_USAGE, "a witness needs the key of a log: --log or --policy");
	return result;
}

/* ---- output ---- */

static int write_document(const struct note_key *key, const struct witness_server *server,
                          struct buf *out)
{
	char vkey[NOTE_VKEY_SIZE], url[WITNESS_URL_SIZE];
	struct json_writer writer = {.out = out};
	note_key_write(key, vkey);
	json_begin_object(&writer, NULL);
	json_text(&writer, "name", key->name);
	if (server) {
		witness_server_url(server, url);
		json_text(&writer, "url", url);
	}
	json_text(&writer, "vkey", vkey);
	json_end_object(&writer);
	buf_add_byte(out, '\n');
	return buf_check(out);
}

static int report_ready(const struct command_line *line, const struct note_key *key,
                        const struct witness_server *server, struct error *error)
{
	BUF_AUTO struct buf document;
	char vkey[NOTE_VKEY_SIZE], url[WITNESS_URL_SIZE];
	const char *path = command_option(line, "ready-file");
	buf_init(&document, 8192);
	int result = write_document(key, server, &document);
	if (!result && path)
		result = file_replace(path, buf_slice(&document), error);
	if (result)
		return result;
	note_key_write(key, vkey);
	witness_server_url(server, url);
	if (line->json)
		fputs(document.data, stdout);
	else
		printf("listening on %s\nverifier key: %s\n", url, vkey);
	(void)fflush(stdout);
	notify_ready("witnessing");
	return OK;
}

/* ---- the commands ---- */

static atomic_bool stopped;

static void stop(int signal)
{
	(void)signal;
	atomic_store(&stopped, true);
}

static void handle_signals(void)
{
	const struct sigaction stops = {.sa_handler = stop}, ignored = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGTERM, &stops, NULL);
	(void)sigaction(SIGINT, &stops, NULL);
	(void)sigaction(SIGPIPE, &ignored, NULL);
}

/* Only an address of that form can be listened on. */
static int check_options(const struct command_line *line)
{
	const char *address = command_option(line, "listen");
	if (!line->sources.data_dir)
		return command_usage_error(line, "--data DIR is missing. See --help.");
	if (!address)
		return command_usage_error(line, "--listen is missing. See --help.");
	if (listen_port(address) < 0)
		return command_usage_error(
			line, "--listen must be ADDRESS:PORT, such as 127.0.0.1:8081, got '%s'.", address);
	return 0;
}

static int serve(const struct command_line *line, struct witness *witness, struct error *error)
{
	struct witness_server *server = NULL;
	int result = witness_server_open(witness, command_option(line, "listen"), &server, error);
	if (!result)
		result = report_ready(line, witness_key(witness), server, error);
	if (!result)
		result = witness_server_run(server, &stopped, error);
	witness_server_close(server);
	return result;
}

int command_witness_serve(const struct command_line *line)
{
	struct logs logs = {0};
	struct witness *witness = NULL;
	struct error error = {0};
	int exit_code = check_options(line);
	if (exit_code)
		return exit_code;
	int result = read_logs(line, &logs, &error);
	const struct witness_options options = {.directory = line->sources.data_dir,
	                                        .name = command_option(line, "name"),
	                                        .logs = logs.keys,
	                                        .log_count = logs.count};
	log_detect_journal();
	log_start();
	handle_signals();
	if (!result)
		result = witness_open(&options, &witness, &error);
	if (!result)
		result = serve(line, witness, &error);
	witness_close(witness);
	return result ? fail(line, result, &error) : 0;
}

/* Reads the key of a witness, or makes a new one. */
static int read_or_make_key(const struct witness_options *options, struct note_key *ret,
                            struct error *error)
{
	struct witness *witness;
	int result = witness_read_key(options->directory, ret, error);
	if (!result && options->name && strcmp(options->name, ret->name) != 0)
		return error_cause(error, ERR_USAGE, "the witness in %s has the name %s",
		                   options->directory, ret->name);
	if (result != ERR_NOT_FOUND)
		return result;
	result = witness_open(options, &witness, error);
	if (result)
		return result;
	*ret = *witness_key(witness);
	witness_close(witness);
	return OK;
}

int command_witness_key(const struct command_line *line)
{
	BUF_AUTO struct buf document;
	char vkey[NOTE_VKEY_SIZE];
	const struct witness_options options = {.directory = line->sources.data_dir,
	                                        .name = command_option(line, "name")};
	struct note_key key;
	struct error error = {0};
	if (!options.directory)
		return command_usage_error(line, "--data DIR is missing. See --help.");
	buf_init(&document, 8192);
	int result = read_or_make_key(&options, &key, &error);
	if (!result)
		result = write_document(&key, NULL, &document);
	if (result)
		return fail(line, result, &error);
	note_key_write(&key, vkey);
	if (line->json)
		fputs(document.data, stdout);
	else
		puts(vkey);
	return 0;
}
