/* Chain heads as the last batches left them, so that they are read from the embedded store only
 * where something else was written since. One thread at a time. */
#ifndef STORE_KEPT_HEADS_H
#define STORE_KEPT_HEADS_H

#include "store/events/register_batch.h"

struct kept_heads;

struct kept_heads *kept_heads_make(void);
void kept_heads_free(struct kept_heads *heads); /* NULL-safe */

/* At the beginning of a write transaction: forgets all when anybody wrote since the end of the last
 * one. */
int kept_heads_begin(struct kept_heads *heads, struct db_connection *connection,
                     struct error *error) MUST_CHECK;
/* Behind the last that it writes, before its commit. */
int kept_heads_finish(struct kept_heads *heads, struct db_connection *connection,
                      struct error *error) MUST_CHECK;
/* Fills a chain whose number is there; the identifier is the arena's. False: it is not kept, or
 * there is no memory. */
bool kept_heads_find(const struct kept_heads *heads, int64_t account, struct arena *arena,
                     struct loaded_chain *chain) MUST_CHECK;
/* It is committed, and this is how it left the chain. */
void kept_heads_keep(struct kept_heads *heads, int64_t account, const struct loaded_chain *chain);
/* It is not, or nobody knows. */
void kept_heads_forget(struct kept_heads *heads);

#endif
