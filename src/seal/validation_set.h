/* Validation data that is not inside signatures and tokens: certificates, CRLs (RFC 5280) and OCSP
 * responses (RFC 6960), without duplicates, in ascending order of SHA-256. The caller verifies an
 * object before adding it. Not thread safe. */
#ifndef SEAL_VALIDATION_SET_H
#define SEAL_VALIDATION_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/validation_object.h"

#define VALIDATION_SET_OBJECTS_MAX 256
#define VALIDATION_SET_BYTES_MAX ((size_t)32 << 20)

/* Zeroed: empty. Callers may read the members; only the functions change them. */
struct validation_set {
	struct validation_object *objects; /* `count` objects; the set owns their bytes */
	size_t count;
	size_t size_bytes; /* of all objects */
};

/* Adds a copy of the object, unless the set contains it. Returns 0; ERR_VALIDATION: it is empty;
 * ERR_TOO_LARGE: a limit is exceeded; ERR_NO_MEMORY. On an error the set is unchanged. */
int validation_set_add(struct validation_set *set, enum validation_kind kind, struct slice der,
                       struct error *error) MUST_CHECK;
/* Adds all objects of `other`. On an error some may have been added. */
int validation_set_add_all(struct validation_set *set, const struct validation_set *other,
                           struct error *error) MUST_CHECK;
/* Removes the object at `index`, which must be below `count`. */
void validation_set_remove(struct validation_set *set, size_t index);
/* Returns the object with that SHA-256; NULL: not in the set. */
const struct validation_object *validation_set_find(const struct validation_set *set,
                                                    const struct sha256 *sha256);
/* Empties the set. NULL-safe, also for a zeroed set. */
void validation_set_free(struct validation_set *set);
#define VALIDATION_SET_AUTO __attribute__((cleanup(validation_set_free)))

#endif
