/* Secrets in files that a supervisor provides, as systemd does with LoadCredential=. */
#ifndef CLI_CONFIG_CREDENTIAL_H
#define CLI_CONFIG_CREDENTIAL_H

#include <stdbool.h>

#include "base/arena.h"

/* Prefix of a value that names a credential: "credential:NAME". */
#define CREDENTIAL_PREFIX "credential:"

/* Returns whether the environment (NULL-terminated; itself NULL: empty) names a directory of
 * credentials. */
bool credentials_are_given(char *const *environment);
/* Reads the credential NAME without its final line feed. Returns NULL with the text in the arena,
 * otherwise the error message. */
const char *credential_read(char *const *environment, const char *name, struct arena *arena,
                            const char **ret_text) MUST_CHECK;

/* Returns the environment in which credentials are found: as given, or without a
 * CREDENTIALS_DIRECTORY with the directory CREDENTIALS_BESIDE next to the settings file, if that
 * exists. `file` may be NULL. */
#define CREDENTIALS_BESIDE "credentials"
char *const *credentials_environment(char *const *environment, const char *file,
                                     struct arena *arena);

#endif
