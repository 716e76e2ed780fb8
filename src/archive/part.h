/* Content parts: the declared content of a certification's events, in ZIP files of bounded size.
 *
 * A part (zip.h's shape) holds `part.json` first, then one entry for each event of modality
 * `content` in order of sequence, `content/<sequence, 12 digits>.json` or `.bin`, and last
 * `index.ndjson`. The SHA-256 of an entry is the event's hash. docs/evidence-format.md has the
 * fields. */
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
	int64_t first_sequence; /* of the events it holds */
	int64_t last_sequence;
};

struct part_entry {
	int64_t sequence;
	struct slice event_id;
	struct sha256 hash;
	bool is_json; /* canonical JSON; else the file as it was sent */
};

/* Of part `number`, from 1. */
void part_name(uint32_t number, char name[PART_NAME_SIZE]);

struct part_writer;

/* Parts are written into `directory` under their own names, one after the other. bytes_max and
 * entries_max bound each part; 0: PART_BYTES_MAX, PART_ENTRIES_MAX. */
int part_writer_begin(const char *directory, const char *certification_id, const char *channel_id,
                      uint64_t bytes_max, uint32_t entries_max, struct part_writer **ret_writer,
                      struct error *error) MUST_CHECK;
/* In ascending order of sequence; a part that is full is finished and the next one begun. Content
 * whose SHA-256 is not the entry's hash is ERR_CORRUPT. After a failure the writer can only be
 * freed. */
int part_writer_add(struct part_writer *writer, const struct part_entry *entry,
                    struct slice content, struct error *error) MUST_CHECK;
/* The same from a regular file, read from its start. */
int part_writer_add_file(struct part_writer *writer, const struct part_entry *entry, int fd,
                         struct error *error) MUST_CHECK;
/* The facts of all parts (none when nothing was added); they belong to the writer. */
int part_writer_finish(struct part_writer *writer, const struct part_facts **ret_parts,
                       size_t *ret_count, struct error *error) MUST_CHECK;
/* Removes every part unless finished. NULL-safe. */
void part_writer_free(struct part_writer *writer);

#endif
