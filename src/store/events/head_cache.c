#include "store/events/head_cache.h"

#include <assert.h>
#include <stdlib.h>

#include "base/tuned.h"

#define SLOTS 16384 /* a power of two; a chain may replace another one */

struct kept_head {
	uint64_t generation; /* of the entry; valid only if equal to that of the cache */
	int64_t account;
	struct loaded_chain chain;
	char channel_id[ID_SIZE];
};

struct head_cache {
	uint64_t generation;
	size_t mask;               /* number of slots used, minus 1 */
	struct db_written written; /* at the end of the last transaction */
	struct kept_head slots[SLOTS];
};

struct head_cache *head_cache_create(void)
{
	struct head_cache *heads = calloc(1, sizeof *heads);
	if (!heads)
		return NULL;
	const size_t used = (size_t)tuned_up_to("head_cache", SLOTS);
	assert((used & (used - 1)) == 0);
	heads->mask = used - 1;
	heads->generation = 1;
	return heads;
}

void head_cache_free(struct head_cache *heads)
{
	free(heads);
}

void head_cache_clear(struct head_cache *heads)
{
	heads->generation++;
}

int head_cache_begin(struct head_cache *heads, struct db_connection *connection,
                     struct error *error)
{
	struct db_written written;
	int result = db_written(connection, &written, error);
	if (result || written.here != heads->written.here ||
	    written.elsewhere != heads->written.elsewhere)
		head_cache_clear(heads);
	return result;
}

int head_cache_finish(struct head_cache *heads, struct db_connection *connection,
                      struct error *error)
{
	return db_written(connection, &heads->written, error);
}

/* Channels are numbered consecutively. */
static size_t slot_of(const struct head_cache *heads, int64_t chain)
{
	return (size_t)(chain / 2) & heads->mask;
}

bool head_cache_find(const struct head_cache *heads, int64_t account, struct arena *arena,
                     struct loaded_chain *chain)
{
	const struct kept_head *kept = &heads->slots[slot_of(heads, chain->ledger.chain)];
	if (kept->generation != heads->generation || kept->account != account ||
	    kept->chain.ledger.chain != chain->ledger.chain)
		return false;
	const char *channel_id = arena_copy(arena, kept->channel_id, strlen(kept->channel_id));
	if (!channel_id)
		return false;
	*chain = kept->chain;
	chain->ledger.channel_id = channel_id;
	return true;
}

void head_cache_put(struct head_cache *heads, int64_t account, const struct loaded_chain *chain)
{
	struct kept_head *kept = &heads->slots[slot_of(heads, chain->ledger.chain)];
	kept->generation = heads->generation;
	kept->account = account;
	kept->chain = *chain;
	store_copy_id(kept->channel_id, slice_of(chain->ledger.channel_id));
	kept->chain.ledger.channel_id = NULL;
	kept->chain.ledger.paid = NULL;
	kept->chain.ledger.changed = false;
	/* A chain with new events is unsealed, and is already listed as such. */
	kept->chain.sealed = chain->sealed && !chain->ledger.changed;
}
