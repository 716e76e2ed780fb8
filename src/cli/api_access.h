/* Options and environment variables of the commands that use the interface with a key. */
#ifndef CLI_API_ACCESS_H
#define CLI_API_ACCESS_H

#include "cli/command.h"
#include "tools/api.h"

/* The first elements of such a command's options. */
#define API_OPTIONS                                                                                \
	{"url", "URL", "address of the interface, https://…/v1; by default $CONSTANCIA_URL"},          \
		{"key-file", "FILE", "file with the API key; by default the key is $CONSTANCIA_KEY"},      \
	{                                                                                              \
		"tls-roots", "FILE", "trusted PEM certificates for https; by default the system's"         \
	}

/* Opens the interface that the options or the environment name. Returns 0, or the exit code after
 * printing the error. The caller closes the api in any case. */
int command_open_api(const struct command_line *line, struct api *ret_api) MUST_CHECK;

/* Gets the value of an option that is a whole number. Returns 0, or 2 after printing the error.
 * `*value` is the default, and unchanged if the option is not given. */
int command_number(const struct command_line *line, const char *option, int64_t minimum,
                   int64_t maximum, int64_t *value) MUST_CHECK;
/* As command_number, for a duration such as 500ms, 10s or 5m, in microseconds. */
int command_duration(const struct command_line *line, const char *option, int64_t maximum_us,
                     int64_t *value_us) MUST_CHECK;

/* Prints JSON as received on one line: it has line ends only between its tokens. */
void command_print_line(struct slice json);

#endif
