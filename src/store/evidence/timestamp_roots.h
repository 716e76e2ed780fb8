/* The roots that the timestamps of this store's rounds and signatures led to. They stay when the
 * authorities change: evidence of before is verified by them. Thread safe. */
#ifndef STORE_EVIDENCE_TIMESTAMP_ROOTS_H
#define STORE_EVIDENCE_TIMESTAMP_ROOTS_H

#include "store/store.h"

/* Durably. A root that is known stays as it is. ERR_FULL: TIMESTAMP_ROOTS_MAX others are kept. */
int store_add_timestamp_root(struct store *store, const struct sha256 *sha256, struct slice pem,
                             struct error *error) MUST_CHECK;
/* PEM texts in the arena, the first used first. */
int store_list_timestamp_roots(struct store *store, struct arena *arena, const char ***ret_items,
                               size_t *ret_count, struct error *error) MUST_CHECK;

#endif
