/* Prints all settings as a configuration file or as JSON, without secrets. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/settings_table.h"

#define COMMENT_COLUMNS 96
#define COMMENT_MAX 2048

void config_print_comment(const char *comment, struct buf *out)
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

/* Returns whether the value is a secret, or a store URL that contains a password. */
static bool is_hidden(const struct config *config, size_t setting)
{
	char shown[4096];
	const char *text = config->texts[setting];
	if (setting_is_secret(&settings_table[setting]))
		return *text || config->states[setting] & CONFIG_UNRESOLVED;
	if (strcmp(settings_table[setting].section, "store") != 0 ||
	    strcmp(settings_table[setting].key, "url") != 0)
		return false;
	db_shown_url(text, shown, sizeof shown);
	return strcmp(shown, text) != 0;
}

void config_print(const struct config *config, struct buf *out)
{
	const char *section = "";
	for (size_t i = 0; i < SETTINGS_COUNT; i++) {
		if (strcmp(section, settings_table[i].section) != 0) {
			buf_printf(out, "%s[%s]\n", *section ? "\n" : "", settings_table[i].section);
			section = settings_table[i].section;
		}
		char comment[COMMENT_MAX];
		snprintf(comment, sizeof comment, "%s%s", settings_table[i].comment,
		         setting_is_reloadable(&settings_table[i]) ? "" : " A change requires a restart.");
		config_print_comment(comment, out);
		if (is_hidden(config, i)) {
			buf_printf(out, "#%s = (not shown; set by %s)\n", settings_table[i].key,
			           config->origins[i]);
			continue;
		}
		bool given = config->origins[i] != NULL;
		buf_printf(out, "%s%s = %s\n", given ? "" : "#", settings_table[i].key, config->texts[i]);
	}
}

void config_print_json(const struct config *config, struct buf *out)
{
	struct json_writer writer = {.out = out};
	const char *section = "";
	json_begin_object(&writer, NULL);
	for (size_t i = 0; i < SETTINGS_COUNT; i++) {
		if (strcmp(section, settings_table[i].section) != 0) {
			if (*section)
				json_end_object(&writer);
			json_begin_object(&writer, settings_table[i].section);
			section = settings_table[i].section;
		}
		json_text(&writer, settings_table[i].key,
		          is_hidden(config, i) ? "********" : config->texts[i]);
	}
	json_end_object(&writer);
	json_end_object(&writer);
	buf_add_byte(out, '\n');
}
