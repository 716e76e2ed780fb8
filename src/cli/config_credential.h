/* Secrets in files that a supervisor hands over, as systemd's LoadCredential= does. */
#ifndef CLI_CONFIG_CREDENTIAL_H
#define CLI_CONFIG_CREDENTIAL_H

#include <stdbool.h>

#include "base/arena.h"

/* What a value begins with that names a credential: "credential:NAME". */
#define CREDENTIAL_PREFIX "credential:"

/* Whether the environment, closed by NULL (itself NULL: empty), names a directory of them. */
bool credentials_are_given(char *const *environment);
/* Reads NAME there, without the line feed at its end: NULL and the text, in the arena; otherwise
 * what is wrong. */
const char *credential_read(char *const *environment, const char *name, struct arena *arena,
                            const char **ret_text) MUST_CHECK;

#endif
