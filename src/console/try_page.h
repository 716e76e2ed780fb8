/* Data of the page for sending a test event. */
#ifndef CONSOLE_TRY_PAGE_H
#define CONSOLE_TRY_PAGE_H

#include "console/visit.h"

/* "shown": the entered values, or an example with a new reference. After an answer also "pretty",
 * its body, and "curl", the same call as a command; none if the content is not JSON. */
int try_page(struct visit *visit, struct json_writer *data) MUST_CHECK;

#endif
