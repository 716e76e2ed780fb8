/* Private to src/store. */
#ifndef STORE_STORE_INTERNAL_H
#define STORE_STORE_INTERNAL_H

#include <assert.h>

#include "db/db.h"
#include "store/store.h"

struct batch_memory;
struct register_engine;
struct digest_index;
struct work_found;

struct store {
	struct db *db;
	const struct register_engine *register_engine;
	struct batch_memory *memories; /* one for each sequencer (store_sequencer_count) */
	struct act *act;               /* of a store_audited handle; else NULL */
	struct digest_index *digests;  /* private to events/digest_index.h */
	struct work_found *work;       /* private to shard_work.c */
};

/* Allocate and free the memory that registration keeps while the store is open. */
int register_open(struct store *store, struct error *error) MUST_CHECK;
void register_close(struct store *store);

/* Returns the value of events.event, within the limits of ledger/bounds.h. */
static inline int64_t event_number(int64_t chain, int64_t sequence)
{
	return (int64_t)((uint64_t)chain << EVENT_SEQUENCE_BITS | (uint64_t)sequence);
}
/* Packs the number of an event that is about to be written. */
static inline int64_t new_event_number(int64_t chain, int64_t sequence)
{
	assert(chain >= 0 && chain <= CHAIN_MAX);
	assert(sequence >= 1 && sequence <= EVENT_SEQUENCE_MAX);
	return event_number(chain, sequence);
}
static inline int64_t chain_number(int64_t channel, enum mode mode)
{
	return channel * 2 + (mode == MODE_TEST);
}

/* SQL expression for the chain in that table or alias: the last event in a segment of a written
 * round. Events staged for the next round (segments.h) are not sealed yet. */
#define SEALED_SEQUENCE(chains)                                                                    \
	"CASE WHEN " chains ".sealed_round <= (SELECT COALESCE(MAX(round), 0) FROM seal_rounds)"       \
	" THEN " chains ".sealed_sequence ELSE " chains ".sealed_before END"

/* Append the ledger's entries and notices of one account, whose lock the caller holds; entries
 * continue account->last_entry. Each notice of an account is created later than the one before. */
int store_write_entries(struct db_connection *connection, struct ledger_account *account,
                        const struct ledger_entry *entries, int64_t now_us, struct error *error)
	MUST_CHECK;
/* A notice of an opt-in type that no enabled endpoint receives is not written. */
int store_write_notices(struct db_connection *connection, int64_t account,
                        const struct ledger_notice *notices, enum mode mode, int64_t now_us,
                        struct error *error) MUST_CHECK;
/* Loads, FOR UPDATE, what the ledger's rules need of an account, with its thresholds. The
 * transaction is then limited to the shard of the account. chains, limits and test usage stay
 * empty. stored_max is the account's own limit; 0: the general setting. */
int store_load_account(struct db_connection *connection, int64_t account, struct arena *arena,
                       struct ledger_account *ret, struct error *error) MUST_CHECK;
/* Loads how much of the test quotas of a UTC day is used. */
int store_load_test_usage(struct db_connection *connection, const char *day,
                          struct ledger_account *account, struct error *error) MUST_CHECK;
/* Writes back balance, counts, marks and changed thresholds. active_us is the time of a
 * registration, certification or purchase by the account's owner; TIME_NONE: the credits were moved
 * by someone else. */
int store_save_account(struct db_connection *connection, const struct ledger_account *account,
                       int64_t active_us, struct error *error) MUST_CHECK;
/* Removes the `count` oldest unpaid events of an account after they have been paid. */
int store_settle(struct db_connection *connection, int64_t account, int64_t count,
                 struct error *error) MUST_CHECK;

/* Reads an event with its current status and timestamp into the arena, and its inline content if
 * `with_content`. */
int store_read_event(struct db_connection *connection, int64_t account, int64_t chain,
                     int64_t sequence, bool with_content, struct arena *arena, struct event *ret,
                     struct error *error) MUST_CHECK;

/* Returns a digest from a blob column of 32 bytes; all zeros when the size is wrong. */
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
/* Writes a random identifier: the prefix ("acc_") and 16 characters of base 32. */
void store_fresh_id(const char *prefix, char id[ID_SIZE]);

#endif
