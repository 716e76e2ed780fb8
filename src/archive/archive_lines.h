/* Text form of the documents of an evidence archive. archive.c writes them; the verifier reads
 * them.
 *
 * A reader parses the members. The caller then writes the result again and compares the bytes,
 * which detects any deviation from the canonical form. Readers return 0, ERR_INVALID_EVIDENCE with
 * the member in error->cause, or ERR_NO_MEMORY. Their results point into the arena; those for
 * events and for lines of a part also point into the line. */
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
#define ARCHIVE_SIGNERS_NAME "signers.p7m" /* optional, after genesis.json */

extern const char *const archive_object_kinds[]; /* indexed by enum archive_object_kind */
extern const char archive_readme[];
extern const char archive_leeme[];

/* The streams of an archive. The files of a stream are named "events/events-000001.ndjson.gz" and
 * so on. */
enum archive_stream {
	STREAM_EVENTS,
	STREAM_LEAVES,
	STREAM_SEALS,
	STREAM_ROUNDS,
	STREAM_VALIDATION,  /* not in version 1 */
	STREAM_RENEWALS,    /* not in version 1 */
	STREAM_CHECKPOINTS, /* from version 3 on */
	STREAM_LOG,         /* from version 3 on */
	STREAM_HISTORY,     /* from version 3 on, if requested */
	STREAM_COUNT
};
const char *archive_stream_text(enum archive_stream stream);
/* Writes the path of the file with that number, counted from 1. */
void archive_stream_path(enum archive_stream stream, uint32_t number, char path[ZIP_NAME_MAX + 1]);
void archive_config_path(int64_t version, char path[ZIP_NAME_MAX + 1]);

/* These functions append a line without its line feed. */
void archive_leaf_line(int64_t sequence, const struct sha256 *chain_hash, struct buf *out);
void archive_segment_line(const struct archive_segment *segment, struct buf *out);
/* `version` is that of the archive. */
void archive_round_line(const struct archive_round *round, int64_t version, struct buf *out);

/* `sha256` is the digest of the object, as archive_read_object returns it. */
void archive_object_line(const struct archive_object *object, const struct sha256 *sha256,
                         struct buf *out);

void archive_stamp_line(const struct archive_stamp *stamp, struct buf *out);

void archive_checkpoint_line(const struct archive_checkpoint *checkpoint, struct buf *out);
void archive_log_line(const struct archive_log_place *place, struct buf *out);

int archive_read_event(struct arena *arena, struct slice line, struct event_facts *ret_event,
                       struct error *error) MUST_CHECK;
/* Reads the response to a registration, which has the chain hash but neither config_hash nor
 * previous_chain_hash. Members that are not part of the record are ignored. Clients with types drop
 * members that are null, so an absent occurred_at is null. */
int archive_read_receipt(struct arena *arena, const struct json *json,
                         struct event_facts *ret_event, struct sha256 *ret_chain_hash,
                         struct error *error) MUST_CHECK;
int archive_read_leaf(struct arena *arena, struct slice line, int64_t *ret_sequence,
                      struct sha256 *ret_hash, struct error *error) MUST_CHECK;
int archive_read_segment(struct arena *arena, struct slice line,
                         struct archive_segment *ret_segment, struct error *error) MUST_CHECK;
int archive_read_round(struct arena *arena, struct slice line, int64_t version,
                       struct archive_round *ret_round, struct error *error) MUST_CHECK;
/* Returns the SHA-256 as stated in the line, which is not verified. */
int archive_read_object(struct arena *arena, struct slice line, struct archive_object *ret_object,
                        struct sha256 *ret_sha256, struct error *error) MUST_CHECK;
int archive_read_stamp(struct arena *arena, struct slice line, struct archive_stamp *ret_stamp,
                       struct error *error) MUST_CHECK;
int archive_read_checkpoint(struct arena *arena, struct slice line,
                            struct archive_checkpoint *ret_checkpoint, struct error *error)
	MUST_CHECK;
int archive_read_log_place(struct arena *arena, struct slice line,
                           struct archive_log_place *ret_place, struct error *error) MUST_CHECK;
int archive_read_genesis(struct arena *arena, struct slice text, struct genesis_facts *ret_genesis,
                         struct error *error) MUST_CHECK;
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
	int64_t version;            /* format version, 1 to ARCHIVE_VERSION */
	struct archive_facts facts; /* without genesis */
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

/* ASiCManifest (ETSI EN 319 162-1, A.4): these functions append its beginning, one element per
 * file, and its end. */
void archive_asic_begin(struct buf *out);
/* Appends the beginning of an ASiCEvidenceRecordManifest, which refers to an evidence record. */
void archive_asic_record_begin(const char *record, struct buf *out);
void archive_asic_file(const struct archive_file *file, struct buf *out);
void archive_asic_end(struct buf *out);

/* Content parts: the head, which is the first entry, and the lines of the index. */
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
