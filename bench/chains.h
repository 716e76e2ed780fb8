/* Many chains in little time. */
#ifndef BENCH_CHAINS_H
#define BENCH_CHAINS_H

#include "store/store.h"

/* Copies an account and one of its channels, in the state that they had when new. Afterwards there
 * are `count` channels; the n-th copy has the number of the channel plus n. They are distributed
 * round-robin over `accounts` accounts. No account and no channel has a higher number. */
void chains_copy(struct store *store, int64_t account, int64_t channel, long count, long accounts);

#endif
