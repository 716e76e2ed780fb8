/* Data of the page for requesting a certification. */
#ifndef CONSOLE_CERTIFY_PAGE_H
#define CONSOLE_CERTIFY_PAGE_H

#include "console/visit.h"

/* "asked": the chosen values. If they contain a range, also "estimate", the answer of that
 * operation, and "repeat_key", the idempotency key of the request form. The page shows errors of
 * the range. */
int certify_page(struct visit *visit, struct json_writer *data) MUST_CHECK;

#endif
