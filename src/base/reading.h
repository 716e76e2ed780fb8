/* For what is replaced as a whole, through an atomic pointer, while threads read it: says when
 * nobody can still hold what the pointer led to before, so that it can be freed. Whoever reads
 * waits for nobody. Thread safe. */
#ifndef BASE_READING_H
#define BASE_READING_H

#include <stdbool.h>
#include <stdint.h>

/* From here on to reading_end this thread may follow such pointers, and keep what it finds. Not one
 * within the other. It costs two stores. */
void reading_begin(void);
/* It keeps nothing of what it found. */
void reading_end(void);

/* To be called right after pointers were replaced: a number for what they led to before. */
uint64_t reading_replaced(void);
/* Whether everybody who was reading when the number was given has ended since. Once true it stays
 * true. */
bool reading_is_over(uint64_t number);

#endif
