/* Small whole files. Inside src/seal only. */
#ifndef SEAL_FILE_H
#define SEAL_FILE_H

#include "base/buf.h"
#include "base/error.h"

#define PEM_FILE_MAX 262144

/* Appends the file's content, at most PEM_FILE_MAX bytes. 0 or ERR_IO with the cause. */
int file_read(const char *path, struct buf *out, struct error *error) MUST_CHECK;
/* Writes aside (mode 0600), syncs, renames, syncs the directory. 0 or ERR_IO with the cause. */
int file_replace(const char *directory, const char *name, struct slice content, struct error *error)
	MUST_CHECK;

#endif
