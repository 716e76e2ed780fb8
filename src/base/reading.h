/* Epoch-based reclamation for data that is replaced through an atomic pointer while threads read
 * it. It determines when no reader can still hold the former data, so that it can be freed. Readers
 * never block. Thread safe. */
#ifndef BASE_READING_H
#define BASE_READING_H

#include <stdbool.h>
#include <stdint.h>

/* Begins a read section. Until reading_end this thread may follow such pointers and use the data.
 * Sections must not be nested. Costs two stores. */
void reading_begin(void);
/* Ends the read section. The thread must not use the data any more. */
void reading_end(void);

/* Starts a new epoch. Call it right after replacing pointers. Returns the epoch number for the
 * former data. */
uint64_t reading_replaced(void);
/* Returns whether all read sections that were open when the number was returned have ended. Once
 * true, it stays true. */
bool reading_is_over(uint64_t number);

#endif
