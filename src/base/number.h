/* Doubles as text and back, independent of the locale, correctly rounded both ways. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stddef.h>

#define NUMBER_TEXT_SIZE 32

#ifdef __cplusplus
extern "C" {
#endif

enum number_result { NUMBER_GOOD, NUMBER_OVERFLOW, NUMBER_MALFORMED };

/* A finite double as ECMAScript's Number::toString writes it: the fewest digits that read back as
 * the same double, and of those the closest. Minus zero is "0". Writes a NUL behind and returns
 * the size without it. */
size_t number_format(double number, char text[NUMBER_TEXT_SIZE]);

/* The double nearest to a number spelled as JSON spells numbers. What is too small becomes 0. */
enum number_result number_parse(const char *text, size_t size, double *ret_number);

#ifdef __cplusplus
}
#endif

#endif
