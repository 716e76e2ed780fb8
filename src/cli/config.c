#include "cli/config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"

#define MEMORY_MAX ((size_t)1 << 20)
#define REPORT_MAX ((size_t)64 * 1024)
#define ORIGIN_MAX 64

enum setting_type { TEXT, SECRET, LIST, INTEGER, DURATION, BOOLEAN };

struct setting {
	const char *section;
	const char *key;
	enum setting_type type;
	const char *otherwise;
	const char *comment;
	size_t offset;
};

static const struct setting known[] = {
#define SETTING(section, key, type, default_text, comment)                                         \
	{#section, #key, type, default_text, comment, offsetof(struct settings, section##_##key)},
#include "service/settings.def"
#undef SETTING
};
#define KNOWN_COUNT (sizeof known / sizeof *known)

static const struct setting *find_setting(const char *section, size_t section_size, const char *key)
{
	for (size_t i = 0; i < KNOWN_COUNT; i++)
		if (slice_is(slice_make(section, section_size), known[i].section) &&
		    strcmp(known[i].key, key) == 0)
			return &known[i];
	return NULL;
}

static const struct setting *find_dotted(const char *name)
{
	const char *dot = strchr(name, '.');
	return dot ? find_setting(name, (size_t)(dot - name), dot + 1) : NULL;
}

/* ---- values ---- */

int listen_port(const char *text)
{
	const char *colon = strrchr(text, ':');
	if (!colon || colon == text || !colon[1])
		return -1;
	bool bracketed = *text == '[' && colon[-1] == ']';
	if (!bracketed && memchr(text, ':', (size_t)(colon - text)))
		return -1;
	long port = 0;
	for (const char *at = colon + 1; *at; at++) {
		if (*at < '0' || *at > '9' || port > 65535)
			return -1;
		port = port * 10 + (*at - '0');
	}
	return port <= 65535 ? (int)port : -1;
}

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

/* NULL, or what the value should have been. */
static const char *put_value(const struct setting *setting, const char *text, void *field)
{
	switch (setting->type) {
	case TEXT:
	case SECRET:
	case LIST: *(const char **)field = text; return NULL;
	case INTEGER: return read_integer(text, field) ? NULL : "must be a plain integer, such as 50";
	case DURATION:
		return duration_parse(slice_of(text), field)
		           ? NULL
		           : "must be a duration, such as 500ms, 60s, 5m, 2h or 7d";
	case BOOLEAN:
		*(bool *)field = strcmp(text, "true") == 0;
		return *(bool *)field || strcmp(text, "false") == 0 ? NULL : "must be true or false";
	}
	return NULL;
}

/* ---- sources ---- */

static void add_problem(struct config *config, const char *origin, const char *name,
                        const char *what)
{
	config->problem_count++;
	if (origin)
		buf_printf(&config->problems, "%s: ", origin);
	if (name)
		buf_printf(&config->problems, "%s: ", name);
	buf_printf(&config->problems, "%s\n", what);
}

static bool is_plain(const char *text)
{
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return false;
	return utf8_valid(slice_of(text));
}

static void take(struct config *config, const struct setting *setting, const char *text,
                 const char *origin)
{
	size_t i = (size_t)(setting - known);
	config->texts[i] = arena_text(&config->arena, text);
	config->origins[i] = arena_text(&config->arena, origin);
	if (!is_plain(text))
		add_problem(config, origin, NULL, "the value has control characters or is not UTF-8");
}

static void unknown_name(struct config *config, const char *origin, const char *name)
{
	char what[300];
	snprintf(what, sizeof what, "there is no setting '%.100s'; 'constancia config print' lists all",
	         name);
	add_problem(config, origin, NULL, what);
}

static void take_assignment(struct config *config, const char *assignment, const char *origin)
{
	const char *equals = strchr(assignment, '=');
	if (!equals) {
		add_problem(config, origin, NULL, "write section.key=value");
		return;
	}
	char name[ORIGIN_MAX];
	snprintf(name, sizeof name, "%.*s", (int)(equals - assignment), assignment);
	const struct setting *setting = find_dotted(name);
	if (setting)
		take(config, setting, equals + 1, origin);
	else
		unknown_name(config, origin, name);
}

static void take_sets(struct config *config, const struct config_sources *sources)
{
	for (unsigned i = 0; i < sources->set_count; i++) {
		char origin[ORIGIN_MAX];
		snprintf(origin, sizeof origin, "--set %.*s", (int)strcspn(sources->sets[i], "="),
		         sources->sets[i]);
		take_assignment(config, sources->sets[i], origin);
	}
}

/* A platform may set variables of its own that begin alike: unknown ones are only warned of. */
static void take_environment(struct config *config, char *const *environment)
{
	static const char prefix[] = "CONSTANCIA_";
	for (; environment && *environment; environment++) {
		const char *equals = strchr(*environment, '=');
		if (!equals || strncmp(*environment, prefix, sizeof prefix - 1) != 0)
			continue;
		struct slice name = slice_make(*environment, (size_t)(equals - *environment));
		const struct setting *found = NULL;
		for (size_t i = 0; i < KNOWN_COUNT && !found; i++) {
			char variable[ORIGIN_MAX];
			snprintf(variable, sizeof variable, "%s%s_%s", prefix, known[i].section, known[i].key);
			for (char *at = variable; *at; at++)
				*at = (char)toupper((unsigned char)*at);
			if (slice_is(name, variable))
				found = &known[i];
		}
		if (slice_is(name, "CONSTANCIA_ADMIN_SOCKET"))
			found = find_dotted("service.admin_socket");
		char origin[ORIGIN_MAX];
		snprintf(origin, sizeof origin, "%.*s", (int)name.size, name.data);
		if (found)
			take(config, found, equals + 1, origin);
		else
			buf_printf(&config->warnings, "%s: no setting has this name; it is not used\n", origin);
	}
}

/* ---- the file ---- */

struct ini_reading {
	struct config *config;
	const char *path;
	FILE *file;
	unsigned line;
	bool indented; /* the line begins with white space: it goes on the one before */
	const struct setting *last;
	unsigned char taken[KNOWN_COUNT];
};

static void line_origin(const struct ini_reading *reading, char origin[PATH_MAX])
{
	snprintf(origin, PATH_MAX, "%s:%u", reading->path, reading->line);
}

static char *read_line(char *text, int size, void *context)
{
	struct ini_reading *reading = context;
	if (!fgets(text, size, reading->file))
		return NULL;
	reading->line++;
	reading->indented = *text == ' ' || *text == '\t';
	if (strchr(text, '\n') || feof(reading->file))
		return text;
	int c;
	bool longer = false;
	while ((c = getc(reading->file)) != EOF && c != '\n')
		longer = true;
	if (longer) {
		char origin[PATH_MAX];
		line_origin(reading, origin);
		add_problem(reading->config, origin, NULL,
		            "the line is too long; a list can go on in indented lines");
	}
	return text;
}

static int take_pair(void *context, const char *section, const char *key, const char *value)
{
	struct ini_reading *reading = context;
	struct config *config = reading->config;
	char origin[PATH_MAX], name[2 * ORIGIN_MAX];
	line_origin(reading, origin);
	snprintf(name, sizeof name, "%.60s.%.60s", section, key);
	const struct setting *setting = find_setting(section, strlen(section), key);
	if (!setting) {
		unknown_name(config, origin, name);
		return 1;
	}
	size_t i = (size_t)(setting - known);
	bool continued = reading->indented && reading->last == setting && setting->type == LIST;
	if (continued) {
		const char *before = config->texts[i];
		const char *glue = *before && before[strlen(before) - 1] != ',' ? "," : "";
		const char *whole = arena_printf(&config->arena, "%s%s%s", before, glue, value);
		take(config, setting, whole ? whole : "", origin);
	} else if (reading->taken[i]) {
		add_problem(config, origin, name, "is given twice");
	} else {
		take(config, setting, value, origin);
	}
	reading->taken[i] = 1;
	reading->last = setting;
	return 1;
}

static void take_file(struct config *config, const char *path)
{
	FILE *file = fopen(path, "re");
	if (!file) {
		add_problem(config, path, NULL, strerror(errno));
		return;
	}
	struct ini_reading reading = {.config = config, .path = path, .file = file};
	int bad_line = ini_parse_stream(read_line, &reading, take_pair, &reading);
	fclose(file);
	if (bad_line == 0)
		return;
	char origin[PATH_MAX];
	reading.line = bad_line > 0 ? (unsigned)bad_line : reading.line;
	line_origin(&reading, origin);
	add_problem(config, origin, NULL, "neither a [section], nor key = value, nor a comment");
}

/* ---- all together ---- */

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
		settings->store_url = arena_printf(&config->arena, "sqlite:%s/constancia.db", home);
	if (!*settings->content_url)
		settings->content_url = arena_printf(&config->arena, "file:%s/content", home);
	if (!*settings->signer_directory)
		settings->signer_directory = arena_printf(&config->arena, "%s/signer", home);
}

static void note_problem(void *context, const char *name, const char *what)
{
	struct config *config = context;
	const struct setting *setting = find_dotted(name);
	assert(setting);
	add_problem(config, config->origins[setting - known], name, what);
}

static void note_warning(void *context, const char *name, const char *what)
{
	struct config *config = context;
	buf_printf(&config->warnings, "%s: %s\n", name, what);
}

static void put_values(struct config *config)
{
	for (size_t i = 0; i < KNOWN_COUNT; i++) {
		char name[ORIGIN_MAX];
		snprintf(name, sizeof name, "%s.%s", known[i].section, known[i].key);
		const char *what =
			put_value(&known[i], config->texts[i], (char *)&config->settings + known[i].offset);
		if (what)
			add_problem(config, config->origins[i], name, what);
	}
}

int config_load(const struct config_sources *sources, struct config *ret_config)
{
	struct config *config = ret_config;
	*config = (struct config){0};
	arena_init(&config->arena, MEMORY_MAX);
	buf_init(&config->problems, REPORT_MAX);
	buf_init(&config->warnings, REPORT_MAX);
	config->texts = arena_alloc(&config->arena, sizeof(char *) * KNOWN_COUNT);
	config->origins = arena_alloc(&config->arena, sizeof(char *) * KNOWN_COUNT);
	if (!config->texts || !config->origins)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < KNOWN_COUNT; i++)
		config->texts[i] = known[i].otherwise;
	for (const char *const *preset = sources->presets; preset && *preset; preset++)
		take_assignment(config, *preset, "preset");
	if (sources->file)
		take_file(config, sources->file);
	take_environment(config, sources->environment);
	if (sources->data_dir)
		take(config, find_dotted("service.data_dir"), sources->data_dir, "--data");
	take_sets(config, sources);
	for (size_t i = 0; i < KNOWN_COUNT; i++)
		if (!config->texts[i])
			return ERR_NO_MEMORY;
	put_values(config);
	if (!config->problem_count)
		config_check(&config->settings, sources->serving, note_problem, note_warning, config);
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
	const struct setting *setting = find_dotted(name);
	assert(setting);
	const char *origin = config->origins[setting - known];
	return origin && strcmp(origin, "preset") != 0;
}

/* ---- printing ---- */

#define COMMENT_COLUMNS 96

static void print_comment(const char *comment, struct buf *out)
{
	size_t column = 0;
	while (*comment) {
		size_t word = strcspn(comment, " ");
		if (column + 1 + word > COMMENT_COLUMNS && column) {
			buf_add_byte(out, '\n');
			column = 0;
		}
		buf_add_text(out, column ? " " : "# ");
		buf_add(out, comment, word);
		column += word + (column ? 1 : 2);
		comment += word;
		while (*comment == ' ')
			comment++;
	}
	buf_add_byte(out, '\n');
}

/* Secrets, and an address of the store that has a password in it. */
static bool is_hidden(const struct config *config, size_t setting)
{
	char shown[4096];
	const char *text = config->texts[setting];
	if (known[setting].type == SECRET)
		return *text != '\0';
	if (strcmp(known[setting].section, "store") != 0 || strcmp(known[setting].key, "url") != 0)
		return false;
	db_shown_url(text, shown, sizeof shown);
	return strcmp(shown, text) != 0;
}

void config_print(const struct config *config, struct buf *out)
{
	const char *section = "";
	for (size_t i = 0; i < KNOWN_COUNT; i++) {
		if (strcmp(section, known[i].section) != 0) {
			buf_printf(out, "%s[%s]\n", *section ? "\n" : "", known[i].section);
			section = known[i].section;
		}
		print_comment(known[i].comment, out);
		if (is_hidden(config, i)) {
			buf_printf(out, "#%s = (not shown; given by %s)\n", known[i].key, config->origins[i]);
			continue;
		}
		bool given = config->origins[i] != NULL;
		buf_printf(out, "%s%s = %s\n", given ? "" : "#", known[i].key, config->texts[i]);
	}
}

void config_print_json(const struct config *config, struct buf *out)
{
	struct json_writer writer = {.out = out};
	const char *section = "";
	json_begin_object(&writer, NULL);
	for (size_t i = 0; i < KNOWN_COUNT; i++) {
		if (strcmp(section, known[i].section) != 0) {
			if (*section)
				json_end_object(&writer);
			json_begin_object(&writer, known[i].section);
			section = known[i].section;
		}
		json_text(&writer, known[i].key, is_hidden(config, i) ? "********" : config->texts[i]);
	}
	json_end_object(&writer);
	json_end_object(&writer);
	buf_add_byte(out, '\n');
}
