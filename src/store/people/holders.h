/* Whether a thing is an account's, by the identifiers of both: what the rights of users rest on.
 * Thread safe. */
#ifndef STORE_HOLDERS_H
#define STORE_HOLDERS_H

#include "store/store.h"

/* Of a kind as store_holder_kind names it. ERR_NOT_FOUND, in the same words where there is no such
 * thing and where it is another account's. A pack that is on sale to everybody is every account's.
 * ERR_INTERNAL: there is no such kind. */
int store_check_holder(struct store *store, const char *kind, struct slice id,
                       struct slice account_id, struct error *error) MUST_CHECK;
/* All kinds in turn: "channel", "key", …; NULL past the end. */
const char *store_holder_kind(size_t index);

#endif
