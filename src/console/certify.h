/* What the page on which one asks for a certification has. */
#ifndef CONSOLE_CERTIFY_H
#define CONSOLE_CERTIFY_H

#include "console/visit.h"

/* "asked": what was chosen; once a range is among it "estimate", as the operation answers it, and
 * "repeat_key", which the form that asks for it carries, so that it asks once. What is wrong with
 * the range the page says. */
int certify_page(struct visit *visit, struct json_writer *data) MUST_CHECK;

#endif
