/* Validation data for the timestamps of an archive: the certificates stored for their tokens, and
 * revocation data for these. The archive contains each object once. Not thread safe. */
#ifndef ISSUE_ARCHIVE_VALIDATION_H
#define ISSUE_ARCHIVE_VALIDATION_H

#include "archive/archive.h"
#include "base/arena.h"
#include "issue/token_revocations.h"
#include "store/store.h"

/* Initialized with zeros, except revocations.work. */
struct archive_validation {
	struct token_revocations revocations;
	struct arena arena;
	struct archive_object *objects; /* sorted by SHA-256 */
	struct sha256 *hashes;
	size_t count;
};
void archive_validation_free(struct archive_validation *needs); /* also when zeroed */

/* Fills in and collects the objects that a round's tokens reference; the references are allocated
 * in `arena`. ERR_TOO_LARGE: the archive would exceed its limit. ERR_UNAVAILABLE: the data must be
 * waited for (token_revocations_check_round). ERR_* of the store. */
int archive_validation_add(struct archive_validation *needs, struct store *store,
                           struct arena *arena, struct archive_round *round, struct error *error)
	MUST_CHECK;
/* Writes the objects. To be called after all rounds. */
int archive_validation_write(const struct archive_validation *needs, struct archive *archive,
                             struct error *error) MUST_CHECK;

#endif
