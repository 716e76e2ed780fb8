/* How many of something each client address has. Memory only for those that have some. Not thread
 * safe. */
#ifndef HTTP_ADDRESS_COUNTS_H
#define HTTP_ADDRESS_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

struct address_counts;

struct address_counts *address_counts_create(void) __attribute__((warn_unused_result));
void address_counts_free(struct address_counts *counts); /* NULL-safe */
/* One more; false, and it has no more, when it has `limit` already or memory is gone. `address` is
 * any well-mixed number. */
bool address_count_take(struct address_counts *counts, uint64_t address, int64_t limit)
	__attribute__((warn_unused_result));
/* One less, of those that were taken. */
void address_count_give(struct address_counts *counts, uint64_t address);

#endif
