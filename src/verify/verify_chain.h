/* Internal interface of the files that check the chain of an archive (verify_chain*.c,
 * verify_objects.c, verify_renewals.c, verify_revocations.c). A single pass over the segments
 * reads, in order, the events and leaves of each segment, its round, and the content parts. */
#ifndef VERIFY_VERIFY_CHAIN_H
#define VERIFY_VERIFY_CHAIN_H

#include "seal/revocation_token.h"
#include "verify/verify_check.h"

#define CHAIN_WHERE_MAX 256
#define CHAIN_ROUND_ID_SIZE (ARCHIVE_ROUND_ID_MAX + 1)

struct round_state {
	bool present;
	bool usable; /* it could be read and can be used for comparison */
	char round_id[CHAIN_ROUND_ID_SIZE];
	struct sha256 root;
	struct sha256 token_hash;
	int64_t gen_time_us;
	bool revoked;     /* all its timestamps are revoked */
	int64_t until_us; /* the latest time until which one of its timestamps proves it */
};

/* Result of the comparison of the two timestamps of a round, over all such rounds. */
struct pair_comparison {
	uint64_t divergent; /* rounds that differ by more than VERIFY_DIVERGENCE_MAX_US */
	uint64_t dependent; /* rounds with both timestamps of one authority */
	int64_t widest_us;
	char round_id[CHAIN_ROUND_ID_SIZE]; /* the round with the widest difference */
	int64_t gen_times_us[ARCHIVE_TOKENS_MAX];
	char names[ARCHIVE_TOKENS_MAX][SUBJECT_SIZE];
};

/* An object of the validation stream. */
struct object_state {
	struct sha256 sha256;
	enum archive_object_kind kind;
	struct slice der;
	bool is_named; /* referred to by a token */
};

/* An archive timestamp of the renewals stream. */
struct stamp_state {
	int64_t number;
	struct sha256 imprint;
	int64_t gen_time_us;
	int64_t until_us; /* expiry of the certificate of its last renewal, or its own */
	bool is_named;    /* referred to by a token */
};

/* Cached result for a certification path and the revocation data of its tokens. */
#define CHAIN_JUDGED_MAX 16
struct judged_path {
	struct sha256 name;
	int64_t good_until_us; /* known to be good until this time; TIME_NONE: unknown */
};

struct chain {
	const struct chain_input *facts;
	struct run *run;
	const struct archive_manifest *manifest;
	const struct archive_facts *range;
	struct line_stream *streams[STREAM_COUNT];
	struct arena arena;      /* reset for each event, leaf or round */
	struct arena seal_arena; /* reset for each segment */
	struct buf scratch;
	uint64_t wrong_before; /* number of findings before this chain */

	int64_t next_sequence; /* of the next event */
	bool events_ended;
	uint64_t events;
	struct sha256 chain_hash; /* of the previous event or leaf */
	struct sha256 event_hash; /* of the previous event */
	int64_t received_at_us;
	int64_t segment_received_at_us; /* of the first event of the segment in the range; TIME_NONE:
	                                   none */
	int64_t segment_sequence;       /* sequence of that event */
	struct verify_delay delay;      /* the longest delay */
	struct verify_delay passed;     /* longest delay of an event missed by an earlier timestamp */
	uint64_t uncovered_segments;    /* number of segments with such an event */
	uint64_t segments, unsynchronized_segments, uncompared_segments;
	bool *config_used;
	uint64_t without_part; /* number of content events that are in no part */

	struct sha256 *leaves; /* of the current segment */
	int64_t next_segment_sequence;
	bool segment_seen;
	struct sha256 seal_hash; /* of the previous segment */
	struct round_state round, previous_round;
	struct pair_comparison pairs; /* comparison of the two timestamps of rounds */

	struct object_state *objects; /* sorted by SHA-256 */
	size_t object_count, object_bytes;
	struct arena object_arena;
	struct judged_path judged[CHAIN_JUDGED_MAX];

	struct stamp_state *stamps; /* sorted from the newest to the oldest */
	size_t stamp_count, stamp_room;
	uint64_t
		ended_segments; /* segments whose round was no longer proven when the archive was signed */

	struct log_check *log; /* NULL: the archive has no checkpoints of a log */

	struct seal_walk history; /* of the stream history/; without documents: there is none */

	size_t part; /* index of the content part that contains the next content event */
	struct zip_reader *part_zip;
	struct line_stream *part_index;
	const struct input *part_input;
	bool part_open;
};

/* Returns whether the check of this chain ends because of too many findings. */
bool chain_is_abandoned(const struct chain *chain);
/* Formats the line last read of a stream: "events/events-000001.ndjson.gz line 17 member hash".
 * `member` may be NULL. Returns `where`. */
const char *chain_where(struct chain *chain, enum archive_stream stream, const char *member,
                        char where[CHAIN_WHERE_MAX]);
/* Records a finding of VERIFY_WRONG at that position. */
#define chain_wrong_at(chain, stream, member, finding)                                             \
	verify_add_filled((chain)->run, VERIFY_WRONG, (chain)->facts->input->path,                     \
	                  chain_where(chain, stream, member, (char[CHAIN_WHERE_MAX]){0}), finding,     \
	                  finding##_EN, finding##_ES)
/* Records the failure to read a line. */
int chain_record_error(struct chain *chain, enum archive_stream stream, int status,
                       const struct error *error) MUST_CHECK;
/* Returns 1 with a line, or 0 at the end or if the stream is damaged, which is recorded. */
int chain_next_line(struct chain *chain, enum archive_stream stream, struct slice *ret_line)
	MUST_CHECK;

/* ---- verify_chain_events.c ---- */
/* Reads and checks the next event. Returns 1 and sets chain->chain_hash to its chain hash, or 0
 * after the last event. */
int chain_check_event(struct chain *chain) MUST_CHECK;
/* Does the same for an event outside the range, for which the archive contains only the chain hash.
 */
int chain_check_leaf(struct chain *chain, int64_t sequence) MUST_CHECK;

/* ---- verify_chain_seals.c ---- */
/* Reads and checks the next segment with its events, its seal and its round. Returns 1, or 0 after
 * the last segment. */
int chain_check_segment(struct chain *chain) MUST_CHECK;

/* Records warnings about rounds whose two timestamps diverge or come from one authority. */
void chain_warn_pairs(struct chain *chain);

/* ---- verify_objects.c ---- */
/* Reads all validation objects, before all other streams. Errors in them are recorded. */
int chain_read_objects(struct chain *chain) MUST_CHECK;
/* Appends the certificates to which a token refers (see struct timestamp_path), and marks all
 * objects to which it refers. Returns ERR_INVALID_EVIDENCE if one is missing. */
int chain_find_path(struct chain *chain, const struct archive_token *token, struct buf *out,
                    struct error *error) MUST_CHECK;
/* Records, after all rounds, the objects to which no token refers. */
void chain_check_objects(struct chain *chain);
void chain_free_objects(struct chain *chain);
/* Returns an object to which a token refers and that chain_find_path has found. */
const struct object_state *chain_find_object(const struct chain *chain,
                                             const struct sha256 *sha256);

/* ---- verify_renewals.c ---- */
/* Reads and verifies all archive timestamps, before the rounds. Errors in them are recorded. */
int chain_read_renewals(struct chain *chain) MUST_CHECK;
/* Finds the archive timestamp that covers a token; NULL: the token states none. Returns 0 or
 * ERR_INVALID_EVIDENCE. */
int chain_follow_renewal(struct chain *chain, const struct archive_renewal *renewal,
                         struct slice token, const struct stamp_state **ret_stamp,
                         struct error *error) MUST_CHECK;
/* Returns the time, in addition to the token's own, at which the certificates of the token must be
 * good; TIME_NONE: none. */
int64_t chain_judgement_time(int64_t gen_time_us, const struct stamp_state *stamp);
/* Records, after all rounds, the archive timestamps to which no token refers. */
void chain_check_renewals(struct chain *chain);
void chain_warn_expired(struct chain *chain);

/* ---- verify_revocations.c ---- */
/* Judges the certificates of a token by the revocation data to which it refers, after
 * chain_find_path. `known` is their path. Returns ERR_INVALID_EVIDENCE if the token refers to an
 * object that is not needed, or the certificates form no path. */
int chain_judge_revocations(struct chain *chain, const struct archive_token *token,
                            struct slice known, struct token_verdict *ret_verdict,
                            struct error *error) MUST_CHECK;
/* Changes a verdict from revoked to open if the revocation took effect after `stamp` renewed the
 * token. `stamp` NULL: the token was not renewed. */
void chain_ignore_later_revocation(const struct stamp_state *stamp, struct token_verdict *verdict);
/* Records warnings about the revoked timestamps of a round. Returns whether all of them were
 * revoked. */
bool chain_warn_revoked(struct chain *chain, const struct token_verdict *verdicts, size_t count);

/* ---- verify_bridge.c ---- */
/* Reads the seal documents from the first segment of the chain to the first one of the archive,
 * before the segments. */
int chain_check_history(struct chain *chain) MUST_CHECK;

/* ---- verify_log.c ---- */
/* Begins the check of the log, if the archive has its checkpoints. */
int chain_begin_log(struct chain *chain) MUST_CHECK;
/* Checks the place of a segment in the log, after chain->seal_hash is known. */
int chain_check_log(struct chain *chain, const struct seal_document *seal) MUST_CHECK;
/* Checks the newest checkpoint after all segments, and judges it by the policy. */
int chain_finish_log(struct chain *chain) MUST_CHECK;
void chain_free_log(struct chain *chain);

/* ---- verify_chain_parts.c ---- */
/* Compares a content event with the next line of the index of its part. */
int chain_compare_part(struct chain *chain, const struct event_facts *event) MUST_CHECK;
/* Records, after the last event, the remaining index lines of the parts, which have no event. */
int chain_finish_parts(struct chain *chain) MUST_CHECK;
void chain_close_part(struct chain *chain);

#endif
