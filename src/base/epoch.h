/* Epoch-based reclamation for data that is replaced through an atomic pointer while threads read
 * it. It determines when no reader can still hold the former data, so that it can be freed. Readers
 * never block. Thread safe. */
#ifndef BASE_EPOCH_H
#define BASE_EPOCH_H

#include <stdbool.h>
#include <stdint.h>

/* Begins a read section. Until epoch_leave this thread may follow such pointers and use the data.
 * Sections must not be nested. Costs two stores. */
void epoch_enter(void);
/* Ends the read section. The thread must not use the data any more. */
void epoch_leave(void);

/* Starts a new epoch. Call it right after replacing pointers. Returns the epoch number for the
 * former data. */
uint64_t epoch_advance(void);
/* Returns whether all read sections that were open when the number was returned have ended. Once
 * true, it stays true. */
bool epoch_is_over(uint64_t number);

#endif
