/* Checks and date labels shared by the plot files. */
#ifndef CONSOLE_PLOT_SCALE_H
#define CONSOLE_PLOT_SCALE_H

#include "console/plot.h"

#define PLOT_DAY_MAX 2900000 /* in the year 9909 */

/* ERR_USAGE: more data than a plot can hold. */
int plot_check(const struct plot *plot) MUST_CHECK;
/* "21 Nov", "21 Nov 2026" */
void plot_date(struct buf *out, int64_t day, enum language language);
void plot_day(struct buf *out, int64_t day, enum language language);

#endif
