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
/* Returns whether the text names a credential; `list`: whether one of its comma-separated entries
 * does. */
bool credential_is_named(const char *text, bool list);
/* Replaces each credential:NAME by the content of the credential NAME, without its final line feed.
 * Returns NULL with the text in the arena, otherwise the error message. */
const char *credential_resolve(char *const *environment, const char *text, bool list,
                               struct arena *arena, const char **ret_text) MUST_CHECK;
/* Returns the text with empty entries in place of credentials; NULL: no memory. */
const char *credential_blank(const char *text, bool list, struct arena *arena);

/* Returns the environment in which credentials are found: as given, or without a
 * CREDENTIALS_DIRECTORY with the directory CREDENTIALS_BESIDE next to the settings file, if that
 * exists. `file` may be NULL. */
#define CREDENTIALS_BESIDE "credentials"
char *const *credentials_environment(char *const *environment, const char *file,
                                     struct arena *arena);

#endif
