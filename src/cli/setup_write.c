/* The files of `setup`: credentials, key and request, and the settings file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/durable.h"
#include "base/file.h"
#include "cli/config_credential.h"
#include "cli/setup.h"

#define FILE_MAX ((size_t)1 << 20)
#define FORMER_COPIES_MAX 100

/* ---- directories and credentials ---- */

/* Creates a directory that the service's user may read but not change: root writes below it. */
static int make_directory(const struct setup *setup, const char *path, struct error *error)
{
	if (access(path, F_OK) == 0)
		return OK;
	int result = durable_make_directory(path, error);
	if (!result && chmod(path, 0750) != 0)
		result = file_fail(error, "changing the mode of", path);
	return result ? result : service_user_own(&setup->owner, path, true, error);
}

/* A line of a password file of libpq, for all servers of store.url. */
static void add_pgpass(const char *password, struct buf *out)
{
	buf_add_text(out, "*:*:*:*:");
	for (const char *at = password; *at; at++) {
		if (*at == ':' || *at == '\\')
			buf_add_byte(out, '\\');
		buf_add_byte(out, *at);
	}
}

static int write_credential(struct setup *setup, enum setup_number number, struct error *error)
{
	const char *directory = setup_path(setup, CREDENTIALS_BESIDE);
	const char *path =
		arena_printf(&setup->arena, "%s/%s", directory, setup_questions[number].credential);
	BUF_AUTO struct buf text;
	buf_init(&text, 4 * SETUP_SECRET_MAX);
	if (number == SETUP_STORE_PASSWORD)
		add_pgpass(setup->answers[number], &text);
	else
		buf_add_text(&text, setup->answers[number]);
	buf_add_byte(&text, '\n');
	int result = directory && path ? buf_check(&text) : ERR_NO_MEMORY;
	if (!result)
		result = make_directory(setup, directory, error);
	if (!result)
		result = durable_replace(path, 0600, buf_slice(&text), error);
	if (!result)
		result = service_user_own(&setup->owner, path, false, error);
	if (text.data)
		explicit_bzero(text.data, text.size);
	return result;
}

static int write_credentials(struct setup *setup, struct error *error)
{
	int result = OK;
	for (int i = 0; i < SETUP_QUESTIONS && !result; i++)
		if (setup_questions[i].credential && setup->answers[i] && *setup->answers[i] &&
		    setup_applies(setup, (enum setup_number)i))
			result = write_credential(setup, (enum setup_number)i, error);
	return result;
}

/* ---- the key ---- */

static const char *answer_or_null(const struct setup *setup, enum setup_number number)
{
	const char *answer = setup->answers[number];
	return answer && *answer ? answer : NULL;
}

static int make_request(struct setup *setup, struct error *error)
{
	bool on_token = signing_request_is_on_token(setup->answers[SETUP_SEAL_KEY]);
	struct signing_request request = {
		.subject = {.country = setup->answers[SETUP_COUNTRY],
	                .organization = setup->answers[SETUP_ORGANIZATION],
	                .identifier = answer_or_null(setup, SETUP_ORGANIZATION_ID)},
		.key = on_token ? setup->answers[SETUP_SEAL_KEY] : setup_path(setup, "seal-key.pem"),
		.passphrase = answer_or_null(setup, SETUP_SEAL_PASSPHRASE)
	                      ? setup_path(setup, CREDENTIALS_BESIDE "/seal-passphrase")
	                      : NULL,
	};
	setup->request = setup_path(setup, "seal-key.csr");
	return request.key && setup->request
	           ? signer_request_run(&request, setup->request, &setup->key_made, error)
	           : ERR_NO_MEMORY;
}

/* ---- the settings file ---- */

static void render(struct setup *setup, struct buf *out)
{
	struct setup_pair pairs[SETUP_PAIRS_MAX];
	size_t count = setup_pairs(setup, false, pairs);
	const char *section = "";
	buf_add_text(out,
	             "# Settings that differ from their defaults, written by 'constancia setup'.\n"
	             "# constancia.conf(5) describes every setting, 'constancia config print' lists "
	             "all with\n# their values, and 'constancia config check' checks this file.\n");
	for (size_t i = 0; i < SETTINGS_COUNT; i++)
		for (size_t k = 0; k < count; k++) {
			const struct setting *setting = pairs[k].setting;
			if (setting != &settings_table[i])
				continue;
			if (strcmp(section, setting->section) != 0)
				buf_printf(out, "\n[%s]\n", setting->section);
			section = setting->section;
			config_print_comment(setting->comment, out);
			buf_printf(out, "%s = %s\n", setting->key, pairs[k].value);
		}
}

static int refuse_value(const struct config_finding *finding, struct error *error)
{
	while (finding && finding->warning)
		finding = finding->next;
	bool named = finding && finding->setting;
	return error_cause(error, ERR_USAGE, "%s%s%s", named ? finding->setting : "", named ? ": " : "",
	                   finding ? finding->what : "the settings file is not valid");
}

/* Reads the file back, so that no value changes its meaning in it. */
static int check_file(struct setup *setup, const char *path, struct error *error)
{
	CONFIG_AUTO struct config config = {0};
	struct setup_pair pairs[SETUP_PAIRS_MAX];
	size_t count = setup_pairs(setup, true, pairs);
	int result = config_load(&(struct config_sources){.file = path}, &config);
	if (result && result != ERR_USAGE)
		return result;
	if (config.problem_count)
		return refuse_value(config.findings, error);
	for (size_t i = 0; i < count; i++)
		if (strcmp(config.texts[pairs[i].setting - settings_table], pairs[i].value) != 0)
			return error_cause(error, ERR_USAGE, "%s.%s cannot have this value in a file",
			                   pairs[i].setting->section, pairs[i].setting->key);
	return OK;
}

/* Keeps the former file under the first name that is free. */
static int keep_former(struct setup *setup, struct error *error)
{
	for (int i = 0; i < FORMER_COPIES_MAX; i++) {
		const char *to = i ? arena_printf(&setup->arena, "%s.former.%d", setup->path, i)
		                   : arena_printf(&setup->arena, "%s.former", setup->path);
		if (!to)
			return ERR_NO_MEMORY;
		if (link(setup->path, to) == 0) {
			setup->former = to;
			return OK;
		}
		if (errno != EEXIST)
			return file_fail(error, "keeping the former file as", to);
	}
	return error_cause(error, ERR_REFUSED, "there are too many files %s.former.N", setup->path);
}

static int write_settings(struct setup *setup, struct error *error)
{
	BUF_AUTO struct buf text;
	buf_init(&text, FILE_MAX);
	const char *fresh = arena_printf(&setup->arena, "%s.new", setup->path);
	render(setup, &text);
	int result = fresh ? buf_check(&text) : ERR_NO_MEMORY;
	if (!result)
		result = durable_replace(fresh, 0640, buf_slice(&text), error);
	if (!result)
		result = check_file(setup, fresh, error);
	if (!result)
		result = service_user_own(&setup->owner, fresh, true, error);
	if (!result && setup->replace && access(setup->path, F_OK) == 0)
		result = keep_former(setup, error);
	if (!result && rename(fresh, setup->path) != 0)
		result = file_fail(error, "writing", setup->path);
	if (result && fresh)
		(void)unlink(fresh);
	return result ? result : durable_sync(setup->directory, error);
}

/* Lets one command write at a time, and refuses a settings file that another one has written since
 * the questions began. */
static int lock(struct setup *setup, int *ret_directory, struct error *error)
{
	struct stat now = {0};
	*ret_directory = open(setup->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_directory < 0)
		return file_fail(error, "opening", setup->directory);
	if (flock(*ret_directory, LOCK_EX) != 0)
		return file_fail(error, "locking", setup->directory);
	if (stat(setup->path, &now) != 0)
		now = (struct stat){0};
	if (now.st_ino == setup->before.st_ino && now.st_dev == setup->before.st_dev &&
	    now.st_size == setup->before.st_size &&
	    now.st_mtim.tv_sec == setup->before.st_mtim.tv_sec &&
	    now.st_mtim.tv_nsec == setup->before.st_mtim.tv_nsec)
		return OK;
	return error_cause(error, ERR_REFUSED,
	                   "%s was changed meanwhile, and is not replaced: run the command again",
	                   setup->path);
}

int setup_write(struct setup *setup, struct error *error)
{
	DESCRIPTOR_AUTO int directory = -1;
	int result = make_directory(setup, setup->directory, error);
	if (!result)
		result = lock(setup, &directory, error);
	if (!result)
		result = write_credentials(setup, error);
	if (!result && setup_wants_request(setup))
		result = make_request(setup, error);
	return result ? result : write_settings(setup, error);
}
