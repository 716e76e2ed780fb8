/* Settings from their sources: defaults, an INI file, the environment, --set; later ones win.
 *
 * Every problem is a sentence that says where (file and line, variable or flag), what is wrong and
 * what would be right; all of them are collected, not just the first. */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "service/settings.h"

#define CONFIG_SETS_MAX 200

struct config_sources {
	const char *const *presets; /* "section.key=value" over the defaults; NULL ends; may be NULL */
	const char *file;           /* NULL: none */
	char *const *environment;   /* NULL: none */
	const char *data_dir;       /* --data; NULL: not given */
	const char *sets[CONFIG_SETS_MAX]; /* "section.key=value" */
	unsigned set_count;
	bool serving;  /* also check what only a serving process needs */
	bool checking; /* variables that no setting has are problems, not only warned of */
};

/* Something that is wrong, or had better be otherwise. */
struct config_finding {
	struct config_finding *next;
	const char *setting; /* "section.key"; NULL: none alone */
	const char *origin;  /* file and line, variable or flag; NULL: the default */
	const char *what;
	bool warning; /* the settings are usable */
};

struct config {
	struct settings settings;
	struct arena arena;  /* holds the texts */
	struct buf problems; /* one line each; empty: good */
	struct buf warnings; /* likewise; the settings are usable */
	unsigned problem_count;
	struct config_finding *findings; /* problems and warnings, in order; NULL ends */
	struct config_finding *last_finding;
	const char **texts;   /* the value of each setting of settings.def, as written */
	const char **origins; /* where it came from; NULL: the default */
};

/* Reads and checks; to be freed in any case. 0, ERR_USAGE (see problems; the settings must not be
 * used) or ERR_NO_MEMORY. */
int config_load(const struct config_sources *sources, struct config *ret_config) MUST_CHECK;
void config_free(struct config *config); /* NULL-safe */
#define CONFIG_AUTO __attribute__((cleanup(config_free)))

/* Whether a source gave the setting. `name` is "section.key" and must exist. */
bool config_is_given(const struct config *config, const char *name);

/* Adds what was found out about a setting; its origin is known. `name` may be NULL. */
void config_add(struct config *config, bool warning, const char *name, const char *what);

/* A complete INI file: every setting with its comment; those at their default commented out. */
void config_print(const struct config *config, struct buf *out);
/* The same as JSON: {"section":{"key":"value as written",…},…} and a line feed. */
void config_print_json(const struct config *config, struct buf *out);

/* config_check.c: looks at the meaning of the settings, telling `problem` of each fault, and
 * `warning` of what can be used but had better be otherwise. */
typedef void config_problem(void *context, const char *setting, const char *what);
void config_check(const struct settings *settings, bool serving, config_problem *problem,
                  config_problem *warning, void *context);

#endif
