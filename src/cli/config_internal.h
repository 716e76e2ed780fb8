/* Shared by the files that load settings (config.h). */
#ifndef CLI_CONFIG_INTERNAL_H
#define CLI_CONFIG_INTERNAL_H

#include "cli/config.h"

struct setting;

/* Adds a problem. `origin` and `name` may be NULL. */
void config_add_problem(struct config *config, const char *origin, const char *name,
                        const char *what);
/* As config_add_problem, but a warning. */
void config_add_warning(struct config *config, const char *origin, const char *name,
                        const char *what);
/* Adds the problem of an unknown "section.key", with the most similar setting. */
void config_add_unknown(struct config *config, const char *origin, const char *name);
/* Makes the text the unparsed value of the setting. */
void config_take(struct config *config, const struct setting *setting, const char *text,
                 const char *origin);

/* config_file.c: reads the settings of an INI file. Returns false with a problem if it cannot be
 * read. */
bool config_read_file(struct config *config, const char *path);

#endif
