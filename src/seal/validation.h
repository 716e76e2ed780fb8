/* What validates signatures and tokens and is not inside them: certificates, CRLs (RFC 5280) and
 * OCSP responses (RFC 6960), each once by its SHA-256, in ascending order of it. Whoever adds an
 * object has verified it. Not thread safe. */
#ifndef SEAL_VALIDATION_H
#define SEAL_VALIDATION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/validation_object.h"

#define VALIDATION_OBJECTS_MAX 256
#define VALIDATION_BYTES_MAX ((size_t)32 << 20)

/* Zeroed: empty. Members are read, and changed by the functions alone. */
struct validation_set {
	struct validation_object *objects; /* `count` of them; the set owns their bytes */
	size_t count;
	size_t size_bytes; /* of all objects */
};

/* Copies the object in; one that is there already changes nothing. 0, ERR_VALIDATION: it is empty,
 * ERR_TOO_LARGE: beyond one of the bounds, ERR_NO_MEMORY; the set is then as it was. */
int validation_add(struct validation_set *set, enum validation_kind kind, struct slice der,
                   struct error *error) MUST_CHECK;
/* Adds all that `other` holds. On failure some of it may have been added. */
int validation_add_all(struct validation_set *set, const struct validation_set *other,
                       struct error *error) MUST_CHECK;
/* Takes out the object at `index`, below `count`. */
void validation_remove(struct validation_set *set, size_t index);
/* NULL: it is not there. */
const struct validation_object *validation_find(const struct validation_set *set,
                                                const struct sha256 *sha256);
/* Empties it; NULL-safe, also for a zeroed set. */
void validation_free(struct validation_set *set);
#define VALIDATION_AUTO __attribute__((cleanup(validation_free)))

#endif
