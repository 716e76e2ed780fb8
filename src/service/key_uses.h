/* When keys were last used, until a job writes it down. Inside src/service only. Thread safe. */
#ifndef SERVICE_KEY_USES_H
#define SERVICE_KEY_USES_H

#include "store/usage/usage.h"

#define KEY_USES_MAX ((size_t)1 << 17) /* keys; what is beyond is not noted this time */

struct key_uses;
struct key_uses *key_uses_make(void);      /* NULL: no memory */
void key_uses_free(struct key_uses *uses); /* NULL-safe */
/* The latest time stays. Short: a look-up in a table. */
void key_uses_note(struct key_uses *uses, const struct key_use *use);
/* Takes all out, by account and key: the caller frees them. NULL: none, or no memory. */
struct key_use *key_uses_take(struct key_uses *uses, size_t *ret_count);

#endif
