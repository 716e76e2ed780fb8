/* Files of the embedded store: making them durable. For the store alone. */
#ifndef STORE_FILES_H
#define STORE_FILES_H

#include "base/error.h"

/* Makes the directory that `path` lies in, unless it is there; not those above it. */
int files_make_parent(const char *path, struct error *error);
int files_sync(const char *path, struct error *error);
/* Syncs the directory that `path` lies in, so that its name lasts. */
int files_sync_parent(const char *path, struct error *error);
/* Copies into `to`, which must not exist, and syncs it. ERR_NO_SPACE, ERR_IO. */
int files_copy(const char *from, const char *to, struct error *error);

#endif
