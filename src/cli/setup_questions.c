/* The questions of `setup`, the settings that follow from the answers, and their checks. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/pem.h"
#include "cli/setup.h"

#define CERTIFICATES_MAX ((size_t)1 << 20)
#define ANSWER_MAX 4000 /* with its key, less than a line of the settings file (base/ini.h) */

/* ---- which questions apply ---- */

static bool answered(const struct setup *setup, enum setup_number number)
{
	const char *answer = setup->answers[number];
	return answer && *answer && !setup_is_word(setup, number);
}

static bool on_server(const struct setup *setup)
{
	return answered(setup, SETUP_STORE);
}

static bool on_s3(const struct setup *setup)
{
	return answered(setup, SETUP_CONTENT) && strncmp(setup->answers[SETUP_CONTENT], "s3:", 3) == 0;
}

static bool with_authority(const struct setup *setup)
{
	const char *url = setup->answers[SETUP_TSA_URL];
	return url && strcmp(url, "embedded:") != 0;
}

static bool with_authority_user(const struct setup *setup)
{
	return answered(setup, SETUP_TSA_USER);
}

static bool makes_key(const struct setup *setup)
{
	const char *key = setup->answers[SETUP_SEAL_KEY];
	return key && strcmp(key, "make") == 0;
}

static bool with_own_key(const struct setup *setup)
{
	return answered(setup, SETUP_SEAL_KEY) && !makes_key(setup);
}

static bool with_key(const struct setup *setup)
{
	return answered(setup, SETUP_SEAL_KEY);
}

static bool with_tls(const struct setup *setup)
{
	const char *publish = setup->answers[SETUP_PUBLISH];
	return publish && strcmp(publish, "tls") == 0;
}

static bool with_mail(const struct setup *setup)
{
	return answered(setup, SETUP_MAIL);
}

static bool with_mail_user(const struct setup *setup)
{
	return with_mail(setup) && answered(setup, SETUP_MAIL_USER);
}

bool setup_wants_request(const struct setup *setup)
{
	return makes_key(setup) ||
	       (with_own_key(setup) && signing_request_is_on_token(setup->answers[SETUP_SEAL_KEY]) &&
	        !answered(setup, SETUP_SEAL_CHAIN));
}

static const char *check_publish(const char *text)
{
	return strcmp(text, "proxy") == 0 || strcmp(text, "tls") == 0 ? NULL : "must be proxy or tls";
}

/* Returns whether the directory is empty but for what a new file system has. */
static bool is_empty(const char *path)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;
	bool empty = directory;
	while (empty && (entry = readdir(directory)))
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		        strcmp(entry->d_name, "lost+found") == 0;
	if (directory)
		(void)closedir(directory);
	return empty;
}

/* The path is printed inside commands, which give the directory to the user of the service. */
static const char *check_backups(const char *text)
{
	struct stat facts;
	struct service_user owner = service_user_find();
	if (strcmp(text, "none") == 0)
		return NULL;
	if (*text != '/' || strpbrk(text, " '\"\\$`;&|<>()*?%"))
		return "must be an absolute path without spaces and special characters, or none";
	if (stat(text, &facts) != 0)
		return NULL;
	if (!S_ISDIR(facts.st_mode))
		return "is not a directory";
	if (facts.st_uid == (owner.is_given ? owner.user : geteuid()) && facts.st_uid != 0)
		return NULL;
	return strcmp(text, SETUP_BACKUPS_USUAL) == 0 || is_empty(text)
	           ? NULL
	           : "must be a new or empty directory, which the service's user will own";
}

static const char *check_store(const char *text)
{
	char shown[1024];
	db_shown_url(text, shown, sizeof shown);
	if (strncmp(text, "postgresql://", 13) != 0)
		return strcmp(text, "embedded") == 0
		           ? NULL
		           : "must be embedded or postgresql://USER@HOST/DATABASE";
	return strcmp(shown, text) == 0
	           ? NULL
	           : "must not contain the password; give it with --store-password-file";
}

static const char *check_content(const char *text)
{
	return strcmp(text, "directory") == 0 || strncmp(text, "s3:", 3) == 0 ||
	               strncmp(text, "file:", 5) == 0
	           ? NULL
	           : "must be directory, file:DIRECTORY or s3://BUCKET/PREFIX?endpoint=URL";
}

/* The service has another working directory. */
static const char *check_file(const char *text)
{
	if (*text && *text != '/')
		return "must be an absolute path";
	return access(text, R_OK) == 0 ? NULL : "cannot be read";
}

/* Returns NULL for a file that cannot be read, which is reported with the reason elsewhere. */
static const char *check_certificates(const char *text)
{
	BUF_AUTO struct buf content;
	struct error error = {0};
	buf_init(&content, CERTIFICATES_MAX);
	if (*text && *text != '/')
		return "must be an absolute path";
	return *text && !file_read_whole(text, &content, &error)
	           ? pem_certificates_fault(buf_slice(&content))
	           : NULL;
}

static const char *check_server_certificate(const char *text)
{
	const char *what = check_file(text);
	return what ? what : check_certificates(text);
}

static const char *check_roots(const char *text)
{
	const char *what = NULL;
	for (const char *at = text; at && !what;) {
		char path[PATH_MAX];
		at += strspn(at, " ");
		snprintf(path, sizeof path, "%.*s", (int)strcspn(at, ", "), at);
		what = check_certificates(path);
		at = strchr(at, ',');
		at += at ? 1 : 0;
	}
	return what;
}

static const char *check_key(const char *text)
{
	if (signing_request_is_on_token(text))
		return strstr(text, "pin-value=")
		           ? "must not contain the PIN; give it with --seal-passphrase-file"
		           : NULL;
	return *text == '/' || !*text || strcmp(text, "make") == 0 || strcmp(text, "none") == 0
	           ? NULL
	           : "must be make, none, a pkcs11: URI or an absolute path";
}

static const char *check_optional_identifier(const char *text)
{
	return *text ? signing_subject_check_identifier(text) : NULL;
}

const struct setup_question setup_questions[SETUP_QUESTIONS] = {
	[SETUP_PUBLIC_URL] = {1, "public-url",
                          "Public address of the service, which reports print and readers must "
                          "reach for years,\nsuch as https://register.example.org",
                          "service.public_url"},
	[SETUP_NAME] = {2, "name", "Name of the service in reports", "service.name"},
	[SETUP_STORE] = {3, "store",
                     "Store: embedded (one machine), or the address of a PostgreSQL database,\n"
                     "postgresql://USER@HOST[,HOST]/DATABASE",
                     "store.url", "embedded", "embedded", .check = check_store},
	[SETUP_STORE_PASSWORD] = {3, "store-password-file",
                              "Password of the database user; empty if it needs none",
                              .credential = "pgpass", .need = SETUP_OPTIONAL, .applies = on_server},
	[SETUP_CONTENT] = {4, "content",
                       "Content: directory (in the data directory), or a bucket,\n"
                       "s3://BUCKET/PREFIX?endpoint=https://…",
                       "content.url", "directory", "directory", .check = check_content},
	[SETUP_CONTENT_ACCESS_KEY] = {4, "content-access-key", "Access key of the bucket",
                                  "content.access_key", .applies = on_s3},
	[SETUP_CONTENT_SECRET_KEY] = {4, "content-secret-key-file", "Secret key of the bucket",
                                  "content.secret_key", .credential = "content-secret-key",
                                  .applies = on_s3},
	[SETUP_TSA_URL] = {5, "tsa-url",
                       "Address of the timestamp authority (RFC 3161); several with commas",
                       "tsa.url"},
	[SETUP_TSA_KIND] = {5, "tsa-kind", "Its kind: qualified or non_qualified", "tsa.kind",
                        .applies = with_authority},
	[SETUP_TSA_ROOTS] = {5, "tsa-roots", "PEM file with its trust roots", "tsa.roots",
                         .applies = with_authority, .check = check_roots},
	[SETUP_TSA_USER] = {5, "tsa-user", "User name at the authority; empty if it needs none",
                        "tsa.user", .need = SETUP_OPTIONAL, .later = true,
                        .applies = with_authority},
	[SETUP_TSA_PASSWORD] = {5, "tsa-password-file", "Password at the authority", "tsa.password",
                            .credential = "tsa-password", .applies = with_authority_user},
	[SETUP_TSA_TOKEN] = {5, "tsa-token-file", "Bearer token at the authority", "tsa.token",
                         .credential = "tsa-token", .need = SETUP_FLAG_ONLY,
                         .applies = with_authority},
	[SETUP_SEAL_KEY] = {6, "seal-key",
                        "Key of the seal: a PEM or PKCS#12 file, a pkcs11: URI, make (a key and a "
                        "request for its\ncertificate), or none (a development key)",
                        "signer.key", "none", "make", .check = check_key},
	[SETUP_SEAL_CHAIN] = {6, "seal-chain",
                          "PEM file with its certificate and the issuers up to the root; empty if "
                          "the key file has them,\nor if the key on a token has no certificate yet",
                          "signer.chain", .need = SETUP_OPTIONAL, .applies = with_own_key,
                          .check = check_certificates},
	[SETUP_SEAL_PASSPHRASE] = {6, "seal-passphrase-file",
                               "Passphrase or PIN of the key; empty if it has none",
                               "signer.passphrase_file", .credential = "seal-passphrase",
                               .need = SETUP_OPTIONAL, .applies = with_key},
	[SETUP_COUNTRY] = {6, "country", "Country of the organization (ISO 3166-1, such as ES)",
                       .applies = setup_wants_request, .check = signing_subject_check_country},
	[SETUP_ORGANIZATION] = {6, "organization", "Registered name of the organization",
                            .applies = setup_wants_request, .check = signing_subject_check_name},
	[SETUP_ORGANIZATION_ID] = {6, "organization-id",
                               "Identifier of the organization, such as VATES-B00000000; may be "
                               "empty",
                               .need = SETUP_OPTIONAL, .applies = setup_wants_request,
                               .check = check_optional_identifier},
	[SETUP_PUBLISH] = {7, "publish",
                       "TLS: proxy (nginx, HAProxy or Caddy on this machine), or tls (in the "
                       "service, port 8443)",
                       .suggestion = "proxy", .check = check_publish},
	[SETUP_TLS_CERTIFICATE] = {7, "tls-certificate",
                               "PEM file with the server certificate and its issuers",
                               "service.tls_certificate", .later = true, .applies = with_tls,
                               .check = check_server_certificate},
	[SETUP_TLS_KEY] = {7, "tls-key", "PEM file with its key", "service.tls_key",
                       .applies = with_tls, .check = check_file},
	[SETUP_MAIL] = {8, "mail", "Mail server, smtp://HOST:PORT or smtps://HOST; none: no e-mail",
                    "mail.url", "none", "none"},
	[SETUP_MAIL_FROM] = {8, "mail-from", "Sender of the e-mails", "mail.from",
                         .applies = with_mail},
	[SETUP_MAIL_USER] = {8, "mail-user", "User name at the mail server; empty if it needs none",
                         "mail.user", .need = SETUP_OPTIONAL, .later = true, .applies = with_mail},
	[SETUP_MAIL_PASSWORD] = {8, "mail-password-file", "Password at the mail server",
                             "mail.password", .credential = "mail-password",
                             .applies = with_mail_user},
	[SETUP_BACKUPS] = {9, "backups",
                       "Directory for backups, on another disk; none: they are made by other means",
                       "backup.directory", "none", SETUP_BACKUPS_USUAL, .check = check_backups},
	[SETUP_SECURITY_CONTACT] = {10, "security-contact",
                                "Contact for security reports, such as "
                                "mailto:security@example.org, or none",
                                "service.security_contact", "none"},
};

bool setup_applies(const struct setup *setup, enum setup_number number)
{
	const struct setup_question *question = &setup_questions[number];
	return !question->applies || question->applies(setup);
}

bool setup_is_word(const struct setup *setup, enum setup_number number)
{
	const char *word = setup_questions[number].word, *answer = setup->answers[number];
	return word && answer && strcmp(answer, word) == 0;
}

bool setup_is_second(enum setup_number number)
{
	return number > 0 && setup_questions[number - 1].later;
}

const char *setup_path(struct setup *setup, const char *name)
{
	return arena_printf(&setup->arena, "%s/%s", setup->directory, name);
}

/* ---- the settings ---- */

struct pairs {
	struct setup_pair *items;
	size_t count;
};

/* Ignores a setting that this version does not have, and an empty value. */
static void add(struct pairs *pairs, const char *name, const char *value)
{
	const struct setting *setting = setting_find_by_name(name);
	if (setting && value && *value && pairs->count < SETUP_PAIRS_MAX)
		pairs->items[pairs->count++] = (struct setup_pair){setting, value};
}

/* libpq reads the password from a file that the address names. */
static const char *store_url(struct setup *setup)
{
	const char *url = setup->answers[SETUP_STORE];
	if (!setup->answers[SETUP_STORE_PASSWORD] || !*setup->answers[SETUP_STORE_PASSWORD])
		return url;
	return arena_printf(&setup->arena, "%s%cpassfile=%s/credentials/pgpass", url,
	                    strchr(url, '?') ? '&' : '?', setup->directory);
}

static const char *value_of(struct setup *setup, enum setup_number number, bool reveal)
{
	const struct setup_question *question = &setup_questions[number];
	const char *answer = setup->answers[number];
	if (!answer || !*answer || setup_is_word(setup, number) || !setup_applies(setup, number))
		return NULL;
	if (number == SETUP_STORE)
		return store_url(setup);
	if (number == SETUP_SEAL_KEY && makes_key(setup))
		return setup_path(setup, "seal-key.pem");
	if (number == SETUP_SEAL_PASSPHRASE)
		return setup_path(setup, "credentials/seal-passphrase");
	if (question->credential && !reveal)
		return arena_printf(&setup->arena, "credential:%s", question->credential);
	return answer;
}

static void add_consequences(struct setup *setup, struct pairs *pairs)
{
	if (setup_wants_request(setup))
		add(pairs, "signer.chain", setup_path(setup, "seal-chain.pem"));
	if (with_tls(setup))
		add(pairs, "service.listen", "0.0.0.0:8443");
	else if (setup->answers[SETUP_PUBLISH])
		add(pairs, "service.trusted_proxies", "127.0.0.0/8,::1/128");
	if (answered(setup, SETUP_BACKUPS))
		add(pairs, "store.backup_warn", "26h");
	add(pairs, "service.data_dir", setup->line->sources.data_dir);
}

/* A setting of --set takes the place of one that follows from an answer. */
static void add_given(struct setup *setup, struct pairs *pairs)
{
	const struct config_sources *sources = &setup->line->sources;
	for (unsigned i = 0; i < sources->set_count; i++) {
		char name[SETTING_NAME_SIZE];
		size_t size = strcspn(sources->sets[i], "="), kept = 0;
		snprintf(name, sizeof name, "%.*s", (int)size, sources->sets[i]);
		for (size_t k = 0; k < pairs->count; k++)
			if (pairs->items[k].setting != setting_find_by_name(name))
				pairs->items[kept++] = pairs->items[k];
		pairs->count = kept;
		if (sources->sets[i][size])
			add(pairs, name, sources->sets[i] + size + 1);
	}
}

size_t setup_pairs(struct setup *setup, bool reveal, struct setup_pair items[SETUP_PAIRS_MAX])
{
	struct pairs pairs = {.items = items};
	for (int i = 0; i < SETUP_QUESTIONS; i++)
		if (setup_questions[i].setting)
			add(&pairs, setup_questions[i].setting, value_of(setup, (enum setup_number)i, reveal));
	add_consequences(setup, &pairs);
	add_given(setup, &pairs);
	return pairs.count;
}

/* ---- checks ---- */

/* A file that does not exist yet: it is made after the checks, or comes from the authority. */
static bool is_pending(const struct setup *setup, const char *setting)
{
	return setup_wants_request(setup) &&
	       (strcmp(setting, "signer.chain") == 0 || strcmp(setting, "signer.key") == 0);
}

static int load(struct setup *setup, struct config *config)
{
	struct setup_pair pairs[SETUP_PAIRS_MAX];
	struct config_sources sources = {.serving = true};
	size_t count = setup_pairs(setup, true, pairs);
	for (size_t i = 0; i < count && sources.set_count < CONFIG_SETS_MAX; i++) {
		const char *set = arena_printf(&setup->arena, "%s.%s=%s", pairs[i].setting->section,
		                               pairs[i].setting->key, pairs[i].value);
		if (!set)
			return ERR_NO_MEMORY;
		sources.sets[sources.set_count++] = set;
	}
	return config_load(&sources, config);
}

/* Returns whether a problem of the setting is one of this answer: of a pair, one of any answer of
 * its topic so far. */
static bool concerns(enum setup_number number, const char *setting)
{
	for (int i = (int)number; i >= 0; i--) {
		const char *own = setup_questions[i].setting;
		if (own && strcmp(own, setting) == 0)
			return true;
		if (!setup_is_second(number) || i == 0 ||
		    setup_questions[i - 1].topic != setup_questions[number].topic)
			return false;
	}
	return false;
}

/* A line of the settings file ends, or its comment begins, within such a value (base/ini.h). */
static const char *check_line(const char *answer)
{
	if (strlen(answer) > ANSWER_MAX)
		return "must have at most 4000 bytes";
	for (const char *at = answer; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return "must not contain line feeds or other control characters";
	return *answer == ';' || strstr(answer, " ;")
	           ? "must not contain ';' at the start or after a space, where a comment begins"
	           : NULL;
}

const char *setup_check(struct setup *setup, enum setup_number number)
{
	CONFIG_AUTO struct config config = {0};
	const struct setup_question *question = &setup_questions[number];
	const char *answer = setup->answers[number];
	const char *what = question->setting && !question->credential ? check_line(answer) : NULL;
	if (!what && question->check)
		what = question->check(answer);
	if (!what && question->need == SETUP_REQUIRED && !*answer)
		what = "must not be empty";
	if (what || !question->setting || !*answer || question->later ||
	    is_pending(setup, question->setting))
		return what;
	if (load(setup, &config) != ERR_USAGE)
		return NULL;
	for (const struct config_finding *at = config.findings; at; at = at->next)
		if (!at->warning && at->setting && concerns(number, at->setting))
			return strcmp(at->setting, question->setting) == 0
			           ? arena_text(&setup->arena, at->what)
			           : arena_printf(&setup->arena, "%s: %s", at->setting, at->what);
	return NULL;
}

void setup_check_all(struct setup *setup, struct buf *problems)
{
	CONFIG_AUTO struct config config = {0};
	const struct config_sources *sources = &setup->line->sources;
	for (unsigned i = 0; i < sources->set_count; i++) {
		char name[SETTING_NAME_SIZE];
		snprintf(name, sizeof name, "%.*s", (int)strcspn(sources->sets[i], "="), sources->sets[i]);
		const struct setting *setting = setting_find_by_name(name);
		if (!setting)
			buf_printf(problems, "--set %s: unknown setting\n", name);
		else if (setting->type == SECRET)
			buf_printf(problems, "--set %s: a secret must not be an argument\n", name);
		else if (check_line(sources->sets[i]))
			buf_printf(problems, "--set %s: %s\n", name, check_line(sources->sets[i]));
	}
	if (load(setup, &config) != ERR_USAGE)
		return;
	for (const struct config_finding *at = config.findings; at; at = at->next)
		if (!at->warning && (!at->setting || !is_pending(setup, at->setting)))
			buf_printf(problems, "%s%s%s\n", at->setting ? at->setting : "",
			           at->setting ? ": " : "", at->what);
}
