/* Whether the store is where it was: no older than this node has seen it, and of the same history.
 *
 * How far it had come stands in the signing process's log (seal/signer_log.h), which does not go
 * back with the store when an old copy is brought back or a standby that lagged takes over. A mark
 * is moved on only behind a round that cannot be lost any more, and a store without the marked
 * round has gone back: a crash at any time between the two leaves the mark behind the store, never
 * ahead. Rounds that other nodes sealed are learnt as well. Thread safe. */
#ifndef SERVICE_HISTORY_H
#define SERVICE_HISTORY_H

#include "seal/signer.h"
#include "store/store.h"

struct history {
	char store_id[SIGNER_STORE_ID_SIZE + 1];
	struct signer_mark known; /* by the signing process; round 0: nothing */
	struct signer_mark found; /* the store's last round */
	bool forked;              /* the marked round is there, with another root */
};

/* Whether the store is the one that was seen, or a later state of it. */
bool history_goes_on(const struct history *history);
/* Compares, and moves the mark on when the store has come further. ERR_CORRUPT with the sentence
 * for the operator when the store has gone back or is another one; *ret is filled then, too.
 * ERR_NO_SPACE: the mark could not be written, all else is well. ERR_UNAVAILABLE and
 * ERR_UNKNOWN_OUTCOME with *ret filled: the mark stays, since what was found may be on no standby;
 * all else is well. */
int history_check(struct store *store, struct signer *signer, struct history *ret,
                  struct error *error) MUST_CHECK;
/* What history_check would say, by the log in the signing process's directory and without that
 * anything is written: ERR_CORRUPT as there. OK, too, where there is no log yet, or it is broken
 * (signer_log_check says so), or the store was never served. */
int history_look(struct store *store, const char *signer_directory, struct error *error) MUST_CHECK;
/* For a store that has gone back: the operator confirms it. On record in the store and in the
 * signing process's log. ERR_REFUSED when there is nothing to confirm. */
int history_accept(struct store *store, struct signer *signer, const char *node,
                   struct slice reason, struct history *ret, struct error *error) MUST_CHECK;

#endif
