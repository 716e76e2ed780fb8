/* Settings of a component: their types, and the report of its check.
 *
 * A component lists its settings in a file COMPONENT_settings.def, which service/settings.def
 * includes. The lines of such a file are macros, which the including file defines:
 *   SETTING(section, key, type, default, help)  a setting (service/settings.def)
 *   RELOADS(section, key)                       SIGHUP reloads it
 *   DRIVER(name)                                a driver of the component */
#ifndef BASE_SETTING_H
#define BASE_SETTING_H

#include <stdbool.h>
#include <stdint.h>

/* The C type of each setting type; durations are in microseconds. */
#define SETTING_FIELD_TEXT const char *
#define SETTING_FIELD_SECRET const char *
#define SETTING_FIELD_LIST const char *
#define SETTING_FIELD_SECRET_LIST const char *
#define SETTING_FIELD_INTEGER int64_t
#define SETTING_FIELD_DURATION int64_t
#define SETTING_FIELD_BOOLEAN bool

/* Receives a problem or a warning about the setting of that name, "section.key". */
typedef void setting_report(void *context, const char *setting, const char *what);

struct setting_check {
	setting_report *problem; /* the value cannot be used */
	setting_report *warning; /* the value can be used, but is not recommended */
	void *context;
	bool serving; /* check also what a serving process needs */
};

void setting_fault(const struct setting_check *check, const char *setting, const char *what);
void setting_warn(const struct setting_check *check, const char *setting, const char *what);
void setting_check_range(const struct setting_check *check, const char *setting, int64_t value,
                         int64_t least, int64_t most);
/* `least` is the text of least_us. */
void setting_check_duration(const struct setting_check *check, const char *setting,
                            int64_t value_us, int64_t least_us, const char *least);

/* Returns whether the process can read the regular file, otherwise reports path and reason. An
 * empty path is valid. */
bool setting_check_readable(const struct setting_check *check, const char *setting,
                            const char *path);
/* As setting_check_readable, and that the file contains certificates in PEM form. */
void setting_check_certificates(const struct setting_check *check, const char *setting,
                                const char *path);

#endif
