/* Reads settings from an INI file (base/ini.h).
 *
 * A list continues on indented lines. Any other indented line is read as if it were not indented,
 * so that a file may indent its keys. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/ini.h"
#include "cli/config_credential.h"
#include "cli/config_internal.h"
#include "cli/settings_table.h"

#define FILE_MAX ((size_t)1 << 20)
#define LIST_MAX ((size_t)64 * 1024)

struct file_reader {
	struct config *config;
	const char *path;
	struct slice section;
	bool in_pair;               /* an indented line may continue the value */
	const struct setting *last; /* the setting whose value is being read; NULL: unknown */
	unsigned last_line;         /* where it begins */
	struct buf value;
	bool ignored;    /* the value: the setting was set before */
	bool has_secret; /* one is written in the file */
	unsigned char taken[SETTINGS_COUNT];
};

static void line_origin(const struct file_reader *reader, unsigned line, char origin[PATH_MAX])
{
	snprintf(origin, PATH_MAX, "%s:%u", reader->path, line);
}

static void add_line_problem(const struct file_reader *reader, unsigned line, const char *name,
                             const char *what)
{
	char origin[PATH_MAX];
	line_origin(reader, line, origin);
	config_add_problem(reader->config, origin, name, what);
}

/* ---- names ---- */

/* Returns whether settings of the section exist. */
static bool is_section(struct slice name)
{
	for (size_t i = 0; i < SETTINGS_COUNT; i++)
		if (slice_is(name, settings_table[i].section))
			return true;
	return false;
}

static const struct setting *find_setting(struct slice section, struct slice key)
{
	char text[SETTING_NAME_SIZE];
	if (key.size >= sizeof text)
		return NULL;
	snprintf(text, sizeof text, "%.*s", (int)key.size, key.data);
	return setting_find(section.data, section.size, text);
}

/* Returns the only setting of that key in any section; NULL: none, or several. */
static const struct setting *find_by_key(struct slice key)
{
	const struct setting *found = NULL;
	for (size_t i = 0; i < SETTINGS_COUNT; i++)
		if (slice_is(key, settings_table[i].key)) {
			if (found)
				return NULL;
			found = &settings_table[i];
		}
	return found;
}

/* Reports a key that its section does not have. */
static void report_unknown(const struct file_reader *reader, const struct ini_line *line)
{
	char what[400], name[2 * SETTING_NAME_SIZE], origin[PATH_MAX];
	struct slice key = line->name, section = reader->section;
	snprintf(name, sizeof name, "%.*s", (int)(key.size < 100 ? key.size : 100), key.data);
	const struct setting *dotted = setting_find_by_name(name);
	const struct setting *lonely = section.size ? NULL : find_by_key(key);
	if (dotted || lonely) {
		const struct setting *meant = dotted ? dotted : lonely;
		snprintf(what, sizeof what, "'%s' must be written as '%s = …' below [%s]", name, meant->key,
		         meant->section);
		add_line_problem(reader, line->number, NULL, what);
		return;
	}
	if (!section.size) {
		snprintf(what, sizeof what, "'%s' must be below a [section], such as [service]", name);
		add_line_problem(reader, line->number, NULL, what);
		return;
	}
	snprintf(name, sizeof name, "%.*s.%.*s", (int)(section.size < 60 ? section.size : 60),
	         section.data, (int)(key.size < 60 ? key.size : 60), key.data);
	line_origin(reader, line->number, origin);
	config_add_unknown(reader->config, origin, name);
}

/* ---- values ---- */

/* Gives the value that ends here to the settings. */
static void finish_value(struct file_reader *reader)
{
	const struct setting *setting = reader->last;
	char origin[PATH_MAX], name[SETTING_NAME_SIZE];
	reader->last = NULL;
	reader->in_pair = false;
	if (!setting || reader->ignored)
		return;
	setting_name(setting, name);
	if (buf_check(&reader->value)) {
		add_line_problem(reader, reader->last_line, name, "the list is longer than 65536 bytes");
		return;
	}
	line_origin(reader, reader->last_line, origin);
	const char *text = reader->value.size ? reader->value.data : "";
	reader->has_secret |= setting_is_secret(setting) && *text && !credential_is_named(text, true);
	if (strstr(text, " #") && !setting_is_secret(setting))
		config_add_warning(
			reader->config, origin, name,
			"'#' begins a comment only at the start of a line, ' ;' within one; this "
			"value contains it");
	config_take(reader->config, setting, text, origin);
}

static void begin_value(struct file_reader *reader, const struct ini_line *line)
{
	const struct setting *setting = find_setting(reader->section, line->name);
	char name[SETTING_NAME_SIZE];
	finish_value(reader);
	reader->in_pair = true;
	reader->last = setting;
	reader->last_line = line->number;
	if (!setting) {
		report_unknown(reader, line);
		return;
	}
	size_t i = (size_t)(setting - settings_table);
	reader->ignored = reader->taken[i];
	reader->taken[i] = 1;
	setting_name(setting, name);
	if (reader->ignored)
		add_line_problem(reader, line->number, name, "is set twice");
	buf_clear(&reader->value);
	buf_add_slice(&reader->value, line->value);
}

static void continue_value(struct file_reader *reader, const struct ini_line *line)
{
	const struct setting *setting = reader->last;
	struct buf *value = &reader->value;
	char name[SETTING_NAME_SIZE];
	if (!setting || reader->ignored)
		return; /* reported already */
	if (setting->type != LIST && setting->type != SECRET_LIST) {
		setting_name(setting, name);
		add_line_problem(reader, line->number, name,
		                 "is not a list and cannot continue on an indented line; a line may have "
		                 "4096 bytes");
		return;
	}
	if (value->size && value->data[value->size - 1] != ',')
		buf_add_byte(value, ',');
	buf_add_slice(value, line->text);
}

/* ---- lines ---- */

static bool is_identifier(struct slice name)
{
	for (size_t i = 0; i < name.size; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", name.data[i]))
			return false;
	return name.size > 0;
}

/* Returns whether the line continues a value. An indented line does, unless it names a section or
 * assigns a setting. Items of lists may contain '=' and ':', as addresses do. */
static bool is_continuation(const struct file_reader *reader, const struct ini_line *line)
{
	if (!line->indented || !reader->in_pair)
		return false;
	if (line->kind == INI_SECTION)
		return !is_section(line->name);
	if (line->kind != INI_PAIR)
		return true;
	if (find_setting(reader->section, line->name))
		return false;
	return line->text.data[line->name.size + strspn(line->text.data + line->name.size, " \t")] !=
	           '=' ||
	       !is_identifier(line->name);
}

static void read_line(struct file_reader *reader, const struct ini_line *line)
{
	if (line->kind == INI_LONG) {
		add_line_problem(reader, line->number, NULL,
		                 "the line is longer than 4096 bytes; continue a list on indented lines, "
		                 "and shorten any other value");
		return;
	}
	if (line->kind == INI_NUL) {
		add_line_problem(reader, line->number, NULL,
		                 "the line contains a NUL byte; save the file as UTF-8 text");
		return;
	}
	if (is_continuation(reader, line)) {
		continue_value(reader, line);
		return;
	}
	if (line->kind == INI_PAIR) {
		begin_value(reader, line);
		return;
	}
	finish_value(reader);
	if (line->kind != INI_TEXT)
		reader->section = line->name;
	if (line->kind == INI_UNCLOSED)
		add_line_problem(reader, line->number, NULL, "the ']' after the section's name is missing");
	else if (line->kind == INI_TEXT)
		add_line_problem(reader, line->number, NULL,
		                 "must be a [section], key = value or a comment");
}

/* Warns of a file with a secret that every user of the machine can read. */
static void check_mode(struct config *config, const char *path)
{
	struct stat facts;
	char what[128];
	if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode) || !(facts.st_mode & S_IROTH))
		return;
	snprintf(what, sizeof what,
	         "contains a secret, and every user can read it (mode %04o): set mode 0640, or use "
	         "credential:NAME",
	         (unsigned)facts.st_mode & 07777);
	config_add_warning(config, path, NULL, what);
}

static void read_lines(struct config *config, const char *path, struct slice text)
{
	struct file_reader reader = {.config = config, .path = path, .section = slice_make("", 0)};
	struct ini_reader lines;
	struct ini_line line;
	buf_init(&reader.value, LIST_MAX);
	ini_begin(&lines, text);
	while (ini_next(&lines, &line))
		read_line(&reader, &line);
	finish_value(&reader);
	if (reader.has_secret)
		check_mode(config, path);
	if (reader.value.data)
		explicit_bzero(reader.value.data, reader.value.capacity);
	buf_free(&reader.value);
}

bool config_read_file(struct config *config, const char *path)
{
	struct error error = {0};
	BUF_AUTO struct buf text;
	buf_init(&text, FILE_MAX);
	errno = 0;
	int result = file_read_whole(path, &text, &error);
	if (text.full) {
		config_add_problem(config, path, NULL, "the file is larger than 1048576 bytes");
	} else if (result) {
		char what[CONFIG_UNREADABLE_SIZE];
		config_add_problem(config, path, NULL,
		                   errno ? config_unreadable(errno, what) : error.cause);
	} else if (ini_is_utf16(buf_slice(&text))) {
		config_add_problem(config, path, NULL, "the file is UTF-16; save it as UTF-8 text");
	} else {
		read_lines(config, path, buf_slice(&text));
	}
	bool utf16 = ini_is_utf16(buf_slice(&text));
	if (text.data)
		explicit_bzero(text.data, text.size);
	return !result && !utf16;
}
