#include "cli/config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/config_credential.h"
#include "cli/config_internal.h"
#include "cli/settings_table.h"

#define MEMORY_MAX ((size_t)1 << 20)
#define REPORT_MAX ((size_t)64 * 1024)

/* ---- values ---- */

static bool read_integer(const char *text, int64_t *ret)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno || end == text || *end || isspace((unsigned char)*text))
		return false;
	*ret = value;
	return true;
}

/* Parses a value into `field`. Returns NULL, or the error message. */
static const char *put_value(const struct setting *setting, const char *text, void *field)
{
	switch (setting->type) {
	case TEXT:
	case SECRET:
	case SECRET_LIST:
	case LIST: *(const char **)field = text; return NULL;
	case INTEGER: return read_integer(text, field) ? NULL : "must be a decimal integer, such as 50";
	case DURATION:
		return duration_parse(slice_of(text), field)
		           ? NULL
		           : "must be a duration with a unit, such as 500ms, 60s, 5m, 2h or 7d; only "
		             "0 needs no unit";
	case BOOLEAN:
		*(bool *)field = strcmp(text, "true") == 0;
		return *(bool *)field || strcmp(text, "false") == 0 ? NULL : "must be true or false";
	}
	return NULL;
}

/* ---- sources ---- */

static void add_finding(struct config *config, bool warning, const char *setting,
                        const char *origin, const char *what)
{
	struct config_finding *finding = arena_alloc(&config->arena, sizeof *finding);
	if (!finding)
		return; /* config->problems and config->warnings have the text */
	*finding = (struct config_finding){
		.setting = setting ? arena_text(&config->arena, setting) : NULL,
		.origin = origin ? arena_text(&config->arena, origin) : NULL,
		.what = arena_text(&config->arena, what),
		.warning = warning,
	};
	if (config->findings)
		config->last_finding->next = finding;
	else
		config->findings = finding;
	config->last_finding = finding;
}

void config_add_problem(struct config *config, const char *origin, const char *name,
                        const char *what)
{
	config->problem_count++;
	add_finding(config, false, name, origin, what);
	if (origin)
		buf_printf(&config->problems, "%s: ", origin);
	if (name)
		buf_printf(&config->problems, "%s: ", name);
	buf_printf(&config->problems, "%s\n", what);
}

void config_add_warning(struct config *config, const char *origin, const char *name,
                        const char *what)
{
	add_finding(config, true, name, origin, what);
	buf_printf(&config->warnings, "%s: %s\n", name ? name : origin ? origin : "", what);
}

void config_add(struct config *config, bool warning, const char *name, const char *what)
{
	const struct setting *setting = name ? setting_find_by_name(name) : NULL;
	const char *origin = setting ? config->origins[setting - settings_table] : NULL;
	if (warning)
		config_add_warning(config, origin, name, what);
	else
		config_add_problem(config, origin, name, what);
}

static bool is_plain(const char *text)
{
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return false;
	return utf8_valid(slice_of(text));
}

/* Reports quotes around a value: they are part of it. A secret and a name may have them. */
static void check_quotes(struct config *config, size_t i)
{
	const struct setting *setting = &settings_table[i];
	const char *text = config->texts[i] ? config->texts[i] : "";
	size_t size = strlen(text);
	char name[SETTING_NAME_SIZE];
	if (size < 2 || (*text != '"' && *text != '\'') || text[size - 1] != *text)
		return;
	setting_name(setting, name);
	if (setting_is_secret(setting) || strcmp(name, "service.name") == 0) {
		config_add_warning(config, config->origins[i], name,
		                   "the quotes around the value are part of it");
		return;
	}
	config_add_problem(config, config->origins[i], name, "must be written without quotes");
	config->states[i] |= CONFIG_MALFORMED;
}

void config_take(struct config *config, const struct setting *setting, const char *text,
                 const char *origin)
{
	size_t i = (size_t)(setting - settings_table);
	config->texts[i] = arena_text(&config->arena, text);
	config->origins[i] = arena_text(&config->arena, origin);
	check_quotes(config, i);
	if (is_plain(text))
		return;
	char name[SETTING_NAME_SIZE];
	setting_name(setting, name);
	config_add_problem(config, origin, name,
	                   "the value contains control characters or is not UTF-8");
}

void config_add_unknown(struct config *config, const char *origin, const char *name)
{
	char what[400], other[SETTING_NAME_SIZE];
	const struct setting *near = setting_find_similar(name);
	if (near)
		setting_name(near, other);
	snprintf(what, sizeof what,
	         "unknown setting '%.100s'%s%s; 'constancia config print' lists all "
	         "settings",
	         name, near ? "; did you mean " : "", near ? other : "");
	config_add_problem(config, origin, NULL, what);
}

static void take_assignment(struct config *config, const char *assignment, const char *origin)
{
	const char *equals = strchr(assignment, '=');
	if (!equals) {
		config_add_problem(config, origin, NULL, "must have the form section.key=value");
		return;
	}
	char name[SETTING_NAME_SIZE];
	snprintf(name, sizeof name, "%.*s", (int)(equals - assignment), assignment);
	const struct setting *setting = setting_find_by_name(name);
	if (setting)
		config_take(config, setting, equals + 1, origin);
	else
		config_add_unknown(config, origin, name);
}

static void apply_set_options(struct config *config, const struct config_sources *sources)
{
	for (unsigned i = 0; i < sources->set_count; i++) {
		char origin[SETTING_NAME_SIZE];
		snprintf(origin, sizeof origin, "--set %.*s", (int)strcspn(sources->sets[i], "="),
		         sources->sets[i]);
		take_assignment(config, sources->sets[i], origin);
		const struct setting *setting = setting_find_by_name(origin + strlen("--set "));
		if (sources->checking && setting && setting_is_secret(setting))
			config_add_warning(config, origin, NULL,
			                   "is visible to every user of this machine while the command runs");
	}
}

/* Returns whether the variable is one that container platforms set for a service named
 * "constancia". */
static bool is_platform_variable(struct slice name)
{
	static const char *const starts[] = {"CONSTANCIA_PORT_", "CONSTANCIA_SERVICE_PORT_"};
	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
		if (name.size > strlen(starts[i]) && memcmp(name.data, starts[i], strlen(starts[i])) == 0)
			return true;
	return slice_is(name, "CONSTANCIA_PORT") || slice_is(name, "CONSTANCIA_SERVICE_HOST") ||
	       slice_is(name, "CONSTANCIA_SERVICE_PORT");
}

/* Reports an unknown variable. It does not prevent a start, since a platform may set variables with
 * the same prefix; for `config check` it is a problem. */
static void unknown_variable(struct config *config, struct slice name, bool checking)
{
	char origin[SETTING_NAME_SIZE], what[200], other[SETTING_NAME_SIZE];
	bool tolerated = is_platform_variable(name);
	const struct setting *near = tolerated ? NULL : setting_find_similar_variable(name);
	if (near)
		setting_variable(near, other);
	snprintf(origin, sizeof origin, "%.*s", (int)name.size, name.data);
	snprintf(what, sizeof what, "unknown setting, ignored%s%s", near ? "; did you mean " : "",
	         near ? other : "");
	if (checking && !tolerated)
		config_add_problem(config, origin, NULL, what);
	else
		config_add_warning(config, origin, NULL, what);
}

static void apply_environment(struct config *config, const struct config_sources *sources)
{
	static const char prefix[] = "CONSTANCIA_";
	char *const *environment = sources->environment;
	for (; environment && *environment; environment++) {
		const char *equals = strchr(*environment, '=');
		if (!equals || strncmp(*environment, prefix, sizeof prefix - 1) != 0)
			continue;
		struct slice name = slice_make(*environment, (size_t)(equals - *environment));
		const struct setting *found = setting_find_by_variable(name);
		char origin[SETTING_NAME_SIZE];
		snprintf(origin, sizeof origin, "%.*s", (int)name.size, name.data);
		if (found)
			config_take(config, found, equals + 1, origin);
		else if (!slice_is(name, CONFIG_VARIABLE))
			unknown_variable(config, name, sources->checking);
	}
}

/* ---- loading ---- */

static const char *absolute(struct config *config, const char *path)
{
	char here[PATH_MAX];
	if (*path == '/' || !*path || !getcwd(here, sizeof here))
		return path;
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	return arena_printf(&config->arena, "%s/%s", here, path);
}

static void fill_paths(struct config *config)
{
	struct settings *settings = &config->settings;
	settings->service_data_dir = absolute(config, settings->service_data_dir);
	const char *home = settings->service_data_dir;
	if (!*settings->service_admin_socket)
		settings->service_admin_socket = arena_printf(&config->arena, "%s/admin.sock", home);
	if (!*settings->store_url)
		settings->store_url = arena_printf(&config->arena, DB_URL_DEFAULT_FORMAT, home);
	if (!*settings->content_url)
		settings->content_url = arena_printf(&config->arena, CONTENT_URL_DEFAULT_FORMAT, home);
	if (!*settings->signer_directory)
		settings->signer_directory = arena_printf(&config->arena, "%s/signer", home);
}

/* Returns whether the same problem was reported, for another entry of a list. */
static bool is_reported(const struct config *config, const char *name, const char *what)
{
	for (const struct config_finding *at = config->findings; at; at = at->next)
		if (!at->warning && at->setting && strcmp(at->setting, name) == 0 && at->what &&
		    strcmp(at->what, what) == 0)
			return true;
	return false;
}

static void note_problem(void *context, const char *name, const char *what)
{
	const struct setting *setting = setting_find_by_name(name);
	struct config *config = context;
	assert(setting);
	if (!(config->states[setting - settings_table] & CONFIG_MALFORMED) &&
	    !is_reported(config, name, what))
		config_add(config, false, name, what);
}

static void note_warning(void *context, const char *name, const char *what)
{
	config_add(context, true, name, what);
}

/* Reports a reference to a credential where none is replaced, so that it would be used as written.
 */
static void refuse_reference(struct config *config, size_t i)
{
	const struct setting *setting = &settings_table[i];
	char name[SETTING_NAME_SIZE], what[512];
	int size;
	if (!credential_is_named(config->texts[i], true))
		return;
	setting_name(setting, name);
	bool is_name = strstr(name, "passphrase_file") != NULL;
	const char *glue = ": ";
	if (is_name)
		size = snprintf(what, sizeof what, "must name the credential without 'credential:'");
	else
		size = snprintf(what, sizeof what, "credential:NAME works only for secrets");
	for (size_t at = 0; !is_name && at < SETTINGS_COUNT && size < (int)sizeof what; at++) {
		if (!setting_is_secret(&settings_table[at]))
			continue;
		size += snprintf(what + size, sizeof what - (size_t)size, "%s%s.%s", glue,
		                 settings_table[at].section, settings_table[at].key);
		glue = ", ";
	}
	config_add_problem(config, config->origins[i], name, what);
	config->states[i] |= CONFIG_MALFORMED;
}

/* Replaces each credential:NAME of a secret by the content of the credential. Commands that do not
 * serve receive no credentials and need no secrets. */
static void take_credentials(struct config *config, const struct config_sources *sources, size_t i)
{
	const struct setting *setting = &settings_table[i];
	bool list = setting->type == SECRET_LIST;
	char name[SETTING_NAME_SIZE];
	if (!setting_is_secret(setting)) {
		refuse_reference(config, i);
		return;
	}
	if (!credential_is_named(config->texts[i], list))
		return;
	const char *found = "", *what = NULL;
	bool wanted = sources->serving || credentials_are_given(sources->environment);
	if (wanted)
		what = credential_resolve(sources->environment, config->texts[i], list, &config->arena,
		                          &found);
	if (wanted && !what) {
		config_take(config, setting, found, config->origins[i]);
		return;
	}
	config->states[i] |= CONFIG_UNRESOLVED;
	setting_name(setting, name);
	if (what) {
		config->states[i] |= CONFIG_MALFORMED;
		config_add_problem(config, config->origins[i], name, what);
	}
}

/* Empties what was not resolved, so that a reference is never used as a secret. Until then it
 * stands for the secret in the checks. */
static bool blank_credentials(struct config *config)
{
	for (size_t i = 0; i < SETTINGS_COUNT; i++) {
		const struct setting *setting = &settings_table[i];
		if (!(config->states[i] & CONFIG_UNRESOLVED))
			continue;
		const char *blank =
			credential_blank(config->texts[i], setting->type == SECRET_LIST, &config->arena);
		config->texts[i] = blank ? blank : "";
		(void)put_value(setting, config->texts[i], (char *)&config->settings + setting->offset);
		if (!blank)
			return false;
	}
	return true;
}

/* Parses the values. For an invalid value the default is used, so that the remaining checks still
 * run. */
static void put_values(struct config *config)
{
	for (size_t i = 0; i < SETTINGS_COUNT; i++) {
		const struct setting *setting = &settings_table[i];
		void *field = (char *)&config->settings + setting->offset;
		char name[SETTING_NAME_SIZE];
		setting_name(setting, name);
		const char *what = put_value(setting, config->texts[i], field);
		if (!what)
			continue;
		if (!(config->states[i] & CONFIG_MALFORMED))
			config_add_problem(config, config->origins[i], name, what);
		(void)put_value(setting, setting->otherwise, field);
	}
}

/* Reports relative paths in the file and in the environment, which mean another place in each
 * directory in which a command runs. On the command line they are usual. */
static void check_paths(struct config *config)
{
	static const struct {
		const char *name, *prefix;
	} paths[] = {{"service.data_dir", ""},
	             {"service.admin_socket", ""},
	             {"signer.directory", ""},
	             {"store.url", "sqlite:"},
	             {"content.url", "file:"}};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		size_t at = (size_t)(setting_find_by_name(paths[i].name) - settings_table);
		size_t prefix = strlen(paths[i].prefix);
		const char *origin = config->origins[at], *text = config->texts[at];
		if (!origin || strncmp(origin, "--", 2) == 0 || strcmp(origin, "preset") == 0 ||
		    strncmp(text, paths[i].prefix, prefix) != 0 || !text[prefix] || text[prefix] == '/')
			continue;
		note_problem(config, paths[i].name,
		             "must be an absolute path: a relative one depends on the directory in which "
		             "a command runs");
		config->states[at] |= CONFIG_MALFORMED;
	}
}

int config_load(const struct config_sources *given, struct config *ret_config)
{
	struct config_sources completed = *given, *sources = &completed;
	struct config *config = ret_config;
	*config = (struct config){0};
	arena_init(&config->arena, MEMORY_MAX);
	sources->environment = credentials_environment(given->environment, given->file, &config->arena);
	buf_init(&config->problems, REPORT_MAX);
	buf_init(&config->warnings, REPORT_MAX);
	config->texts = arena_alloc(&config->arena, sizeof(char *) * SETTINGS_COUNT);
	config->origins = arena_alloc(&config->arena, sizeof(char *) * SETTINGS_COUNT);
	config->states = arena_alloc(&config->arena, SETTINGS_COUNT);
	if (!config->texts || !config->origins || !config->states)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < SETTINGS_COUNT; i++)
		config->texts[i] = settings_table[i].otherwise;
	for (const char *const *preset = sources->presets; preset && *preset; preset++)
		take_assignment(config, *preset, "preset");
	config->unread = sources->file && !config_read_file(config, sources->file);
	apply_environment(config, sources);
	if (sources->data_dir)
		config_take(config, setting_find_by_name("service.data_dir"), sources->data_dir, "--data");
	apply_set_options(config, sources);
	for (size_t i = 0; i < SETTINGS_COUNT; i++)
		if (!config->texts[i])
			return ERR_NO_MEMORY;
	for (size_t i = 0; i < SETTINGS_COUNT; i++)
		take_credentials(config, sources, i);
	put_values(config);
	check_paths(config);
	if (!config->unread)
		config_check(&config->settings, sources->serving, note_problem, note_warning, config);
	if (!blank_credentials(config))
		return ERR_NO_MEMORY;
	fill_paths(config);
	if (!config->settings.service_data_dir || !config->settings.service_admin_socket ||
	    !config->settings.store_url || !config->settings.content_url ||
	    !config->settings.signer_directory)
		return ERR_NO_MEMORY;
	return config->problem_count ? ERR_USAGE : OK;
}

void config_free(struct config *config)
{
	if (!config)
		return;
	arena_free(&config->arena);
	buf_free(&config->problems);
	buf_free(&config->warnings);
}

bool config_is_given(const struct config *config, const char *name)
{
	const struct setting *setting = setting_find_by_name(name);
	assert(setting);
	const char *origin = config->origins[setting - settings_table];
	return origin && strcmp(origin, "preset") != 0;
}
