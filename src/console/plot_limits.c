/* Bars of the used part of each limit. */
#include "console/plot.h"
#include "console/plot_svg.h"

#define LIMIT_ROW 40
#define LIMIT_LEFT 4
#define LIMIT_WIDE (SVG_WIDTH - LIMIT_LEFT - 4)

static void add_limit(const struct plot_limits *limits, size_t number, struct buf *out)
{
	const struct plot_limit *limit = &limits->items[number];
	double y = 4 + (double)number * LIMIT_ROW;
	double part = limit->most > 0 ? (double)limit->used / (double)limit->most : 1;
	part = part < 0 ? 0 : part > 1 ? 1 : part;
	char name[SVG_NAME_MAX];
	svg_name(limit->name, SVG_NAME_BYTES, name);
	buf_add_text(out, "<text class=\"plot-name\"");
	svg_attribute(out, "x", LIMIT_LEFT);
	svg_attribute(out, "y", y + 12);
	buf_add_byte(out, '>');
	svg_text(out, name);
	buf_add_text(out, "</text><text class=\"plot-number\"");
	svg_attribute(out, "x", LIMIT_LEFT + LIMIT_WIDE);
	svg_attribute(out, "y", y + 12);
	buf_add_byte(out, '>');
	plot_value(out, limit->used, limits->language);
	buf_add_text(out, " / ");
	plot_value(out, limit->most, limits->language);
	buf_add_text(out, "</text><path class=\"plot-room\" d=\"");
	svg_point(out, 'M', LIMIT_LEFT, y + 18);
	buf_add_byte(out, 'h');
	svg_place(out, LIMIT_WIDE);
	buf_add_text(out, "v12H");
	svg_place(out, LIMIT_LEFT);
	buf_printf(out, "Z\"/><path class=\"plot-fill plot-%s\" d=\"", part < 1 ? "0" : "full");
	svg_point(out, 'M', LIMIT_LEFT, y + 18);
	buf_add_byte(out, 'h');
	svg_place(out, LIMIT_WIDE * part);
	buf_add_text(out, "v12H");
	svg_place(out, LIMIT_LEFT);
	buf_add_text(out, "Z\"/>");
}

int plot_limits_draw(const struct plot_limits *limits, struct buf *out)
{
	if (limits->count > PLOT_LIMITS_MAX)
		return ERR_USAGE;
	svg_open(out, limits->id, limits->title, limits->summary,
	         8 + (double)limits->count * LIMIT_ROW);
	for (size_t i = 0; i < limits->count; i++)
		add_limit(limits, i, out);
	svg_close(out);
	return buf_check(out);
}
