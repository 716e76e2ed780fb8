/* Many chains in little time. */
#ifndef BENCH_CHAINS_H
#define BENCH_CHAINS_H

#include "store/store.h"

/* Copies of an account and of one of its channels, as they were when they were new: with it there
 * are `count` channels then, the n-th behind it with a number higher by n, of `accounts` accounts
 * in turn. No account and no channel has a higher number. */
void chains_copy(struct store *store, int64_t account, int64_t channel, long count, long accounts);

#endif
