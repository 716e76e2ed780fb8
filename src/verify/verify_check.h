/* Internal interface of the verifier's source files. verify.h describes the verifier. */
#ifndef VERIFY_VERIFY_CHECK_H
#define VERIFY_VERIFY_CHECK_H

#include "archive/archive_lines.h"
#include "archive/signer_list.h"
#include "verify/verify.h"
#include "verify/verify_finding.h"

#define VERIFY_SPAN_SIZE 32

enum input_kind {
	INPUT_UNKNOWN,
	INPUT_ARCHIVE,
	INPUT_PART,
	INPUT_REPORT,
	INPUT_RECORD,
	INPUT_BUNDLE
};

struct input {
	const char *path; /* the name in findings */
	const char *file; /* the path that is opened */
	/* For a file in a container, whose sum is known: the position of the container among the
	 * inputs, counted from 1, and the file's offset in the container. */
	size_t container; /* 0: not in a container */
	uint64_t offset;
	bool is_containers_record; /* the evidence record that must cover all other files of its
	                              container */
	enum input_kind kind;
	struct zip_sum sum;
	struct zip_identity identity; /* of the file with this sum, or of its container */
	bool unread; /* reading stopped early: objects that were not found in it may exist */
	bool bound;  /* for a part: an archive among the inputs lists it; for a report: it refers to one
	                of them */
	bool described; /* the members below are set */
	bool covered;   /* an evidence record among the inputs covers it */
	bool recorded;  /* of no known kind: an archive among the inputs contains it as an event */
	/* Digests by algorithms other than SHA-256 that a record needed, and which of them are known.
	 */
	struct digest digests[DIGEST_ALGORITHM_COUNT];
	bool digested[DIGEST_ALGORITHM_COUNT];
	int64_t covered_since_us; /* the earliest time that a valid record proves; TIME_NONE: none */
	/* The valid signature of a report or an archive. */
	bool is_signed;
	struct sha256 signer;       /* SHA-256 of the signing certificate */
	const char *signer_subject; /* its subject (RFC 2253) */
	/* The signer and the timestamp lead to the given roots, or the signer is required and the
	 * timestamp does. A certificate by itself shows nothing: anyone can make one with any name. */
	bool is_trusted;
	int64_t signed_at_us; /* time of the signature's timestamp; TIME_NONE: it has none */
	int64_t
		issued_us; /* time of its timestamp, or the time stated by the signer; TIME_NONE: unknown */
	int64_t until_us; /* expiry of the certificate that proves it longest */
	/* Set for an archive. */
	struct archive_manifest manifest; /* without its lists */
	bool has_seals;                   /* a first segment was read */
	bool log_is_read;                 /* the members for the log are known */
	const char *log_note;             /* its newest checkpoint; NULL: it has none */
	uint64_t log_segments;            /* that have an entry */
	bool has_history; /* its seal documents begin with the first segment of the chain */
	/* The keys of the log that its signer certifies, by the list of signers in it. */
	struct {
		const struct signer_list_key *items;
		size_t count;
	} log_keys;
	/* The events whose chain hashes the archive claims to contain. Set only if there are other
	 * archives. */
	bool outlined;
	int64_t hashes_from, hashes_to;
	uint64_t outline_lines; /* the number of lines read to find them */
	/* Set for a part. */
	struct part_head head;
};

struct run {
	struct verify_result *result;
	const struct verify_options *options;
	struct trust_roots roots;
	struct input *inputs;
	size_t input_count;
	struct arena arena;   /* memory of the inputs' members */
	struct point *points; /* sorted; verify_points.c */
	size_t point_count;
	struct bridge *bridges; /* as given; verify_bridge.c */
	size_t bridge_count;
	void *sealed;                    /* search tree of documents; verify_points.c */
	struct loaded_receipt *receipts; /* sorted; verify_receipts.c */
	size_t receipt_count;
	struct arena receipt_arena;
	struct signer_lists *signer_lists; /* NULL: none were given; verify_signers.c */
	struct receipt_keys *receipt_keys; /* NULL: no list names any; verify_receipt_keys.c */
	int64_t next_progress_us;
	uint64_t progress_done, progress_total; /* as last reported */
	struct input **others; /* of no known kind, sorted by digest; verify_existence.c */
	size_t other_count;
	struct sums *sums;          /* concurrent computation of the inputs' digests; NULL: not used */
	struct part_worker *worker; /* concurrent check of the parts; NULL: not used */
	struct arena part_arena;    /* memory of the inputs' members that the concurrent check set */
	bool development, non_qualified;      /* whether such timestamps were found */
	uint64_t timestamps_without_accuracy; /* without a stated accuracy */
	uint64_t coarse_timestamps;           /* less accurate than VERIFY_ACCURACY_MAX_US */
	uint64_t later_timestamps;            /* issued after the time of the check */
	int64_t coarsest_us;
	uint64_t signatures; /* of archives and reports, timestamps not counted */
	/* Of the archive that is being checked (NULL: none): its findings of VERIFY_WRONG, and those of
	 * them that only say that it differs from another archive. */
	const struct input *archive;
	uint64_t archive_wrong, archive_differs;
	uint64_t digested_files; /* files that were read again for evidence records */
};

/* Records a finding, given by its name in the enumeration, with the values of its placeholders.
 * `where` may be "". */
#define verify_add(run, severity, path, where, finding, ...)                                       \
	verify_add_filled(run, severity, path, where, finding, finding##_EN, finding##_ES,             \
	                  ##__VA_ARGS__)
void verify_add_filled(struct run *run, enum verify_severity severity, const char *path,
                       const char *where, enum finding finding, const char *english,
                       const char *spanish, ...)
	__attribute__((format(printf, 6, 8), format(printf, 7, 8)));
/* Records a finding without placeholders, followed by the English cause of a failed step. */
void verify_add_cause(struct run *run, enum verify_severity severity, const char *path,
                      const char *where, enum finding finding, const char *cause);
/* Replaces characters of a text from a file that must not reach a terminal by '?': control
 * characters, characters that change the direction of writing, and bytes that are not UTF-8. */
void verify_make_visible(char *text);
/* Records a failed step. Invalid evidence is recorded as wrong, any other failure as unchecked. The
 * finding is the one in the error (finding_fail, finding_set_step), or else `finding`, which has no
 * placeholders, followed by the cause of the error. Returns 0; ERR_NO_MEMORY if the run cannot
 * continue; or ERR_IO, recorded, if the file cannot be read. The check of that file ends then,
 * because data missing in its unread part would cause false findings. */
int verify_add_error(struct run *run, const char *path, const char *where, enum finding finding,
                     int status, const struct error *error) MUST_CHECK;
/* Returns whether the check can stop because a finding of VERIFY_WRONG suffices. */
bool verify_is_stopped(const struct run *run);
/* Reports progress to the caller. Returns a negative value if the check must end. */
int verify_progress(struct run *run, const char *path, uint64_t done, uint64_t total) MUST_CHECK;
/* Records the signer of a verified signature of an input, and its timestamp. Records a finding if
 * the signer is not one of the required signers. Returns 0 or ERR_NO_MEMORY. */
int verify_note_signature(struct run *run, struct input *input, const char *where,
                          const struct cms_facts *facts, const struct cms_paths *paths) MUST_CHECK;
/* Records a verified timestamp. `along` is the path of its certificate, DER; size 0: unknown. */
int verify_note_timestamp(struct run *run, const struct timestamp_facts *facts, struct slice along)
	MUST_CHECK;

/* Records, after all inputs, whether the signers and the timestamp authorities are established. */
void verify_trust_conclude(struct run *run);

/* Counts a timestamp of that authority for which the archive proves that no certificate of its path
 * was revoked. */
void verify_note_not_revoked(struct run *run, const struct certificate_facts *authority);

/* Records the level of a valid signature, the time at which it was made, and the time until which
 * it can be checked. Returns 0 or ERR_NO_MEMORY. */
struct reached {
	enum level level;
	int64_t issued_us;
	int64_t until_us;
};
int verify_note_level(struct run *run, struct input *input, const struct reached *reached)
	MUST_CHECK;

/* ---- the digests of the inputs (verify_sums.c) ---- */

/* Starts a thread that computes the digests of existing files. verify_sums_end must follow. */
void verify_sums_begin(struct run *run);
/* Finds the sum of a file in the given state. Blocks while the thread is computing it. Returns
 * false if it is unknown. */
bool verify_sums_find(struct run *run, const struct input *input,
                      const struct zip_identity *identity, struct zip_sum *ret_sum) MUST_CHECK;
void verify_sums_end(struct run *run);

/* ---- lists of signers (verify_signers.c) ---- */

/* Reads the lists of signers in the options, before any signature is checked. A list that cannot be
 * used is recorded as unchecked. Returns 0 or ERR_NO_MEMORY. */
int verify_signers_load(struct run *run) MUST_CHECK;
void verify_signers_free(struct run *run);
/* Compares the valid signature of a report or an archive with the lists: whether the service listed
 * its certificate, and whether the key was in force. */
void verify_signers_judge(struct run *run, const char *path, const char *where,
                          const struct cms_facts *facts);
/* Checks the list that an archive contains, after verify_note_signature of that archive: the list
 * itself, and against the archive's signature. Keeps the keys of the log that it certifies. Returns
 * an error if the list itself is invalid. */
int verify_signers_check_embedded(struct run *run, struct input *archive, struct slice cms,
                                  struct error *error) MUST_CHECK;
/* Returns whether the caller requires signatures by that certificate (--signer). */
bool verify_is_signer_required(const struct run *run, const struct sha256 *sha256);
/* Reads the lists in all archives, before the archives are checked, for the keys of receipts that
 * they certify. Does nothing without receipts. Returns 0 or ERR_NO_MEMORY. */
int verify_signers_collect(struct run *run) MUST_CHECK;

/* ---- keys of receipts (verify_receipt_keys.c) ---- */

/* Keeps what a trusted list says about keys of receipts. `digest` is that of the signed list. */
int verify_receipt_keys_add(struct run *run, const char *path, const struct sha256 *digest,
                            const struct signer_list *list, const struct cms_facts *facts)
	MUST_CHECK;
void verify_receipt_keys_free(struct run *run);
/* Returns whether a kept list of the service that uses the certificate `signer` certifies a key of
 * receipts (base64) for an event received then. */
bool verify_receipt_key_is_certified(const struct run *run, const struct sha256 *signer,
                                     const char *subject, const char *key, int64_t received_us);

/* Returns the signer of a kept list that certifies the key for itself; NULL: none does. */
const struct certificate_facts *verify_receipt_key_signer(const struct run *run, const char *key,
                                                          int64_t received_us);
/* Returns the name of a log in the kept lists of that service; NULL: `origin` is among the names,
 * or the lists have none. */
const char *verify_receipt_keys_other_origin(const struct run *run,
                                             const struct certificate_facts *signer,
                                             const char *origin);

/* ---- who is qualified (verify_qualified.c) ---- */

/* Queries the trusted list for all signers and authorities, after all inputs. Returns 0 or
 * ERR_NO_MEMORY. */
int verify_qualified(struct run *run) MUST_CHECK;

/* ---- as of when (verify_times.c) ---- */

/* Returns whether a time of the check was given and `time_us` is later. */
bool verify_is_later(const struct run *run, int64_t time_us);
/* Records, after all inputs, which signatures can no longer be checked, or are of a later time than
 * that of the check. */
void verify_times_conclude(struct run *run);

/* Writes a time span in the same form for both languages: "61 s", "30 h", "12 d". */
void verify_format_span(int64_t span_us, char text[VERIFY_SPAN_SIZE]);
/* Compares the signing time stated by the signer with the timestamp of the signature. */
void verify_compare_stated_time(struct run *run, const char *path, const char *where,
                                int64_t stated_us, int64_t gen_time_us);

/* The lines of a stream of gzip files ("events/events-000001.ndjson.gz", …) or of one uncompressed
 * entry. */
struct line_stream;

/* Opens a stream. `ahead`: large files may be decompressed by an additional thread. */
int line_stream_open(struct zip_reader *zip, enum archive_stream kind, bool ahead,
                     struct line_stream **ret_stream, struct error *error) MUST_CHECK;
int line_stream_open_plain(struct zip_reader *zip, const struct zip_entry *entry,
                           struct line_stream **ret_stream, struct error *error) MUST_CHECK;
/* Returns 1 with a line, which is valid until the next call, 0 at the end, or a negative error
 * code. After an error there are no more lines. */
int line_stream_next(struct line_stream *stream, struct slice *ret_line, struct error *error)
	MUST_CHECK;
/* Returns the file and line last read: "events/events-000001.ndjson.gz line 17". */
const char *line_stream_where(struct line_stream *stream);
void line_stream_free(struct line_stream *stream); /* NULL-safe */

/* Compares a document with its canonical form. Returns ERR_INVALID_EVIDENCE with the first
 * deviation. */
int verify_canonical(struct slice found, const struct buf *canonical, struct error *error)
	MUST_CHECK;

/* Reads a line of the seals and compares it with its canonical form, which remains in `scratch`.
 * Returns 0, ERR_INVALID_EVIDENCE or ERR_NO_MEMORY. */
int verify_read_segment(struct arena *arena, struct slice line, struct buf *scratch,
                        struct archive_segment *ret_segment, struct error *error) MUST_CHECK;

/* Compares the log of segments that a report states (pdf_check.h) with that of its archive. Returns
 * 0 or ERR_NO_MEMORY. */
int verify_compare_log(struct run *run, const struct input *report, const struct input *archive,
                       const char *stated) MUST_CHECK;

/* ---- comparison of several archives of one channel ---- */

/* The position of an event. */
struct place {
	const char *channel_id;
	enum mode chain;
	int64_t sequence;
};
/* Compares by channel, chain and sequence. Returns a value as strcmp does. */
int verify_compare_places(struct place a, struct place b);

/* A position of a chain at which archives are compared: the first or last position of one of them.
 * Because an event binds all events before it, two archives that agree at the end of the shorter
 * one agree in their whole overlap. */
struct point {
	const char *channel_id;
	enum mode chain;
	int64_t sequence;
	const char *path; /* of the first archive with a chain hash for this position; NULL: none yet */
	struct sha256 chain_hash;
	int64_t received_at_us; /* TIME_NONE: not known */
	const char *seal_path;  /* of the first archive with the segment of this event */
	struct sha256 seal_hash;
	const char *token_path;
	struct sha256 token_hash;
};

/* A run of seal documents of one chain, each naming the one before it. */
struct seal_walk {
	uint64_t count;
	char channel_id[ID_SIZE];
	int64_t first_sequence, last_sequence; /* events that the documents cover */
	struct sha256 seal_hash, chain_hash;   /* of the last document, and of its last event */
};
/* Continues the run. Returns 0, or ERR_INVALID_EVIDENCE if the document does not continue it. */
int verify_walk_seal(struct seal_walk *walk, const struct seal_document *seal,
                     const struct sha256 *seal_hash, struct error *error) MUST_CHECK;

/* A given file of seal documents. */
struct bridge {
	const char *path;
	bool usable;
	struct seal_walk walk;
};
/* Reads the bridges in the options, before verify_points_plan. Records files that are no unbroken
 * run. Returns 0 or ERR_NO_MEMORY. */
int verify_bridges_load(struct run *run) MUST_CHECK;
/* Reads them again to compare each document at the positions to compare. */
int verify_bridges_compare(struct run *run) MUST_CHECK;
void verify_bridges_free(struct run *run);
void verify_point_bridge(struct run *run, const struct bridge *bridge,
                         const struct seal_document *seal, const struct sha256 *seal_hash);

/* Determines the positions to compare, before the archives are checked, from what the archives
 * claim. */
int verify_points_plan(struct run *run) MUST_CHECK;
void verify_points_free(struct run *run);
/* Compares the chain hash of an event. `received_at_us` may be TIME_NONE: unknown. */
void verify_point_event(struct run *run, const struct input *archive, int64_t sequence,
                        const struct sha256 *chain_hash, int64_t received_at_us);
/* Compares the seal document over the events first to last, and the token of its round (NULL:
 * unknown). */
void verify_point_seal(struct run *run, const struct input *archive, int64_t first, int64_t last,
                       const struct sha256 *seal_hash, const struct sha256 *token_hash);
/* Compares a document that exists once per channel: the genesis document of a chain (version 0), or
 * a configuration version. */
int verify_point_document(struct run *run, const struct input *archive, int64_t version,
                          const struct sha256 *hash) MUST_CHECK;
/* Records, after all archives, duplicate certification identifiers, ranges by time whose ends are
 * unproven, and archives that are not connected to each other. Returns 0 or ERR_NO_MEMORY. */
int verify_points_conclude(struct run *run) MUST_CHECK;
/* Records which archives and bridges are not connected to each other, and lists the histories
 * (verify_connections.c). Returns 0 or ERR_NO_MEMORY. */
int verify_connections(struct run *run) MUST_CHECK;

/* ---- receipts ---- */

/* Reads the receipts in the options, before the archives are checked. A file that cannot be read is
 * recorded as unchecked. */
int verify_receipts_load(struct run *run) MUST_CHECK;
void verify_receipts_free(struct run *run);
/* Compares an event of an archive, and the SHA-256 of its line, with its receipts. This and the
 * three functions below keep what they find until verify_receipts_judge. */
void verify_receipt_event(struct run *run, const struct input *archive,
                          const struct event_facts *event, const struct sha256 *chain_hash);
/* Compares the chain hash of an event outside the range with its receipts. */
void verify_receipt_hash(struct run *run, const struct input *archive, int64_t sequence,
                         const struct sha256 *chain_hash);
/* Compares a segment, whose timestamp is valid, with the promises of its events' signed receipts.
 */
void verify_receipt_segment(struct run *run, const struct input *archive, int64_t first,
                            int64_t last, int64_t gen_time_us);
/* Compares the end of an archive's last segment with the promises of signed receipts of later
 * events. */
void verify_receipt_end(struct run *run, const struct input *archive, int64_t last,
                        int64_t gen_time_us);
/* Records what an archive says about the receipts, after its check. `is_sound`: the whole archive
 * was checked, and nothing in it is wrong. Only then, and if it is trusted, does it contradict a
 * signed receipt of its service: a damaged copy and an archive of a stranger do not. */
void verify_receipts_judge(struct run *run, const struct input *archive, bool is_sound);
/* Returns whether a given receipt has a valid signature, by whatever key. */
bool verify_receipts_any_signed(const struct run *run);
/* Records, after all archives, the receipts for which no event was found, and broken promises. */
void verify_receipts_conclude(struct run *run);

/* Verifies the signature of an archive over its ASiCManifest, which has the given digest. Returns
 * the signer and the level reached by the embedded data, and appends the certification paths.
 * LEVEL_T with a cause means that the embedded data validates the embedded paths, but not the path
 * to a given root. Returns 0, ERR_INVALID_EVIDENCE, or an error of cms_verify. */
int verify_signature(struct slice cms, const struct sha256 *signed_digest,
                     const struct trust_roots *roots, struct cms_paths *paths,
                     struct cms_facts *ret_facts, enum level *ret_level,
                     char ret_cause[LEVEL_CAUSE_SIZE], struct error *error) MUST_CHECK;

/* Records a warning for a valid signature of level T if its certificates name sources of revocation
 * data but the file contains none. Returns 0 or ERR_NO_MEMORY. */
int verify_warn_unvalidated(struct run *run, const char *path, const char *where,
                            const struct cms_facts *facts, const struct cms_paths *paths)
	MUST_CHECK;

/* Opens the file that contains an input. Returns ERR_IO if it cannot be opened or is not the file
 * that was opened first. */
int verify_open_file(const struct input *input, int *ret_file, struct error *error) MUST_CHECK;
/* Appends the whole input. Returns ERR_IO if it differs from the digested file,
 * ERR_INVALID_EVIDENCE if it exceeds the limit of `out`. */
int verify_load_input(const struct input *input, struct buf *out, struct error *error) MUST_CHECK;
/* Opens an input again. Returns ERR_IO if it is not the file that was digested. */
int verify_open_zip(const struct input *input, struct zip_reader **ret_zip, struct error *error)
	MUST_CHECK;

/* Each function checks one whole input and records its findings. Returns 0, ERR_NO_MEMORY, or
 * ERR_IO, which is recorded. */
int verify_archive(struct run *run, struct input *input) MUST_CHECK;
int verify_part(struct run *run, struct input *input) MUST_CHECK;
int verify_record(struct run *run, struct input *input) MUST_CHECK;

/* Checks one input. A read error does not end the check of the other inputs. */
int verify_check_input(struct run *run, struct input *input,
                       int (*check)(struct run *, struct input *)) MUST_CHECK;

/* ---- concurrent check of the parts (verify_part_worker.c) ---- */

/* Starts the concurrent check. Returns false if the parts must be checked before the archive. */
bool verify_part_worker_begin(struct run *run) MUST_CHECK;
/* Blocks until a part is checked. Returns 0 or an error of verify_progress. */
int verify_part_worker_wait(struct run *run, const struct input *input) MUST_CHECK;
/* Ends the concurrent check before reports and records are checked. A `status` other than 0 cancels
 * it. */
int verify_part_worker_end(struct run *run, int status) MUST_CHECK;

/* ---- files of no known kind (verify_existence.c) ---- */

/* Prepares the check, before the archives are checked. Returns 0 or ERR_NO_MEMORY. */
int verify_existence_plan(struct run *run) MUST_CHECK;
/* Notes that an archive contains an event, given by the SHA-256 of its line. */
void verify_existence_event(struct run *run, const struct sha256 *chain_hash);
/* Records, after all evidence records, the proof of existence of each such file. Returns 0 or
 * ERR_NO_MEMORY. */
int verify_existence_conclude(struct run *run) MUST_CHECK;

/* ---- containers (verify_bundle.c) ---- */

/* Returns an input without known properties. `path` is its name in findings. */
struct input verify_make_input(const char *path, const char *file);
/* Checks the container at that position and appends its files to the inputs, which may move in
 * memory. Returns 0, ERR_NO_MEMORY, or ERR_IO, which is recorded. */
int verify_bundle(struct run *run, size_t place) MUST_CHECK;

/* Input of verify_chain, which checks the events of an archive, its segments and rounds, and the
 * given content parts. */
struct chain_input {
	struct run *run;
	struct input *input;
	struct zip_reader *zip;
	const struct archive_manifest *manifest;
	const enum modality *modalities; /* of the configurations in the manifest, in the same order */
	bool has_genesis;
	struct sha256 genesis_hash;
};
int verify_chain(const struct chain_input *facts) MUST_CHECK;

#endif
