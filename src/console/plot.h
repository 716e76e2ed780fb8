/* Plots as SVG, and their data as tables. Pure functions; the caller keeps ownership of all
 * arguments. Drawings use only CSS classes (assets/console.css), so the page determines light and
 * dark colours. Series can be distinguished without colour: bars by patterns, lines by dashes and
 * markers. Numbers and dates are formatted for the language. ERR_USAGE: more data than a plot can
 * hold; ERR_NO_MEMORY: `out` is full. */
#ifndef CONSOLE_PLOT_H
#define CONSOLE_PLOT_H

#include "base/buf.h"
#include "base/error.h"

#define PLOT_DAYS_MAX 400
#define PLOT_SERIES_MAX 8
#define PLOT_LIMITS_MAX 20
#define PLOT_TICKS_MAX 12
#define PLOT_VALUE_MAX INT64_C(4000000000000000000) /* larger values are clipped to it */
#define PLOT_NONE INT64_MIN                         /* no value, or no forecast */

enum plot_shape {
	/* one bar per day with stacked series, the first at the bottom; no negative values */
	PLOT_BARS,
	PLOT_LINES,
};

struct plot_series {
	struct slice name;     /* untrusted text */
	const int64_t *values; /* one per day, or PLOT_NONE */
};
struct plot {
	const char *id;              /* unique in the page; letters, digits, '-' */
	const char *title, *summary; /* `summary` is the text alternative */
	enum language language;
	enum plot_shape shape;
	int64_t first_day; /* from 1970-01-01, UTC */
	size_t days;
	struct plot_series series[PLOT_SERIES_MAX];
	size_t series_count;
	/* Lines: the day on which the forecast of the first series reaches 0, after the last day;
	 * PLOT_NONE: no forecast. */
	int64_t ends_on;
	const char *ends; /* label of the forecast */
};
int plot_draw(const struct plot *plot, struct buf *out) MUST_CHECK;
/* Draws the table, newest day first; for bars of several series with a total. */
int plot_table(const struct plot *plot, struct buf *out) MUST_CHECK;

/* One bar per limit with its used part. */
struct plot_limit {
	struct slice name;
	int64_t used, most; /* `most` > 0 */
};
struct plot_limits {
	const char *id, *title, *summary;
	enum language language;
	const struct plot_limit *items;
	size_t count;
};
int plot_limits_draw(const struct plot_limits *limits, struct buf *out) MUST_CHECK;
int plot_limits_table(const struct plot_limits *limits, struct buf *out) MUST_CHECK;

/* Computes 2 to PLOT_TICKS_MAX evenly spaced round numbers in ascending order. The first is at most
 * `least`, the last at least `most`, and 0 is included if it lies between. Requires least <= most,
 * both within PLOT_VALUE_MAX. Returns the number of ticks. */
size_t plot_ticks(int64_t least, int64_t most, int64_t ticks[PLOT_TICKS_MAX]);
/* Writes a value as the language does: "1,234". */
void plot_value(struct buf *out, int64_t value, enum language language);

#endif
