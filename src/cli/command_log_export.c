/* The command `log export`: copies a published log to a directory or an S3 service. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/durable.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/config.h"
#include "cli/log_policy.h"
#include "content/content.h"
#include "monitor/log_export.h"
#include "service/settings.h"

#define MEMORY_MAX ((size_t)64 << 20)
#define COPY_SIZE 65536

const struct option log_export_options[] = {
	{"to", "PLACE", "directory, or s3:// address as for content.url (required)"},
	{"url", "URL", "address of the log; by default that of service.public_url"},
	{"dir", "DIR", "directory with the files of the log, instead of --url"},
	{"tls-roots", "FILE", "trusted PEM certificates for https; by default the system's"},
	LOG_OPTIONS,
	{0},
};

struct export
{
	struct config config;
	char url[HTTP_URL_MAX + 1];
	struct policy policy;
	bool has_policy;
	struct log_source source;
	const char *directory;
	struct content_store *store;
	struct log_target target;
};

/* ---- a directory, from which a web server serves ---- */

/* Creates the directories of a file below the given one. */
static int make_directories(char *path, size_t base_size, struct error *error)
{
	for (char *slash = strchr(path + base_size + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		int made = mkdir(path, 0755);
		int result = made == 0 || errno == EEXIST ? OK : file_fail(error, "making", path);
		if (!result && made == 0)
			result = durable_sync_above(path, error);
		*slash = '/';
		if (result)
			return result;
	}
	return OK;
}

static int name_file(const struct export *export, const char *path, char name[PATH_MAX],
                     struct error *error)
{
	return snprintf(name, PATH_MAX, "%s/%s", export->directory, path) < PATH_MAX
	           ? OK
	           : error_cause(error, ERR_USAGE, "--to is too long");
}

static int read_file(void *context, const char *path, struct buf *out, struct error *error)
{
	char name[PATH_MAX];
	int result = name_file(context, path, name, error);
	if (!result && access(name, F_OK) != 0 && errno == ENOENT)
		return error_cause(error, ERR_NOT_FOUND, "%s is missing", name);
	return result ? result : file_read_whole(name, out, error);
}

static int write_file(void *context, const char *path, struct slice data, struct error *error)
{
	const struct export *export = context;
	char name[PATH_MAX];
	int result = name_file(export, path, name, error);
	if (!result)
		result = make_directories(name, strlen(export->directory), error);
	return result ? result : durable_replace(name, 0644, data, error);
}

/* ---- an S3 service ---- */

static int read_object(void *context, const char *path, struct buf *out, struct error *error)
{
	struct content_reader *reader;
	char data[COPY_SIZE];
	uint64_t size;
	int result = content_read_begin(context, path, 0, &reader, &size, error);
	if (result)
		return result;
	int64_t count;
	while ((count = content_read(reader, data, sizeof data, error)) > 0)
		buf_add(out, data, (size_t)count);
	content_read_end(reader);
	return count < 0 ? (int)count : buf_check(out);
}

static int write_object(void *context, const char *path, struct slice data, struct error *error)
{
	struct content_writer *writer;
	int result = content_write_begin(context, &writer, error);
	if (result)
		return result;
	result = content_write(writer, data.data, data.size, error);
	if (!result)
		return content_write_commit(writer, path, error);
	content_write_abort(writer);
	return result;
}

/* ---- the command ---- */

static void export_cleanup(struct export *export)
{
	log_source_close(&export->source);
	if (export->store)
		content_close(export->store);
	config_free(&export->config);
}

/* Finds the log: the address of the service's own one unless another is given. */
static int open_source(struct export *export, const struct command_line *line, struct error *error)
{
	const char *public_url = export->config.settings.service_public_url;
	struct log_place place = {.url = command_option(line, "url"),
	                          .directory = command_option(line, "dir"),
	                          .tls_roots = command_option(line, "tls-roots")};
	if (place.url && place.directory)
		return error_cause(error, ERR_USAGE, "--url and --dir exclude each other");
	if (!place.url && !place.directory) {
		size_t size = strlen(public_url);
		while (size > 0 && public_url[size - 1] == '/')
			size--;
		if (size == 0)
			return error_cause(error, ERR_USAGE,
			                   "--url URL is missing, and service.public_url is not set");
		snprintf(export->url, sizeof export->url, "%.*s/log", (int)size, public_url);
		place.url = export->url;
	}
	return log_source_open(&export->source, &place, error);
}

static int open_target(struct export *export, const struct command_line *line, struct error *error)
{
	const char *to = command_option(line, "to");
	if (!to || !*to)
		return error_cause(error, ERR_USAGE, "--to PLACE is missing. See --help");
	if (!strstr(to, "://")) {
		struct stat facts;
		if (stat(to, &facts) != 0 || !S_ISDIR(facts.st_mode))
			return error_cause(error, ERR_USAGE, "--to: %.200s is not a directory", to);
		export->directory = to;
		(void)umask(022); /* a web server of another user reads the files */
		export->target = (struct log_target){read_file, write_file, export};
		return OK;
	}
	struct content_options options = settings_content(&export->config.settings, false);
	options.url = to;
	int result = content_open_with(&options, &export->store, error);
	export->target = (struct log_target){read_object, write_object, export->store};
	return result;
}

static void print_result(const struct command_line *line, const struct log_export_result *done)
{
	const struct checkpoint *checkpoint = &done->head.checkpoint;
	if (!line->json) {
		printf("%s: %" PRIu64 " entries, %" PRIu64 " of them new; %" PRIu64 " files written\n",
		       checkpoint->origin, checkpoint->size, checkpoint->size - done->size_before,
		       done->files_written);
		return;
	}
	BUF_AUTO struct buf text;
	buf_init(&text, COPY_SIZE);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_integer(&writer, "files_written", (int64_t)done->files_written);
	json_text(&writer, "origin", checkpoint->origin);
	json_hex(&writer, "root", checkpoint->root.bytes, SHA256_SIZE);
	json_integer(&writer, "size", (int64_t)checkpoint->size);
	json_integer(&writer, "size_before", (int64_t)done->size_before);
	json_end_object(&writer);
	if (!buf_check(&text))
		printf("%s\n", text.data);
}

int command_log_export(const struct command_line *line)
{
	static const struct log_policy_names names = {"key", "policy"};
	__attribute__((cleanup(export_cleanup))) struct export export = {0};
	struct log_export_result done = {0};
	struct error error = {0};
	ARENA_AUTO struct arena arena;
	arena_init(&arena, MEMORY_MAX);
	/* Anybody may copy a log to a directory, without the settings of a service. */
	const char *to = command_option(line, "to");
	bool is_own = !command_option(line, "url") && !command_option(line, "dir");
	int exit_code = is_own || (to && strstr(to, "://"))
	                    ? command_settings(line, &line->sources, &export.config)
	                    : 0;
	if (exit_code)
		return exit_code;
	int result = log_policy_read(line, &names, &arena, &export.policy, &export.has_policy, &error);
	if (!result)
		result = open_source(&export, line, &error);
	if (!result)
		result = open_target(&export, line, &error);
	if (!result)
		result = log_export(&export.source, export.has_policy ? &export.policy : NULL,
		                    &export.target, &arena, &done, &error);
	if (result) {
		error_keep(&error, result);
		(void)command_fail(line, &error);
		return result == ERR_INVALID_EVIDENCE ? 1 : 2;
	}
	print_result(line, &done);
	return 0;
}
