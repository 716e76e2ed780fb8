/* Amounts of a resource per owner, such as connections of an address or memory of an account. Uses
 * memory only for owners with an amount. Not thread safe. */
#ifndef HTTP_SHARES_H
#define HTTP_SHARES_H

#include <stdint.h>

#include "base/must_check.h"

struct shares;

struct shares *shares_create(void) MUST_CHECK;
void shares_free(struct shares *shares); /* NULL-safe */
/* Returns the amount of `owner` (any well-mixed number). */
int64_t share_held(struct shares *shares, uint64_t owner);
/* Adds `amount` (at least 1). ERR_RATE_LIMITED: the total would exceed `limit`; ERR_NO_MEMORY. The
 * amount is then unchanged. */
int share_take(struct shares *shares, uint64_t owner, int64_t amount, int64_t limit) MUST_CHECK;
/* Subtracts `amount`, which must have been taken. */
void share_release(struct shares *shares, uint64_t owner, int64_t amount);

#endif
