#include "monitor/span_table.h"

#include <stdlib.h>

#define CAPACITY_FIRST 1024

/* Tags are digests, but of documents that others choose: a service could make tags with equal
 * beginnings. It would slow down the audit of its own log, and nothing else. */
static struct span_slot *find_slot(const struct span_slot *slots, size_t capacity,
                                   const struct sha256 *tag)
{
	uint64_t hash;
	memcpy(&hash, tag->bytes, sizeof hash);
	for (size_t at = hash & (capacity - 1);; at = (at + 1) & (capacity - 1))
		if (slots[at].span.entries == 0 || sha256_equal(&slots[at].tag, tag))
			return (struct span_slot *)&slots[at];
}

static int grow(struct span_table *table)
{
	size_t capacity = table->capacity ? 2 * table->capacity : CAPACITY_FIRST;
	struct span_slot *slots = calloc(capacity, sizeof *slots);
	if (!slots)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < table->capacity; i++)
		if (table->slots[i].span.entries > 0)
			*find_slot(slots, capacity, &table->slots[i].tag) = table->slots[i];
	free(table->slots);
	table->slots = slots;
	table->capacity = capacity;
	return OK;
}

int span_table_find(struct span_table *table, const struct sha256 *tag, struct chain_span **ret,
                    struct error *error)
{
	int result = table->count >= table->capacity / 2 ? grow(table) : OK;
	if (result)
		return result;
	struct span_slot *slot = find_slot(table->slots, table->capacity, tag);
	if (slot->span.entries == 0) {
		if (table->count == SPAN_TABLE_MAX)
			return error_cause(error, ERR_TOO_LARGE, "the log has more than %zu chains",
			                   SPAN_TABLE_MAX);
		slot->tag = *tag;
		table->count++;
	}
	*ret = &slot->span;
	return OK;
}

void span_table_free(struct span_table *table)
{
	free(table->slots);
	*table = (struct span_table){0};
}
