#include "seal/signer_marks.h"

#include <assert.h>

bool signer_store_id_valid(struct slice store_id)
{
	unsigned char bytes[SIGNER_STORE_ID_SIZE / 2];

	return hex_decode(store_id, bytes, sizeof bytes);
}

static size_t position(const struct signer_marks *marks, struct slice store_id)
{
	assert(marks->count <= SIGNER_STORES_MAX);
	size_t at = 0;

	while (at < marks->count &&
	       !slice_equal(slice_make(marks->items[at].store_id, SIGNER_STORE_ID_SIZE), store_id))
		at++;
	return at;
}

struct signer_mark signer_marks_find(const struct signer_marks *marks, struct slice store_id)
{
	size_t at = position(marks, store_id);

	return at < marks->count ? marks->items[at].mark : (struct signer_mark){0};
}

void signer_marks_set(struct signer_marks *marks, struct slice store_id,
                      const struct signer_mark *mark)
{
	assert(store_id.size == SIGNER_STORE_ID_SIZE && mark->round >= 0);
	size_t at = position(marks, store_id);

	if (at == marks->count && at == SIGNER_STORES_MAX)
		at = 0;
	if (at < marks->count) {
		marks->count--;
		memmove(&marks->items[at], &marks->items[at + 1],
		        (marks->count - at) * sizeof *marks->items);
	}
	assert(marks->count < SIGNER_STORES_MAX);
	memcpy(marks->items[marks->count].store_id, store_id.data, SIGNER_STORE_ID_SIZE);
	marks->items[marks->count].mark = *mark;
	marks->count++;
}

int signer_marks_read_entry(void *context, const struct signer_log_entry *entry)
{
	struct signer_mark mark = {entry->round, entry->sha256};

	if ((slice_is(entry->purpose, "round") || slice_is(entry->purpose, "rollback_accepted")) &&
	    signer_store_id_valid(entry->store))
		signer_marks_set(context, entry->store, &mark);
	return OK;
}
