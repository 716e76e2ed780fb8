/* Cache of chain heads as left by the last batches. The embedded store is read only for heads that
 * are not cached or after another writer. One thread at a time. */
#ifndef STORE_EVENTS_HEAD_CACHE_H
#define STORE_EVENTS_HEAD_CACHE_H

#include "store/events/register_batch.h"

struct head_cache;

struct head_cache *head_cache_create(void);
void head_cache_free(struct head_cache *heads); /* NULL-safe */

/* At the beginning of a write transaction: clears the cache when there was another writer since the
 * end of the last one. */
int head_cache_begin(struct head_cache *heads, struct db_connection *connection,
                     struct error *error) MUST_CHECK;
/* After the last write of the transaction, before its commit. */
int head_cache_finish(struct head_cache *heads, struct db_connection *connection,
                      struct error *error) MUST_CHECK;
/* Fills a chain whose number is set; the identifier lives in the arena. Returns false when the head
 * is not cached or memory is exhausted. */
bool head_cache_find(const struct head_cache *heads, int64_t account, struct arena *arena,
                     struct loaded_chain *chain) MUST_CHECK;
/* Caches the head of a chain after the commit. */
void head_cache_put(struct head_cache *heads, int64_t account, const struct loaded_chain *chain);
/* Clears the cache after a rollback or a commit of unknown outcome. */
void head_cache_clear(struct head_cache *heads);

#endif
