/* Shared by the files of src/store alone. */
#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

#include "db/db.h"
#include "store/store.h"

struct batch_memory;
struct register_engine;
struct work_found;

struct store {
	struct db *db;
	const struct register_engine *register_engine;
	struct batch_memory *memories; /* store_sequencer_count */
	struct act *act;               /* of a store_acting; NULL: nobody's */
	struct work_found *work;       /* work.c's own */
};

/* What registering keeps in memory, from opening to closing. */
int register_open(struct store *store, struct error *error) MUST_CHECK;
void register_close(struct store *store);

/* events.event, within the bounds of ledger/bounds.h */
static inline int64_t event_number(int64_t chain, int64_t sequence)
{
	return (int64_t)((uint64_t)chain << EVENT_SEQUENCE_BITS | (uint64_t)sequence);
}
static inline int64_t chain_number(int64_t channel, enum mode mode)
{
	return channel * 2 + (mode == MODE_TEST);
}

/* Of the chain in that table or alias: the last event in a segment whose round is written. What is
 * staged for the round to come (segments.h) is not sealed yet. */
#define SEALED_SEQUENCE(chains)                                                                    \
	"CASE WHEN " chains ".sealed_round <= (SELECT COALESCE(MAX(round), 0) FROM seal_rounds)"       \
	" THEN " chains ".sealed_sequence ELSE " chains ".sealed_before END"

/* Appends the ledger's entries and notices of one account, continuing account->last_entry. */
int store_write_entries(struct db_connection *connection, struct ledger_account *account,
                        const struct ledger_entry *entries, int64_t now_us, struct error *error)
	MUST_CHECK;
int store_write_notices(struct db_connection *connection, int64_t account,
                        const struct ledger_notice *notices, enum mode mode, int64_t now_us,
                        struct error *error) MUST_CHECK;
/* Loads what the ledger's rules need of an account, with its thresholds, locked FOR UPDATE; the
 * transaction keeps to its shard. chains, limits and test usage stay empty. */
/* stored_max is the account's own bound, 0: the general setting. */
int store_load_account(struct db_connection *connection, int64_t account, struct arena *arena,
                       struct ledger_account *ret, struct error *error) MUST_CHECK;
/* What test events used up of the quotas of a UTC day. */
int store_load_test_usage(struct db_connection *connection, const char *day,
                          struct ledger_account *account, struct error *error) MUST_CHECK;
/* Writes balance, counts, marks and changed thresholds back. active_us: when its owner registered,
 * certified or bought; TIME_NONE: somebody else moved its credits. */
int store_save_account(struct db_connection *connection, const struct ledger_account *account,
                       int64_t active_us, struct error *error) MUST_CHECK;
/* Removes the `count` oldest unpaid events of an account: they are paid now. */
int store_settle(struct db_connection *connection, int64_t account, int64_t count,
                 struct error *error) MUST_CHECK;

/* A whole event, copied into the arena, with its status and timestamp as they stand. */
int store_read_event(struct db_connection *connection, int64_t account, int64_t chain,
                     int64_t sequence, struct arena *arena, struct event *ret, struct error *error)
	MUST_CHECK;

/* A sha256 from a blob column of 32 bytes; an all-zero one when the size is wrong. */
static inline struct sha256 store_sha256(struct slice blob)
{
	struct sha256 hash = {{0}};
	if (blob.size == SHA256_SIZE)
		memcpy(hash.bytes, blob.data, SHA256_SIZE);
	return hash;
}
/* Copies an identifier column into a fixed field. */
static inline void store_copy_id(char id[ID_SIZE], struct slice text)
{
	size_t size = text.size < ID_SIZE - 1 ? text.size : ID_SIZE - 1;
	memcpy(id, text.data, size);
	id[size] = '\0';
}
/* A random identifier: prefix ("acc_") and 16 characters of base 32. */
void store_fresh_id(const char *prefix, char id[ID_SIZE]);

#endif
