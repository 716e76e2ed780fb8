/* The plots of the pages on usage and on the history of the balance. */
#ifndef CONSOLE_MONEY_PLOTS_H
#define CONSOLE_MONEY_PLOTS_H

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

bool money_picture_known(const char *name);
/* As account_picture. "usage": events by day, live and test, of "days", the answer of `usage --by
 * day`; "history": the balance by day, of "history", the answer of `credits history`. Nothing is
 * appended where there is nothing to show, or more days than a plot holds. */
int money_picture(const char *name, const struct json *data, enum language language,
                  struct buf *out) MUST_CHECK;

#endif
