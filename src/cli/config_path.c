/* The choice of the settings file: --config, CONSTANCIA_CONFIG or the file of the installation. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/config.h"

#define VARIABLE CONFIG_VARIABLE "="

const char *config_default_path(void)
{
	return CONSTANCIA_CONFIG_PATH;
}

static const char *path_in(char *const *environment)
{
	for (; environment && *environment; environment++)
		if (strncmp(*environment, VARIABLE, sizeof VARIABLE - 1) == 0)
			return *environment + sizeof VARIABLE - 1;
	return NULL;
}

/* Returns false only if the file is known not to exist: reading it reports any other reason, such
 * as a link to a file that does not exist. */
static bool may_exist(const char *path)
{
	struct stat facts;
	return lstat(path, &facts) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

void config_choose_file(struct config_sources *sources, const char *default_path)
{
	const char *variable = path_in(sources->environment);
	if (!sources->file && !sources->data_dir)
		sources->file = variable ? variable : may_exist(default_path) ? default_path : NULL;
	if (sources->file && !*sources->file)
		sources->file = NULL;
}

const char *config_unreadable(int reason, char what[CONFIG_UNREADABLE_SIZE])
{
	snprintf(what, CONFIG_UNREADABLE_SIZE, "%s%s", strerror(reason),
	         reason == EACCES ? "; run the command as the user of the service: sudo -u constancia "
	                            "constancia"
	                          : "");
	return what;
}
