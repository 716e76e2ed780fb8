/* What validates the timestamps of rounds and is not inside their tokens: certificates, and later
 * what says that these were not revoked. Each object is kept once, whatever tokens need it; a token
 * is known by the SHA-256 of its bytes, whichever of a round's it is. Nothing is ever removed.
 * Thread safe. */
#ifndef STORE_VALIDATION_H
#define STORE_VALIDATION_H

#include "base/validation_object.h"
#include "store/store.h"

#define TOKEN_OBJECTS_MAX 64 /* of one token */

/* Durably, before the round is written that has the token: so no round is ever without. Objects and
 * tokens that are known already stay as they are. */
int store_write_validation(struct store *store, const struct sha256 *token_hash,
                           const struct validation_object *objects, size_t count, int64_t now_us,
                           struct error *error) MUST_CHECK;

/* Those of a token, in order of their SHA-256, in the arena; none: a token that needs none.
 * ERR_CORRUPT when one is not what it is known by, or there are more than TOKEN_OBJECTS_MAX.
 */
int store_list_validation(struct store *store, const struct sha256 *token_hash, struct arena *arena,
                          const struct validation_object **ret_objects, size_t *ret_count,
                          struct error *error) MUST_CHECK;

#endif
