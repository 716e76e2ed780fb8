/* Marks a function whose result must be used; ignoring the result is a compiler warning, which is
 * an error. */
#ifndef BASE_MUST_CHECK_H
#define BASE_MUST_CHECK_H

#define MUST_CHECK __attribute__((warn_unused_result))

#endif
