/* How far each store had come, as the signing process's log tells it. Inside src/seal only. */
#ifndef SEAL_SIGNER_MARKS_H
#define SEAL_SIGNER_MARKS_H

#include "seal/signer.h"
#include "seal/signer_log.h"

struct signer_marks {
	size_t count;
	struct {
		char store_id[SIGNER_STORE_ID_SIZE];
		struct signer_mark mark;
	} items[SIGNER_STORES_MAX]; /* the one touched last stands last */
};

bool signer_store_id_valid(struct slice store_id);
/* Round 0 when the store is not known. */
struct signer_mark signer_marks_find(const struct signer_marks *marks, struct slice store_id);
/* In place of the store's mark; when there is no room the store touched longest ago is
 * forgotten. */
void signer_marks_put(struct signer_marks *marks, struct slice store_id,
                      const struct signer_mark *mark);
/* A signer_log_visit; context: struct signer_marks. */
int signer_marks_learn(void *context, const struct signer_log_entry *entry);

#endif
