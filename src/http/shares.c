#include "http/shares.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"

#define BUCKETS 1024 /* a power of two */

struct entry {
	uint64_t owner;
	int64_t held;
	struct entry *next;
};

struct shares {
	struct entry *buckets[BUCKETS];
};

struct shares *shares_create(void)
{
	return calloc(1, sizeof(struct shares));
}

void shares_free(struct shares *shares)
{
	if (!shares)
		return;
	for (unsigned i = 0; i < BUCKETS; i++) {
		while (shares->buckets[i]) {
			struct entry *entry = shares->buckets[i];
			shares->buckets[i] = entry->next;
			free(entry);
		}
	}
	free(shares);
}

static struct entry **find(struct shares *shares, uint64_t owner)
{
	struct entry **at = &shares->buckets[owner & (BUCKETS - 1)];
	while (*at && (*at)->owner != owner)
		at = &(*at)->next;
	return at;
}

int64_t share_held(struct shares *shares, uint64_t owner)
{
	const struct entry *entry = *find(shares, owner);
	return entry ? entry->held : 0;
}

int share_take(struct shares *shares, uint64_t owner, int64_t amount, int64_t limit)
{
	assert(amount >= 0);
	struct entry **at = find(shares, owner);
	if (amount > limit - (*at ? (*at)->held : 0))
		return ERR_RATE_LIMITED;
	if (!*at && (*at = calloc(1, sizeof **at)))
		(*at)->owner = owner;
	if (!*at)
		return ERR_NO_MEMORY;
	(*at)->held += amount;
	return 0;
}

void share_release(struct shares *shares, uint64_t owner, int64_t amount)
{
	struct entry **at = find(shares, owner);
	struct entry *entry = *at;
	assert(entry && amount >= 0 && entry->held >= amount);
	entry->held -= amount;
	if (entry->held > 0)
		return;
	*at = entry->next;
	free(entry);
}
