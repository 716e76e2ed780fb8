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
#include "base/pem.h"
#include "cli/node_parts.h"
#include "content/content.h"
#include "http/server.h"
#include "report/renderer.h"
#include "seal/clock_state.h"
#include "seal/signer_log.h"
#include "store/schema/store_schemas.h"
#include "store/store.h"
#include "trustlist/trusted_list.h"

#define KEY_FILE_MAX ((size_t)1 << 20)
/* Of a data directory, with a store that other nodes may use already. */
#define MISSING_AT_NODE                                                                            \
	"does not exist yet: run 'constancia init' on the first node, and on each other one "          \
	"'install -d -m 0700 -o USER %s'"

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

/* Checks that init can create the missing data directory: it creates no other. */
static bool check_parent(const struct node_precheck *look)
{
	const char *path = look->settings->service_data_dir;
	const char *end = path + strlen(path);
	char parent[PATH_MAX];
	struct stat facts;
	while (end > path + 1 && end[-1] == '/')
		end--;
	while (end > path + 1 && end[-1] != '/')
		end--;
	while (end > path + 1 && end[-1] == '/')
		end--;
	snprintf(parent, sizeof parent, "%.*s", (int)(end - path), path);
	if (stat(parent, &facts) != 0)
		refuse(look, "service.data_dir", ERR_IO,
		       "%s cannot be created, because %s is missing: create %s first", path, parent,
		       parent);
	else if (access(parent, W_OK | X_OK) != 0)
		refuse(look, "service.data_dir", ERR_IO,
		       "%s cannot be created by this user (%lu): %s belongs to %s; create it with "
		       "'install -d -m 0700 -o USER %s'",
		       path, (unsigned long)geteuid(), parent, user_name(facts.st_uid), path);
	else
		return true;
	return false;
}

/* Returns whether the directory exists and is usable. */
static bool check_data_directory(const struct node_precheck *look)
{
	const char *path = look->settings->service_data_dir;
	struct stat facts;
	if (stat(path, &facts) != 0) {
		if (look->create && errno == ENOENT)
			return check_parent(look);
		struct error error = {0};
		if (errno == ENOENT && db_url_path(look->settings->store_url))
			(void)error_set(&error, ERR_NOT_FOUND, MSG_STORE_ABSENT, path, NULL);
		else if (errno == ENOENT)
			(void)error_cause(&error, ERR_NOT_FOUND, "%s " MISSING_AT_NODE, path, path);
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

/* Returns whether the path lies in the data directory. */
static bool is_in_data_directory(const struct settings *settings, const char *path)
{
	size_t size = strlen(settings->service_data_dir);
	return strncmp(path, settings->service_data_dir, size) == 0 && path[size] == '/';
}

bool node_precheck(const struct node_precheck *look)
{
	const struct settings *settings = look->settings;
	bool usable = look->absent ? check_parent(look) : check_data_directory(look);
	if (usable && !look->running && node_is_running(settings)) {
		struct error error = {0};
		(void)error_set(&error, ERR_UNAVAILABLE, MSG_DATA_LOCKED, settings->service_data_dir, NULL);
		look->refused(look->context, false, "service.data_dir", &error);
		return false;
	}
	if (look->create)
		return usable;
	if ((usable && !look->absent) ||
	    !is_in_data_directory(settings, settings->service_admin_socket))
		check_admin_socket(look);
	if (look->running)
		return usable;
	check_address(look, "service.listen", settings->service_listen);
	check_address(look, "service.admin_listen", settings->service_admin_listen);
	return usable;
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

/* Returns the text after the prefix, if it begins with it. */
static const char *after(const char *text, const char *prefix)
{
	size_t size = strlen(prefix);
	return strncmp(text, prefix, size) == 0 ? text + size : text;
}

/* Returns whether the text is about the file. */
static bool names_file(const char *text, const char *path)
{
	return *path && strstr(text, path);
}

/* Returns the setting that makes a key unusable, by the files that the cause names, and removes
 * what the setting's name says already. */
static const char *find_key_setting(const struct settings *settings, struct error *error)
{
	char cause[ERROR_CAUSE_MAX];
	const char *text = after(error->cause, "signer process: ");
	bool next = strncmp(text, "signer.next_key: ", 17) == 0;
	const char *chain = next ? settings->signer_next_chain : settings->signer_chain;
	const char *key = next ? settings->signer_next_key : settings->signer_key;
	const char *secret = next && *settings->signer_next_passphrase_file
	                         ? settings->signer_next_passphrase_file
	                         : settings->signer_passphrase_file;
	snprintf(cause, sizeof cause, "%s", after(after(text, "signer.next_key: "), "signer.key: "));
	char *remedy = strstr(cause, " is encrypted: set ");
	if (remedy) {
		*remedy = '\0';
		snprintf(error->cause, sizeof error->cause,
		         "must name the file with the passphrase: %.*s is encrypted",
		         (int)(sizeof error->cause - 80), cause);
		return next ? "signer.next_passphrase_file" : "signer.passphrase_file";
	}
	snprintf(error->cause, sizeof error->cause, "%s", cause);
	if (names_file(cause, secret) || (*secret && names_file(cause, "wrong passphrase")))
		return next && secret == settings->signer_next_passphrase_file
		           ? "signer.next_passphrase_file"
		           : "signer.passphrase_file";
	if (names_file(cause, chain) ||
	    (*chain && names_file(cause, "certificate") && strncmp(cause, key, strlen(key)) != 0))
		return next ? "signer.next_chain" : "signer.chain";
	return next ? "signer.next_key" : "signer.key";
}

/* Reports a file of certificates in the place of the key, whose mode would be reported instead. */
static bool is_certificate_file(const struct node_precheck *look)
{
	const char *path = look->settings->signer_key;
	struct error ignored = {0};
	BUF_AUTO struct buf text;
	buf_init(&text, KEY_FILE_MAX);
	if (!*path || file_read_whole(path, &text, &ignored) || !text.size)
		return false;
	bool found =
		!pem_certificates_fault(buf_slice(&text)) && !strstr(text.data, "PRIVATE KEY-----");
	explicit_bzero(text.data, text.size);
	if (found)
		refuse(look, "signer.key", ERR_REFUSED, "%s contains certificates and no private key",
		       path);
	return found;
}

static void try_keys(const struct node_precheck *look, struct node_keys *keys)
{
	struct error error = {0};
	int result = node_check_signer(look->settings, keys, &error);
	if (result && !is_certificate_file(look))
		report(look, find_key_setting(look->settings, &error), result, &error);
}

static void try_clients(const struct node_precheck *look)
{
	struct authorities *authorities = NULL;
	struct revocation_client *revocation = NULL;
	struct error error = {0};
	struct authority_settings described = settings_authorities(look->settings);
	int result = node_create_authorities(look->settings, NULL, &authorities, &error);
	if (result)
		report(look, authority_setting_at_fault(&described), result, &error);
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

/* ---- surroundings ---- */

static void warn_of_clock(const struct node_precheck *look)
{
	struct clock_state clock = clock_state_read();
	if (!clock.synchronized)
		advise(look, "seal.strict_clock",
		       "the system clock is not synchronized (maximum error %lld ms according to the "
		       "kernel): run chrony, ntpd or systemd-timesyncd",
		       (long long)clock.max_error_us / 1000);
}

/* Returns whether a program of the name is in a directory of PATH. */
static bool has_program(const char *name)
{
	const char *paths = getenv("PATH");
	char path[PATH_MAX];
	for (const char *at = paths ? paths : "/usr/bin:/bin"; at;) {
		size_t size = strcspn(at, ":");
		snprintf(path, sizeof path, "%.*s/%s", (int)size, at, name);
		if (size && access(path, X_OK) == 0)
			return true;
		at = at[size] ? at + size + 1 : NULL;
	}
	return false;
}

/* Returns whether a backup could write into the directory, or create it. */
static bool can_hold_backups(const char *path)
{
	char parent[PATH_MAX];
	struct stat facts;
	if (stat(path, &facts) == 0)
		return S_ISDIR(facts.st_mode) && access(path, R_OK | W_OK | X_OK) == 0;
	const char *slash = strrchr(path, '/');
	snprintf(parent, sizeof parent, "%.*s", slash > path ? (int)(slash - path) : 1, path);
	return access(parent, W_OK | X_OK) == 0;
}

static void warn_of_backups(const struct node_precheck *look)
{
	const struct settings *settings = look->settings;
	const char *path = settings->backup_directory;
	if (*path != '/')
		return;
	if (!db_url_path(settings->store_url) && !has_program("pg_dump"))
		advise(look, "backup.directory",
		       "pg_dump is not in the PATH, and a backup of PostgreSQL needs it: install "
		       "postgresql-client");
	else if (!can_hold_backups(path))
		advise(look, "backup.directory",
		       "%s is no directory in which this user (%lu) can write: create it with "
		       "'install -d -m 0700 -o USER %s'",
		       path, (unsigned long)geteuid(), path);
}

/* Asks a database server for its standbys; the driver waits for 3 seconds for each host. What
 * cannot be learned is no fault of the settings. */
static void warn_of_server(const struct node_precheck *look)
{
	struct db_options options = settings_store(look->settings, false);
	struct error error = {0};
	struct db *db = NULL;
	if (db_url_path(options.url) || db_check_url(options.url, &error))
		return;
	int result = db_open(&options, &store_schemas, &db, &error);
	for (char *at = error.cause; *at; at++)
		if ((unsigned char)*at < ' ') /* libpq writes several lines */
			*at = at[1] ? ' ' : '\0';
	if (result) {
		advise(look, "store.url", "the standbys are unknown, since the server did not answer: %s",
		       error_reason(&error, result));
		return;
	}
	result = db_ready(db, &error);
	if (result)
		advise(look, "store.require_replicas", "%s: registrations are refused until it is mended",
		       error_reason(&error, result));
	db_close(db);
}

static void refuse_file(void *context, const char *setting, const char *what)
{
	refuse(context, setting, ERR_VALIDATION, "%s", what);
}

static void check_root_list(const struct setting_check *check, const char *setting,
                            const char *list)
{
	char path[PATH_MAX];
	for (const char *at = list; *at;) {
		size_t size = strcspn(at, ",");
		const char *begin = at + strspn(at, " ");
		size_t length = begin < at + size ? (size_t)(at + size - begin) : 0;
		while (length && begin[length - 1] == ' ')
			length--;
		snprintf(path, sizeof path, "%.*s", (int)length, begin);
		setting_check_certificates(check, setting, path);
		at += size + (at[size] == ',');
	}
}

/* Clients read these files when they first connect. */
static void check_roots(const struct node_precheck *look)
{
	struct setting_check check = {
		.problem = refuse_file, .warning = refuse_file, .context = (void *)look, .serving = true};
	check_root_list(&check, "tsa.tls_roots", look->settings->tsa_tls_roots);
	check_root_list(&check, "tsa.client_certificate", look->settings->tsa_client_certificate);
	setting_check_certificates(&check, "webhook.roots", look->settings->webhook_roots);
	setting_check_certificates(&check, "mail.roots", look->settings->mail_roots);
}

void node_check_surroundings(const struct settings *settings, node_problem_listener *refused,
                             void *context)
{
	struct node_precheck look = {.settings = settings, .refused = refused, .context = context};
	check_roots(&look);
	warn_of_clock(&look);
	warn_of_backups(&look);
	warn_of_server(&look);
}

void node_check_start(const struct settings *settings, struct node_keys *ret_keys,
                      node_problem_listener *refused, void *context)
{
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
	if (look.absent && db_url_path(settings->store_url))
		advise(&look, "service.data_dir", "%s does not exist yet: run 'constancia init'",
		       settings->service_data_dir);
	else if (look.absent)
		advise(&look, "service.data_dir", "%s " MISSING_AT_NODE, settings->service_data_dir,
		       settings->service_data_dir);
	bool usable = node_precheck(&look);
	warn_of_user(&look);
	warn_of_passkeys(&look);
	if (ret_keys)
		try_keys(&look, ret_keys);
	if (ret_keys && usable && !look.running)
		try_signer_log(&look);
	try_programs(&look);
	try_clients(&look);
	if (usable && !look.absent)
		try_store(&look, ret_keys ? ret_keys : &untried);
}
