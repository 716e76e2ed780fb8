/* Interface of a content store driver. content.c checks names before it calls a driver. Each
 * function has the meaning of its namesake in content.h. The driver's structures start with the
 * structures below. An "optional" function may be NULL, with the stated meaning. */
#ifndef CONTENT_CONTENT_DRIVER_H
#define CONTENT_CONTENT_DRIVER_H

#include "content/content.h"

struct content_driver {
	const char *scheme; /* "file:" */
	bool remote;
	/* `place` is the text after the scheme, never empty. */
	int (*open)(const struct content_options *options, const char *place,
	            struct content_store **ret_store, struct error *error);
	/* Optional: every place is valid. */
	int (*check_place)(const char *place, struct error *error);
	/* Reports what is wrong with the driver's settings. `chosen`: the address is of this driver.
	 * Optional: it has none. */
	void (*check_settings)(const struct content_options *options, bool chosen,
	                       const struct setting_check *check);
	void (*close)(struct content_store *store);
	/* Optional: always ready. */
	int (*ready)(struct content_store *store, struct error *error);

	int (*write_begin)(struct content_store *store, struct content_writer **ret_writer,
	                   struct error *error);
	int (*write)(struct content_writer *writer, const void *data, size_t size, struct error *error);
	/* Does not free the writer; write_abort always follows. */
	int (*write_commit)(struct content_writer *writer, const char *name, struct error *error);
	void (*write_abort)(struct content_writer *writer);
	/* Hard-links a regular file to the name. ERR_REFUSED: it must be copied. Optional: always
	 * copied. */
	int (*link)(struct content_store *store, int descriptor, const char *name, struct error *error);
	/* Stores a regular file from its start. Optional: content.c uses a writer. */
	int (*put)(struct content_store *store, int descriptor, uint64_t size, const char *name,
	           struct error *error);

	int (*read_begin)(struct content_store *store, const char *name, uint64_t offset,
	                  struct content_reader **ret_reader, uint64_t *ret_size, struct error *error);
	int64_t (*read)(struct content_reader *reader, void *data, size_t size, struct error *error);
	/* Optional: always 0. */
	size_t (*read_now)(struct content_reader *reader, void *data, size_t size);
	void (*read_end)(struct content_reader *reader);
	/* Optional: no descriptors. */
	int (*read_descriptor)(struct content_store *store, const char *name, uint64_t *ret_size);

	/* Optional: no links. */
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

/* content_file_driver and so on: one for each DRIVER line of content_settings.def. */
#define RELOADS(section, key)
#define SETTING(section, key, type, default_text, help)
#define DRIVER(name) extern const struct content_driver content_##name##_driver;
#include "content/content_settings.def"
#undef DRIVER
#undef RELOADS
#undef SETTING

/* Returns whether `name` is a valid object name (content.h). */
bool content_name_valid(const char *name);

#endif
