/* Files: a descriptor that closes itself, whole contents in and out, removal. Nothing here lasts
 * through a power failure by itself: that is what base/durable.h is for. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"

struct stat;

/* Closes a descriptor at the end of its scope, unless it is negative. Keeps errno. */
#define DESCRIPTOR_AUTO __attribute__((cleanup(descriptor_close)))
void descriptor_close(const int *descriptor);
/* Takes it out of the variable, so that it stays open. */
int descriptor_take(int *descriptor) MUST_CHECK;

/* Lets the process open as many as its hard bound allows. */
void file_allow_many(void);

/* What an errno means: ERR_NO_SPACE when there is no room, ERR_IO otherwise. */
int file_code(int number);
/* Of errno as it stands: its code, with "`what` `path`: why" as the cause. */
int file_fail(struct error *error, const char *what, const char *path);

/* Opens what is to be read (`flags`: O_NOFOLLOW or 0) and looks at what it is, before anything is
 * read: a pipe in a file's place, whose other end nobody holds, is not waited for. -1 and errno. */
int file_open_to_read(const char *path, int flags, struct stat *ret_facts) MUST_CHECK;
/* Appends the whole file. ERR_IO, too, when there is more than `out` may hold (out->full);
 * ERR_NO_MEMORY. */
int file_read_whole(const char *path, struct buf *out, struct error *error) MUST_CHECK;
/* Opens a new file without a name, 0600, to read and write, on the file system of the directory. -1
 * and errno. */
int file_open_unnamed(const char *directory) MUST_CHECK;
/* Size and SHA-256 of an open file, from where it stands to its end; `path` is for the cause. */
int file_digest(int file, const char *path, uint64_t *ret_size_bytes, struct sha256 *ret_digest,
                struct error *error) MUST_CHECK;
/* The same, given up (ERR_UNAVAILABLE) once `stop` is true. */
int file_digest_until(const atomic_bool *stop, int file, const char *path, uint64_t *ret_size_bytes,
                      struct sha256 *ret_digest, struct error *error) MUST_CHECK;
/* The same by another algorithm, to the end. */
int file_digest_by(enum digest_algorithm algorithm, int file, const char *path,
                   uint64_t *ret_size_bytes, struct digest *ret_digest, struct error *error)
	MUST_CHECK;
/* Writes where the file stands, however many pieces it takes. False and errno. */
bool file_write_all(int file, struct slice content) MUST_CHECK;
/* Puts a whole file (0600) in place of `path`, by way of "PATH.partial" beside it. Whoever waits
 * for it may take it away at once. */
int file_replace(const char *path, struct slice content, struct error *error) MUST_CHECK;
/* Writes at an offset; the file stands where it stood. */
bool file_write_at(int file, struct slice content, uint64_t offset) MUST_CHECK;
/* All of `size` bytes from an offset. False and errno, which is 0 when the file ends before. */
bool file_read_at(int file, void *data, size_t size, uint64_t offset) MUST_CHECK;
/* Opens a lock file (made 0600, never a symbolic link), locked as long as it stays open.
 * ERR_UNAVAILABLE: another has the lock. */
int file_lock(const char *path, int *ret_file, struct error *error) MUST_CHECK;
/* Whether somebody has the lock now; nothing is made or taken. */
bool file_is_locked(const char *path);
/* Removes a file, or a directory with all below it; one that is not there is removed. Follows no
 * symbolic link. Whoever writes below it meanwhile may make it fail. */
int file_remove_tree(const char *path, struct error *error) MUST_CHECK;

#endif
