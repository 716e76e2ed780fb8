/* The certificates that sign, in the store that all nodes share: one of them is in force, or none,
 * and the history of the others stays. So a node that has another key than the others, or none of
 * its own, is told at its start, and a change holds at all of them.
 *
 * A certificate that was ended never comes into force again. */
#ifndef STORE_EVIDENCE_SIGNERS_H
#define STORE_EVIDENCE_SIGNERS_H

#include "store/store.h"

struct signer_record {
	int64_t number; /* from 1 */
	struct sha256 sha256;
	bool development;
	const char *certificates; /* PEM: its own, then its issuers */
	int64_t used_from_us;
	int64_t used_until_us; /* TIME_NONE: in force */
	const char *reason;    /* why it ended; NULL: it has not */
};

/* What a node could sign with. */
struct signer_candidate {
	struct sha256 sha256;
	bool development;
	struct slice certificates;
};

/* The newest last; in the arena. ERR_NOT_FOUND never. */
int store_list_signers(struct store *store, struct arena *arena, struct signer_record **ret_items,
                       size_t *ret_count, struct error *error) MUST_CHECK;
/* Which certificate is in force; false in *ret_any: none. */
int store_get_signer(struct store *store, struct sha256 *ret_sha256, bool *ret_any,
                     struct error *error) MUST_CHECK;

/* The list as the service signed it last. */
struct signed_signer_list {
	struct sha256 state; /* of what it is made of; its form is the caller's affair */
	int64_t signed_at_us;
	struct slice document;
};
/* In the arena. ERR_NOT_FOUND: none was signed yet. */
int store_get_signer_list(struct store *store, struct arena *arena, struct signed_signer_list *ret,
                          struct error *error) MUST_CHECK;
/* The same without the document, which stays empty. */
int store_look_signer_list(struct store *store, struct signed_signer_list *ret, struct error *error)
	MUST_CHECK;
/* In place of the one before, unless that was signed later. */
int store_put_signer_list(struct store *store, const struct signed_signer_list *list,
                          struct error *error) MUST_CHECK;

/* A node with these candidates starts: the one that is in force, or comes into force now because
 * none is and it is fit for that, is *ret_index. The first is preferred. In a store that no other
 * node can have, a development key takes another one's place. ERR_REFUSED with the
 * sentence: another is in force; or none is, and these were all ended, or are a development key
 * where an operator's has signed. ERR_FULL: one would come into force, and SIGNERS_MAX have been.
 */
int store_join_signers(struct store *store, const struct signer_candidate *candidates, size_t count,
                       size_t *ret_index, struct error *error) MUST_CHECK;
/* What store_join_signers would say, without that anything comes into force. */
int store_check_signers(struct store *store, const struct signer_candidate *candidates,
                        size_t count, size_t *ret_index, struct error *error) MUST_CHECK;
/* Replaces the one in force, if any, by `next`, which goes on record. When `former` is given, only
 * if that one is in force still: else nothing is done. ERR_REFUSED: `next` was ended before, or is
 * a development key. ERR_FULL as above. It being in force already is no error. */
int store_replace_signer(struct store *store, const struct signer_candidate *next,
                         const struct sha256 *former, struct slice reason, struct error *error)
	MUST_CHECK;
/* Ends the one in force without another. ERR_REFUSED: none is. */
int store_end_signer(struct store *store, struct slice reason, struct error *error) MUST_CHECK;

#endif
