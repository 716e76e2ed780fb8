/* Validation data of round timestamps that is not inside their tokens: certificates, and later
 * revocation information. Each object is stored once, whatever number of tokens need it. A token is
 * identified by the SHA-256 of its bytes, for both timestamps of a round. Nothing is ever removed.
 * Thread safe. */
#ifndef STORE_EVENTS_VALIDATION_RECORDS_H
#define STORE_EVENTS_VALIDATION_RECORDS_H

#include "base/validation_object.h"
#include "store/store.h"

#define TOKEN_OBJECTS_MAX 64 /* of one token */

/* Stores the objects of a token, durably, before its round is written, so that no round lacks them.
 * Objects and tokens that are already known are not changed. */
int store_write_validation(struct store *store, const struct sha256 *token_hash,
                           const struct validation_object *objects, size_t count, int64_t now_us,
                           struct error *error) MUST_CHECK;

/* Lists the objects of a token, in order of their SHA-256, in the arena; none when the token needs
 * none. Returns ERR_CORRUPT when an object does not match its digest, or when there are more than
 * TOKEN_OBJECTS_MAX. */
int store_list_validation(struct store *store, const struct sha256 *token_hash, struct arena *arena,
                          const struct validation_object **ret_objects, size_t *ret_count,
                          struct error *error) MUST_CHECK;

#endif
