/* Settings from their sources: defaults, an INI file, the environment, --set; later ones win.
 *
 * Every problem is a sentence that says where (file and line, variable or flag), what is wrong and
 * what would be right; all of them are collected, not just the first. */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "service/settings.h"

#define CONFIG_SETS_MAX 200
#define CONFIG_PROBLEMS_MAX ((size_t)64 * 1024)

struct config_sources {
	const char *file;              /* NULL: none */
	const char *data_dir;          /* --data; NULL: not given */
	const char *sets[CONFIG_SETS_MAX]; /* "section.key=value" */
	unsigned set_count;
	char *const *environment;      /* NULL: none */
};

struct config {
	struct settings settings;
	struct arena arena;    /* holds the texts */
	struct buf problems;   /* one line each; empty: good */
	struct buf warnings;   /* likewise; the settings are usable */
	unsigned problem_count;
	unsigned char *given;  /* for each setting of settings.def: it was set, not left at its default */
};

/* Reads and checks. 0, ERR_USAGE (see problems; the settings are not usable) or ERR_NO_MEMORY. */
int config_load(const struct config_sources *sources, struct config *ret_config)
    __attribute__((warn_unused_result));
void config_free(struct config *config);

/* Whether a source gave the setting. `name` is "section.key" and must exist. */
bool config_is_given(const struct config *config, const char *name);
/* Sets a text of the settings, for commands with defaults of their own; copies. */
int config_override(struct config *config, const char *name, const char *value)
    __attribute__((warn_unused_result));

/* A complete INI file with every setting; values as they are, defaults commented out. */
void config_print(const struct config *config, struct buf *out);

/* A duration as people write it ("500ms", "60s", "5m", "2h", "7d"), in microseconds. */
bool duration_parse(struct slice text, int64_t *ret_us);

#endif
