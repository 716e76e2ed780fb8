/* The memory of a witness: its name and public key, and for each log the last tree that it
 * cosigned. A SQLite database, witness.db in the witness's directory.
 *
 * A witness that forgets a tree may cosign another one of the same size. So a change is on disk
 * before witness_store_commit returns, and one transaction covers the decision and the change. One
 * process at a time opens a store for changes. After a failed sync the store refuses all further
 * use, because the system then shows data that is not on disk; opening the store again writes it
 * again. One thread at a time uses a store. */
#ifndef WITNESS_WITNESS_STORE_H
#define WITNESS_WITNESS_STORE_H

#include "base/arena.h"
#include "tlog/checkpoint.h"

#define WITNESS_STORE_FILE "witness.db"

/* What was cosigned last for a log. */
struct witness_record {
	struct checkpoint checkpoint; /* without a record: size 0 and the root of the empty tree */
	struct slice text;            /* of the note; empty: no record */
	struct slice signatures;      /* lines of the log's keys */
	struct slice cosignature;     /* line of the witness */
	int64_t cosigned_at_s;
};

struct witness_store;

/* Opens the database, which is made if it is missing. ERR_UNAVAILABLE: another process has opened
 * it; ERR_REFUSED: of a newer version; ERR_CORRUPT, ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY. */
int witness_store_open(const char *directory, struct witness_store **ret, struct error *error)
	MUST_CHECK;
/* Opens an existing database for reading, while another process may use it. ERR_NOT_FOUND: it has
 * no tables yet. */
int witness_store_open_to_read(const char *directory, struct witness_store **ret,
                               struct error *error) MUST_CHECK;
void witness_store_close(struct witness_store *store); /* NULL-safe */
/* Returns whether a sync failed, so that only opening the store again helps. */
bool witness_store_has_failed(const struct witness_store *store);

/* Reads the name and the public key to which the memory belongs. ERR_NOT_FOUND: none yet. */
int witness_store_get_identity(struct witness_store *store, char name[NOTE_NAME_MAX + 1],
                               uint8_t public[NOTE_KEY_SIZE], struct error *error) MUST_CHECK;
/* Sets both, durably. ERR_REFUSED: they are set. */
int witness_store_set_identity(struct witness_store *store, const struct note_key *key,
                               struct error *error) MUST_CHECK;

/* Begins a transaction that excludes all others. */
int witness_store_begin(struct witness_store *store, struct error *error) MUST_CHECK;
int witness_store_commit(struct witness_store *store, struct error *error) MUST_CHECK;
void witness_store_rollback(struct witness_store *store);

/* Reads the record of a log by the SHA-256 of its origin. Texts are in the arena. ERR_NOT_FOUND;
 * ERR_CORRUPT: its parts contradict each other. */
int witness_store_find(struct witness_store *store, const struct sha256 *origin_hash,
                       struct arena *arena, struct witness_record *ret, struct error *error)
	MUST_CHECK;
/* Replaces the record of a log; within a transaction. */
int witness_store_put(struct witness_store *store, const struct witness_record *record,
                      struct error *error) MUST_CHECK;

#endif
