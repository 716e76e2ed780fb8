/* Tokens that identify the content sweeps of this database. A copy of a database has the tokens of
 * the sweeps before the copy was made, but not the later ones of the original; the original does
 * not have those of the copy. Thread safe. */
#ifndef STORE_NODES_SWEEPS_H
#define STORE_NODES_SWEEPS_H

#include "store/store.h"

#define SWEEP_TOKEN_SIZE 33 /* lower-case hex digits and NUL */
#define SWEEP_TOKENS_KEPT 32

struct sweep_grant {
	char token[SWEEP_TOKEN_SIZE]; /* the token to write at the content location; recorded durably */
	int64_t accepted_us;          /* when an operator last accepted a rollback; 0: never */
};
/* Takes the token of the next sweep. `found` is the token at the content location (empty: none) and
 * `found_accepted_us` the time stored with it. The token of the previous sweep, which may never
 * have been written there, is returned again; otherwise a new one. Returns ERR_REFUSED when `found`
 * belongs to a sweep of another database and no rollback was accepted since. */
int store_take_sweep_token(struct store *store, const char *found, int64_t found_accepted_us,
                           struct sweep_grant *ret, struct error *error) MUST_CHECK;

#endif
