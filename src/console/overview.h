/* What the first page shows beside the answers of operations. */
#ifndef CONSOLE_OVERVIEW_H
#define CONSOLE_OVERVIEW_H

#include "console/visit.h"

/* Members "today" and "days": sums of the usage of live keys today, and in 90 days. */
int overview_usage(struct visit *visit, struct json_writer *data) MUST_CHECK;

#endif
