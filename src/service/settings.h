/* The settings of a running service. Filled by the command line (src/cli/config.h); everybody else
 * reads. settings.def is the one list: names, types, defaults and comments. */
#ifndef SERVICE_SETTINGS_H
#define SERVICE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#define SETTING_FIELD_TEXT const char *
#define SETTING_FIELD_LIST const char *
#define SETTING_FIELD_INTEGER int64_t
#define SETTING_FIELD_DURATION int64_t
#define SETTING_FIELD_BOOLEAN bool

/* settings->service_prefix, settings->rate_live, settings->seal_interval (microseconds), … Paths
 * that were empty are filled in. */
struct settings {
#define SETTING(section, key, type, default_text, comment) SETTING_FIELD_##type section##_##key;
#include "service/settings.def"
#undef SETTING
};

#endif
