/* MAC secrets of download links. A new secret is used only some time after its creation, so that
 * every node knows it by then. The replaced secret stays valid for the lifetime of a link. */
#ifndef STORE_LINK_SECRETS_H
#define STORE_LINK_SECRETS_H

#include "store/store.h"

#define LINK_SECRETS_MAX 16

struct link_secret {
	struct sha256 secret;
	int64_t used_from_us;   /* by the clock shared by all nodes (store_now_us) */
	int64_t valid_until_us; /* INT64_MAX: until it is replaced */
};

/* Reads all valid secrets in order of creation; creates the first one. */
int store_read_link_secrets(struct store *store, struct link_secret ret_secrets[LINK_SECRETS_MAX],
                            size_t *ret_count, struct error *error) MUST_CHECK;
/* Creates a secret that is used from now + spread_us on; the other secrets expire lifetime_us after
 * that. With `at_once` the new secret is used, and the others expire, immediately. Returns
 * ERR_REFUSED when LINK_SECRETS_MAX secrets are valid. */
int store_rotate_link_secret(struct store *store, int64_t spread_us, int64_t lifetime_us,
                             bool at_once, struct error *error) MUST_CHECK;

#endif
