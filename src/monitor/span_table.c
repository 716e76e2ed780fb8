#include "monitor/span_table.h"

#include <stdlib.h>

#include "base/digest.h"

#define CAPACITY_FIRST 1024

/* Multilinear hashing: a log, which chooses the tags in it, cannot know which of them collide. */
static uint64_t hash_of(const struct span_table *table, const struct sha256 *tag)
{
	uint64_t hash = 0;
	for (size_t i = 0; i < SPAN_TABLE_SEEDS; i++) {
		uint32_t word;
		memcpy(&word, tag->bytes + i * sizeof word, sizeof word);
		hash += table->seeds[i] * word;
	}
	return hash >> 32;
}

static struct span_slot *find_slot(const struct span_table *table, struct span_slot *slots,
                                   size_t capacity, const struct sha256 *tag)
{
	for (size_t at = hash_of(table, tag) & (capacity - 1);; at = (at + 1) & (capacity - 1))
		if (slots[at].span.entries == 0 || sha256_equal(&slots[at].tag, tag))
			return &slots[at];
}

static int grow(struct span_table *table)
{
	size_t capacity = table->capacity ? 2 * table->capacity : CAPACITY_FIRST;
	struct span_slot *slots = calloc(capacity, sizeof *slots);
	if (!slots)
		return ERR_NO_MEMORY;
	if (table->capacity == 0)
		random_bytes(table->seeds, sizeof table->seeds);
	for (size_t i = 0; i < table->capacity; i++)
		if (table->slots[i].span.entries > 0)
			*find_slot(table, slots, capacity, &table->slots[i].tag) = table->slots[i];
	free(table->slots);
	table->slots = slots;
	table->capacity = capacity;
	return OK;
}

int span_table_find(struct span_table *table, const struct sha256 *tag, struct chain_span **ret,
                    struct error *error)
{
	bool is_full = table->count >= table->capacity / 4 * 3 && table->count < SPAN_TABLE_MAX;
	int result = is_full ? grow(table) : OK;
	if (result)
		return result == ERR_NO_MEMORY
		           ? error_cause(error, result, "the %zu chains of the log so far need more memory",
		                         table->count)
		           : result;
	struct span_slot *slot = find_slot(table, table->slots, table->capacity, tag);
	if (slot->span.entries == 0) {
		if (table->count == SPAN_TABLE_MAX)
			return error_cause(
				error, ERR_TOO_LARGE,
				"the log has more than %zu chains, which is the most that an audit "
				"can hold. Watch the chains that matter to you: constancia log watch",
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
