/* Reads a transparency log in the form of C2SP tlog-tiles: at an address, or in a directory with
 * the same files.
 *
 * Nothing is trusted: each file has a maximum size, and the caller checks what it contains. A
 * partial tile that is gone is read from the full one. One thread at a time. */
#ifndef MONITOR_LOG_SOURCE_H
#define MONITOR_LOG_SOURCE_H

#include "net/http.h"
#include "tlog/entry.h"
#include "tlog/tiles.h"

struct log_place {
	const char *url;       /* prefix of the log's files, http or https */
	const char *directory; /* instead of an address */
	const char *tls_roots; /* PEM file; NULL: the system's */
};

struct log_source {
	struct log_place place;
	size_t prefix_size; /* of the address or the directory, without slashes at its end */
	struct http_session *session;
	struct address_guard guard; /* permits every address: the place is the user's choice */
	struct buf body;
	struct tile_store tiles;
};

/* Texts of the place must live as long as the source. ERR_VALIDATION: the address; ERR_NO_MEMORY.
 */
int log_source_open(struct log_source *ret, const struct log_place *place, struct error *error)
	MUST_CHECK;
/* Accepts a zeroed source. */
void log_source_close(struct log_source *source);

/* Reads a file of at most `limit` bytes; *ret_body is valid until the next call. The cause names
 * the file. ERR_NOT_FOUND: there is none; ERR_TOO_LARGE; ERR_NETWORK and ERR_IO: not readable now;
 * ERR_NO_MEMORY. */
int log_source_read(struct log_source *source, const char *path, size_t limit,
                    struct slice *ret_body, struct error *error) MUST_CHECK;

/* Reads a tile of hashes. ERR_INVALID_EVIDENCE: it has another size. Also as a tile_store,
 * source->tiles, which cannot write. */
int log_source_read_tile(struct log_source *source, const struct tile_id *id,
                         struct sha256 *ret_hashes, struct error *error) MUST_CHECK;

/* Reads the bundle of entries with that index: `width` entries, which point into the body and are
 * valid until the next call. ERR_INVALID_EVIDENCE: it has another number of entries, or an entry
 * that is larger than any of this log. */
int log_source_read_bundle(struct log_source *source, uint64_t index, unsigned width,
                           struct slice ret_entries[TILE_WIDTH], struct error *error) MUST_CHECK;

#endif
