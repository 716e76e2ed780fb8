/* Evidence records (RFC 4998) at rest: archive timestamps, what they cover, and what waits for one.
 * Trees and records are made above (src/seal, src/service); here are the rows that they are made
 * from, which are only added. Thread safe.
 *
 * An archive timestamp is made in steps, as a round is (store/events/segments.h): block by block
 * its leaves are staged, and at the end its token is written, which is what makes them covered.
 * Whoever goes on finds what is staged, so that nothing is staged twice and a token that was
 * written is never bought again. */
#ifndef STORE_EVIDENCE_H
#define STORE_EVIDENCE_H

#include "base/digest.h"
#include "store/store.h"

#define EVIDENCE_LEAVES_MAX 1024 /* in a block */

/* ---- archive timestamps ---- */

struct archive_timestamp {
	int64_t stamp; /* from 1, gapless */
	enum digest_algorithm algorithm;
	const char *authority;
	const char *kind;
	int64_t stamped_at_us;  /* genTime */
	int64_t obtained_at_us; /* by our clock */
	int64_t valid_until_us; /* only given: the first end of its certificates */
	struct slice request;   /* DER */
	struct slice token;     /* DER, complete */
	struct slice blocks;    /* the roots of its blocks, hash by hash */
};

/* Any token that has to be renewed one day. */
enum token_source { TOKEN_ROUND, TOKEN_SECOND, TOKEN_STAMP };
struct token_at_rest {
	enum token_source source;
	int64_t number; /* of the round, or the archive timestamp */
	int64_t stamped_at_us;
	int64_t valid_until_us;
	int64_t attempts; /* at covering it, that failed; only listed */
};
/* A chain of a certification's record: what its first archive timestamp covers. */
struct evidence_chain_row {
	int64_t account, certification;
	int64_t record, chain;
	struct slice hashes;  /* of the documents, or of these and the chains before; sorted */
	int64_t after_stamp;  /* the last archive timestamp of the chain before; 0: none */
	int64_t stamp, place; /* only read */
	bool is_written;      /* only read: its archive timestamp is there */
	enum digest_algorithm algorithm; /* only read, where that is so */
};
struct evidence_waiting;
struct evidence_leaf {
	struct digest digest;
	bool is_token;
	struct token_at_rest token;            /* that is renewed */
	struct evidence_chain_row chain;       /* else: that begins, */
	const struct evidence_waiting *waited; /* and waits no longer */
};

/* The next one's number, and how many blocks by which algorithm are staged for it. */
struct staged_stamp {
	int64_t stamp;
	int64_t blocks;
	enum digest_algorithm algorithm; /* where there are any */
	bool is_damaged;                 /* its blocks do not agree on one; then SHA-256 stands there */
};
int store_get_staged_stamp(struct store *store, struct staged_stamp *ret, struct error *error)
	MUST_CHECK;
/* Stages one more block of 1 to EVIDENCE_LEAVES_MAX leaves of that algorithm, in one durable
 * transaction. ERR_REFUSED when it is not the next block of the next archive timestamp, or one of
 * the leaves is staged or gone: somebody else was faster. *ret_failed is the leaf at which it
 * failed; `count`: none of them. */
int store_stage_leaves(struct store *store, const struct staged_stamp *staged,
                       const struct evidence_leaf *leaves, size_t count, int64_t now_us,
                       size_t *ret_failed, struct error *error) MUST_CHECK;
/* The strongest digest that an archive timestamp was given by; SHA-256 before the first. */
int store_strongest_stamp(struct store *store, enum digest_algorithm *ret_algorithm,
                          struct error *error) MUST_CHECK;
/* The leaves of a block, in the arena. ERR_NOT_FOUND. */
int store_read_leaves(struct store *store, int64_t stamp, int64_t block, struct arena *arena,
                      struct slice *ret_leaves, struct error *error) MUST_CHECK;
/* Takes the last of its blocks back, if that is number `from` or one behind it, durably: nothing
 * covers its tokens, and its documents wait again. *ret_block is its number; -1: there was none.
 * Works for blocks of which only some rows are left. ERR_REFUSED when it is written. */
int store_unstage_leaves(struct store *store, int64_t stamp, int64_t from, int64_t now_us,
                         int64_t *ret_block, struct error *error) MUST_CHECK;
/* Writes it over the blocks that are staged, durably, and sets its own token to rest. Tokens that
 * had ended before its time are not covered by it: they are lost; nor those that end after it does,
 * which are delayed for half of the time that they have left. ERR_REFUSED when it is not the
 * next one over as many blocks. */
int store_write_archive_timestamp(struct store *store, const struct archive_timestamp *stamp,
                                  int64_t blocks, struct error *error) MUST_CHECK;
/* The rest lives in the arena. ERR_NOT_FOUND. */
int store_get_archive_timestamp(struct store *store, int64_t stamp, struct arena *arena,
                                struct archive_timestamp *ret, struct error *error) MUST_CHECK;

/* ---- tokens at rest ---- */

/* The last round whose tokens were set to rest; 0: none. */
int store_last_round_at_rest(struct store *store, int64_t *ret_round, struct error *error)
	MUST_CHECK;
/* Durably; what is at rest already stays as it is. */
int store_set_to_rest(struct store *store, const struct token_at_rest *tokens, size_t count,
                      struct error *error) MUST_CHECK;
/* Those by that algorithm that nothing covers and nobody gave up, which end before
 * now_us + before_us, at rest for half of their time and not delayed beyond now_us; the first to
 * end first; at most `limit`. */
int store_list_tokens_to_renew(struct store *store, enum digest_algorithm algorithm, int64_t now_us,
                               int64_t before_us, size_t limit, struct token_at_rest *ret_tokens,
                               size_t *ret_count, struct error *error) MUST_CHECK;
/* One more try at it failed: not before next_us. */
int store_delay_token(struct store *store, const struct token_at_rest *token, int64_t next_us,
                      struct error *error) MUST_CHECK;
/* What is known of a token; ERR_NOT_FOUND. *ret_stamp is the archive timestamp that covers it, at
 * *ret_place; 0: none. */
int store_find_token_at_rest(struct store *store, enum token_source source, int64_t number,
                             struct token_at_rest *ret, int64_t *ret_stamp, int64_t *ret_place,
                             struct error *error) MUST_CHECK;
/* Gives up at most `limit` tokens that had ended unrenewed before ended_us, durably. What a lost
 * archive timestamp had renewed and is good without it is to be renewed again; of the rest, the
 * documents wait again whose records led to it. */
struct lost_tokens {
	size_t rounds; /* tokens of rounds */
	size_t stamps; /* of archive timestamps */
	int64_t certifications;
};
int store_give_up_tokens(struct store *store, int64_t ended_us, int64_t now_us, size_t limit,
                         struct lost_tokens *ret, struct error *error) MUST_CHECK;

/* ---- certifications ---- */

struct evidence_waiting {
	int64_t account, certification;
	char certification_id[ID_SIZE];
	bool anew; /* for a record of its own, rather than for one more chain of the last one */
	int64_t attempts;
};
/* Those whose turn it is, the longest waiting first; at most `limit`. */
int store_list_evidence_waiting(struct store *store, int64_t now_us, size_t limit,
                                struct evidence_waiting *ret_items, size_t *ret_count,
                                struct error *error) MUST_CHECK;
/* Not before next_us, and why. */
int store_delay_evidence(struct store *store, const struct evidence_waiting *item, int64_t next_us,
                         const char *cause, struct error *error) MUST_CHECK;
/* It waits for nothing that it has not got. */
int store_end_waiting(struct store *store, const struct evidence_waiting *item, struct error *error)
	MUST_CHECK;
/* How far a walk over them has come: zeroed at first. */
struct evidence_cursor {
	int64_t account, chain, certification;
};
/* Has the next ones after the cursor wait whose last chain is by another algorithm, *ret_count of
 * them, and moves the cursor on; 0: that was all. */
int store_rehash_evidence(struct store *store, enum digest_algorithm algorithm, int64_t now_us,
                          struct evidence_cursor *cursor, size_t *ret_count, struct error *error)
	MUST_CHECK;
/* The same of completed live ones that have no chain and do not wait: a program that knew nothing
 * of evidence completed them. */
int store_queue_forgotten(struct store *store, struct evidence_cursor *cursor, size_t *ret_count,
                          struct error *error) MUST_CHECK;
/* The last chain of its last record, whether that has its archive timestamp or not; zeros: none. */
int store_last_evidence_chain(struct store *store, int64_t account, int64_t certification,
                              int64_t *ret_record, int64_t *ret_chain, struct error *error)
	MUST_CHECK;
/* The chains of its last record that has an archive timestamp, or else of the one that is staged,
 * in order, in the arena; none yet: *ret_count is 0. */
int store_list_evidence_chains(struct store *store, int64_t account, int64_t certification,
                               struct arena *arena, struct evidence_chain_row **ret_chains,
                               size_t *ret_count, struct error *error) MUST_CHECK;

/* From when to when a chain holds, of a certification's last record that has an archive timestamp:
 * chains whose own one is there. */
struct evidence_chain_times {
	int64_t certification, chain;
	int64_t stamped_at_us;       /* of its first archive timestamp */
	struct token_at_rest newest; /* its last one; zeroed when that is not at rest */
};
/* Of those of a chain of events that are numbered first to last, in that order, by one statement
 * however many they are. */
int store_list_chain_times(struct store *store, int64_t account, int64_t chain, int64_t first,
                           int64_t last,
                           void (*each)(void *context, const struct evidence_chain_times *times),
                           void *context, struct error *error) MUST_CHECK;

/* ---- what an operator has to know ---- */

struct evidence_state {
	int64_t waiting_since_us; /* what waits for an archive timestamp longest; TIME_NONE: nothing */
	int64_t first_end_us;     /* of tokens that nothing covers; TIME_NONE: there are none */
	int64_t last_stamp_us;    /* when the last archive timestamp was given; TIME_NONE: none was */
	int64_t lost;             /* tokens given up */
};
int store_look_at_evidence(struct store *store, struct evidence_state *ret, struct error *error)
	MUST_CHECK;
/* Since when the token is due that is due longest, by the rule of store_list_tokens_to_renew, and
 * that nothing covers; TIME_NONE: none is. */
int store_evidence_due_since(struct store *store, int64_t now_us, int64_t before_us,
                             int64_t *ret_since_us, struct error *error) MUST_CHECK;

#endif
