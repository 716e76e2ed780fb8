/* Content store for declared files, large JSON and issued documents. One contract with several
 * drivers, chosen by the scheme of `content.url`. Each driver is a folder with its implementation
 * (content_driver.h) and its settings; content_settings.def lists them.
 *
 * The program chooses object names, "area/aa/rest": letters, digits, '-', '_' and '.', in at most 8
 * parts that do not start with a dot, less than 200 bytes. Any other name is a programming error
 * (ERR_INTERNAL). Objects are written once and never changed. An object exists under its name only
 * when it is complete and durable. For file: it is written to a temporary name, synced and renamed,
 * and the directory is synced. For S3 the service has acknowledged it.
 * Every function is thread safe; one thread at a time uses a writer or a reader. */
#ifndef CONTENT_CONTENT_H
#define CONTENT_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/setting.h"

#define CONTENT_NAME_MAX 200 /* with the NUL */
#define CONTENT_NAME_PARTS_MAX 8

struct content_store;
struct content_writer;
struct content_reader;

/* Members other than the first two are named after the keys of content_settings.def, which
 * describes them. All text is copied. Zeroed members have their defaults. */
struct content_options {
	bool create;                 /* creates a directory of this machine */
	const char *spool_directory; /* of uploads to a remote store; NULL: /tmp */
#define DRIVER(name)
#define RELOADS(section, key)
#define SETTING(section, key, type, default_text, help) SETTING_FIELD_##type key;
#include "content/content_settings.def"
#undef DRIVER
#undef RELOADS
#undef SETTING
};

/* The default of content.url, with the data directory. */
#define CONTENT_URL_DEFAULT_FORMAT "file:%s/content"

/* Reports what is wrong with the settings, those of each driver included. */
void content_check_settings(const struct content_options *options,
                            const struct setting_check *check);

/* A remote store is not asked anything yet. ERR_VALIDATION names what is wrong with the settings;
 * ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY. */
int content_open_with(const struct content_options *options, struct content_store **ret_store,
                      struct error *error) MUST_CHECK;
/* As content_open_with, with only a URL. */
int content_open(const char *url, bool create, struct content_store **ret_store,
                 struct error *error) MUST_CHECK;
void content_close(struct content_store *store);
/* Checks the syntax of a URL without accessing the store. ERR_VALIDATION. */
int content_url_check(const char *url, struct error *error) MUST_CHECK;
/* Returns whether a URL names a remote store, which needs further options. */
bool content_url_is_remote(const char *url);
/* The directory on this machine of an address; NULL: it is of another kind. */
const char *content_url_directory(const char *url);

/* Returns whether reading, committing and deleting may block on a network. content_write never
 * does. */
bool content_is_remote(const struct content_store *store);
/* Returns 0, or the reason why nothing can be stored or read now. Contacts a remote store, and may
 * block, if the last answer is too old. */
int content_ready(struct content_store *store, struct error *error) MUST_CHECK;

/* Begins an object. ERR_NO_SPACE: the store is full; ERR_NETWORK: a remote store failed after
 * several attempts; ERR_IO otherwise. After a failure of any write function only
 * content_write_abort may follow. */
int content_write_begin(struct content_store *store, struct content_writer **ret_writer,
                        struct error *error) MUST_CHECK;
int content_write(struct content_writer *writer, const void *data, size_t size, struct error *error)
	MUST_CHECK;
/* Commits the object under `name`, durably, and frees the writer in any case. Overwrites. After a
 * failure it is unknown whether the object exists. */
int content_write_commit(struct content_writer *writer, const char *name, struct error *error)
	MUST_CHECK;
void content_write_abort(struct content_writer *writer); /* NULL-safe */
/* Stores a complete local file. If the file is on the store's file system it is hard-linked, and
 * must not be changed any more; otherwise it is copied. The file remains. */
int content_put_file(struct content_store *store, const char *path, const char *name,
                     struct error *error) MUST_CHECK;

/* Opens an object for reading at `offset`. ERR_NOT_FOUND: it does not exist. */
int content_read_begin(struct content_store *store, const char *name, uint64_t offset,
                       struct content_reader **ret_reader, uint64_t *ret_size, struct error *error)
	MUST_CHECK;
/* Reads up to `size` bytes. Returns 0 at the end and a negative error otherwise; an object shorter
 * than ret_size is an error. */
int64_t content_read(struct content_reader *reader, void *data, size_t size, struct error *error);
/* As content_read without blocking, for polling threads: returns only bytes that are in memory. 0:
 * none are, the end is reached, or the store cannot tell; continue with content_read. */
size_t content_read_now(struct content_reader *reader, void *data, size_t size);
void content_read_end(struct content_reader *reader); /* NULL-safe */
/* Opens an object as a file descriptor, which the caller closes; -1 if the driver has none. */
int content_read_descriptor(struct content_store *store, const char *name, uint64_t *ret_size);

/* Link for direct download from the store, valid for anyone until it expires. */
struct content_link {
	const char *content_type;
	const char *file_name; /* suggested file name, in plain characters */
	int64_t now_us;
	int64_t lifetime_us; /* at most 7 days */
};
#define CONTENT_LINK_LIFETIME_MAX_US (INT64_C(7) * 86400 * 1000000)
/* Appends the link. ERR_REFUSED: the store has no links (file:). Does not block. */
int content_make_link(struct content_store *store, const char *name,
                      const struct content_link *link, struct buf *out, struct error *error)
	MUST_CHECK;

/* Deletes an object. Returns 0 also if it does not exist. */
int content_delete(struct content_store *store, const char *name, struct error *error) MUST_CHECK;
/* Deletes an object if possible; otherwise the sweep deletes it later. */
void content_discard(struct content_store *store, const char *name);
/* Creates a unique name in an area: "area/xx/<30 random characters>". */
void content_fresh_name(const char *area, char name[CONTENT_NAME_MAX]);
/* Returns whether content_fresh_name may have created the name, in one of the existing areas:
 * "event", "issued" (documents of earlier versions) or "issued/CERTIFICATION". No other object is
 * ever deleted because of its age. */
bool content_name_is_fresh(const char *name);

/* ---- listing and sweeping ---- */

/* Gets the time of the clock that sets the objects' times: the S3 service's or the file system's.
 * An S3 time may be up to two seconds behind, because of whole seconds and delay. */
int content_now_us(struct content_store *store, int64_t *ret_now_us, struct error *error)
	MUST_CHECK;

struct content_range {
	const char *area;  /* "event": names that begin with "event/"; "": all */
	int64_t since_us;  /* last changed at this time or later */
	int64_t before_us; /* and before this time; by content_now_us */
};
/* Calls `visit` for every object in the range. `visit` may write and delete objects. Stops at the
 * first result other than 0 and returns it. */
int content_list(struct content_store *store, const struct content_range *range,
                 int (*visit)(void *context, const char *name), void *context, struct error *error)
	MUST_CHECK;
#define CONTENT_KEEP 1
/* Removes leftovers of writers: temporary files (in all areas), and unfinished uploads of fresh
 * names. `visit` decides for each upload: CONTENT_KEEP, 0 to remove it, negative to stop. */
int content_remove_leftovers(struct content_store *store, const struct content_range *range,
                             int (*visit)(void *context, const char *name), void *context,
                             struct error *error) MUST_CHECK;

#define CONTENT_MARKER "installation"
#define CONTENT_INSTALLATION_SIZE 65 /* lower-case hexadecimal digits and NUL */
#define CONTENT_SWEEP_SIZE 33        /* lower-case letters and digits, and NUL */
/* Owner of a content store, as recorded in the object CONTENT_MARKER. */
struct content_marker {
	char installation[CONTENT_INSTALLATION_SIZE];
	int64_t since_us; /* by content_now_us: objects last changed before may have another owner */
	char sweep[CONTENT_SWEEP_SIZE]; /* token of the last sweep; empty: none */
	int64_t accepted_us; /* last rollback that an operator accepted before since_us; 0: none */
};
/* Claims the store for the installation unless it already owns it. ERR_REFUSED with a message:
 * another installation owns it. */
int content_claim(struct content_store *store, const char *installation,
                  struct content_marker *ret_marker, struct error *error) MUST_CHECK;
/* Checks the result of content_claim without writing. An empty `installation` means that the owner
 * of the content to be restored is unknown; the store must have no marker then. */
int content_check_claim(struct content_store *store, const char *installation, struct error *error)
	MUST_CHECK;
/* Writes the marker. After a failure either the former or the new marker is stored, or will be. */
int content_mark(struct content_store *store, const struct content_marker *marker,
                 struct error *error) MUST_CHECK;

#endif
