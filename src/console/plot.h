/* Plots as SVG, and their figures as a table. Pure functions; all that they are given stays the
 * caller's. What is drawn has classes alone (assets/console.css): light and dark are the page's.
 * Series are told apart without colour, too: bars by patterns, lines by dashes and by the shapes of
 * their points. Numbers and days are written as the language writes them. ERR_USAGE: more than a
 * plot holds; ERR_NO_MEMORY: `out` is full. */
#ifndef CONSOLE_PLOT_H
#define CONSOLE_PLOT_H

#include "base/buf.h"
#include "base/error.h"

#define PLOT_DAYS_MAX 400
#define PLOT_SERIES_MAX 8
#define PLOT_LIMITS_MAX 20
#define PLOT_TICKS_MAX 12
#define PLOT_VALUE_MAX INT64_C(4000000000000000000) /* what is beyond is drawn at it */
#define PLOT_NONE INT64_MIN                         /* no value; no forecast */

enum plot_shape {
	PLOT_BARS, /* a bar for each day, the series on each other, from the first up; none below 0 */
	PLOT_LINES,
};

struct plot_series {
	struct slice name;     /* anybody's text */
	const int64_t *values; /* one for each day, or PLOT_NONE */
};
struct plot {
	const char *id;              /* unique in the page: letters, digits, '-' */
	const char *title, *summary; /* the summary says in words what there is to see */
	enum language language;
	enum plot_shape shape;
	int64_t first_day; /* from 1970-01-01, UTC */
	size_t days;
	struct plot_series series[PLOT_SERIES_MAX];
	size_t series_count;
	/* Lines: the first one goes on to 0 on that day, behind the last; PLOT_NONE: it does not. */
	int64_t ends_on;
	const char *ends; /* in words */
};
int plot_draw(const struct plot *plot, struct buf *out) MUST_CHECK;
/* The last day first; bars of several series with their sum. */
int plot_table(const struct plot *plot, struct buf *out) MUST_CHECK;

/* A bar for each limit: how much of it is used. */
struct plot_limit {
	struct slice name;
	int64_t used, most; /* `most` above 0 */
};
struct plot_limits {
	const char *id, *title, *summary;
	enum language language;
	const struct plot_limit *items;
	size_t count;
};
int plot_limits_draw(const struct plot_limits *limits, struct buf *out) MUST_CHECK;
int plot_limits_table(const struct plot_limits *limits, struct buf *out) MUST_CHECK;

/* Round numbers, ascending, a step apart: the first is at most `least`, the last at least `most`,
 * 2 to PLOT_TICKS_MAX of them; 0 is among them where it lies between. least <= most, both within
 * PLOT_VALUE_MAX. Returns how many. */
size_t plot_ticks(int64_t least, int64_t most, int64_t ticks[PLOT_TICKS_MAX]);
/* A value as the language writes it: "1,234". */
void plot_value(struct buf *out, int64_t value, enum language language);

#endif
