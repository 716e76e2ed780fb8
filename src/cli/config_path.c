/* The choice of the settings file: --config, CONSTANCIA_CONFIG or the file of the installation. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

void config_choose_file(struct config_sources *sources, const char *default_path)
{
	const char *variable = path_in(sources->environment);
	if (!sources->file && !sources->data_dir && variable)
		sources->file = variable;
	else if (!sources->file && !sources->data_dir && access(default_path, F_OK) == 0)
		sources->file = default_path;
	else if (!sources->file && !sources->data_dir && errno != ENOENT && errno != ENOTDIR)
		sources->file = default_path; /* it may exist: reading it reports the reason */
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
