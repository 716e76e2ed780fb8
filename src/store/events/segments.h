/* Sealed segments, and the rounds whose timestamps cover them: what the sealer reads and writes,
 * and what proofs and archives read. Trees and documents are made above (src/seal); the store keeps
 * their bytes. Of events only live chains are ever sealed; of the record of acts
 * (store/audit/acts.h) all are, as chains with numbers of their own. Thread safe. */
#ifndef STORE_SEGMENTS_H
#define STORE_SEGMENTS_H

#include "store/store.h"

/* The chains of an account's acts, which are on no channel: a sequence is an act's number. */
#define ACTS_CHAIN (-2)
#define URGENT_ACTS_CHAIN (-4)
static inline bool chain_is_of_acts(int64_t chain)
{
	return chain < 0;
}

/* A live chain that has events behind its last segment. */
struct unsealed_chain {
	int64_t account;
	int64_t chain;
	char channel_id[ID_SIZE]; /* of acts: the account's, or "installation" */
	int64_t last_sequence;
	int64_t last_received_at_us;
	int64_t sealed_sequence; /* in segments, staged ones as well; below last_sequence */
	int64_t sealed_segment;  /* number of the last of them; 0: none yet */
	struct sha256 seal_hash; /* digest of its seal document */
};
/* In order of account and chain, those after the given pair; at most `limit`. Looks only at
 * unsealed chains. */
int store_list_unsealed(struct store *store, int64_t after_account, int64_t after_chain,
                        size_t limit, struct unsealed_chain *ret_chains, size_t *ret_count,
                        struct error *error) MUST_CHECK;

/* The same of acts; last_received_at_us is not told. */
int store_list_unsealed_acts(struct store *store, int64_t after_account, int64_t after_chain,
                             size_t limit, struct unsealed_chain *ret_chains, size_t *ret_count,
                             struct error *error) MUST_CHECK;
/* The SHA-256 of the documents of acts first to last, which are the leaves of their segment, and
 * the chain hashes before the first and of the last. ERR_CORRUPT when one is missing or is not what
 * its chain hash says. */
int store_read_act_hashes(struct store *store, int64_t account, int64_t chain, int64_t first,
                          int64_t last, struct sha256 *ret_hashes, struct sha256 *ret_before,
                          struct sha256 *ret_last, struct error *error) MUST_CHECK;

/* Those that a certification waits for, which are not staged as far as it needs them; likewise. */
int store_list_wanted(struct store *store, size_t limit, struct unsealed_chain *ret_chains,
                      size_t *ret_count, struct error *error) MUST_CHECK;
/* Whether a certification has all that it needs staged, and waits for the round alone. */
int store_round_is_awaited(struct store *store, bool *ret_awaited, struct error *error) MUST_CHECK;

/* The chain hashes of the events first to last, last - first + 1 of them; event 0 stands for the
 * genesis document. ERR_CORRUPT when one is missing. Of a chain of acts: the SHA-256 of their
 * documents. */
int store_read_chain_hashes(struct store *store, int64_t account, int64_t chain, int64_t first,
                            int64_t last, struct sha256 *ret_hashes, struct error *error)
	MUST_CHECK;

/* A round is written in steps, so that none is long and none needs much memory: block by block its
 * segments, which are staged from then on, and at the end the round itself, with the timestamp over
 * all blocks. Until then the events of staged segments are pending for everybody. Whoever seals
 * next goes on with what is staged. */
#define ROUND_BLOCK_SEGMENTS_MAX 1024
struct round_block {
	int64_t round;
	int64_t number; /* from 0 */
	int64_t events;
	int64_t latest_received_at_us; /* of its events */
};
struct staged_round {
	int64_t round; /* the next one */
	bool has_previous;
	struct sha256 previous_token_hash; /* of the round before */
	int64_t blocks;                    /* staged */
	int64_t changes; /* how often that was changed: while this is the same, so are the blocks */
	int64_t latest_received_at_us; /* of its events; TIME_NONE: none are staged */
};

/* One more timestamp of a round. */
struct round_token {
	const char *authority;
	const char *kind;
	int64_t sealed_at_us;
	struct slice request, response_head, token; /* as the round's own */
};
struct round_record {
	int64_t round; /* from 1, gapless */
	struct sha256 root;
	const char *authority;
	const char *kind;           /* "qualified", "non_qualified", "development" */
	int64_t sealed_at_us;       /* genTime */
	int64_t obtained_at_us;     /* by our clock */
	struct slice request;       /* DER */
	struct slice response_head; /* DER of the response up to the token, with which it ends */
	struct slice token;         /* DER */
	struct sha256 token_hash;
	struct slice blocks;    /* the roots of its blocks, hash by hash; empty: a round of before */
	int64_t staged_changes; /* only given: of the staged round when these were read */
	const struct round_token *second; /* only given, not read back; NULL: none */
};
#define SEGMENT_HAS_PATH (-1)
struct segment_record {
	int64_t account;
	int64_t chain;
	int64_t number; /* from 1 in its chain, gapless */
	char segment_id[ID_SIZE];
	int64_t first_sequence;
	int64_t last_sequence;
	int64_t round;
	struct sha256 root;
	/* Only given, not read back: the digest of the document, and of the one before (number > 1). */
	struct sha256 seal_hash, previous_seal_hash;
	struct slice document; /* the seal document, canonical */
	struct slice nodes;    /* of its tree: seal/segment.h */
	/* Only read: block * ROUND_BLOCK_SEGMENTS_MAX + place in the block; or SEGMENT_HAS_PATH, and
	 * the path is its own, as in rounds of before. */
	int64_t place;
	struct slice path;
};
/* What the next round is, and how far it is staged, whether or not its blocks are all there.
 * ERR_CORRUPT when rounds are missing that were written. */
int store_get_staged_round(struct store *store, struct staged_round *ret, struct error *error)
	MUST_CHECK;
/* Stages one more block of 1 to ROUND_BLOCK_SEGMENTS_MAX segments and moves their chains' marks on,
 * in one durable transaction. Segments of one chain stand in order. ERR_REFUSED when another sealer
 * was faster: the block is not the next one of the next round, or a segment does not continue its
 * chain, from the very segment that it names. On any error nothing is written, and *ret_failed is
 * the place of the segment that could not be; `count` when it was none of them. */
int store_stage_block(struct store *store, const struct round_block *block,
                      const struct segment_record *segments, size_t count, size_t *ret_failed,
                      struct error *error) MUST_CHECK;
/* Takes back the last block that is staged, number `number`, even one whose own row is missing: its
 * events are unsealed as before. ERR_REFUSED when it is not the last, or its round is written. */
int store_unstage_block(struct store *store, int64_t round, int64_t number, struct error *error)
	MUST_CHECK;
/* The roots of its segments, hash by hash, in the arena. ERR_NOT_FOUND. */
int store_read_block(struct store *store, int64_t round, int64_t number, struct arena *arena,
                     struct slice *ret_roots, int64_t *ret_events, struct error *error) MUST_CHECK;
/* Writes the round, which seals what is staged, durably. ERR_REFUSED when it is not the next one,
 * or what is staged was changed since. */
int store_write_round(struct store *store, const struct round_record *round, struct error *error)
	MUST_CHECK;

/* When its authority says that the last round was sealed; TIME_NONE: none was yet. */
int store_last_seal_time(struct store *store, int64_t *ret_sealed_at_us, struct error *error)
	MUST_CHECK;
/* The last round's number (0: none yet) and its token's hash. */
int store_last_round(struct store *store, int64_t *ret_round, struct sha256 *ret_token_hash,
                     struct error *error) MUST_CHECK;
/* The last round (0: none) and its root, and whether round `round` is there, with its root. */
int store_look_rounds(struct store *store, int64_t round, int64_t *ret_last,
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
};
/* What an operator confirmed, kept for good. */
int store_record_rollback(struct store *store, const struct accepted_rollback *rollback,
                          struct error *error) MUST_CHECK;

/* The rest lives in the arena. ERR_NOT_FOUND. */
int store_get_round(struct store *store, int64_t round, struct arena *arena,
                    struct round_record *ret_round, struct error *error) MUST_CHECK;
/* The second timestamp of a round; ERR_NOT_FOUND when it has one alone. */
int store_get_second_token(struct store *store, int64_t round, struct arena *arena,
                           struct round_token *ret_token, struct error *error) MUST_CHECK;
/* The sealed segment that holds an event; ERR_NOT_FOUND while there is none. */
int store_find_segment(struct store *store, int64_t account, int64_t chain, int64_t sequence,
                       struct arena *arena, struct segment_record *ret_segment, struct error *error)
	MUST_CHECK;
/* Staged ones are found, too. */
int store_get_segment(struct store *store, int64_t account, int64_t chain, int64_t number,
                      struct arena *arena, struct segment_record *ret_segment, struct error *error)
	MUST_CHECK;

/* The rounds of the segments first to last of a chain, last - first + 1 of them, which never go
 * back. ERR_CORRUPT when a segment is missing. */
int store_read_segment_rounds(struct store *store, int64_t account, int64_t chain, int64_t first,
                              int64_t last, int64_t *ret_rounds, struct error *error) MUST_CHECK;

#endif
