/* Reports every error that would prevent a start: the checks that a start makes first
 * (node_precheck), then each component, created and freed again. */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/webauthn_party.h"
#include "base/file.h"
#include "cli/node_parts.h"
#include "content/content.h"
#include "http/server.h"
#include "report/renderer.h"
#include "seal/signer_log.h"
#include "store/store.h"
#include "trustlist/trusted_list.h"

static void refuse(const struct node_precheck *look, const char *setting, int code,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
static void refuse(const struct node_precheck *look, const char *setting, int code,
                   const char *format, ...)
{
	struct error error = {.code = code};
	va_list list;
	va_start(list, format);
	vsnprintf(error.cause, sizeof error.cause, format, list);
	va_end(list);
	look->refused(look->context, false, setting, &error);
}

static void advise(const struct node_precheck *look, const char *setting, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void advise(const struct node_precheck *look, const char *setting, const char *format, ...)
{
	struct error error = {0};
	va_list list;
	va_start(list, format);
	vsnprintf(error.cause, sizeof error.cause, format, list);
	va_end(list);
	look->refused(look->context, true, setting, &error);
}

/* ---- directories and addresses ---- */

bool node_is_running(const struct settings *settings)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/node.lock", settings->service_data_dir);
	return file_is_locked(path);
}

static const char *user_name(uid_t user)
{
	const struct passwd *entry = getpwuid(user);
	return entry ? entry->pw_name : "another user";
}

/* Returns whether the directory exists and is usable. */
static bool check_data_directory(const struct node_precheck *look)
{
	const char *path = look->settings->service_data_dir;
	struct stat facts;
	if (stat(path, &facts) != 0) {
		if (look->create && errno == ENOENT)
			return true;
		struct error error = {0};
		if (errno == ENOENT)
			(void)error_set(&error, ERR_NOT_FOUND, MSG_STORE_ABSENT, path, NULL);
		else
			(void)error_cause(&error, ERR_IO, "%s: %s", path, strerror(errno));
		look->refused(look->context, false, "service.data_dir", &error);
		return false;
	}
	if (!S_ISDIR(facts.st_mode)) {
		refuse(look, "service.data_dir", ERR_IO, "%s is not a directory", path);
		return false;
	}
	if (access(path, R_OK | W_OK | X_OK) == 0)
		return true;
	refuse(look, "service.data_dir", ERR_IO,
	       "%s belongs to %s and is not writable by this user (%lu): %s", path,
	       user_name(facts.st_uid), (unsigned long)geteuid(), strerror(errno));
	return false;
}

static void check_admin_socket(const struct node_precheck *look)
{
	const char *path = look->settings->service_admin_socket;
	const char *slash = strrchr(path, '/');
	char directory[PATH_MAX];
	struct stat facts;
	snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - path) : 1,
	         slash ? path : ".");
	if (slash == path)
		snprintf(directory, sizeof directory, "/");
	if (access(directory, W_OK | X_OK) != 0)
		refuse(look, "service.admin_socket", ERR_IO, "%s: %s", directory, strerror(errno));
	else if (lstat(path, &facts) == 0 && !S_ISSOCK(facts.st_mode))
		refuse(look, "service.admin_socket", ERR_IO, "%s exists and is not a socket", path);
}

static void check_address(const struct node_precheck *look, const char *setting, const char *text)
{
	struct error error = {0};
	if (*text && http_check_listen_address(setting, text, &error))
		look->refused(look->context, false, setting, &error);
	else if (strcmp(setting, "service.listen") == 0 && http_needs_proxy(text, &error))
		look->refused(look->context, true, setting, &error);
}

void node_precheck(const struct node_precheck *look)
{
	const struct settings *settings = look->settings;
	bool usable = !look->absent && check_data_directory(look);
	if (usable && !look->running && node_is_running(settings)) {
		struct error error = {0};
		(void)error_set(&error, ERR_UNAVAILABLE, MSG_DATA_LOCKED, settings->service_data_dir, NULL);
		look->refused(look->context, false, "service.data_dir", &error);
		return;
	}
	if (look->create)
		return;
	if (usable)
		check_admin_socket(look);
	if (look->running)
		return;
	check_address(look, "service.listen", settings->service_listen);
	check_address(look, "service.admin_listen", settings->service_admin_listen);
}

/* ---- components ---- */

static void report(const struct node_precheck *look, const char *setting, int result,
                   struct error *error)
{
	if (!result)
		return;
	error->code = result;
	look->refused(look->context, false, setting, error);
}

static void try_programs(const struct node_precheck *look)
{
	struct renderer renderer = {.program = -1};
	struct error error = {0};
	report(look, NULL, renderer_find(&renderer, &error), &error);
	renderer_close(&renderer);
	error_clear(&error);
	if (trusted_list_check(&error))
		advise(look, NULL,
		       "%s: required by 'constancia verify --trusted-list'; part of this "
		       "program's installation",
		       error.cause);
}

static void try_clients(const struct node_precheck *look)
{
	struct authorities *authorities = NULL;
	struct revocation_client *revocation = NULL;
	struct error error = {0};
	report(look, "tsa.url", node_create_authorities(look->settings, NULL, &authorities, &error),
	       &error);
	authorities_free(authorities);
	error_clear(&error);
	report(look, "revocation.allow_networks",
	       node_create_revocation_client(look->settings, NULL, &revocation, &error), &error);
	revocation_client_free(revocation);
}

static void try_content(const struct node_precheck *look, struct store *store)
{
	struct content_options options = settings_content(look->settings, false);
	struct content_store *content = NULL;
	struct error error = {0};
	char installation[INSTALLATION_SIZE];
	int result = content_open_with(&options, &content, &error);
	if (!result && !content_is_remote(content))
		result = store_get_installation(store, installation, &error);
	if (!result && !content_is_remote(content))
		result = content_check_claim(content, installation, &error);
	report(look, "content.url", result, &error);
	content_close(content);
}

bool node_owns_store(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 && facts.st_uid == geteuid();
}

/* Checks the log of the signing process; a start that opened its keys has checked it already. */
static void try_signer_log(const struct node_precheck *look)
{
	struct signer_log_facts facts;
	struct error error = {0};
	int result = signer_log_check(look->settings->signer_directory, NULL, NULL, &facts, &error);
	if (result != ERR_NOT_FOUND) /* created by a start */
		report(look, "signer.directory", result, &error);
}

static void try_store(const struct node_precheck *look, const struct node_keys *keys)
{
	const char *path = db_url_path(look->settings->store_url);
	struct stat facts;
	if (!path || look->running)
		return;
	if (stat(path, &facts) != 0) {
		advise(look, "store.url", "there is no store at %s yet: run 'constancia init'", path);
		return;
	}
	if (!node_owns_store(path)) {
		advise(look, "store.url",
		       "%s belongs to %s and was not opened: run this command as that user", path,
		       user_name(facts.st_uid));
		return;
	}
	struct db_options options = settings_store(look->settings, false);
	struct store *store = NULL;
	struct error error = {0};
	int result = store_open(&options, &store, &error);
	report(look, "store.url", result, &error);
	if (!result)
		try_content(look, store);
	if (!result)
		node_check_opened_store(look->settings, store, keys, look->refused, look->context);
	store_close(store);
}

static void warn_of_user(const struct node_precheck *look)
{
	struct stat facts;
	const char *path = look->settings->service_data_dir;
	if (geteuid() == 0 && stat(path, &facts) == 0 && facts.st_uid != 0)
		advise(look, "service.data_dir",
		       "%s belongs to %s, and root can read every file: run this command as the "
		       "service's user (sudo -u %s)",
		       path, user_name(facts.st_uid), user_name(facts.st_uid));
}

static void warn_of_passkeys(const struct node_precheck *look)
{
	struct webauthn_party party;
	struct error error = {0};
	if (webauthn_party_read(look->settings->service_public_url, &party, &error))
		advise(look, "service.public_url", "%s", error_message(&error, LANGUAGE_ENGLISH));
}

void node_check_start(const struct settings *settings, struct node_keys *ret_keys,
                      node_problem_listener *refused, void *context)
{
	struct error error = {0};
	struct node_keys untried = {0};
	struct node_precheck look = {.settings = settings,
	                             .running = node_is_running(settings),
	                             .refused = refused,
	                             .context = context};
	if (look.running)
		advise(&look, "service.data_dir",
		       "a service is running with this directory: its addresses and store were "
		       "not checked");
	look.absent = access(settings->service_data_dir, F_OK) != 0 && errno == ENOENT;
	if (look.absent)
		advise(&look, "service.data_dir", "%s does not exist yet: run 'constancia init'",
		       settings->service_data_dir);
	node_precheck(&look);
	warn_of_user(&look);
	warn_of_passkeys(&look);
	if (ret_keys)
		report(&look, "signer.key", node_check_signer(settings, ret_keys, &error), &error);
	if (ret_keys && !look.running)
		try_signer_log(&look);
	try_programs(&look);
	try_clients(&look);
	if (!look.absent)
		try_store(&look, ret_keys ? ret_keys : &untried);
}
