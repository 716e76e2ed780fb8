/* The signed list of the certificates that sign for this service (archive/signer_list.h): signed by
 * the key in force, with a timestamp, when the list changes and once a day; kept in the store, from
 * where it is handed out and put into archives. Thread safe. */
#ifndef EVIDENCE_SIGNER_LISTING_H
#define EVIDENCE_SIGNER_LISTING_H

#include "service/service.h"

#define SIGNER_LISTING_NAME "signers.p7m"
#define SIGNER_LISTING_MAX ((size_t)9 << 20)

/* Whether this node could sign a newer one now, and one is due. */
int signer_listing_is_due(struct service *service, bool *ret_due, struct error *error) MUST_CHECK;
/* Signs it and puts it into the store. Waits for an authority. ERR_UNAVAILABLE, too, when the list
 * changed meanwhile. */
int signer_listing_sign(struct service *service, struct error *error) MUST_CHECK;
/* Appends the one that says what the store says now. ERR_NOT_FOUND with the sentence: there is none
 * (no longer, or not yet). */
int signer_listing_get(struct store *store, struct buf *out, struct error *error) MUST_CHECK;

#endif
