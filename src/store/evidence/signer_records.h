/* The signing certificates, in the store that all nodes share. One of them is in force, or none;
 * the others are kept as history. So a node without a key, or with a different key than the others,
 * is refused at its start, and a change applies to all nodes.
 *
 * A certificate that was ended never comes into force again. */
#ifndef STORE_EVIDENCE_SIGNER_RECORDS_H
#define STORE_EVIDENCE_SIGNER_RECORDS_H

#include "store/store.h"

struct signer_record {
	int64_t number; /* from 1 */
	struct sha256 sha256;
	bool development;
	const char *certificates; /* PEM: the certificate, then its issuers */
	int64_t used_from_us;
	int64_t used_until_us; /* TIME_NONE: in force */
	const char *reason;    /* why it was ended; NULL: in force */
};

/* A certificate that a node could sign with. */
struct signer_candidate {
	struct sha256 sha256;
	bool development;
	struct slice certificates;
};

/* Lists the certificates, the newest last, in the arena. Never returns ERR_NOT_FOUND. */
int store_list_signers(struct store *store, struct arena *arena, struct signer_record **ret_items,
                       size_t *ret_count, struct error *error) MUST_CHECK;
/* Returns the certificate in force; *ret_any false: none. */
int store_get_signer(struct store *store, struct sha256 *ret_sha256, bool *ret_any,
                     struct error *error) MUST_CHECK;

/* The last list of certificates that the service signed. */
struct signed_signer_list {
	struct sha256 state; /* digest of its source data; the format is chosen by the caller */
	int64_t signed_at_us;
	struct slice document;
};
/* Reads the list into the arena. Returns ERR_NOT_FOUND when none was signed yet. */
int store_get_signer_list(struct store *store, struct arena *arena, struct signed_signer_list *ret,
                          struct error *error) MUST_CHECK;
/* Does the same without the document, which stays empty. */
int store_read_signer_list(struct store *store, struct signed_signer_list *ret, struct error *error)
	MUST_CHECK;
/* Replaces the stored list, unless that was signed later. */
int store_put_signer_list(struct store *store, const struct signed_signer_list *list,
                          struct error *error) MUST_CHECK;

/* Decides which candidate a starting node signs with. *ret_index is the one in force, or one that
 * comes into force now because none is and it is acceptable. The first candidate is preferred. In a
 * store that no other node can have, a development key replaces another development key. Returns
 * ERR_REFUSED with a message when another certificate is in force; when none is in force and all
 * candidates were ended; or when they are development keys and an operator's key has signed.
 * Returns ERR_FULL when a certificate would come into force and SIGNERS_MAX already have. */
int store_join_signers(struct store *store, const struct signer_candidate *candidates, size_t count,
                       size_t *ret_index, struct error *error) MUST_CHECK;
/* Returns the result of store_join_signers without bringing anything into force. */
int store_check_signers(struct store *store, const struct signer_candidate *candidates,
                        size_t count, size_t *ret_index, struct error *error) MUST_CHECK;
/* Replaces the certificate in force, if any, by `next`, which is recorded. With `former`, does
 * nothing unless that one is still in force. Returns ERR_REFUSED when `next` was ended before or is
 * a development key, and ERR_FULL as above. OK when `next` is already in force. */
int store_replace_signer(struct store *store, const struct signer_candidate *next,
                         const struct sha256 *former, struct slice reason, struct error *error)
	MUST_CHECK;
/* Ends the certificate in force without a successor. Returns ERR_REFUSED when none is in force. */
int store_end_signer(struct store *store, struct slice reason, struct error *error) MUST_CHECK;

#endif
