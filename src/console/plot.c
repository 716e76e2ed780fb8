#include "console/plot.h"

#include "console/plot_scale.h"
#include "console/plot_svg.h"

/* Dimensions of the drawing in user units. */
#define TOP 10
#define HEIGHT 190 /* height of the plot area */
#define BELOW 24   /* height of the day labels */
#define RIGHT 14
#define LETTER 6.8 /* width of a digit */
#define LEGEND_ROW 20
#define LEGEND_BYTES 28 /* maximum bytes of a name in a legend */
#define DAY_LABELS 7

struct drawing {
	const struct plot *plot;
	struct buf *out;
	int64_t ticks[PLOT_TICKS_MAX];
	size_t tick_count;
	size_t days; /* number of shown days, including the forecast */
	double left, width;
};

/* ---- positions ---- */

static int64_t clip(int64_t value)
{
	return value > PLOT_VALUE_MAX    ? PLOT_VALUE_MAX
	       : value < -PLOT_VALUE_MAX ? -PLOT_VALUE_MAX
	                                 : value;
}

static double y_of(const struct drawing *drawing, int64_t value)
{
	double least = (double)drawing->ticks[0];
	double most = (double)drawing->ticks[drawing->tick_count - 1];
	return TOP + HEIGHT * (1 - ((double)value - least) / (most - least));
}

/* Returns the x position of the middle of a day. */
static double x_of(const struct drawing *drawing, double day)
{
	return drawing->left + drawing->width * (day + 0.5) / (double)drawing->days;
}

/* ---- data ---- */

/* Returns the stacked value up to a series on a day. */
static int64_t stacked(const struct plot *plot, size_t count, size_t day)
{
	__int128 sum = 0;
	for (size_t i = 0; i < count; i++)
		if (plot->series[i].values[day] > 0)
			sum += plot->series[i].values[day];
	return sum > PLOT_VALUE_MAX ? PLOT_VALUE_MAX : (int64_t)sum;
}

static void find_range(const struct plot *plot, int64_t *ret_least, int64_t *ret_most)
{
	int64_t least = 0, most = 0;
	for (size_t day = 0; day < plot->days; day++) {
		if (plot->shape == PLOT_BARS) {
			int64_t sum = stacked(plot, plot->series_count, day);
			most = sum > most ? sum : most;
			continue;
		}
		for (size_t i = 0; i < plot->series_count; i++) {
			int64_t value = plot->series[i].values[day];
			if (value == PLOT_NONE)
				continue;
			least = clip(value) < least ? clip(value) : least;
			most = clip(value) > most ? clip(value) : most;
		}
	}
	*ret_least = least;
	*ret_most = most;
}

static bool has_forecast(const struct plot *plot)
{
	return plot->shape == PLOT_LINES && plot->ends_on != PLOT_NONE && plot->days > 0 &&
	       plot->series_count > 0 && plot->series[0].values[plot->days - 1] > 0 &&
	       plot->ends_on >= plot->first_day + (int64_t)plot->days;
}

/* Returns the number of forecast days; about half the number of days at most. */
static size_t forecast_days(const struct plot *plot)
{
	if (!has_forecast(plot))
		return 0;
	int64_t ahead = plot->ends_on - plot->first_day - (int64_t)plot->days + 1;
	size_t room = plot->days / 2 + 1;
	return ahead < (int64_t)room ? (size_t)ahead : room;
}

int plot_check(const struct plot *plot)
{
	bool fits = plot->days <= PLOT_DAYS_MAX && plot->series_count <= PLOT_SERIES_MAX &&
	            plot->first_day >= 0 && plot->first_day < PLOT_DAY_MAX;
	return fits ? OK : ERR_USAGE;
}

/* ---- frame ---- */

/* Hatching of each series in the colour of the background, visible without colour and in dark mode.
 * The first series has none. */
static const char *const patterns[PLOT_SERIES_MAX] = {
	"",
	"M-2 2L2 -2M0 8L8 0M6 10L10 6",
	"M0 2H8M0 6H8",
	"M2 0V8M6 0V8",
	"M-2 6L2 10M0 0L8 8M6 -2L10 2",
	"M4 0V8M0 4H8",
	"M0 0L8 8M0 8L8 0",
	"M1 2H3M5 2H7M1 6H3M5 6H7",
};

static void add_patterns(struct buf *out, const char *id, size_t count)
{
	if (count < 2)
		return;
	buf_add_text(out, "<defs>");
	for (size_t i = 1; i < count; i++)
		buf_printf(out,
		           "<pattern id=\"%s-p%zu\" width=\"8\" height=\"8\""
		           " patternUnits=\"userSpaceOnUse\"><path class=\"plot-hatch\" d=\"%s\"/>"
		           "</pattern>",
		           id, i, patterns[i]);
	buf_add_text(out, "</defs>");
}

static double widest_tick(const struct drawing *drawing)
{
	size_t widest = 0;
	for (size_t i = 0; i < drawing->tick_count; i++) {
		BUF_AUTO struct buf text;
		buf_init(&text, 64);
		plot_value(&text, drawing->ticks[i], drawing->plot->language);
		size_t count = svg_characters(buf_slice(&text));
		widest = count > widest ? count : widest;
	}
	return (double)widest * LETTER;
}

static void add_values_axis(const struct drawing *drawing)
{
	struct buf *out = drawing->out;
	for (size_t i = 0; i < drawing->tick_count; i++) {
		double y = y_of(drawing, drawing->ticks[i]);
		buf_printf(out, "<path class=\"plot-%s\" d=\"", drawing->ticks[i] == 0 ? "zero" : "grid");
		svg_point(out, 'M', drawing->left, y);
		svg_step(out, 'H', SVG_WIDTH - RIGHT);
		buf_add_text(out, "\"/><text class=\"plot-number\"");
		svg_attribute(out, "x", drawing->left - 6);
		svg_attribute(out, "y", y + 4);
		buf_add_byte(out, '>');
		plot_value(out, drawing->ticks[i], drawing->plot->language);
		buf_add_text(out, "</text>");
	}
}

static void add_days_axis(const struct drawing *drawing)
{
	static const size_t steps[] = {1, 2, 7, 14, 30, 60, 90};
	struct buf *out = drawing->out;
	size_t at = 0;
	while (at + 1 < sizeof steps / sizeof *steps && steps[at] * DAY_LABELS < drawing->days)
		at++;
	for (size_t day = 0; day < drawing->days; day += steps[at]) {
		buf_add_text(out, "<text class=\"plot-day\"");
		svg_attribute(out, "x", x_of(drawing, (double)day));
		svg_attribute(out, "y", TOP + HEIGHT + 17);
		buf_add_byte(out, '>');
		plot_day(out, drawing->plot->first_day + (int64_t)day, drawing->plot->language);
		buf_add_text(out, "</text>");
	}
}

/* ---- bars ---- */

static void add_bars_path(const struct drawing *drawing, size_t series)
{
	struct buf *out = drawing->out;
	const struct plot *plot = drawing->plot;
	double slot = drawing->width / (double)drawing->days;
	double wide = slot > 40 ? 32 : slot * 0.8;
	for (size_t day = 0; day < plot->days; day++) {
		int64_t from = stacked(plot, series, day), to = stacked(plot, series + 1, day);
		if (to <= from)
			continue;
		double x = x_of(drawing, (double)day) - wide / 2;
		svg_point(out, 'M', x, y_of(drawing, from));
		svg_step(out, 'V', y_of(drawing, to));
		svg_step(out, 'H', x + wide);
		svg_step(out, 'V', y_of(drawing, from));
		buf_add_byte(out, 'Z');
	}
}

static void add_bars(const struct drawing *drawing)
{
	struct buf *out = drawing->out;
	for (size_t i = 0; i < drawing->plot->series_count; i++) {
		buf_printf(out, "<path class=\"plot-fill plot-%zu\" d=\"", i);
		add_bars_path(drawing, i);
		buf_add_text(out, "\"/>");
		if (i == 0)
			continue;
		buf_printf(out, "<path fill=\"url(#%s-p%zu)\" d=\"", drawing->plot->id, i);
		add_bars_path(drawing, i);
		buf_add_text(out, "\"/>");
	}
}

/* ---- lines ---- */

static const char *const dashes[PLOT_SERIES_MAX] = {"none", "7 3", "2 3",     "9 3 2 3",
                                                    "4 2",  "1 2", "9 2 4 2", "12 4"};

/* Draws a marker: circle, square, triangle or diamond; hollow for later series. */
static void add_mark(struct buf *out, size_t series, double x, double y)
{
	static const char *const shapes[] = {"m-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0 -6.4 0Z",
	                                     "m-3 -3h6v6h-6Z", "m0 -4l4 7h-8Z",
	                                     "m0 -4.2l4.2 4.2l-4.2 4.2l-4.2 -4.2Z"};
	buf_printf(out, "<path class=\"plot-mark%s plot-%zu\" d=\"", series < 4 ? "" : " plot-hollow",
	           series);
	svg_point(out, 'M', x, y);
	buf_printf(out, "%s\"/>", shapes[series % 4]);
}

static void open_line(struct buf *out, size_t series, const char *dash)
{
	buf_printf(out, "<path class=\"plot-line plot-%zu\" stroke-dasharray=\"%s\" d=\"", series,
	           dash);
}

static void add_line(const struct drawing *drawing, size_t series)
{
	struct buf *out = drawing->out;
	const struct plot *plot = drawing->plot;
	const int64_t *values = plot->series[series].values;
	bool drawn = false;
	open_line(out, series, dashes[series]);
	for (size_t day = 0; day < plot->days; day++) {
		if (values[day] != PLOT_NONE)
			svg_point(out, drawn ? 'L' : 'M', x_of(drawing, (double)day),
			          y_of(drawing, clip(values[day])));
		drawn = values[day] != PLOT_NONE;
	}
	buf_add_text(out, "\"/>");
	size_t step = plot->days / 15 + 1;
	for (size_t day = 0; day < plot->days; day++) {
		bool alone = (day == 0 || values[day - 1] == PLOT_NONE) &&
		             (day + 1 == plot->days || values[day + 1] == PLOT_NONE);
		if (values[day] != PLOT_NONE && (alone || (plot->days - 1 - day) % step == 0))
			add_mark(out, series, x_of(drawing, (double)day), y_of(drawing, clip(values[day])));
	}
}

/* Draws the forecast to 0 on its day, or as far as it fits. */
static void add_forecast(const struct drawing *drawing)
{
	struct buf *out = drawing->out;
	const struct plot *plot = drawing->plot;
	size_t shown = forecast_days(plot);
	if (!shown)
		return;
	size_t last = plot->days - 1;
	int64_t from = clip(plot->series[0].values[last]);
	double ahead = (double)(plot->ends_on - plot->first_day) - (double)last;
	double left = (double)from * (1 - (double)shown / ahead);
	double x = x_of(drawing, (double)(last + shown)), y = y_of(drawing, (int64_t)left);
	open_line(out, 0, "2 4");
	svg_point(out, 'M', x_of(drawing, (double)last), y_of(drawing, from));
	svg_point(out, 'L', x, y);
	buf_add_text(out, "\"/><text class=\"plot-note\"");
	svg_attribute(out, "x", x);
	/* Above the line, which only falls from here. */
	double above = y_of(drawing, from) - 12;
	svg_attribute(out, "y", above > TOP + 12 ? above : TOP + 12);
	buf_add_byte(out, '>');
	svg_text(out, plot->ends ? plot->ends : "");
	buf_add_text(out, "</text>");
}

/* ---- legend ---- */

static void add_swatch(const struct drawing *drawing, size_t series, double x, double y)
{
	struct buf *out = drawing->out;
	if (drawing->plot->shape == PLOT_LINES) {
		open_line(out, series, dashes[series]);
		svg_point(out, 'M', x, y);
		svg_step(out, 'H', x + 22);
		buf_add_text(out, "\"/>");
		add_mark(out, series, x + 11, y);
		return;
	}
	for (int hatched = 0; hatched <= (series > 0); hatched++) {
		if (hatched)
			buf_printf(out, "<path fill=\"url(#%s-p%zu)\" d=\"", drawing->plot->id, series);
		else
			buf_printf(out, "<path class=\"plot-fill plot-%zu\" d=\"", series);
		svg_point(out, 'M', x, y - 7);
		buf_add_text(out, "h22v14h-22Z\"/>");
	}
}

/* Draws the legend if `draw`; returns its height. */
static double add_legend(const struct drawing *drawing, bool draw)
{
	double x = 4, y = TOP + HEIGHT + BELOW + 14;
	const struct plot *plot = drawing->plot;
	if (plot->series_count == 0)
		return 0;
	for (size_t i = 0; i < plot->series_count; i++) {
		char name[SVG_NAME_MAX];
		svg_name(plot->series[i].name, LEGEND_BYTES, name);
		double wide = 42 + (double)svg_characters(slice_of(name)) * 7.4;
		if (x + wide > SVG_WIDTH && x > 4) {
			x = 4;
			y += LEGEND_ROW;
		}
		if (draw) {
			add_swatch(drawing, i, x, y);
			buf_add_text(drawing->out, "<text class=\"plot-name\"");
			svg_attribute(drawing->out, "x", x + 28);
			svg_attribute(drawing->out, "y", y + 4.5);
			buf_add_byte(drawing->out, '>');
			svg_text(drawing->out, name);
			buf_add_text(drawing->out, "</text>");
		}
		x += wide;
	}
	return y + 12 - TOP - HEIGHT - BELOW;
}

int plot_draw(const struct plot *plot, struct buf *out)
{
	struct drawing drawing = {.plot = plot, .out = out};
	int64_t least, most;
	int result = plot_check(plot);
	if (result)
		return result;
	find_range(plot, &least, &most);
	drawing.tick_count = plot_ticks(least, most, drawing.ticks);
	drawing.days = plot->days + forecast_days(plot);
	drawing.days += drawing.days == 0;
	drawing.left = widest_tick(&drawing) + 10;
	drawing.width = SVG_WIDTH - RIGHT - drawing.left;
	svg_open(out, plot->id, plot->title, plot->summary,
	         TOP + HEIGHT + BELOW + add_legend(&drawing, false));
	if (plot->shape == PLOT_BARS)
		add_patterns(out, plot->id, plot->series_count);
	add_values_axis(&drawing);
	if (plot->days)
		add_days_axis(&drawing);
	if (plot->shape == PLOT_BARS)
		add_bars(&drawing);
	for (size_t i = 0; i < plot->series_count && plot->shape == PLOT_LINES; i++)
		add_line(&drawing, i);
	add_forecast(&drawing);
	add_legend(&drawing, true);
	svg_close(out);
	return buf_check(out);
}
