/* Additional data of the overview page. */
#ifndef CONSOLE_OVERVIEW_PAGE_H
#define CONSOLE_OVERVIEW_PAGE_H

#include "console/visit.h"

/* Adds "today" and "days": total usage of live keys today, and in 90 days. */
int overview_usage(struct visit *visit, struct json_writer *data) MUST_CHECK;

#endif
