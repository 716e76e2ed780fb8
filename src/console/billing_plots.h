/* The plots of the pages about usage and the balance history. */
#ifndef CONSOLE_BILLING_PLOTS_H
#define CONSOLE_BILLING_PLOTS_H

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

bool billing_has_picture(const char *name);
/* As account_picture. "usage": live and test events by day, from "days", the answer of `usage --by
 * day`; "history": the balance by day, from "history", the answer of `credits history`. Appends
 * nothing if there is no data or more days than a plot can hold. */
int billing_picture(const char *name, const struct json *data, enum language language,
                    struct buf *out) MUST_CHECK;

#endif
