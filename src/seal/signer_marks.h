/* The last sealed round of each store, from the signing process's log. For src/seal only. */
#ifndef SEAL_SIGNER_MARKS_H
#define SEAL_SIGNER_MARKS_H

#include "seal/signer.h"
#include "seal/signer_log.h"

struct signer_marks {
	size_t count;
	struct {
		char store_id[SIGNER_STORE_ID_SIZE];
		struct signer_mark mark;
	} items[SIGNER_STORES_MAX]; /* least recently used first */
};

bool signer_store_id_valid(struct slice store_id);
/* Returns the mark of a store; round 0: unknown store. */
struct signer_mark signer_marks_find(const struct signer_marks *marks, struct slice store_id);
/* Replaces or adds the mark of a store; when full, the least recently used store is evicted. */
void signer_marks_set(struct signer_marks *marks, struct slice store_id,
                      const struct signer_mark *mark);
/* A signer_log_visit callback; its context is a struct signer_marks. */
int signer_marks_read_entry(void *context, const struct signer_log_entry *entry);

#endif
