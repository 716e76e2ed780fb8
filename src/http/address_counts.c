#include "http/address_counts.h"

#include <assert.h>
#include <stdlib.h>

#define BUCKETS 1024 /* a power of two */

struct entry {
	uint64_t address;
	int64_t count;
	struct entry *next;
};

struct address_counts {
	struct entry *buckets[BUCKETS];
};

struct address_counts *address_counts_create(void)
{
	return calloc(1, sizeof(struct address_counts));
}

void address_counts_free(struct address_counts *counts)
{
	if (!counts)
		return;
	for (unsigned i = 0; i < BUCKETS; i++) {
		while (counts->buckets[i]) {
			struct entry *entry = counts->buckets[i];
			counts->buckets[i] = entry->next;
			free(entry);
		}
	}
	free(counts);
}

static struct entry **find(struct address_counts *counts, uint64_t address)
{
	struct entry **at = &counts->buckets[address & (BUCKETS - 1)];
	while (*at && (*at)->address != address)
		at = &(*at)->next;
	return at;
}

bool address_count_take(struct address_counts *counts, uint64_t address, int64_t limit)
{
	struct entry **at = find(counts, address);
	if (*at ? (*at)->count >= limit : limit < 1)
		return false;
	if (!*at && (*at = calloc(1, sizeof **at)))
		(*at)->address = address;
	if (*at)
		(*at)->count++;
	return *at != NULL;
}

void address_count_give(struct address_counts *counts, uint64_t address)
{
	struct entry **at = find(counts, address);
	struct entry *entry = *at;
	assert(entry && entry->count > 0);
	if (--entry->count > 0)
		return;
	*at = entry->next;
	free(entry);
}
