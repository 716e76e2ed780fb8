/* Content parts: the declared content of a certification's events, in ZIP files of limited size.
 *
 * A part (a ZIP file of the shape of zip.h) contains `part.json` first, then one entry for each
 * event of modality `content` in the order of sequence, `content/<sequence, 12 digits>.json` or
 * `.bin`, and `index.ndjson` last. The SHA-256 of an entry is the hash of the event.
 * docs/verify/evidence-format.md describes the fields. */
#ifndef ARCHIVE_PART_H
#define ARCHIVE_PART_H

#include "archive/zip.h"

#define PART_BYTES_MAX UINT64_C(1000000000)
#define PART_ENTRIES_MAX 60000u
#define PART_COUNT_MAX 10000u
#define PART_NAME_SIZE 32

struct part_facts {
	char name[PART_NAME_SIZE]; /* "content-part-001.zip" */
	uint64_t size_bytes;
	struct sha256 sha256;
	int64_t first_sequence; /* first and last sequence of its events */
	int64_t last_sequence;
};

struct part_entry {
	int64_t sequence;
	struct slice event_id;
	struct sha256 hash;
	bool is_json; /* true: canonical JSON; false: the file as sent */
};

/* Writes the name of the part with that number, counted from 1. */
void part_name(uint32_t number, char name[PART_NAME_SIZE]);

struct part_writer;

/* Creates a writer, which writes parts one after the other into `directory` under their own names.
 * bytes_max and entries_max limit each part; 0: PART_BYTES_MAX, PART_ENTRIES_MAX. */
int part_writer_begin(const char *directory, const char *certification_id, const char *channel_id,
                      uint64_t bytes_max, uint32_t entries_max, struct part_writer **ret_writer,
                      struct error *error) MUST_CHECK;
/* Adds content. Calls are in ascending order of sequence. A full part is finished and the next one
 * is begun. Returns ERR_CORRUPT if the SHA-256 of the content is not the hash of the entry. After a
 * failure the writer can only be freed. */
int part_writer_add(struct part_writer *writer, const struct part_entry *entry,
                    struct slice content, struct error *error) MUST_CHECK;
/* Does the same with a regular file, read from its beginning. */
int part_writer_add_file(struct part_writer *writer, const struct part_entry *entry, int fd,
                         struct error *error) MUST_CHECK;
/* Finishes the last part and returns the facts of all parts, none if nothing was added. The writer
 * owns them. */
int part_writer_finish(struct part_writer *writer, const struct part_facts **ret_parts,
                       size_t *ret_count, struct error *error) MUST_CHECK;
/* Removes all parts unless the writer was finished. NULL-safe. */
void part_writer_free(struct part_writer *writer);

#endif
