/* Shared by the files that check the chain of an archive (verify_chain*.c): one walk over its
 * segments takes the events and leaves of each, the round that its seal leads to, and the content
 * parts beside it, all in their order. */
#ifndef VERIFY_VERIFY_CHAIN_H
#define VERIFY_VERIFY_CHAIN_H

#include "seal/revocation_token.h"
#include "verify/verify_check.h"

#define CHAIN_WHERE_MAX 256
#define CHAIN_ROUND_ID_SIZE (ARCHIVE_ROUND_ID_MAX + 1)

struct round_state {
	bool present;
	bool usable; /* it could be read, so that it can be compared with */
	char round_id[CHAIN_ROUND_ID_SIZE];
	struct sha256 root;
	struct sha256 token_hash;
	int64_t gen_time_us;
	bool revoked;     /* all its timestamps */
	int64_t until_us; /* how long one of them proves it: the end of what vouches for it last */
};

/* What two timestamps over one round say of each other, over all such rounds. */
struct pair_state {
	uint64_t divergent; /* beyond VERIFY_DIVERGENCE_MAX_US */
	uint64_t dependent; /* both of one authority */
	int64_t widest_us;
	char round_id[CHAIN_ROUND_ID_SIZE]; /* where that was */
	int64_t gen_times_us[ARCHIVE_TOKENS_MAX];
	char names[ARCHIVE_TOKENS_MAX][SUBJECT_SIZE];
};

/* Of the stream that validates timestamps. */
struct object_state {
	struct sha256 sha256;
	enum archive_object_kind kind;
	struct slice der;
	bool is_named; /* by a token */
};

/* An archive timestamp that renewed others. */
struct stamp_state {
	int64_t number;
	struct sha256 imprint;
	int64_t gen_time_us;
	int64_t until_us; /* the end of the last certificate that its own renewals lead to */
	bool is_named;    /* by a token */
};

/* A path with what tokens name for it: up to which time it is known to be good. */
#define CHAIN_JUDGED_MAX 16
struct judged_path {
	struct sha256 name;
	int64_t good_until_us; /* TIME_NONE: not known */
};

struct chain {
	const struct chain_input *facts;
	struct run *run;
	const struct archive_manifest *manifest;
	const struct archive_facts *range;
	struct line_stream *streams[STREAM_COUNT];
	struct arena arena;      /* one event, leaf or round */
	struct arena seal_arena; /* one segment */
	struct buf scratch;
	uint64_t wrong_before; /* findings when the chain began */

	int64_t next_sequence; /* of the next event */
	bool events_ended;
	uint64_t events;
	struct sha256 chain_hash; /* of the event or leaf before */
	struct sha256 event_hash; /* of the event before */
	int64_t received_at_us;
	int64_t segment_received_at_us; /* of the segment's first event in the range; TIME_NONE: none */
	int64_t segment_sequence;       /* and its sequence */
	struct verify_delay delay;      /* the longest */
	struct verify_delay passed;     /* the one whose event a timestamp passed over the longest */
	uint64_t passed_segments;       /* with such an event */
	uint64_t segments, unsynchronized_segments, uncompared_segments;
	bool *config_used;
	uint64_t without_part; /* events of content that no part holds */

	struct sha256 *leaves; /* of the segment */
	int64_t next_segment_sequence;
	bool segment_seen;
	struct sha256 seal_hash; /* of the segment before */
	struct round_state round, previous_round;
	struct pair_state pairs; /* of the rounds with two timestamps */

	struct object_state *objects; /* in order of their SHA-256 */
	size_t object_count, object_bytes;
	struct arena object_arena;
	struct judged_path judged[CHAIN_JUDGED_MAX];

	struct stamp_state *stamps; /* from the newest to the oldest */
	size_t stamp_count, stamp_room;
	uint64_t ended_segments; /* whose round was proven no longer when the archive was signed */

	size_t part; /* the content part that holds the next content event */
	struct zip_reader *part_zip;
	struct line_stream *part_index;
	const struct input *part_input;
	bool part_open;
};

/* Too much was found in this chain to go on. */
bool chain_given_up(const struct chain *chain);
/* "events/events-000001.ndjson.gz line 17 member hash": the line last read of a stream; `member`
 * may be NULL. Returns `where`. */
const char *chain_where(struct chain *chain, enum archive_stream stream, const char *member,
                        char where[CHAIN_WHERE_MAX]);
/* Records what is wrong there. */
#define chain_wrong_at(chain, stream, member, finding)                                             \
	verify_add_filled((chain)->run, VERIFY_WRONG, (chain)->facts->input->path,                     \
	                  chain_where(chain, stream, member, (char[CHAIN_WHERE_MAX]){0}), finding,     \
	                  finding##_EN, finding##_ES)
/* Records what reading a line answered. */
int chain_note(struct chain *chain, enum archive_stream stream, int status,
               const struct error *error) MUST_CHECK;
/* 1 with a line, 0 at the end or when the stream is damaged, which is recorded. */
int chain_next_line(struct chain *chain, enum archive_stream stream, struct slice *ret_line)
	MUST_CHECK;

/* ---- verify_chain_events.c ---- */
/* 1 when there was an event, whose chain hash is chain->chain_hash then; 0 when they are over. */
int chain_take_event(struct chain *chain) MUST_CHECK;
/* The same for an event outside the range, of which only the chain hash is there. */
int chain_take_leaf(struct chain *chain, int64_t sequence) MUST_CHECK;

/* ---- verify_chain_seals.c ---- */
/* A segment with its events, its seal and its round. 1, or 0 when there are no more. */
int chain_take_segment(struct chain *chain) MUST_CHECK;

/* Warns of what the timestamps of one round say of each other. */
void chain_tell_pairs(struct chain *chain);

/* ---- verify_objects.c ---- */
/* Reads all of them, before anything else; what is wrong is recorded. */
int chain_take_objects(struct chain *chain) MUST_CHECK;
/* Appends the certificates that a token names (struct timestamp_path's), and notes all that it
 * names. ERR_INVALID_EVIDENCE: one is not there. */
int chain_find_path(struct chain *chain, const struct archive_token *token, struct buf *out,
                    struct error *error) MUST_CHECK;
/* After all rounds: each of them was named. */
void chain_check_objects(struct chain *chain);
void chain_free_objects(struct chain *chain);
/* One that a token names, which chain_find_path has found. */
const struct object_state *chain_find_object(const struct chain *chain,
                                             const struct sha256 *sha256);

/* ---- verify_renewals.c ---- */
/* Reads and verifies all archive timestamps, before the rounds; what is wrong is recorded. */
int chain_take_renewals(struct chain *chain) MUST_CHECK;
/* NULL: it is not there. */
const struct stamp_state *chain_find_stamp(struct chain *chain, int64_t number);
/* The archive timestamp that covers a token; NULL: none is said to. ERR_INVALID_EVIDENCE. */
int chain_follow_renewal(struct chain *chain, const struct archive_renewal *renewal,
                         struct slice token, const struct stamp_state **ret_stamp,
                         struct error *error) MUST_CHECK;
/* As of when a token's certificates have to be good, beside its own time; TIME_NONE. */
int64_t chain_judged_as_of(int64_t gen_time_us, const struct stamp_state *stamp);
/* After all rounds: each of them was named. */
void chain_check_renewals(struct chain *chain);
void chain_tell_ended(struct chain *chain);

/* ---- verify_revocations.c ---- */
/* Judges the certificates of a token whose names chain_find_path has found, with their path's
 * `known`. ERR_INVALID_EVIDENCE: it names something superfluous, or what is no path. */
int chain_judge_revocations(struct chain *chain, const struct archive_token *token,
                            struct slice known, struct token_verdict *ret_verdict,
                            struct error *error) MUST_CHECK;
/* What was revoked later than a token was renewed, by `stamp` (NULL: it was not), leaves it. */
void chain_leave_past(const struct stamp_state *stamp, struct token_verdict *verdict);
/* Warns of those of a round that were revoked; whether all of them were. */
bool chain_tell_revoked(struct chain *chain, const struct token_verdict *verdicts, size_t count);

/* ---- verify_chain_parts.c ---- */
/* The event of content against the next line of its part's index. */
int chain_follow_part(struct chain *chain, const struct event_facts *event) MUST_CHECK;
/* After the last event: what is left of the parts has no event. */
int chain_finish_parts(struct chain *chain) MUST_CHECK;
void chain_close_part(struct chain *chain);

#endif
