/* The signed checkpoints of the log of segments, with the cosignatures of witnesses. Thread safe.
 */
#ifndef STORE_LOG_CHECKPOINTS_H
#define STORE_LOG_CHECKPOINTS_H

#include "store/store.h"

struct log_checkpoint {
	const char *origin;
	uint64_t size;
	struct sha256 root;
	int64_t signed_at_us;
	struct slice note;         /* text and signature of the log (tlog/note.h) */
	struct slice cosignatures; /* signature lines; empty: none */
	int64_t cosigners;         /* witnesses that cosigned */
	bool is_final;             /* no further cosignature is awaited */
};

/* Adds a checkpoint without cosignatures, durably; one that exists stays as it is. */
int store_add_log_checkpoint(struct store *store, const struct log_checkpoint *checkpoint,
                             struct error *error) MUST_CHECK;
/* Replaces the cosignatures `known` of a checkpoint, durably. ERR_NOT_FOUND: there is none; or it
 * has others, or was final and would not be any more. */
int store_set_cosignatures(struct store *store, const struct log_checkpoint *checkpoint,
                           struct slice known, struct error *error) MUST_CHECK;

enum checkpoint_choice { CHECKPOINT_ANY, CHECKPOINT_FINAL };
/* Reads the largest checkpoint of an origin; slices live in the arena. ERR_NOT_FOUND. */
int store_get_newest_checkpoint(struct store *store, const char *origin,
                                enum checkpoint_choice choice, struct arena *arena,
                                struct log_checkpoint *ret, struct error *error) MUST_CHECK;
/* Lists the largest final checkpoints of an origin, at most `limit` of them, largest first; the
 * items live in the arena. */
int store_list_final_checkpoints(struct store *store, const char *origin, size_t limit,
                                 struct arena *arena, struct log_checkpoint **ret_items,
                                 size_t *ret_count, struct error *error) MUST_CHECK;
/* Reads the smallest checkpoint that has the entry of that index and `cosigners_min` cosignatures.
 * ERR_NOT_FOUND. */
int store_find_covering_checkpoint(struct store *store, const char *origin, uint64_t index,
                                   int64_t cosigners_min, struct arena *arena,
                                   struct log_checkpoint *ret, struct error *error) MUST_CHECK;
/* Returns whether a log ended with a rollback of the store that was accepted: trees of it that were
 * signed are lost. */
int store_get_log_end(struct store *store, const char *origin, bool *ret_ended, struct error *error)
	MUST_CHECK;

#endif
