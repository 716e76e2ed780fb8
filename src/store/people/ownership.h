/* Ownership: whether an object belongs to an account, by the identifiers of both. The authorization
 * of console users is based on it. Thread safe. */
#ifndef STORE_PEOPLE_OWNERSHIP_H
#define STORE_PEOPLE_OWNERSHIP_H

#include "store/store.h"

/* Checks the ownership of an object whose kind is one of store_ownership_kind. Returns
 * ERR_NOT_FOUND with the same message whether the object does not exist or belongs to another
 * account. A pack that is on sale to all belongs to every account. Returns ERR_INTERNAL for an
 * unknown kind. */
int store_check_ownership(struct store *store, const char *kind, struct slice id,
                          struct slice account_id, struct error *error) MUST_CHECK;
/* Enumerates the kinds: "channel", "key", …; NULL after the last one. */
const char *store_ownership_kind(size_t index);

#endif
