/* Loads the settings from their sources: defaults, an INI file, the environment and --set, in
 * ascending priority.
 *
 * Every problem is one sentence that states the place (file and line, variable or option), the
 * mistake and the valid values. All problems are collected. */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "service/settings.h"

#define CONFIG_SETS_MAX 200

struct config_sources {
	const char *const *presets; /* "section.key=value" above the defaults; NULL ends; may be NULL */
	const char *file;           /* NULL: none */
	char *const *environment;   /* NULL: none */
	const char *data_dir;       /* --data; NULL: not given */
	const char *sets[CONFIG_SETS_MAX]; /* "section.key=value" */
	unsigned set_count;
	bool serving;  /* also check what a serving process needs */
	bool checking; /* unknown CONSTANCIA_ variables are problems, not warnings */
};

/* A problem, or a warning. */
struct config_finding {
	struct config_finding *next;
	const char *setting; /* "section.key"; NULL: concerns no single setting */
	const char *origin;  /* file and line, variable or option; NULL: the default */
	const char *what;
	bool warning; /* warning: the settings can be used */
};

struct config {
	struct settings settings;
	struct arena arena;  /* holds the texts */
	struct buf problems; /* one line each; empty: valid */
	struct buf warnings; /* one line each */
	unsigned problem_count;
	bool unread; /* the file could not be read: its settings are unknown and were not checked */
	struct config_finding *findings; /* problems and warnings, in order; NULL ends */
	struct config_finding *last_finding;
	const char **texts;    /* the value of each setting of settings.def, unparsed */
	const char **origins;  /* source of each value; NULL: the default */
	unsigned char *states; /* of each value: CONFIG_MALFORMED, CONFIG_UNRESOLVED */
};

/* config_path.c: the file of the installation, such as /etc/constancia/constancia.conf. */
#define CONFIG_VARIABLE "CONSTANCIA_CONFIG"
const char *config_default_path(void);
/* Chooses the settings file of a command: `file` as given, else that of CONSTANCIA_CONFIG, else
 * `default_path` where it exists. An empty path chooses no file. With `data_dir`, which names
 * another deployment, only `file` as given is used. */
void config_choose_file(struct config_sources *sources, const char *default_path);
#define CONFIG_UNREADABLE_SIZE 256
/* Writes why a settings file cannot be read, with the remedy. `reason` is an errno. */
const char *config_unreadable(int reason, char what[CONFIG_UNREADABLE_SIZE]);

#define CONFIG_MALFORMED 1  /* its problem is reported; further ones of its value are not */
#define CONFIG_UNRESOLVED 2 /* names credentials that were not read; they are empty */

/* Reads and checks the settings. The caller frees the config in any case. Returns 0, ERR_USAGE (see
 * `problems`; the settings must not be used) or ERR_NO_MEMORY. */
int config_load(const struct config_sources *sources, struct config *ret_config) MUST_CHECK;
void config_free(struct config *config); /* NULL-safe */
#define CONFIG_AUTO __attribute__((cleanup(config_free)))

/* Returns whether a source other than a preset sets the setting. `name` is "section.key" and must
 * exist. */
bool config_is_given(const struct config *config, const char *name);

/* Adds a problem or warning about a setting, with the origin of its value. `name` may be NULL. */
void config_add(struct config *config, bool warning, const char *name, const char *what);

/* Appends a complete INI file: every setting with its comment. Settings without a source are
 * commented out. */
void config_print(const struct config *config, struct buf *out);
/* Appends a help text as comment lines. */
void config_print_comment(const char *comment, struct buf *out);
/* Appends the same as JSON: {"section":{"key":"value as written",…},…} and a line feed. */
void config_print_json(const struct config *config, struct buf *out);

/* config_check.c: checks the meaning of the settings. Calls `problem` for each invalid value, and
 * `warning` for each valid value that is not recommended. */
void config_check(const struct settings *settings, bool serving, setting_report *problem,
                  setting_report *warning, void *context);

#endif
