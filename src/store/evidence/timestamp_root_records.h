/* Root certificates of the timestamps of this store's rounds and signatures. They are kept when the
 * timestamp authorities change, to verify earlier evidence. Thread safe. */
#ifndef STORE_EVIDENCE_TIMESTAMP_ROOT_RECORDS_H
#define STORE_EVIDENCE_TIMESTAMP_ROOT_RECORDS_H

#include "store/store.h"

/* Adds a root durably. A known root is not changed. Returns ERR_FULL when there are
 * TIMESTAMP_ROOTS_MAX other roots. */
int store_add_timestamp_root(struct store *store, const struct sha256 *sha256, struct slice pem,
                             struct error *error) MUST_CHECK;
/* Lists the roots as PEM texts in the arena, in order of first use. */
int store_list_timestamp_roots(struct store *store, struct arena *arena, const char ***ret_items,
                               size_t *ret_count, struct error *error) MUST_CHECK;

#endif
