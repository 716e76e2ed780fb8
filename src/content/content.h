/* The content store: declared files and large JSON, and issued documents. One contract, several
 * implementations, chosen by `content.url`: file:DIR here, S3 later.
 *
 * Objects have names of ours, "area/aa/rest": letters, digits, '-', '_', '.', in at most 8 parts
 * that do not start with a dot, less than 200 bytes; any other is our own mistake, ERR_INTERNAL.
 * They are written once and never changed. An object exists under its name only when it is
 * whole and durable: file: temporary name, write, fsync, rename, fsync of the directory.
 * Every function is thread safe; a writer or reader is used by one thread at a time. */
#ifndef CONTENT_CONTENT_H
#define CONTENT_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define CONTENT_NAME_MAX 200 /* with the closing NUL */
#define CONTENT_NAME_PARTS_MAX 8

struct content_store;
struct content_writer;
struct content_reader;

/* "file:DIR"; the directory is made when `create`. ERR_VALIDATION names what is wrong in the URL.
 */
int content_open(const char *url, bool create, struct content_store **ret_store,
                 struct error *error);
void content_close(struct content_store *store);

/* ERR_NO_SPACE when the disk is full, ERR_IO otherwise; after a failure only abort is left. */
int content_write_begin(struct content_store *store, struct content_writer **ret_writer,
                        struct error *error) __attribute__((warn_unused_result));
int content_write(struct content_writer *writer, const void *data, size_t size,
                  struct error *error) __attribute__((warn_unused_result));
/* Durable under `name` on return; the writer is gone in any case. Overwrites. After a failure it is
 * not known whether the object is there. */
int content_write_commit(struct content_writer *writer, const char *name, struct error *error)
    __attribute__((warn_unused_result));
void content_write_abort(struct content_writer *writer); /* NULL-safe */
/* Stores a finished local file of the same file system or another by copying; the file stays. */
int content_put_file(struct content_store *store, const char *path, const char *name,
                     struct error *error) __attribute__((warn_unused_result));

/* ERR_NOT_FOUND when there is none. */
int content_read_begin(struct content_store *store, const char *name, uint64_t offset,
                       struct content_reader **ret_reader, uint64_t *ret_size,
                       struct error *error) __attribute__((warn_unused_result));
/* Up to `size` bytes; 0 at the end; negative on error. */
int64_t content_read(struct content_reader *reader, void *data, size_t size, struct error *error);
void content_read_end(struct content_reader *reader); /* NULL-safe */
/* A file descriptor the caller closes, for implementations that have one, else -1. */
int content_read_descriptor(struct content_store *store, const char *name, uint64_t *ret_size);

/* 0 also when there was none. */
int content_delete(struct content_store *store, const char *name, struct error *error);
/* A fresh unique name in an area: "area/xx/<30 random characters>". */
void content_fresh_name(const char *area, char name[CONTENT_NAME_MAX]);
/* Calls `visit` for every object whose last change is older than `older_than_us` ago; it may
 * delete. Leftover temporary files of that age are removed. Stops at the first non-zero answer. */
int content_sweep(struct content_store *store, int64_t older_than_us,
                  int (*visit)(void *context, const char *name), void *context,
                  struct error *error);

#endif
