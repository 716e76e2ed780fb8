/* Files and directories that must outlast a power failure: what is synced by its name. Who holds a
 * file open until it is whole syncs it: objects, archives, reports, the signer's log. Plain
 * reading, writing and removing is in base/file.h.
 *
 * After a sync that failed, the kernel shows what was written as if it were on the disk, marks it
 * clean, and reports later syncs as good. So a sync proves only what was written since the last
 * good one, and what a sync failed on counts only once it was written again.
 *
 * Nor is a good sync enough. A journal (ext4's) that could not be written for one file's sync gives
 * up; the sync of another file, whose new size was in the same transaction of the journal, then
 * finds that transaction ended, waits for nothing, and is reported as good. So after a sync the
 * file system is asked for something that needs a journal that works. */
#ifndef BASE_DURABLE_H
#define BASE_DURABLE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

/* Those with an error answer ERR_NO_SPACE when there is no room, ERR_IO otherwise, with the path in
 * the cause. */

/* Syncs an open file or directory; of a file its bytes and size alone. False and errno. */
bool durable_sync_open(int descriptor) MUST_CHECK;
bool durable_sync_data(int descriptor) MUST_CHECK;
/* Writes a part of an open file to the disk, and waits until it is there, without being a sync: who
 * does so as a large file grows leaves little to its sync, behind which others' would wait. False
 * and errno: as after a sync that failed, which a later one may not tell of again. */
bool durable_write_out(int descriptor, off_t offset, off_t size) MUST_CHECK;
/* Only begins to; what is there is told by durable_write_out of the same part, later. */
bool durable_begin_write_out(int descriptor, off_t offset, off_t size) MUST_CHECK;
/* What is written out at a time of a file that grows. */
#define DURABLE_PIECE ((off_t)1 << 20)
/* Whether what a good sync reported of something beside `descriptor`, on its file system, may be
 * believed: that file system has not given up (false and errno) when this is called, after the
 * sync. True of one that cannot be asked. */
bool durable_still_works(int descriptor) MUST_CHECK;
/* Syncs a file, or the entries of a directory. */
int durable_sync(const char *path, struct error *error) MUST_CHECK;
/* Syncs the directories above `path`, which is there, so that its name lasts: up to the root of its
 * file system, or to the first that may not be read, which is somebody else's. What `path` is
 * mounted on may be read-only, or of a kind that cannot be synced. */
int durable_sync_above(const char *path, struct error *error) MUST_CHECK;
/* Makes a directory (0700) unless it is there, but none above it; its name lasts on return, also
 * when it was found, for whoever made it may have been killed at once. */
int durable_make_directory(const char *path, struct error *error) MUST_CHECK;
/* The same for the directory that `path` lies in. */
int durable_make_parent(const char *path, struct error *error) MUST_CHECK;
/* Writes the first `size_max` bytes of a file again, as they are, and syncs the file: what is read
 * from now on is on the disk. A sync that fails may tell of an error of long ago, so all is done
 * once more, and then the answer counts. A file that is not there is left so. */
int durable_rewrite(const char *path, uint64_t size_max, struct error *error) MUST_CHECK;
/* Puts a whole file in place of `path`, by way of "PATH.partial" beside it. */
int durable_replace(const char *path, mode_t mode, struct slice content, struct error *error)
	MUST_CHECK;
/* Copies into `to` (0600), which must not exist, and syncs it; not its name. */
int durable_copy(const char *from, const char *to, struct error *error) MUST_CHECK;

#endif
