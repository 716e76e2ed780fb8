/* The spans of all chains of a log, by tag: a hash table that only grows. One thread at a time. */
#ifndef MONITOR_SPAN_TABLE_H
#define MONITOR_SPAN_TABLE_H

#include "base/error.h"
#include "monitor/chain_span.h"

#define SPAN_TABLE_MAX ((size_t)8 << 20) /* chains: 0.9 GB at most */

struct span_slot {
	struct sha256 tag;
	struct chain_span span; /* no entries: the slot is free */
};
/* A zeroed table is empty. */
struct span_table {
	struct span_slot *slots;
	size_t capacity; /* 0, or a power of two */
	size_t count;
};

/* Returns the span of a tag, to which the caller adds an entry at once. ERR_NO_MEMORY;
 * ERR_TOO_LARGE with the cause: the log has more than SPAN_TABLE_MAX chains. */
int span_table_find(struct span_table *table, const struct sha256 *tag, struct chain_span **ret,
                    struct error *error) MUST_CHECK;
void span_table_free(struct span_table *table);

#endif
