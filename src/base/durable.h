/* Durable storage of files and directories, which must survive a power failure: syncing by path. A
 * writer that keeps its file open until it is complete (objects, archives, reports, the signer's
 * log) syncs the descriptor itself. base/file.h has plain reading, writing and removal.
 *
 * After a failed sync the kernel marks the affected pages clean, and later syncs succeed. So a
 * successful sync covers only writes since the last successful sync. Data of a failed sync must be
 * written again.
 *
 * A successful sync alone is not sufficient either. Assume that the journal (of ext4) could not be
 * written during the sync of one file, and was aborted. The sync of another file whose new size was
 * in the same journal transaction then finds that transaction finished, does not wait, and
 * succeeds. So after a sync this module requests a change that requires a working journal
 * (durable_has_working_journal). */
#ifndef BASE_DURABLE_H
#define BASE_DURABLE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

/* Functions with a struct error return ERR_NO_SPACE if the file system is full and ERR_IO
 * otherwise, with the path in the cause. */

/* Sync an open file or directory; durable_sync_data syncs only the data and the size of a file.
 * Return false and set errno. */
bool durable_sync_open(int descriptor) MUST_CHECK;
bool durable_sync_data(int descriptor) MUST_CHECK;
/* Writes a range of an open file to disk and waits, without the guarantees of a sync. Writing a
 * large file out while it grows keeps its final sync short, so that it does not delay syncs of
 * other files. Returns false and sets errno. Treat a failure as a failed sync; a later sync may not
 * report it again. */
bool durable_write_out(int descriptor, off_t offset, off_t size) MUST_CHECK;
/* As durable_write_out, but only starts the write. A later durable_write_out of the same range
 * reports the result. */
bool durable_begin_write_out(int descriptor, off_t offset, off_t size) MUST_CHECK;
/* Bytes to write out at a time while a file grows. */
#define DURABLE_CHUNK ((off_t)1 << 20)
/* Returns whether the file system of `descriptor` still has a working journal, so that the
 * preceding successful sync can be trusted. Call it after the sync. Returns false and sets errno.
 * Returns true if the file system does not support the check. */
bool durable_has_working_journal(int descriptor) MUST_CHECK;
/* Syncs a file, or a directory's entries. */
int durable_sync(const char *path, struct error *error) MUST_CHECK;
/* Syncs all directories above the existing `path`, so that its name is durable, up to the root of
 * the file system or the first directory that is not readable (it has another owner). Accepts that
 * the mount point's parent is read-only or does not support syncs. */
int durable_sync_above(const char *path, struct error *error) MUST_CHECK;
/* Creates a directory (0700) if it does not exist, but not its parents. Its name is durable on
 * return, also if the directory existed, because its creator may have been killed before the
 * sync. */
int durable_make_directory(const char *path, struct error *error) MUST_CHECK;
/* As durable_make_directory, for the parent directory of `path`. */
int durable_make_parent(const char *path, struct error *error) MUST_CHECK;
/* Rewrites the first `size_max` bytes of a file unchanged and syncs the file, so that data read
 * afterwards is on disk. A failed sync may report an old error, so the function then repeats all
 * steps once and returns the second result. A missing file is ignored. */
int durable_rewrite(const char *path, uint64_t size_max, struct error *error) MUST_CHECK;
/* Atomically replaces `path` with `content`, using the temporary file "PATH.partial". */
int durable_replace(const char *path, mode_t mode, struct slice content, struct error *error)
	MUST_CHECK;
/* Copies a file to `to` (0600), which must not exist, and syncs the data but not the name. */
int durable_copy(const char *from, const char *to, struct error *error) MUST_CHECK;

#endif
