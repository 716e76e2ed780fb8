/* Storage of evidence records (RFC 4998): archive timestamps, what they cover, and what is queued
 * for one. Hash trees and records are built by src/seal and src/service from these rows, which are
 * only ever inserted. Thread safe.
 *
 * An archive timestamp is written in steps, like a round (store/events/segments.h). Its leaves are
 * staged block by block. Writing the token at the end makes the leaves covered. A later process
 * continues with the staged blocks, so that nothing is staged twice and a written token is never
 * requested again.
 *
 * A token "at rest" is a timestamp token that is registered for renewal. */
#ifndef STORE_EVIDENCE_H
#define STORE_EVIDENCE_H

#include "base/digest.h"
#include "store/store.h"

#define EVIDENCE_LEAVES_MAX 1024 /* in a block */

/* ---- archive timestamps ---- */

struct archive_timestamp {
	int64_t stamp; /* from 1, without gaps */
	enum digest_algorithm algorithm;
	const char *authority;
	const char *kind;
	int64_t stamped_at_us;  /* genTime */
	int64_t obtained_at_us; /* by the local clock */
	int64_t valid_until_us; /* input only: the earliest expiry of its certificates */
	struct slice request;   /* DER */
	struct slice token;     /* DER, complete */
	struct slice blocks;    /* concatenated roots of its blocks */
};

/* A token that has to be renewed before it expires. */
enum token_source { TOKEN_ROUND, TOKEN_SECOND, TOKEN_STAMP };
struct renewable_token {
	enum token_source source;
	int64_t number; /* of the round or of the archive timestamp */
	int64_t stamped_at_us;
	int64_t valid_until_us;
	int64_t attempts; /* failed attempts to cover it; set in lists only */
};
/* A chain of a certification's evidence record, as covered by its first archive timestamp. */
struct evidence_chain_row {
	int64_t account, certification;
	int64_t record, chain;
	struct slice hashes;  /* of the documents, or of these and the previous chains; sorted */
	int64_t after_stamp;  /* the last archive timestamp of the previous chain; 0: none */
	int64_t stamp, place; /* output only */
	bool is_written;      /* output only: the archive timestamp is written */
	enum digest_algorithm algorithm; /* output only, if it is written */
};
struct evidence_queue_entry;
struct evidence_leaf {
	struct digest digest;
	bool is_token;
	struct renewable_token token;              /* the token to renew */
	struct evidence_chain_row chain;           /* else the chain to start, */
	const struct evidence_queue_entry *waited; /* and its queue entry, which is removed */
};

/* The number of the next archive timestamp, with the number and algorithm of its staged blocks. */
struct staged_stamp {
	int64_t stamp;
	int64_t blocks;
	enum digest_algorithm algorithm; /* if blocks > 0 */
	bool is_damaged; /* the blocks have different algorithms; `algorithm` is then SHA-256 */
};
int store_get_staged_stamp(struct store *store, struct staged_stamp *ret, struct error *error)
	MUST_CHECK;
/* Stages one more block of 1 to EVIDENCE_LEAVES_MAX leaves of that algorithm in one durable
 * transaction. Returns ERR_REFUSED when another process was faster: the block is not the next one
 * of the next archive timestamp, or a leaf is already staged or no longer exists. *ret_failed is
 * the index of the leaf that failed; `count`: no leaf in particular. */
int store_stage_leaves(struct store *store, const struct staged_stamp *staged,
                       const struct evidence_leaf *leaves, size_t count, int64_t now_us,
                       size_t *ret_failed, struct error *error) MUST_CHECK;
/* Returns the strongest digest algorithm of the archive timestamps; SHA-256 when there are none. */
int store_strongest_stamp(struct store *store, enum digest_algorithm *ret_algorithm,
                          struct error *error) MUST_CHECK;
/* Reads the leaves of a block into the arena. Returns ERR_NOT_FOUND when the block does not
 * exist. */
int store_read_leaves(struct store *store, int64_t stamp, int64_t block, struct arena *arena,
                      struct slice *ret_leaves, struct error *error) MUST_CHECK;
/* Removes the last staged block of the archive timestamp, durably, if its number is `from` or
 * higher. Its tokens are then uncovered and its documents are queued again. *ret_block is the
 * number of the block; -1: there was none. Also removes a block of which only some rows exist.
 * Returns ERR_REFUSED when the archive timestamp is already written. */
int store_unstage_leaves(struct store *store, int64_t stamp, int64_t from, int64_t now_us,
                         int64_t *ret_block, struct error *error) MUST_CHECK;
/* Writes the archive timestamp over its staged blocks, durably, and registers its own token for
 * renewal. Does not cover tokens that expired before its time; they are lost. Does not cover tokens
 * that expire later than its own token either; these are delayed for half of their remaining time.
 * Returns ERR_REFUSED when it is not the next archive timestamp with that many blocks. */
int store_write_archive_timestamp(struct store *store, const struct archive_timestamp *stamp,
                                  int64_t blocks, struct error *error) MUST_CHECK;
/* Reads an archive timestamp; slices live in the arena. Returns ERR_NOT_FOUND when it does not
 * exist. */
int store_get_archive_timestamp(struct store *store, int64_t stamp, struct arena *arena,
                                struct archive_timestamp *ret, struct error *error) MUST_CHECK;

/* ---- tokens registered for renewal ---- */

/* Returns the last round whose tokens are registered for renewal; 0: none. */
int store_last_registered_round(struct store *store, int64_t *ret_round, struct error *error)
	MUST_CHECK;
/* Registers tokens for renewal, durably. Tokens that are already registered are not changed. */
int store_register_tokens(struct store *store, const struct renewable_token *tokens, size_t count,
                          struct error *error) MUST_CHECK;
/* Lists at most `limit` tokens of that algorithm that are due for renewal, the one that expires
 * first at the front. Due tokens are not covered and not given up, expire before now_us +
 * before_us, have passed half of their validity, and are not delayed beyond now_us. */
int store_list_tokens_to_renew(struct store *store, enum digest_algorithm algorithm, int64_t now_us,
                               int64_t before_us, size_t limit, struct renewable_token *ret_tokens,
                               size_t *ret_count, struct error *error) MUST_CHECK;
/* Records a failed attempt to renew the token; the next attempt is due at next_us. */
int store_delay_token(struct store *store, const struct renewable_token *token, int64_t next_us,
                      struct error *error) MUST_CHECK;
/* Reads a registered token. *ret_stamp is the archive timestamp that covers it, at position
 * *ret_place; 0: none. Returns ERR_NOT_FOUND when the token is not registered. */
int store_find_renewable_token(struct store *store, enum token_source source, int64_t number,
                               struct renewable_token *ret, int64_t *ret_stamp, int64_t *ret_place,
                               struct error *error) MUST_CHECK;
/* Gives up at most `limit` tokens that expired before ended_us without a renewal, durably. A token
 * that the lost archive timestamp had renewed and that is still valid becomes due for renewal
 * again. For the others, the documents whose records depended on the token are queued again. */
struct lost_tokens {
	size_t rounds; /* tokens of rounds */
	size_t stamps; /* of archive timestamps */
	int64_t certifications;
};
int store_give_up_tokens(struct store *store, int64_t ended_us, int64_t now_us, size_t limit,
                         struct lost_tokens *ret, struct error *error) MUST_CHECK;

/* ---- certifications ---- */

struct evidence_queue_entry {
	int64_t account, certification;
	char certification_id[ID_SIZE];
	bool starts_record; /* a new record is started, rather than another chain of the last record */
	int64_t attempts;
};
/* Lists at most `limit` due entries of the queue, the oldest first. */
int store_list_evidence_queue(struct store *store, int64_t now_us, size_t limit,
                              struct evidence_queue_entry *ret_items, size_t *ret_count,
                              struct error *error) MUST_CHECK;
/* Delays the entry until next_us and records the cause. */
int store_delay_evidence(struct store *store, const struct evidence_queue_entry *item,
                         int64_t next_us, const char *cause, struct error *error) MUST_CHECK;
/* Removes the entry: everything that it was queued for exists. */
int store_remove_from_evidence_queue(struct store *store, const struct evidence_queue_entry *item,
                                     struct error *error) MUST_CHECK;
/* Position in an iteration over certifications; zeroed at the start. */
struct evidence_cursor {
	int64_t account, chain, certification;
};
/* Queues the next certifications after the cursor whose last chain has another algorithm, and
 * advances the cursor. *ret_count is their number; 0: the end is reached. */
int store_rehash_evidence(struct store *store, enum digest_algorithm algorithm, int64_t now_us,
                          struct evidence_cursor *cursor, size_t *ret_count, struct error *error)
	MUST_CHECK;
/* Does the same for completed live certifications that have no chain and are not queued. They were
 * completed by a version without evidence records. */
int store_queue_missing_evidence(struct store *store, struct evidence_cursor *cursor,
                                 size_t *ret_count, struct error *error) MUST_CHECK;
/* Returns the last chain of the last record, whether or not its archive timestamp is written;
 * zeros: none. */
int store_last_evidence_chain(struct store *store, int64_t account, int64_t certification,
                              int64_t *ret_record, int64_t *ret_chain, struct error *error)
	MUST_CHECK;
/* Lists, in order, the chains of the last record that has an archive timestamp, or else those of
 * the staged record. They live in the arena; *ret_count is 0 when there are none. ERR_CORRUPT:
 * there are more than a record can have. */
int store_list_evidence_chains(struct store *store, int64_t account, int64_t certification,
                               struct arena *arena, struct evidence_chain_row **ret_chains,
                               size_t *ret_count, struct error *error) MUST_CHECK;

/* Validity of a chain in a certification's last record with an archive timestamp. Only chains whose
 * own archive timestamp is written are listed. */
struct evidence_chain_times {
	int64_t certification, chain;
	int64_t stamped_at_us;         /* of its first archive timestamp */
	struct renewable_token newest; /* the last one; zeroed when it is not registered for renewal */
};
/* Calls `each`, in order, for the certifications numbered first to last of a chain of events. Uses
 * one statement, whatever their number. */
int store_list_chain_times(struct store *store, int64_t account, int64_t chain, int64_t first,
                           int64_t last,
                           void (*each)(void *context, const struct evidence_chain_times *times),
                           void *context, struct error *error) MUST_CHECK;

/* ---- state for monitoring ---- */

struct evidence_state {
	int64_t waiting_since_us; /* oldest item that waits for an archive timestamp; TIME_NONE: none */
	int64_t first_end_us;     /* earliest expiry of an uncovered token; TIME_NONE: none */
	int64_t last_stamp_us;    /* time of the last archive timestamp; TIME_NONE: none */
	int64_t lost;             /* number of tokens given up */
};
int store_read_evidence_state(struct store *store, struct evidence_state *ret, struct error *error)
	MUST_CHECK;
/* Returns since when the longest-due uncovered token is due, by the rule of
 * store_list_tokens_to_renew; TIME_NONE: no token is due. */
int store_evidence_due_since(struct store *store, int64_t now_us, int64_t before_us,
                             int64_t *ret_since_us, struct error *error) MUST_CHECK;

#endif
