/* What the files of the verifier share. See verify.h for what it does. */
#ifndef VERIFY_VERIFY_CHECK_H
#define VERIFY_VERIFY_CHECK_H

#include "archive/archive_lines.h"
#include "verify/verify.h"
#include "verify/verify_finding.h"

#define VERIFY_SPAN_SIZE 32

enum input_kind {
	INPUT_OTHER,
	INPUT_ARCHIVE,
	INPUT_PART,
	INPUT_REPORT,
	INPUT_RECORD,
	INPUT_BUNDLE
};

struct input {
	const char *path; /* as it is told */
	const char *file; /* where it is opened */
	/* Of a file in a container, of which the sum is known: the container's place, from 1, and where
	 * it begins in there. */
	size_t container; /* 0: it stands by itself */
	uint64_t offset;
	bool is_containers_record; /* the evidence record that has to cover all the others */
	enum input_kind kind;
	struct zip_sum sum;
	struct zip_identity identity; /* of the file that has this sum, or of its container */
	bool unread;    /* it could not be read to its end: what was not met in it may be there */
	bool bound;     /* a part: an archive among the inputs lists it; a report: names one of them */
	bool described; /* the facts below could be read */
	bool covered;   /* an evidence record among the inputs is of it */
	bool recorded;  /* of no kind: it is an event that an archive among the inputs holds */
	/* By other algorithms than SHA-256, as far as a record needed them; `digested`: they are known.
	 */
	struct digest digests[DIGEST_ALGORITHM_COUNT];
	bool digested[DIGEST_ALGORITHM_COUNT];
	int64_t covered_since_us; /* when a valid one shows that it existed; TIME_NONE: none does */
	/* Of a valid signature of a report or an archive. */
	bool is_signed;
	struct sha256 signer; /* the SHA-256 of the certificate */
	int64_t signed_at_us; /* of the signature's timestamp; TIME_NONE: it has none */
	int64_t issued_us;    /* of its timestamp, or as the signer states; TIME_NONE: there is none */
	int64_t until_us;     /* the end of the certificate that vouches last */
	/* Of an archive. */
	struct archive_manifest manifest; /* without its lists */
	/* The events whose chain hashes it says, by its own word; found where there are others. */
	bool outlined;
	int64_t hashes_from, hashes_to;
	uint64_t outline_lines; /* that were read for it */
	/* Of a part. */
	struct part_head head;
};

struct run {
	struct verify_result *result;
	const struct verify_options *options;
	struct trust_roots roots;
	struct input *inputs;
	size_t input_count;
	struct arena arena;   /* what the inputs point to */
	struct point *points; /* in order: verify_points.c */
	size_t point_count;
	void *sealed;                  /* a tree of documents: verify_points.c */
	struct kept_receipt *receipts; /* in order: verify_receipts.c */
	size_t receipt_count;
	struct arena receipt_arena;
	struct signer_lists *signer_lists; /* NULL: none were given; verify_signers.c */
	int64_t next_progress_us;
	uint64_t progress_done, progress_total; /* as they were told last */
	struct input **others;                  /* of no kind, by their digests: verify_existence.c */
	size_t other_count;
	struct sums *sums;               /* digests the inputs concurrently; NULL: not used */
	struct beside *beside;           /* checks the parts concurrently; NULL: not used */
	struct arena part_arena;         /* what inputs point to that it has checked */
	bool development, non_qualified; /* such timestamps were seen */
	uint64_t vague_timestamps;       /* without an accuracy */
	uint64_t coarse_timestamps;      /* beyond VERIFY_ACCURACY_MAX_US */
	uint64_t later_timestamps;       /* given after what everything is judged as of */
	int64_t coarsest_us;
	uint64_t signatures;     /* of archives and reports; timestamps are none */
	uint64_t digested_files; /* read whole once more, for the records among the inputs */
};

/* Records a finding of the enumeration, by its name, with what fills its places. `where` may be
 * "". */
#define verify_add(run, severity, path, where, finding, ...)                                       \
	verify_add_filled(run, severity, path, where, finding, finding##_EN, finding##_ES,             \
	                  ##__VA_ARGS__)
void verify_add_filled(struct run *run, enum verify_severity severity, const char *path,
                       const char *where, enum finding finding, const char *english,
                       const char *spanish, ...)
	__attribute__((format(printf, 6, 8), format(printf, 7, 8)));
/* Records a finding without places, followed by what a step reported, in English. */
void verify_add_cause(struct run *run, enum verify_severity severity, const char *path,
                      const char *where, enum finding finding, const char *cause);
/* What a file says is shown, but must not reach a terminal as control characters: these, what turns
 * the direction of writing around, and what is no UTF-8, become '?'. */
void verify_make_visible(char *text);
/* Records a failed step: evidence that is not valid is wrong, anything else unchecked. It is the
 * finding that the error names (finding_fail, finding_step), or else `finding`, which has no
 * places, followed by the error's cause. Answers 0; or ERR_NO_MEMORY when the run cannot go on;
 * or ERR_IO, recorded, when the file cannot be read: its check ends there, as whatever would be
 * missed in the rest of it is no finding. */
int verify_add_error(struct run *run, const char *path, const char *where, enum finding finding,
                     int status, const struct error *error) MUST_CHECK;
/* Something is wrong, and nobody wants to know more. */
bool verify_stopped(const struct run *run);
/* Negative: the check is to end. */
int verify_progress(struct run *run, const char *path, uint64_t done, uint64_t total) MUST_CHECK;
/* Notes who made a verified signature of an input, with its timestamp, or a verified timestamp; and
 * refuses a signer who is not one of those asked for. 0 or ERR_NO_MEMORY. */
int verify_note_signature(struct run *run, struct input *input, const char *where,
                          const struct cms_facts *facts, const struct cms_paths *paths) MUST_CHECK;
/* `along`: its certificate's path, DER; size 0: not known. */
int verify_note_timestamp(struct run *run, const struct timestamp_facts *facts, struct slice along)
	MUST_CHECK;

/* After all inputs: who signed and who gave the time, and whether that is established. */
void verify_trust_conclude(struct run *run);

/* Its authority is one of them: what is there shows that no certificate above it was revoked. */
void verify_note_not_revoked(struct run *run, const struct certificate_facts *authority);

/* Notes what a valid signature has reached, when it was made, and until when that can be checked. 0
 * or ERR_NO_MEMORY. */
struct reached {
	enum level level;
	int64_t issued_us;
	int64_t until_us;
};
int verify_note_level(struct run *run, struct input *input, const struct reached *reached)
	MUST_CHECK;

/* ---- the digests of the inputs (verify_sums.c) ---- */

/* Has those found that are there, on a thread of its own; verify_sums_end in any case. */
void verify_sums_begin(struct run *run);
/* True: the one of the file in this state is known. It is waited for where it is under way. */
bool verify_sums_find(struct run *run, const struct input *input,
                      const struct zip_identity *identity, struct zip_sum *ret_sum) MUST_CHECK;
void verify_sums_end(struct run *run);

/* ---- lists of signers (verify_signers.c) ---- */

/* Reads the options' files, before anything signed is checked; what does not count is unchecked. 0
 * or ERR_NO_MEMORY. */
int verify_signers_load(struct run *run) MUST_CHECK;
void verify_signers_free(struct run *run);
/* A valid signature of a report or an archive: whether it is the service's whose list was given,
 * and older than the key's end. */
void verify_signers_judge(struct run *run, const char *path, const char *where,
                          const struct cms_facts *facts);
/* The list that an archive carries, whose signature was noted: in itself, and against that. What is
 * wrong with the list itself is the error. */
int verify_signers_inside(struct run *run, const struct input *archive, struct slice cms,
                          struct error *error) MUST_CHECK;

/* ---- who is qualified (verify_qualified.c) ---- */

/* After all inputs: asks the trusted list of everybody. 0 or ERR_NO_MEMORY. */
int verify_qualified(struct run *run) MUST_CHECK;

/* ---- as of when (verify_times.c) ---- */

/* Whether a time was asked for, and this is later. */
bool verify_is_later(const struct run *run, int64_t time_us);
/* After all inputs: which signatures can no longer be checked, or were not there yet. */
void verify_times_conclude(struct run *run);

/* "61 s", "30 h", "12 d": in any language. */
void verify_span(int64_t span_us, char text[VERIFY_SPAN_SIZE]);
/* Compares the time at which the signer says he signed with the timestamp over his signature. */
void verify_stated_time(struct run *run, const char *path, const char *where, int64_t stated_us,
                        int64_t gen_time_us);

/* The lines of a stream of gzipped files ("events/events-000001.ndjson.gz", …) or of one plain
 * entry. */
struct line_stream;

/* `ahead`: large files may be inflated by a thread of their own. */
int line_stream_open(struct zip_reader *zip, enum archive_stream kind, bool ahead,
                     struct line_stream **ret_stream, struct error *error) MUST_CHECK;
int line_stream_open_plain(struct zip_reader *zip, const struct zip_entry *entry,
                           struct line_stream **ret_stream, struct error *error) MUST_CHECK;
/* 1 with a line (valid until the next call), 0 at the end, or negative; then no more lines come. */
int line_stream_next(struct line_stream *stream, struct slice *ret_line, struct error *error)
	MUST_CHECK;
/* The file and line last read: "events/events-000001.ndjson.gz line 17". */
const char *line_stream_where(struct line_stream *stream);
void line_stream_free(struct line_stream *stream); /* NULL-safe */

/* Compares a document with its canonical form: ERR_INVALID_EVIDENCE names the first deviation. */
int verify_canonical(struct slice found, const struct buf *canonical, struct error *error)
	MUST_CHECK;

/* Reads a line of the seals and compares it with its canonical form, which is left in `scratch`. 0,
 * ERR_INVALID_EVIDENCE or ERR_NO_MEMORY. */
int verify_read_segment(struct arena *arena, struct slice line, struct buf *scratch,
                        struct archive_segment *ret_segment, struct error *error) MUST_CHECK;

/* ---- what several archives say of one channel ---- */

/* Where an event is, whatever is known of it. */
struct place {
	const char *channel_id;
	enum mode chain;
	int64_t sequence;
};
/* By channel, chain and sequence, as strcmp tells it. */
int verify_compare_places(struct place a, struct place b);

/* A place of a chain at which archives are compared: where one of them ends, or begins. As an event
 * binds all before it, two archives that agree where the shorter one ends agree wherever they
 * overlap. */
struct point {
	const char *channel_id;
	enum mode chain;
	int64_t sequence;
	const char *path; /* of the first archive that says something here; NULL: none yet */
	struct sha256 chain_hash;
	int64_t received_at_us; /* TIME_NONE: not known */
	const char *seal_path;  /* of the first one that says which segment it is in */
	struct sha256 seal_hash;
	const char *token_path;
	struct sha256 token_hash;
};

/* Finds the places, before the archives are checked: by their own word. */
int verify_points_plan(struct run *run) MUST_CHECK;
void verify_points_free(struct run *run);
/* The chain hash of an event; `received_at_us` TIME_NONE: not known. */
void verify_point_event(struct run *run, const struct input *archive, int64_t sequence,
                        const struct sha256 *chain_hash, int64_t received_at_us);
/* The seal document over the events first to last, and the token over it (NULL: not known). */
void verify_point_seal(struct run *run, const struct input *archive, int64_t first, int64_t last,
                       const struct sha256 *seal_hash, const struct sha256 *token_hash);
/* A document that a channel has once, whoever hands it out: the genesis of a chain (version 0), or
 * a configuration version. */
int verify_point_document(struct run *run, const struct input *archive, int64_t version,
                          const struct sha256 *hash) MUST_CHECK;
/* After all archives: identifiers given twice, what a range by time leaves open, and which archives
 * nothing binds to each other. 0 or ERR_NO_MEMORY. */
int verify_points_conclude(struct run *run) MUST_CHECK;

/* ---- receipts ---- */

/* Reads the options' files, before the archives are checked; what cannot be read is unchecked. */
int verify_receipts_load(struct run *run) MUST_CHECK;
void verify_receipts_free(struct run *run);
/* An event of an archive, and the SHA-256 of its line. */
void verify_receipt_event(struct run *run, const struct input *archive,
                          const struct event_facts *event, const struct sha256 *chain_hash);
/* An event outside the range, of which an archive holds the chain hash alone. */
void verify_receipt_hash(struct run *run, const struct input *archive, int64_t sequence,
                         const struct sha256 *chain_hash);
/* After all archives: the receipts of no event. */
void verify_receipts_conclude(struct run *run);

/* Verifies the signature of an archive over its ASiCManifest, which has that digest: who signed,
 * and which level it has by what is inside; the paths are appended to. LEVEL_T with a cause: what
 * is inside validates the paths inside, but not another one that leads to a root given. 0,
 * ERR_INVALID_EVIDENCE, or what cms_verify answers. */
int verify_signature(struct slice cms, const struct sha256 *signed_digest,
                     const struct trust_roots *roots, struct cms_paths *paths,
                     struct cms_facts *ret_facts, enum level *ret_level,
                     char ret_cause[LEVEL_CAUSE_SIZE], struct error *error) MUST_CHECK;

/* Of a valid signature of level T: warns when its certificates name places of revocation data, of
 * which nothing is inside. 0 or ERR_NO_MEMORY. */
int verify_note_unvalidated(struct run *run, const char *path, const char *where,
                            const struct cms_facts *facts, const struct cms_paths *paths)
	MUST_CHECK;

/* Opens the file in which an input is: ERR_IO when it cannot be opened or is not the one that was
 * opened first. */
int verify_open_file(const struct input *input, int *ret_file, struct error *error) MUST_CHECK;
/* Appends an input whole: ERR_IO when it is not what was digested; ERR_INVALID_EVIDENCE when it is
 * larger than `out` may be. */
int verify_load(const struct input *input, struct buf *out, struct error *error) MUST_CHECK;
/* Opens an input again: ERR_IO when it is not the file that was digested. */
int verify_open_zip(const struct input *input, struct zip_reader **ret_zip, struct error *error)
	MUST_CHECK;

/* Each checks one input whole and records what it finds; 0, or ERR_NO_MEMORY, or ERR_IO,
 * recorded. */
int verify_archive(struct run *run, struct input *input) MUST_CHECK;
int verify_part(struct run *run, struct input *input) MUST_CHECK;
int verify_record(struct run *run, struct input *input) MUST_CHECK;

/* Checks one input: what cannot be read says nothing of the others. */
int verify_one(struct run *run, struct input *input, int (*check)(struct run *, struct input *))
	MUST_CHECK;

/* ---- parts beside the archive (verify_beside.c) ---- */

/* False: they are to be checked before it. */
bool verify_beside_begin(struct run *run) MUST_CHECK;
/* Waits until a part is checked. 0, or what verify_progress says. */
int verify_beside_wait(struct run *run, const struct input *input) MUST_CHECK;
/* Before anything but an archive is checked; `status`: how that went, not 0 ends the others. */
int verify_beside_end(struct run *run, int status) MUST_CHECK;

/* ---- files of no kind (verify_existence.c) ---- */

/* Before the archives are checked. 0 or ERR_NO_MEMORY. */
int verify_existence_plan(struct run *run) MUST_CHECK;
/* An event of an archive, by the SHA-256 of its line. */
void verify_existence_event(struct run *run, const struct sha256 *chain_hash);
/* After all records: of each such file, what vouches for it. 0 or ERR_NO_MEMORY. */
int verify_existence_conclude(struct run *run) MUST_CHECK;

/* ---- containers (verify_bundle.c) ---- */

/* One of which nothing is known yet; `path` is its name in reports. */
struct input verify_input(const char *path, const char *file);
/* Checks the container at that place and appends its files to the inputs, which may move. 0, or
 * ERR_NO_MEMORY, or ERR_IO, recorded. */
int verify_bundle(struct run *run, size_t place) MUST_CHECK;

/* The chain of an archive's events, its segments and rounds, and the content parts given. */
struct chain_input {
	struct run *run;
	struct input *input;
	struct zip_reader *zip;
	const struct archive_manifest *manifest;
	const enum modality *modalities; /* of the manifest's configurations, in their order */
	bool has_genesis;
	struct sha256 genesis_hash;
};
int verify_chain(const struct chain_input *facts) MUST_CHECK;

#endif
