/* Primitives for SVG drawings. */
#ifndef CONSOLE_PLOT_SVG_H
#define CONSOLE_PLOT_SVG_H

#include "base/buf.h"

#define SVG_WIDTH 640     /* in user units of the drawing; equal to pixels at full size */
#define SVG_NAME_BYTES 60 /* maximum bytes of a shortened name */
#define SVG_NAME_MAX (SVG_NAME_BYTES + 4)

/* Write a number with one decimal, independent of the locale: alone, as an attribute, and as
 * coordinates of path commands. */
void svg_place(struct buf *out, double place);
void svg_attribute(struct buf *out, const char *name, double place);
void svg_point(struct buf *out, char command, double x, double y);
void svg_step(struct buf *out, char command, double to);
void svg_text(struct buf *out, const char *text);

/* Opens a drawing in a container that scrolls on narrow screens and can be focused by keyboard. */
void svg_open(struct buf *out, const char *id, const char *title, const char *summary,
              double height);
void svg_close(struct buf *out);

size_t svg_characters(struct slice text);
/* Writes a name shortened to `most` characters. */
void svg_name(struct slice name, size_t most, char text[SVG_NAME_MAX]);

#endif
