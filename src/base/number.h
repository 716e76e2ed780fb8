/* Conversion of doubles to text and back, independent of the locale and correctly rounded. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stddef.h>

#define NUMBER_TEXT_SIZE 32

#ifdef __cplusplus
extern "C" {
#endif

enum number_result { NUMBER_GOOD, NUMBER_OVERFLOW, NUMBER_MALFORMED };

/* Writes a finite double in the form of ECMAScript's Number::toString: the shortest digits that
 * convert back to the same double, and of those the closest. Minus zero is "0". Appends a NUL and
 * returns the size without it. */
size_t number_format(double number, char text[NUMBER_TEXT_SIZE]);

/* Converts a number in JSON syntax to the nearest double. Values too small for a double become
 * 0. */
enum number_result number_parse(const char *text, size_t size, double *ret_number);

#ifdef __cplusplus
}
#endif

#endif
