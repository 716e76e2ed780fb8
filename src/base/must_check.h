/* On every function whose result matters: whoever drops it is warned, and warnings are errors. */
#ifndef BASE_MUST_CHECK_H
#define BASE_MUST_CHECK_H

#define MUST_CHECK __attribute__((warn_unused_result))

#endif
