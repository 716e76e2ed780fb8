/* Files: descriptors that close automatically, reading and writing whole files, locks and removal.
 * Nothing here is durable after a power failure; see base/durable.h. */
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
/* Returns the descriptor and sets the variable to -1, so that it stays open. */
int descriptor_take(int *descriptor) MUST_CHECK;

/* Raises the limit of open files to the hard limit. */
void file_allow_many(void);

/* Returns ERR_NO_SPACE if `number` (an errno) means a full disk or quota, else ERR_IO. */
int file_code(int number);
/* Records the current errno with the cause "`what` `path`: reason". Returns its code, as
 * file_code. */
int file_fail(struct error *error, const char *what, const char *path);

/* Opens a path for reading without blocking and returns its status; `flags` is O_NOFOLLOW or 0. So
 * the caller can refuse a FIFO before it reads. Returns -1 and sets errno. */
int file_open_to_read(const char *path, int flags, struct stat *ret_facts) MUST_CHECK;
/* Appends a whole file to `out`. ERR_IO: also if it exceeds the limit of `out` (out->full is set
 * then). ERR_NO_MEMORY. */
int file_read_whole(const char *path, struct buf *out, struct error *error) MUST_CHECK;
/* Creates an unnamed temporary file (0600) for reading and writing in the file system of
 * `directory`. Returns -1 and sets errno. */
int file_open_unnamed(const char *directory) MUST_CHECK;
/* Computes the size and the SHA-256 of an open file from its current offset to its end. `path` is
 * for the cause. */
int file_digest(int file, const char *path, uint64_t *ret_size_bytes, struct sha256 *ret_digest,
                struct error *error) MUST_CHECK;
/* As file_digest, but stops with ERR_UNAVAILABLE once `stop` is true. */
int file_digest_until(const atomic_bool *stop, int file, const char *path, uint64_t *ret_size_bytes,
                      struct sha256 *ret_digest, struct error *error) MUST_CHECK;
/* As file_digest, with another algorithm. */
int file_digest_by(enum digest_algorithm algorithm, int file, const char *path,
                   uint64_t *ret_size_bytes, struct digest *ret_digest, struct error *error)
	MUST_CHECK;
/* Writes all of `content` at the current offset, in several writes if necessary. Returns false and
 * sets errno. */
bool file_write_all(int file, struct slice content) MUST_CHECK;
/* Atomically replaces `path` with `content` (0600), using the temporary file "PATH.partial". A
 * reader may remove the file as soon as it appears. */
int file_replace(const char *path, struct slice content, struct error *error) MUST_CHECK;
/* Writes at `offset`; does not change the file offset. */
bool file_write_at(int file, struct slice content, uint64_t offset) MUST_CHECK;
/* Reads exactly `size` bytes at `offset`. Returns false and sets errno, to 0 if the file is too
 * short. */
bool file_read_at(int file, void *data, size_t size, uint64_t offset) MUST_CHECK;
/* Opens and locks a lock file, which is created (0600) if missing; symbolic links are refused. The
 * lock lasts until the file is closed. ERR_UNAVAILABLE: another process has the lock. */
int file_lock(const char *path, int *ret_file, struct error *error) MUST_CHECK;
/* Returns whether a process has the lock now. Does not create or lock the file. */
bool file_is_locked(const char *path);
/* Removes a file, or a directory with its contents; succeeds if nothing exists. Does not follow
 * symbolic links. May fail if another process writes below the directory meanwhile. */
int file_remove_tree(const char *path, struct error *error) MUST_CHECK;

#endif
