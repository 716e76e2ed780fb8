/* The certificates above a timestamp authority's that its token does not have inside: kept in the
 * store when a round is sealed, and put into archives beside the rounds. One thread at a time. */
#ifndef SERVICE_TOKEN_PATH_H
#define SERVICE_TOKEN_PATH_H

#include "base/arena.h"
#include "proof/archive.h"
#include "seal/authority.h"
#include "store/events/validation.h"

/* Before the round is written. */
int token_path_keep(struct store *store, const struct authority_result *stamped,
                    struct error *error) MUST_CHECK;

/* What the tokens of an archive need, each object once. Zeroed to begin with. */
struct token_needs {
	struct arena arena;
	struct archive_object *objects; /* in order of their SHA-256 */
	struct sha256 *hashes;
	size_t count;
};
void token_needs_free(struct token_needs *needs); /* also when zeroed */

/* Fills in what a token names, which lives in `arena`, and notes it. ERR_TOO_LARGE: more than an
 * archive may hold. */
int token_needs_add(struct token_needs *needs, struct store *store, struct arena *arena,
                    struct archive_token *token, struct error *error) MUST_CHECK;
/* Behind all rounds. */
int token_needs_write(const struct token_needs *needs, struct archive *archive, struct error *error)
	MUST_CHECK;

#endif
