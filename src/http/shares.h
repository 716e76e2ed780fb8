/* How much of something each of many has: connections of an address, memory of an account. Memory
 * only for those that have some. Not thread safe. */
#ifndef HTTP_SHARES_H
#define HTTP_SHARES_H

#include <stdint.h>

#include "base/must_check.h"

struct shares;

struct shares *shares_create(void) MUST_CHECK;
void shares_free(struct shares *shares); /* NULL-safe */
/* What `owner` (any well-mixed number) has. */
int64_t share_held(struct shares *shares, uint64_t owner);
/* `amount` (at least 1) more. ERR_RATE_LIMITED when that were beyond `limit`, or ERR_NO_MEMORY; it
 * has no more then. */
int share_take(struct shares *shares, uint64_t owner, int64_t amount, int64_t limit) MUST_CHECK;
/* `amount` less, of what was taken. */
void share_give(struct shares *shares, uint64_t owner, int64_t amount);

#endif
