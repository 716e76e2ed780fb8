/* Lines of the formats of transparency logs. For src/tlog only. */
#ifndef TLOG_LINE_H
#define TLOG_LINE_H

#include "tlog/merkle.h"

/* Takes the next line, without its end; false: no line with an end is left. */
bool line_take(struct slice *rest, struct slice *ret) MUST_CHECK;
/* Reads a size of a tree: decimal, without leading zeros. */
bool line_parse_size(struct slice text, uint64_t *ret) MUST_CHECK;
/* Reads a hash in base64, in the one form in which it is written. */
bool line_parse_hash(struct slice text, struct sha256 *ret) MUST_CHECK;

#endif
