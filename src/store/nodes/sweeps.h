/* Which sweeps of the content are this database's own. A copy of the database knows the tokens of
 * those before it was made, and none of the original's later ones; nor does the original know the
 * copy's. Thread safe. */
#ifndef STORE_NODES_SWEEPS_H
#define STORE_NODES_SWEEPS_H

#include "store/store.h"

#define SWEEP_TOKEN_SIZE 33 /* lower-case hex digits and NUL */
#define SWEEP_TOKENS_KEPT 32

struct sweep_turn {
	char token[SWEEP_TOKEN_SIZE]; /* what the place is to carry, recorded durably */
	int64_t accepted_us;          /* when an operator last accepted a rollback; 0: never */
};
/* `found` is the token at the place (empty: none), `found_accepted_us` what stands beside it. A
 * token of the turn before, which may never have come to the place, is given again; else a new one.
 * ERR_REFUSED: `found` is of another database's sweep, and no rollback was accepted since. */
int store_take_sweep_turn(struct store *store, const char *found, int64_t found_accepted_us,
                          struct sweep_turn *ret, struct error *error) MUST_CHECK;

#endif
