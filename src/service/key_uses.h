/* Buffer for the times of last use of keys, until a job writes them to the store. Internal to
 * src/service. Thread safe. */
#ifndef SERVICE_KEY_USES_H
#define SERVICE_KEY_USES_H

#include "store/usage/usage.h"

#define KEY_USES_MAX ((size_t)1 << 17) /* keys; uses of further keys are dropped */

struct key_uses;
struct key_uses *key_uses_make(void);      /* NULL: no memory */
void key_uses_free(struct key_uses *uses); /* NULL-safe */
/* Records a use; the latest time is kept. Fast: one hash table lookup. */
void key_uses_note(struct key_uses *uses, const struct key_use *use);
/* Removes and returns all uses, sorted by account and key; the caller frees them. NULL: none, or
 * out of memory. */
struct key_use *key_uses_take(struct key_uses *uses, size_t *ret_count);

#endif
