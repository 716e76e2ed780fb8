#include "service/key_uses.h"

#include <pthread.h>
#include <stdlib.h>

#define SLOTS_LEAST 256 /* a power of two, like all sizes */

/* Hash table with open addressing, at most half full. */
struct key_uses {
	pthread_mutex_t mutex;
	struct key_use *slots; /* key 0: free */
	size_t size, count;
};

struct key_uses *key_uses_make(void)
{
	struct key_uses *uses = calloc(1, sizeof *uses);
	if (uses)
		pthread_mutex_init(&uses->mutex, NULL);
	return uses;
}

void key_uses_free(struct key_uses *uses)
{
	if (!uses)
		return;
	free(uses->slots);
	pthread_mutex_destroy(&uses->mutex);
	free(uses);
}

static struct key_use *slot_of(struct key_use *slots, size_t size, int64_t key)
{
	size_t at = (size_t)((uint64_t)key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (size - 1);
	while (slots[at].key && slots[at].key != key)
		at = (at + 1) & (size - 1);
	return &slots[at];
}

static bool make_room(struct key_uses *uses)
{
	if (2 * uses->count < uses->size)
		return true;
	size_t size = uses->size ? 2 * uses->size : SLOTS_LEAST;
	struct key_use *slots = uses->count < KEY_USES_MAX ? calloc(size, sizeof *slots) : NULL;
	if (!slots)
		return false;
	for (size_t i = 0; i < uses->size; i++)
		if (uses->slots[i].key)
			*slot_of(slots, size, uses->slots[i].key) = uses->slots[i];
	free(uses->slots);
	uses->slots = slots;
	uses->size = size;
	return true;
}

void key_uses_note(struct key_uses *uses, const struct key_use *use)
{
	pthread_mutex_lock(&uses->mutex);
	if (make_room(uses)) {
		struct key_use *slot = slot_of(uses->slots, uses->size, use->key);
		uses->count += !slot->key;
		if (!slot->key || slot->at_us < use->at_us)
			*slot = *use;
	}
	pthread_mutex_unlock(&uses->mutex);
}

static int compare(const void *a, const void *b)
{
	const struct key_use *left = a, *right = b;
	int accounts = (left->account > right->account) - (left->account < right->account);
	return accounts ? accounts : (left->key > right->key) - (left->key < right->key);
}

struct key_use *key_uses_take(struct key_uses *uses, size_t *ret_count)
{
	pthread_mutex_lock(&uses->mutex);
	struct key_use *slots = uses->slots;
	size_t size = uses->size;
	uses->slots = NULL;
	uses->size = uses->count = 0;
	pthread_mutex_unlock(&uses->mutex);
	size_t count = 0;
	for (size_t i = 0; i < size; i++)
		if (slots[i].key)
			slots[count++] = slots[i];
	if (count)
		qsort(slots, count, sizeof *slots, compare);
	*ret_count = count;
	return slots;
}
