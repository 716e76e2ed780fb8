/* Detects rollback of the store: whether the store is older than this node has seen it, or has
 * another history.
 *
 * The signing process's log contains a mark of how far the store had come (seal/signer_log.h). The
 * log is not rolled back with the store when an old copy is restored or a lagging standby takes
 * over. The mark is advanced only after a round that can no longer be lost. A store without the
 * marked round was rolled back. A crash between the two steps leaves the mark behind the store,
 * never ahead of it. Rounds of other nodes also advance the mark. Thread safe. */
#ifndef SERVICE_HISTORY_H
#define SERVICE_HISTORY_H

#include "seal/signer.h"
#include "store/store.h"

struct history {
	char store_id[SIGNER_STORE_ID_SIZE + 1];
	struct signer_mark known; /* mark of the signing process; round 0: none */
	struct signer_mark found; /* last round of the store */
	bool forked;              /* the marked round exists with another root */
	bool log_ended;           /* the accepted rollback ended the log of segments */
};

/* Returns whether the store is the one seen before, or a later state of it. */
bool history_is_continuous(const struct history *history);
/* Compares the store with the mark and advances the mark. ERR_CORRUPT with a message for the
 * operator: the store was rolled back or is another one; *ret is filled in. ERR_NO_SPACE: the mark
 * could not be written, and everything else is in order. ERR_UNAVAILABLE and ERR_UNKNOWN_OUTCOME
 * with *ret filled in: the mark was not advanced because the last round may not be on a standby,
 * and everything else is in order. */
int history_check(struct store *store, struct signer *signer, struct history *ret,
                  struct error *error) MUST_CHECK;
/* Performs the check of history_check with the log in the signing process's directory, without
 * writing anything. Returns OK also if there is no log yet, if the log is broken (signer_log_check
 * reports that), or if the store was never served. */
int history_inspect(struct store *store, const char *signer_directory, struct error *error)
	MUST_CHECK;
/* Confirms a rollback on behalf of the operator. It is recorded in the store and in the signing
 * process's log. The log of segments `origin` ends if the signing process knows a signed tree of
 * it: the store may lack entries of that tree, and another node would sign others in their place.
 * So do all logs of which the store has a signed tree.
 * ERR_REFUSED: there is nothing to confirm. */
int history_accept(struct store *store, struct signer *signer, const char *node, const char *origin,
                   struct slice reason, struct history *ret, struct error *error) MUST_CHECK;

#endif
