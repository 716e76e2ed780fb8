/* What a watcher remembers of a log between two runs: the last checkpoint that it accepted, and
 * which events of its chains were covered then. A file of canonical JSON:
 *   {"chains":[{"channel_id","compared","entries","first_sequence","last_sequence","tag"}],"note",
 *    "v":2}
 * `compared` stands for the receipts that were compared. That of "v":1 could be chosen by who made
 * the receipts: such a state is read, and everything is compared again. */
#ifndef MONITOR_WATCH_STATE_H
#define MONITOR_WATCH_STATE_H

#include "monitor/chain_span.h"
#include "monitor/owned_chains.h"

struct watched_chain {
	struct sha256 tag;
	struct chain_span span;
	struct sha256 compared; /* watch_receipts_digest of the receipts up to span.last */
};

#define WATCH_STATE_VERSION 2

struct watch_state {
	struct slice note;  /* size 0: the log was never read */
	bool is_comparable; /* false: no `compared` says anything */
	struct watched_chain chains[OWNED_CHAINS_MAX];
	size_t count;
};

/* Reads a state file; a missing file gives an empty state. The note is in the arena. ERR_CORRUPT
 * with the cause: it is no state. ERR_IO, ERR_NO_MEMORY. */
int watch_state_read(const char *path, struct arena *arena, struct watch_state *ret,
                     struct error *error) MUST_CHECK;
/* Replaces the file, durably. */
int watch_state_write(const char *path, const struct watch_state *state,
                      const struct owned_chains *owned, struct error *error) MUST_CHECK;
/* Returns what is remembered of a chain; NULL: nothing. */
struct watched_chain *watch_state_find(struct watch_state *state, const struct sha256 *tag);

/* Digest of the chain's sorted receipts up to a sequence: each hash covers the ones before it, so
 * that who chooses the receipts cannot make it that of others. */
struct sha256 watch_receipts_digest(const struct owned_chain *chain, int64_t last);

#endif
