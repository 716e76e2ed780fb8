/* The signed list of the certificates that sign for this service (archive/signer_list.h). The key
 * in force signs it, with a timestamp, when the list changes and once a day. It is stored in the
 * store, published from there and included in archives. Thread safe. */
#ifndef EVIDENCE_SIGNER_LISTING_H
#define EVIDENCE_SIGNER_LISTING_H

#include "service/service.h"

#define SIGNER_LISTING_NAME "signers.p7m"
#define SIGNER_LISTING_MAX ((size_t)9 << 20)

/* Records the keys with which this node signs receipts and checkpoints, so that lists name them.
 * ERR_FULL: too many nodes have signed with keys of their own. */
int signer_listing_add_keys(struct service *service, struct error *error) MUST_CHECK;
/* Proves that this node's key of receipts signs for a certificate, if receipts are signed here; the
 * key was added before. *ret_done false: the key did not sign. */
int signer_listing_prove(struct service *service, const struct sha256 *certificate, bool *ret_done,
                         struct error *error) MUST_CHECK;
/* Determines whether a new list is due and this node can sign it. */
int signer_listing_is_due(struct service *service, bool *ret_due, struct error *error) MUST_CHECK;
/* Signs the list and stores it. Blocks on an authority. ERR_UNAVAILABLE: also if the list changed
 * in the meantime. */
int signer_listing_sign(struct service *service, struct error *error) MUST_CHECK;
/* Appends the signed list if it matches the present list in the store. ERR_NOT_FOUND with a
 * message: there is none (no longer, or not yet). */
int signer_listing_get(struct store *store, struct buf *out, struct error *error) MUST_CHECK;

#endif
