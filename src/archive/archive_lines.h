/* The documents of an evidence archive as text: written by archive.c, read back by the verifier.
 *
 * A reader parses the members, and the caller then writes the result again and compares the bytes:
 * so whatever is not the one canonical form is found. Readers answer 0, ERR_INVALID_EVIDENCE with
 * the member in error->cause, or ERR_NO_MEMORY. What they answer points into the arena, of an
 * event and of a line of a part also into that line. */
#ifndef ARCHIVE_ARCHIVE_LINES_H
#define ARCHIVE_ARCHIVE_LINES_H

#include "archive/archive.h"
#include "base/json.h"

#define ARCHIVE_MIMETYPE "application/vnd.etsi.asic-e+zip"
#define ARCHIVE_MANIFEST_NAME "manifest.json"
#define ARCHIVE_ASIC_NAME "META-INF/ASiCManifest001.xml"
#define ARCHIVE_SIGNATURE_NAME "META-INF/signature001.p7s"
#define ARCHIVE_README_NAME "README.txt"
#define ARCHIVE_LEEME_NAME "LEEME.txt"
#define ARCHIVE_GENESIS_NAME "genesis.json"
#define ARCHIVE_SIGNERS_NAME "signers.p7m" /* behind genesis.json, if it is there */

extern const char *const archive_object_kinds[]; /* by enum archive_object_kind */
extern const char archive_readme[];
extern const char archive_leeme[];

/* The six kinds of streams; the files of one are "events/events-000001.ndjson.gz" and so on. */
enum archive_stream {
	STREAM_EVENTS,
	STREAM_LEAVES,
	STREAM_SEALS,
	STREAM_ROUNDS,
	STREAM_VALIDATION, /* not in version 1 */
	STREAM_RENEWALS,   /* neither */
	STREAM_COUNT
};
const char *archive_stream_text(enum archive_stream stream);
/* The path of its file `number`, from 1. */
void archive_stream_path(enum archive_stream stream, uint32_t number, char path[ZIP_NAME_MAX + 1]);
void archive_config_path(int64_t version, char path[ZIP_NAME_MAX + 1]);

/* Lines without their end. */
void archive_leaf_line(int64_t sequence, const struct sha256 *chain_hash, struct buf *out);
void archive_segment_line(const struct archive_segment *segment, struct buf *out);
/* In an archive of that version. */
void archive_round_line(const struct archive_round *round, int64_t version, struct buf *out);

/* Its SHA-256 is given too, as the reader answers it. */
void archive_object_line(const struct archive_object *object, const struct sha256 *sha256,
                         struct buf *out);

void archive_stamp_line(const struct archive_stamp *stamp, struct buf *out);

int archive_read_event(struct arena *arena, struct slice line, struct event_facts *ret_event,
                       struct error *error) MUST_CHECK;
/* The answer to a registration, as the interface gives it: without config_hash and
 * previous_chain_hash, with the chain hash. Members that are no part of the record are left out. */
int archive_read_receipt(struct arena *arena, const struct json *json,
                         struct event_facts *ret_event, struct sha256 *ret_chain_hash,
                         struct error *error) MUST_CHECK;
int archive_read_leaf(struct arena *arena, struct slice line, int64_t *ret_sequence,
                      struct sha256 *ret_hash, struct error *error) MUST_CHECK;
int archive_read_segment(struct arena *arena, struct slice line,
                         struct archive_segment *ret_segment, struct error *error) MUST_CHECK;
int archive_read_round(struct arena *arena, struct slice line, int64_t version,
                       struct archive_round *ret_round, struct error *error) MUST_CHECK;
/* The SHA-256 is what the line says. */
int archive_read_object(struct arena *arena, struct slice line, struct archive_object *ret_object,
                        struct sha256 *ret_sha256, struct error *error) MUST_CHECK;
int archive_read_stamp(struct arena *arena, struct slice line, struct archive_stamp *ret_stamp,
                       struct error *error) MUST_CHECK;
int archive_read_genesis(struct arena *arena, struct slice text, const char **ret_channel_id,
                         enum mode *ret_chain, int64_t *ret_created_at_us, struct error *error)
	MUST_CHECK;
int archive_read_config(struct arena *arena, struct slice text, struct config_facts *ret_config,
                        struct error *error) MUST_CHECK;

struct archive_file {
	const char *path;
	struct zip_sum sum;
};

struct archive_config {
	int64_t version;
	struct sha256 hash;
};

struct archive_manifest {
	int64_t version;            /* of the archive: 1 to ARCHIVE_VERSION */
	struct archive_facts facts; /* channel_created_at_us is not part of it */
	int64_t event_count;
	struct sha256 previous_chain_hash, first_chain_hash, last_chain_hash;
	const struct archive_config *configs;
	size_t config_count;
	const struct archive_file *files; /* in the order of the ZIP */
	size_t file_count;
};

void archive_manifest_write(const struct archive_manifest *manifest, struct buf *out);
int archive_read_manifest(struct arena *arena, struct slice text,
                          struct archive_manifest *ret_manifest, struct error *error) MUST_CHECK;

/* ASiCManifest (ETSI EN 319 162-1, A.4): the beginning, one element for each file, the end. */
void archive_asic_begin(struct buf *out);
/* The same of an ASiCEvidenceRecordManifest, which names an evidence record. */
void archive_asic_begin_record(const char *record, struct buf *out);
void archive_asic_file(const struct archive_file *file, struct buf *out);
void archive_asic_end(struct buf *out);

/* Content parts: the first entry and a line of the index. */
struct part_head {
	const char *certification_id;
	const char *channel_id;
	uint32_t number; /* from 1 */
};
#define PART_HEAD_NAME "part.json"
#define PART_INDEX_NAME "index.ndjson"
#define PART_INDEX_LINE_MAX 512

void part_head_write(const struct part_head *head, struct buf *out);
void part_index_line(const struct part_entry *entry, struct buf *out);
void part_entry_name(const struct part_entry *entry, char name[ZIP_NAME_MAX + 1]);
int archive_read_part_head(struct arena *arena, struct slice text, struct part_head *ret_head,
                           struct error *error) MUST_CHECK;
int archive_read_part_line(struct arena *arena, struct slice line, struct part_entry *ret_entry,
                           struct error *error) MUST_CHECK;

#endif
