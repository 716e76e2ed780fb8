/* Sealed segments, and the rounds whose timestamps cover them: what the sealer reads and writes,
 * and what proofs and archives read. Hash trees and documents are built by src/seal; the store
 * keeps their bytes. Of the events only those of live chains are sealed. All records of the audit
 * log (store/audit/audit_log.h) are sealed, as chains with numbers of their own. Thread safe. */
#ifndef STORE_SEGMENTS_H
#define STORE_SEGMENTS_H

#include "store/store.h"

/* The chains of an account's audit records, which belong to no channel; the sequence is the
 * record's number. */
#define AUDIT_CHAIN (-2)
#define URGENT_AUDIT_CHAIN (-4)
static inline bool is_audit_chain(int64_t chain)
{
	return chain < 0;
}

/* A live chain with events after its last segment. */
struct unsealed_chain {
	int64_t account;
	int64_t chain;
	char channel_id[ID_SIZE]; /* audit log: the account's identifier, or "installation" */
	int64_t last_sequence;
	int64_t last_received_at_us;
	int64_t sealed_sequence; /* in segments, including staged ones; less than last_sequence */
	int64_t sealed_segment;  /* number of the last segment; 0: none */
	struct sha256 seal_hash; /* digest of its seal document */
};
/* Lists at most `limit` unsealed chains in order of account and chain, after the given pair. Reads
 * only unsealed chains. */
int store_list_unsealed(struct store *store, int64_t after_account, int64_t after_chain,
                        size_t limit, struct unsealed_chain *ret_chains, size_t *ret_count,
                        struct error *error) MUST_CHECK;

/* Does the same for audit records; last_received_at_us is not set. */
int store_list_unsealed_audit_records(struct store *store, int64_t after_account,
                                      int64_t after_chain, size_t limit,
                                      struct unsealed_chain *ret_chains, size_t *ret_count,
                                      struct error *error) MUST_CHECK;
/* Reads the SHA-256 of the documents of the audit records first to last, which are the leaves of
 * their segment, and the chain hashes before the first and of the last. Returns ERR_CORRUPT when a
 * record is missing or does not match its chain hash. */
int store_read_audit_hashes(struct store *store, int64_t account, int64_t chain, int64_t first,
                            int64_t last, struct sha256 *ret_hashes, struct sha256 *ret_before,
                            struct sha256 *ret_last, struct error *error) MUST_CHECK;

/* Lists the chains that a certification waits for and that are not staged far enough, in the same
 * form. */
int store_list_wanted(struct store *store, size_t limit, struct unsealed_chain *ret_chains,
                      size_t *ret_count, struct error *error) MUST_CHECK;
/* Reads whether a certification has all its events staged and waits only for the round. */
int store_round_is_awaited(struct store *store, bool *ret_awaited, struct error *error) MUST_CHECK;

/* Reads the chain hashes of the events first to last, last - first + 1 of them; event 0 means the
 * genesis document. Returns ERR_CORRUPT when one is missing. For a chain of audit records it reads
 * the SHA-256 of their documents. */
int store_read_chain_hashes(struct store *store, int64_t account, int64_t chain, int64_t first,
                            int64_t last, struct sha256 *ret_hashes, struct error *error)
	MUST_CHECK;

/* A round is written in steps, so that no step is long or needs much memory. Its segments are
 * staged block by block. At the end the round itself is written, with the timestamp over all
 * blocks. Until then the events of staged segments are pending for every reader. Any sealer
 * continues with the staged blocks. */
#define ROUND_BLOCK_SEGMENTS_MAX 1024
struct round_block {
	int64_t round;
	int64_t number; /* from 0 */
	int64_t events;
	int64_t latest_received_at_us; /* of its events */
};
struct staged_round {
	int64_t round; /* of the next round */
	bool has_previous;
	struct sha256 previous_token_hash; /* of the previous round */
	int64_t blocks;                    /* staged */
	int64_t changes; /* number of changes; the blocks are the same while this is the same */
	int64_t latest_received_at_us; /* of its events; TIME_NONE: no events are staged */
	int64_t unlogged;              /* staged blocks without entries in the log (log_records.h) */
};

/* Another timestamp of a round. */
struct round_token {
	const char *authority;
	const char *kind;
	int64_t sealed_at_us;
	struct slice request, response_head, token; /* as in struct round_record */
};
struct round_record {
	int64_t round; /* from 1, without gaps */
	struct sha256 root;
	const char *authority;
	const char *kind;           /* "qualified", "non_qualified", "development" */
	int64_t sealed_at_us;       /* genTime */
	int64_t obtained_at_us;     /* by the local clock */
	struct slice request;       /* DER */
	struct slice response_head; /* DER of the response up to the token, with which it ends */
	struct slice token;         /* DER */
	struct sha256 token_hash;
	struct slice blocks; /* concatenated roots of its blocks; empty: a round of an older version */
	int64_t staged_changes;           /* input only: value when the staged round was read */
	const struct round_token *second; /* input only; NULL: none */
};
#define SEGMENT_HAS_PATH (-1)
struct segment_record {
	int64_t account;
	int64_t chain;
	int64_t number; /* from 1 in its chain, without gaps */
	char segment_id[ID_SIZE];
	int64_t first_sequence;
	int64_t last_sequence;
	int64_t round;
	struct sha256 root;
	/* Input only: the digest of the document, and of the previous one (number > 1); for the log the
	 * chain's tag and the chain hash of the last event. */
	struct sha256 seal_hash, previous_seal_hash;
	struct sha256 tag, chain_hash_last;
	struct slice document; /* the seal document, canonical */
	struct slice nodes;    /* of its tree, see seal/segment.h */
	/* Output only: block * ROUND_BLOCK_SEGMENTS_MAX + position in the block; or SEGMENT_HAS_PATH
	 * when the segment has its own path, as in rounds of older versions. */
	int64_t place;
	struct slice path;
};
/* Reads the number of the next round and its number of staged blocks, whether or not all of these
 * exist. Returns ERR_CORRUPT when written rounds are missing. */
int store_get_staged_round(struct store *store, struct staged_round *ret, struct error *error)
	MUST_CHECK;
/* Stages one more block of 1 to ROUND_BLOCK_SEGMENTS_MAX segments, advances the marks of their
 * chains and appends their entries to the log, in one durable transaction. Segments of one chain
 * are in order. Returns ERR_REFUSED when another sealer was faster: the block is not the next one
 * of the next round, or a segment does not continue its chain from the segment that it names. On
 * error nothing is written, and *ret_failed is the index of the segment that failed; `count`: no
 * segment in particular. */
int store_stage_block(struct store *store, const struct round_block *block,
                      const struct segment_record *segments, size_t count, size_t *ret_failed,
                      struct error *error) MUST_CHECK;
/* Removes the last staged block, number `number`, even if its own row is missing. Its events are
 * unsealed again. Returns ERR_REFUSED when it is not the last block or its round is written. */
int store_unstage_block(struct store *store, int64_t round, int64_t number, struct error *error)
	MUST_CHECK;
/* Reads the concatenated roots of a block's segments into the arena. Returns ERR_NOT_FOUND when the
 * block does not exist. */
int store_read_block(struct store *store, int64_t round, int64_t number, struct arena *arena,
                     struct slice *ret_roots, int64_t *ret_events, struct error *error) MUST_CHECK;
/* Writes the round, which seals the staged segments and publishes their entries in the log, and the
 * notices about it, durably. Returns
 * ERR_REFUSED when it is not the next round or the staged blocks were changed. */
int store_write_round(struct store *store, const struct round_record *round, struct error *error)
	MUST_CHECK;

/* Returns when the last round was sealed, according to its timestamp authority; TIME_NONE: no
 * round. */
int store_last_seal_time(struct store *store, int64_t *ret_sealed_at_us, struct error *error)
	MUST_CHECK;
/* Returns the number of the last round (0: none) and the hash of its token. */
int store_last_round(struct store *store, int64_t *ret_round, struct sha256 *ret_token_hash,
                     struct error *error) MUST_CHECK;
/* Reads the last round (0: none) with its root, and whether round `round` exists, with its root. */
int store_read_round_roots(struct store *store, int64_t round, int64_t *ret_last,
                           struct sha256 *ret_last_root, bool *ret_present, struct sha256 *ret_root,
                           struct error *error) MUST_CHECK;

struct accepted_rollback {
	int64_t accepted_at_us;
	const char *node;
	int64_t round;
	struct sha256 root;
	int64_t known_round;
	struct sha256 known_root;
	struct slice reason;
	const char *ended_log; /* origin of a log that cannot go on; NULL: none */
};
/* Records permanently a rollback that an operator accepted. All logs of which the store has
 * checkpoints end with it; each further one has a row. */
int store_record_rollback(struct store *store, const struct accepted_rollback *rollback,
                          struct error *error) MUST_CHECK;

/* Reads a round; slices live in the arena. Returns ERR_NOT_FOUND when it does not exist. */
int store_get_round(struct store *store, int64_t round, struct arena *arena,
                    struct round_record *ret_round, struct error *error) MUST_CHECK;
/* Reads the second timestamp of a round. Returns ERR_NOT_FOUND when there is only one. */
int store_get_second_token(struct store *store, int64_t round, struct arena *arena,
                           struct round_token *ret_token, struct error *error) MUST_CHECK;
/* Finds the sealed segment of an event. Returns ERR_NOT_FOUND when the event is not sealed. */
int store_find_segment(struct store *store, int64_t account, int64_t chain, int64_t sequence,
                       struct arena *arena, struct segment_record *ret_segment, struct error *error)
	MUST_CHECK;
/* Also finds staged segments. */
int store_get_segment(struct store *store, int64_t account, int64_t chain, int64_t number,
                      struct arena *arena, struct segment_record *ret_segment, struct error *error)
	MUST_CHECK;

/* Reads the rounds of the segments first to last of a chain, last - first + 1 of them, and their
 * places in these; the rounds never decrease. `ret_places` may be NULL. A place is negative in
 * rounds of older versions. Returns ERR_CORRUPT when a segment is missing. */
int store_read_segment_rounds(struct store *store, int64_t account, int64_t chain, int64_t first,
                              int64_t last, int64_t *ret_rounds, int64_t *ret_places,
                              struct error *error) MUST_CHECK;

/* The seal documents of the segments first to last of a chain. Seal documents never change. */
#define SEGMENT_DOCUMENT_MAX 2048 /* bytes of one */
/* Computes their total size in bytes. */
int store_measure_seals(struct store *store, int64_t account, int64_t chain, int64_t first,
                        int64_t last, int64_t *ret_bytes, struct error *error) MUST_CHECK;
/* Calls `each` with every document, ascending; a value other than 0 ends the reading and is
 * returned. Returns ERR_CORRUPT when a segment is missing. The call holds a database connection, so
 * callers read a long range in parts. */
int store_read_seals(struct store *store, int64_t account, int64_t chain, int64_t first,
                     int64_t last, int (*each)(void *context, struct slice document), void *context,
                     struct error *error) MUST_CHECK;

#endif
