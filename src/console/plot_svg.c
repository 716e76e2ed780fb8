#include "console/plot_svg.h"

#include <stdio.h>

#include "base/utf8.h"
#include "console/template.h"

void svg_place(struct buf *out, double place)
{
	long tenths = (long)(place * 10 + (place < 0 ? -0.5 : 0.5));
	if (tenths < 0)
		buf_add_byte(out, '-');
	tenths = tenths < 0 ? -tenths : tenths;
	buf_printf(out, "%ld", tenths / 10);
	if (tenths % 10)
		buf_printf(out, ".%ld", tenths % 10);
}

void svg_attribute(struct buf *out, const char *name, double place)
{
	buf_printf(out, " %s=\"", name);
	svg_place(out, place);
	buf_add_byte(out, '"');
}

void svg_point(struct buf *out, char command, double x, double y)
{
	buf_add_byte(out, command);
	svg_place(out, x);
	buf_add_byte(out, ' ');
	svg_place(out, y);
}

void svg_step(struct buf *out, char command, double to)
{
	buf_add_byte(out, command);
	svg_place(out, to);
}

void svg_text(struct buf *out, const char *text)
{
	template_escape(out, slice_of(text), TEMPLATE_IN_TEXT);
}

void svg_open(struct buf *out, const char *id, const char *title, const char *summary,
              double height)
{
	buf_add_text(out, "<div class=\"plot-window\" tabindex=\"0\" role=\"group\" aria-label=\"");
	template_escape(out, slice_of(title), TEMPLATE_IN_TEXT);
	buf_printf(out,
	           "\"><svg class=\"plot\" role=\"img\" aria-labelledby=\"%s-t %s-d\" viewBox=\"0 0 ",
	           id, id);
	svg_place(out, SVG_WIDTH);
	buf_add_byte(out, ' ');
	svg_place(out, height);
	buf_printf(out, "\"><title id=\"%s-t\">", id);
	svg_text(out, title);
	buf_printf(out, "</title><desc id=\"%s-d\">", id);
	svg_text(out, summary);
	buf_add_text(out, "</desc>");
}

void svg_close(struct buf *out)
{
	buf_add_text(out, "</svg></div>");
}

size_t svg_characters(struct slice text)
{
	size_t count = 0;
	for (size_t i = 0; i < text.size; i++)
		count += ((unsigned char)text.data[i] & 0xC0) != 0x80;
	return count;
}

void svg_name(struct slice name, size_t most, char text[SVG_NAME_MAX])
{
	struct slice kept = utf8_valid(name) ? utf8_cut(name, most) : name;
	if (kept.size > most)
		kept.size = most;
	snprintf(text, SVG_NAME_MAX, "%.*s%s", (int)kept.size, kept.data ? kept.data : "",
	         kept.size < name.size ? "…" : "");
}
