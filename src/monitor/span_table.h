/* The spans of all chains of a log, by tag: a hash table that only grows. One thread at a time. */
#ifndef MONITOR_SPAN_TABLE_H
#define MONITOR_SPAN_TABLE_H

#include "base/error.h"
#include "monitor/chain_span.h"

/* Chains. A slot has 56 bytes, and three quarters of the slots are used at most: 75 to 150 bytes
 * for each chain, and half as much again while the table grows. So 1.4 GB at most. */
#define SPAN_TABLE_MAX ((size_t)12 << 20)
#define SPAN_TABLE_SEEDS (SHA256_SIZE / sizeof(uint32_t))

struct span_slot {
	struct sha256 tag;
	struct chain_span span; /* no entries: the slot is free */
};
/* A zeroed table is empty. */
struct span_table {
	struct span_slot *slots;
	size_t capacity; /* 0, or a power of two */
	size_t count;
	uint64_t seeds[SPAN_TABLE_SEEDS]; /* of this table: a log that knew them could make it slow */
};

/* Returns the span of a tag, to which the caller adds an entry at once. ERR_NO_MEMORY;
 * ERR_TOO_LARGE with the cause: the log has more than SPAN_TABLE_MAX chains. */
int span_table_find(struct span_table *table, const struct sha256 *tag, struct chain_span **ret,
                    struct error *error) MUST_CHECK;
void span_table_free(struct span_table *table);

#endif
