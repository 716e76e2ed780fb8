/* What the timestamps of an archive need beside them: the certificates that the store keeps for
 * their tokens, and what says that these were not revoked. Each object is once in the archive,
 * whatever the number of tokens. One thread at a time. */
#ifndef ISSUE_TOKEN_NEEDS_H
#define ISSUE_TOKEN_NEEDS_H

#include "archive/archive.h"
#include "base/arena.h"
#include "issue/token_revocations.h"
#include "store/store.h"

/* Zeroed to begin with, but for revocations.work. */
struct token_needs {
	struct token_revocations revocations;
	struct arena arena;
	struct archive_object *objects; /* in order of their SHA-256 */
	struct sha256 *hashes;
	size_t count;
};
void token_needs_free(struct token_needs *needs); /* also when zeroed */

/* Fills in what a round's tokens name, which lives in `arena`, and notes it. ERR_TOO_LARGE: more
 * than an archive may hold; ERR_UNAVAILABLE: it is to be waited for
 * (token_revocations_check_round); or what the store answers. */
int token_needs_add(struct token_needs *needs, struct store *store, struct arena *arena,
                    struct archive_round *round, struct error *error) MUST_CHECK;
/* Behind all rounds. */
int token_needs_write(const struct token_needs *needs, struct archive *archive, struct error *error)
	MUST_CHECK;

#endif
