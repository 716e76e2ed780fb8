/* The Ed25519 keys with which nodes have signed receipts and checkpoints of the log. They are never
 * deleted, so that the signed list of signers can name all of them. Thread safe. */
#ifndef STORE_EVIDENCE_PUBLIC_KEYS_H
#define STORE_EVIDENCE_PUBLIC_KEYS_H

#include "store/store.h"

#define PUBLIC_KEYS_MAX 1000 /* of each kind */

enum public_key_kind { PUBLIC_KEY_LOG, PUBLIC_KEY_RECEIPT };

struct public_key {
	const char *key; /* base64 of a receipt's key, or the log's verifier key */
	int64_t used_from_us;
	int64_t used_until_us; /* TIME_NONE: in use */
	/* That the key signs for the service with a certificate (archive/signer_list.h); NULL: none. */
	const char *proof;    /* base64 */
	const char *proof_of; /* digest of the certificate, hexadecimal */
};

/* Adds a key, durably, as used from now on. A known key is not changed. Returns ERR_REFUSED when it
 * was ended, ERR_FULL when there are PUBLIC_KEYS_MAX other keys of that kind. */
int store_add_public_key(struct store *store, enum public_key_kind kind, const char *key,
                         struct error *error) MUST_CHECK;
/* Replaces the proof of a known key of receipts, durably. */
int store_put_key_proof(struct store *store, const char *key, const char *proof,
                        const char *proof_of, struct error *error) MUST_CHECK;
/* Ends the use of a key of either kind, durably. ERR_NOT_FOUND: it is unknown, or was ended. */
int store_end_public_key(struct store *store, struct slice key, struct error *error) MUST_CHECK;
/* Lists the keys of a kind in the arena, in order of first use. */
int store_list_public_keys(struct store *store, enum public_key_kind kind, struct arena *arena,
                           struct public_key **ret_items, size_t *ret_count, struct error *error)
	MUST_CHECK;

#endif
