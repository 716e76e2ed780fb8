/* The settings of service/settings.def as a table, for access by name. */
#ifndef CLI_SETTINGS_TABLE_H
#define CLI_SETTINGS_TABLE_H

#include <stddef.h>

#include "cli/config.h"

enum setting_type { TEXT, SECRET, LIST, SECRET_LIST, INTEGER, DURATION, BOOLEAN };

struct setting {
	const char *section;
	const char *key;
	enum setting_type type;
	const char *otherwise; /* the default, unparsed */
	const char *comment;
	size_t offset; /* in struct settings */
};

#define SETTINGS_COUNT SETTING_AFTER_LAST
enum {
#define SETTING(section, key, type, default_text, comment) SETTING_NUMBER_##section##_##key,
#include "service/settings.def"
	SETTING_AFTER_LAST
};
extern const struct setting settings_table[SETTINGS_COUNT];

/* Returns whether the value is never printed. */
static inline bool setting_is_secret(const struct setting *setting)
{
	return setting->type == SECRET || setting->type == SECRET_LIST;
}

#define SETTING_NAME_SIZE 64 /* "section.key", "CONSTANCIA_SECTION_KEY" */
void setting_name(const struct setting *setting, char name[SETTING_NAME_SIZE]);
void setting_variable(const struct setting *setting, char variable[SETTING_NAME_SIZE]);

/* Returns whether SIGHUP applies a change of the setting. */
bool setting_is_reloadable(const struct setting *setting);
/* Compare or copy one setting between two structures. */
bool setting_differs(const struct setting *setting, const struct settings *one,
                     const struct settings *other);
void setting_copy(const struct setting *setting, struct settings *to, const struct settings *from);

/* Return NULL for an unknown setting. */
const struct setting *setting_find(const char *section, size_t section_size, const char *key);
const struct setting *setting_find_by_name(const char *name); /* "section.key" */
/* "CONSTANCIA_SECTION_KEY", or CONSTANCIA_ADMIN_SOCKET. */
const struct setting *setting_find_by_variable(struct slice variable);

/* Returns the setting with the most similar name to the "section.key" given; NULL: none is
 * similar. */
const struct setting *setting_find_similar(const char *name);
/* The same for a variable name. */
const struct setting *setting_find_similar_variable(struct slice variable);

#endif
