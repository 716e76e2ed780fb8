/* The command `setup`: asks what a new deployment needs, writes its settings, and says what comes
 * next. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/setup.h"

#define MEMORY_MAX ((size_t)16 << 20)
#define FILE_MAX ((size_t)1 << 20)
#define STEPS_MAX 8

const struct option setup_options[] = {
	{"public-url", "URL", "public address of the service"},
	{"name", "TEXT", "name of the service in reports"},
	{"store", "embedded|URL", "store: embedded, or postgresql://USER@HOST/DATABASE"},
	{"store-password-file", "FILE", "password of the database user"},
	{"content", "directory|URL", "content: directory, or s3://BUCKET/PREFIX?endpoint=URL"},
	{"content-access-key", "TEXT", "access key of the bucket"},
	{"content-secret-key-file", "FILE", "secret key of the bucket"},
	{"tsa-url", "URL", "timestamp authority; several with commas"},
	{"tsa-kind", "KIND", "its kind: qualified or non_qualified"},
	{"tsa-roots", "FILE", "PEM file with its trust roots"},
	{"tsa-user", "NAME", "user name at the authority"},
	{"tsa-password-file", "FILE", "password at the authority"},
	{"tsa-token-file", "FILE", "bearer token at the authority"},
	{"seal-key", "make|none|FILE|URI", "key of the seal: a file, a pkcs11: URI, make or none"},
	{"seal-chain", "FILE", "certificate of the key, and its issuers up to the root"},
	{"seal-passphrase-file", "FILE", "passphrase of the key file, or PIN of the token"},
	{"country", "CODE", "country of the organization, for the certificate request"},
	{"organization", "NAME", "registered name of the organization, for the request"},
	{"organization-id", "ID", "identifier of the organization, for the request"},
	{"publish", "proxy|tls", "TLS in a reverse proxy on this machine, or in the service"},
	{"tls-certificate", "FILE", "server certificate and its issuers"},
	{"tls-key", "FILE", "key of the server certificate"},
	{"mail", "none|URL", "mail server: smtp://HOST:PORT, smtps://HOST or none"},
	{"mail-from", "ADDRESS", "sender of the e-mails"},
	{"mail-user", "NAME", "user name at the mail server"},
	{"mail-password-file", "FILE", "password at the mail server"},
	{"backups", "none|DIR", "directory for backups, or none"},
	{"security-contact", "none|URL", "contact for security reports, or none"},
	{"replace", NULL, "replace a settings file; the former one is kept as FILE.former"},
	{0},
};

/* Returns whether a file has a line that is not empty, a comment or a section. */
static bool is_configured(struct slice text)
{
	for (size_t i = 0; i < text.size;) {
		size_t end = i;
		while (end < text.size && text.data[end] != '\n')
			end++;
		while (i < end && strchr(" \t\r", text.data[i]))
			i++;
		if (i < end && !strchr("#;[", text.data[i]))
			return true;
		i = end + 1;
	}
	return false;
}

/* Refuses to replace settings by mistake. */
static int check_target(struct setup *setup)
{
	BUF_AUTO struct buf text;
	struct error error = {0};
	buf_init(&text, FILE_MAX);
	if (stat(setup->path, &setup->before) != 0)
		return 0;
	error.code = file_read_whole(setup->path, &text, &error);
	if (error.code)
		return command_fail(setup->line, &error);
	if (!is_configured(buf_slice(&text))) {
		setup->replace = false;
		return 0;
	}
	return setup->replace
	           ? 0
	           : command_usage_error(setup->line,
	                                 "%s has settings already. With --replace they are replaced, "
	                                 "and the file is kept as %s.former.",
	                                 setup->path, setup->path);
}

/* ---- what comes next ---- */

struct steps {
	struct setup *setup;
	const char *texts[STEPS_MAX];
	size_t count;
};

static void add_step(struct steps *steps, const char *text)
{
	if (text && steps->count < STEPS_MAX)
		steps->texts[steps->count++] = text;
}

/* Returns whether the units read the file. */
static bool is_usual(const struct setup *setup)
{
	return strcmp(setup->path, config_default_path()) == 0;
}

/* Adds a command of this program, as its user, with the file unless it is that of the
 * installation. */
static void add_command(struct steps *steps, const char *command)
{
	struct setup *setup = steps->setup;
	bool usual = is_usual(setup);
	add_step(steps, arena_printf(&setup->arena, "%sconstancia %s%s%s",
	                             getpwnam(SERVICE_USER) ? "sudo -u " SERVICE_USER " " : "", command,
	                             usual ? "" : " --config ", usual ? "" : setup->path));
}

/* The units may write only to the usual directory. */
static void add_backup_directory(struct steps *steps, const char *directory)
{
	struct arena *arena = &steps->setup->arena;
	if (strcmp(directory, SETUP_BACKUPS_USUAL) == 0)
		return;
	add_step(steps, arena_printf(arena, "sudo install -d -m 0700 -o %s -g %s %s", SERVICE_USER,
	                             SERVICE_USER, directory));
	add_step(steps, arena_printf(arena,
	                             "for unit in constancia constancia-backup; do sudo mkdir -p "
	                             "/etc/systemd/system/$unit.service.d; printf "
	                             "'[Service]\\nReadWritePaths=%s\\n' | sudo tee "
	                             "/etc/systemd/system/$unit.service.d/backups.conf; done",
	                             directory));
	add_step(steps, "sudo systemctl daemon-reload");
}

static void find_steps(struct steps *steps)
{
	struct setup *setup = steps->setup;
	const char *backups = setup->answers[SETUP_BACKUPS];
	bool wanted = strcmp(backups, "none") != 0;
	if (wanted)
		add_backup_directory(steps, backups);
	add_command(steps, "config check --connect");
	add_command(steps, "init");
	if (is_usual(setup))
		add_step(steps, "sudo systemctl enable --now constancia");
	else
		add_command(steps, "serve");
	if (wanted && is_usual(setup))
		add_step(steps, "sudo systemctl enable --now constancia-backup.timer");
	else if (wanted)
		add_command(steps, "store backup");
	add_command(steps, "account create --name NAME");
}

static const char *chain_step(struct setup *setup)
{
	const char *chain = setup_path(setup, "seal-chain.pem");
	if (setup->request && !setup->key_made && chain && access(chain, F_OK) == 0)
		return arena_printf(&setup->arena,
		                    "The key of the seal and its certificate in %s existed already and "
		                    "were kept. %s requests another certificate.",
		                    chain, setup->request);
	return setup->request
	           ? arena_printf(&setup->arena,
	                          "Send %s to a provider of certificates for electronic seals. Store "
	                          "the certificate, followed by its issuers up to the root, in %s.",
	                          setup->request, setup_path(setup, "seal-chain.pem"))
	           : NULL;
}

static void print_json(const struct steps *steps, const char *chain)
{
	const struct setup *setup = steps->setup;
	BUF_AUTO struct buf text;
	buf_init(&text, (size_t)64 * 1024);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_text(&writer, "config", setup->path);
	json_text(&writer, "former", setup->former);
	json_boolean(&writer, "key_made", setup->key_made);
	json_text(&writer, "request", setup->request);
	json_text(&writer, "certificate", chain);
	json_begin_array(&writer, "next");
	for (size_t i = 0; i < steps->count; i++)
		json_text(&writer, NULL, steps->texts[i]);
	json_end_array(&writer);
	json_end_object(&writer);
	if (!buf_check(&text))
		puts(text.data);
}

static void print_text(const struct steps *steps, const char *chain)
{
	const struct setup *setup = steps->setup;
	printf("Wrote %s.\n", setup->path);
	if (setup->former)
		printf("The former file is %s.\n", setup->former);
	if (chain)
		printf("\n%s\n", chain);
	printf("\nNext, in this order:\n\n");
	for (size_t i = 0; i < steps->count; i++)
		printf("  %s\n", steps->texts[i]);
	if (strcmp(setup->answers[SETUP_PUBLISH], "proxy") == 0)
		printf("\nThe examples of the documentation for nginx, HAProxy and Caddy forward to "
		       "127.0.0.1:8080.\n");
}

static void print_result(struct setup *setup)
{
	struct steps steps = {.setup = setup};
	const char *chain = chain_step(setup);
	find_steps(&steps);
	if (setup->line->json)
		print_json(&steps, chain);
	else
		print_text(&steps, chain);
}

/* ---- the command ---- */

static bool choose_path(struct setup *setup)
{
	const char *given = setup->line->sources.file, *variable = getenv(CONFIG_VARIABLE);
	char here[PATH_MAX];
	if (!given)
		given = variable && *variable ? variable : config_default_path();
	setup->path = *given == '/'               ? given
	              : getcwd(here, sizeof here) ? arena_printf(&setup->arena, "%s/%s", here, given)
	                                          : NULL;
	const char *slash = setup->path ? strrchr(setup->path, '/') : NULL;
	setup->directory =
		slash ? arena_copy(&setup->arena, setup->path, (size_t)(slash - setup->path)) : NULL;
	return setup->directory;
}

int command_setup(const struct command_line *line)
{
	struct setup setup = {
		.line = line,
		.replace = command_option(line, "replace") != NULL,
		.interactive = !line->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO),
		.owner = service_user_find(),
	};
	struct error error = {0};
	arena_init(&setup.arena, MEMORY_MAX);
	int exit_code = choose_path(&setup) ? 0 : command_usage_error(line, "--config: not a path.");
	if (!exit_code)
		exit_code = check_target(&setup);
	if (!exit_code)
		exit_code = setup_ask(&setup);
	if (!exit_code) {
		error.code = setup_write(&setup, &error);
		exit_code = error.code ? command_fail(line, &error) : 0;
	}
	if (!exit_code)
		print_result(&setup);
	arena_free(&setup.arena);
	return exit_code;
}
