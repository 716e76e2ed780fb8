/* The content store: declared files and large JSON, and issued documents. One contract, several
 * implementations, chosen by `content.url`: file:DIR, or s3://BUCKET/PREFIX?… for any service that
 * speaks the S3 protocol.
 *
 * Objects have names of ours, "area/aa/rest": letters, digits, '-', '_', '.', in at most 8 parts
 * that do not start with a dot, less than 200 bytes; any other is our own mistake, ERR_INTERNAL.
 * They are written once and never changed. An object exists under its name only when it is
 * whole and durable: file: temporary name, write, fsync, rename, fsync of the directory; S3: the
 * service has acknowledged it.
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

/* What an address needs beside itself. All text is copied. Zeroed members have their defaults. */
struct content_options {
	const char *url;
	bool create;                 /* file: makes the directory */
	const char *spool_directory; /* S3: of what is on its way there; NULL: /tmp */
	const char *access_key;      /* S3: needed, with secret_key */
	const char *secret_key;
	const char *allow_networks; /* S3: private networks in which it may stand */
	int timeout_ms;             /* S3: longest wait while nothing moves; 0: 10,000 */
};

/* file:DIR, or s3://BUCKET[/PREFIX]?endpoint=URL&region=NAME (docs/operations.md has all of it). S3
 * is not asked anything yet. ERR_VALIDATION names what is wrong with the settings; ERR_IO,
 * ERR_NO_SPACE, ERR_NO_MEMORY. */
int content_open_with(const struct content_options *options, struct content_store **ret_store,
                      struct error *error) MUST_CHECK;
/* The same with an address alone. */
int content_open(const char *url, bool create, struct content_store **ret_store,
                 struct error *error) MUST_CHECK;
void content_close(struct content_store *store);
/* Whether an address can be used, without looking at what is there. ERR_VALIDATION. */
int content_url_check(const char *url, struct error *error) MUST_CHECK;
/* Whether an address is of a store across a network, which needs the other options. */
bool content_url_is_remote(const char *url);

/* Whether reading, finishing and deleting may wait for a network. content_write never does. */
bool content_is_remote(const struct content_store *store);
/* 0, or why nothing can be stored or read now; asks a remote store when it has not answered for a
 * while, and then may wait. */
int content_ready(struct content_store *store, struct error *error) MUST_CHECK;

/* ERR_NO_SPACE when there is no room, ERR_NETWORK when a remote store does not answer as it should
 * after several tries, ERR_IO otherwise; after a failure only abort is left. */
int content_write_begin(struct content_store *store, struct content_writer **ret_writer,
                        struct error *error) MUST_CHECK;
int content_write(struct content_writer *writer, const void *data, size_t size, struct error *error)
	MUST_CHECK;
/* Durable under `name` on return; the writer is gone in any case. Overwrites. After a failure it is
 * not known whether the object is there. */
int content_write_commit(struct content_writer *writer, const char *name, struct error *error)
	MUST_CHECK;
void content_write_abort(struct content_writer *writer); /* NULL-safe */
/* Stores a finished local file: by a second name where it lies on the store's own file system, so
 * that it must not be changed any more, else by copying. The file stays. */
int content_put_file(struct content_store *store, const char *path, const char *name,
                     struct error *error) MUST_CHECK;

/* ERR_NOT_FOUND when there is none. */
int content_read_begin(struct content_store *store, const char *name, uint64_t offset,
                       struct content_reader **ret_reader, uint64_t *ret_size, struct error *error)
	MUST_CHECK;
/* Up to `size` bytes; 0 at the end; negative on error: fewer bytes than ret_size said are one. */
int64_t content_read(struct content_reader *reader, void *data, size_t size, struct error *error);
/* The same without waiting, for threads that poll: as much as is in memory already. 0: nothing is,
 * or it is the end, or this store cannot tell; content_read goes on from there. */
size_t content_read_now(struct content_reader *reader, void *data, size_t size);
void content_read_end(struct content_reader *reader); /* NULL-safe */
/* A file descriptor the caller closes, for implementations that have one, else -1. */
int content_read_descriptor(struct content_store *store, const char *name, uint64_t *ret_size);

/* A link under which anybody can fetch the object from the store itself until it expires. */
struct content_link {
	const char *content_type;
	const char *file_name; /* saved under it: plain characters */
	int64_t now_us;
	int64_t lifetime_us; /* at most 7 days */
};
#define CONTENT_LINK_LIFETIME_MAX_US (INT64_C(7) * 86400 * 1000000)
/* Appends the link; ERR_REFUSED where the store has none (file:). Waits for nothing. */
int content_make_link(struct content_store *store, const char *name,
                      const struct content_link *link, struct buf *out, struct error *error)
	MUST_CHECK;

/* 0 also when there was none. */
int content_delete(struct content_store *store, const char *name, struct error *error) MUST_CHECK;
/* Where what cannot be deleted now is left to the sweep. */
void content_discard(struct content_store *store, const char *name);
/* A fresh unique name in an area: "area/xx/<30 random characters>". */
void content_fresh_name(const char *area, char name[CONTENT_NAME_MAX]);
/* Whether content_fresh_name may have made the name, in one of the areas that there are: "event",
 * "issued" (earlier versions' documents) or "issued/CERTIFICATION". Nothing else is ever deleted
 * for its age. */
bool content_name_is_fresh(const char *name);

/* ---- what is there ---- */

/* The clock that objects' times come from: the service's, or the file system's. What a service
 * tells may be up to two seconds behind: whole seconds, of a second ago. */
int content_now_us(struct content_store *store, int64_t *ret_now_us, struct error *error)
	MUST_CHECK;

struct content_range {
	const char *area;  /* "event": names that begin with "event/"; "": all */
	int64_t since_us;  /* last changed from then on, */
	int64_t before_us; /* and before then; by content_now_us */
};
/* Calls `visit` for every object in the range; it may write and delete. Stops at the first answer
 * that is not 0, and gives it. */
int content_list(struct content_store *store, const struct content_range *range,
                 int (*visit)(void *context, const char *name), void *context, struct error *error)
	MUST_CHECK;
#define CONTENT_KEEP 1
/* Removes what writers left unfinished: temporary files (area not looked at), and unfinished
 * uploads of fresh names, of which `visit` is asked first: CONTENT_KEEP, 0 to remove it, negative
 * to stop. */
int content_tidy(struct content_store *store, const struct content_range *range,
                 int (*visit)(void *context, const char *name), void *context, struct error *error)
	MUST_CHECK;

#define CONTENT_MARKER "installation"
#define CONTENT_INSTALLATION_SIZE 65 /* lower-case hex digits and NUL */
#define CONTENT_SWEEP_SIZE 33        /* lower-case letters and digits, and NUL */
/* Whose place it is: what the object CONTENT_MARKER says. */
struct content_marker {
	char installation[CONTENT_INSTALLATION_SIZE];
	int64_t since_us; /* by content_now_us: what was last changed before may be anybody's */
	char sweep[CONTENT_SWEEP_SIZE]; /* the token of the last sweep; empty: there was none */
	int64_t accepted_us; /* the last rollback that an operator accepted before since_us; 0: none */
};
/* Makes the place the installation's unless it is already. ERR_REFUSED, with a sentence: it is
 * another installation's. */
int content_claim(struct content_store *store, const char *installation,
                  struct content_marker *ret_marker, struct error *error) MUST_CHECK;
/* What content_claim would say, with nothing written. `installation` empty: whose content is to
 * come is not known, so the place must have no marker. */
int content_check_claim(struct content_store *store, const char *installation, struct error *error)
	MUST_CHECK;
/* Writes the marker. After a failure either the former one or this one is there, or will be. */
int content_mark(struct content_store *store, const struct content_marker *marker,
                 struct error *error) MUST_CHECK;

#endif
