/* What an implementation of content.h provides; content.c checks names before it calls. The
 * meaning of each function is that of its namesake in content.h. A driver's own structures start
 * with the structures below. "Optional": may be NULL, and then means what is said. */
#ifndef CONTENT_DRIVER_H
#define CONTENT_DRIVER_H

#include "content/content.h"

struct content_driver {
	const char *scheme; /* "file:" */
	bool remote;
	/* `place` is what follows the scheme, never empty. */
	int (*open)(const struct content_options *options, const char *place,
	            struct content_store **ret_store, struct error *error);
	/* Optional: any will do. */
	int (*check_place)(const char *place, struct error *error);
	void (*close)(struct content_store *store);
	/* Optional: always. */
	int (*ready)(struct content_store *store, struct error *error);

	int (*write_begin)(struct content_store *store, struct content_writer **ret_writer,
	                   struct error *error);
	int (*write)(struct content_writer *writer, const void *data, size_t size, struct error *error);
	/* Leaves the writer to be freed by write_abort, which is always called behind it. */
	int (*write_commit)(struct content_writer *writer, const char *name, struct error *error);
	void (*write_abort)(struct content_writer *writer);
	/* Gives a regular file the name. ERR_REFUSED: it has to be copied. Optional: so it is. */
	int (*link)(struct content_store *store, int descriptor, const char *name, struct error *error);
	/* From the start of a regular file. Optional: by a writer. */
	int (*put)(struct content_store *store, int descriptor, uint64_t size, const char *name,
	           struct error *error);

	int (*read_begin)(struct content_store *store, const char *name, uint64_t offset,
	                  struct content_reader **ret_reader, uint64_t *ret_size, struct error *error);
	int64_t (*read)(struct content_reader *reader, void *data, size_t size, struct error *error);
	/* Optional: nothing. */
	size_t (*read_now)(struct content_reader *reader, void *data, size_t size);
	void (*read_end)(struct content_reader *reader);
	/* Optional: there are no descriptors. */
	int (*read_descriptor)(struct content_store *store, const char *name, uint64_t *ret_size);

	/* Optional: has none. */
	int (*make_link)(struct content_store *store, const char *name, const struct content_link *link,
	                 struct buf *out, struct error *error);
	int (*delete)(struct content_store *store, const char *name, struct error *error);
	int (*now_us)(struct content_store *store, int64_t *ret_now_us, struct error *error);
	int (*list)(struct content_store *store, const struct content_range *range,
	            int (*visit)(void *context, const char *name), void *context, struct error *error);
	int (*tidy)(struct content_store *store, const struct content_range *range,
	            int (*visit)(void *context, const char *name), void *context, struct error *error);
};

struct content_store {
	const struct content_driver *driver;
};

struct content_writer {
	struct content_store *store;
};

struct content_reader {
	struct content_store *store;
};

extern const struct content_driver content_file_driver;
extern const struct content_driver content_s3_driver;

/* Whether `name` is an object's name: see content.h. */
bool content_name_valid(const char *name);

#endif
