/* The secrets of download links' MACs. A new one is used for links some time after it was made, so
 * that every node knows it by then; the one it replaces stays valid as long as a link lives. */
#ifndef STORE_LINK_SECRETS_H
#define STORE_LINK_SECRETS_H

#include "store/store.h"

#define LINK_SECRETS_MAX 16

struct link_secret {
	struct sha256 secret;
	int64_t used_from_us;   /* by the clock that all nodes share (store_now_us) */
	int64_t valid_until_us; /* INT64_MAX: until it is replaced */
};

/* All that are valid now, in order of their making; makes the first. */
int store_read_link_secrets(struct store *store, struct link_secret ret_secrets[LINK_SECRETS_MAX],
                            size_t *ret_count, struct error *error) MUST_CHECK;
/* Makes a new one, used from now + spread_us on; the others end lifetime_us after that, or at once
 * when `at_once`: then the new one is used at once, too. ERR_REFUSED when LINK_SECRETS_MAX are
 * valid. */
int store_rotate_link_secret(struct store *store, int64_t spread_us, int64_t lifetime_us,
                             bool at_once, struct error *error) MUST_CHECK;

#endif
