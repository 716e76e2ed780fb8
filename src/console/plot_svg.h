/* What drawings are made of. */
#ifndef CONSOLE_PLOT_SVG_H
#define CONSOLE_PLOT_SVG_H

#include "base/buf.h"

#define SVG_WIDTH 640 /* in a drawing's own units, which are pixels where it has its full size */
#define SVG_NAME_BYTES 60 /* at most, of a name that is cut */
#define SVG_NAME_MAX (SVG_NAME_BYTES + 4)

/* A number with one decimal, whatever the locale is; as an attribute; behind commands of a path. */
void svg_place(struct buf *out, double place);
void svg_attribute(struct buf *out, const char *name, double place);
void svg_point(struct buf *out, char command, double x, double y);
void svg_step(struct buf *out, char command, double to);
void svg_text(struct buf *out, const char *text);

/* A window that a narrow screen scrolls; who has only keys gets to it. */
void svg_open(struct buf *out, const char *id, const char *title, const char *summary,
              double height);
void svg_close(struct buf *out);

size_t svg_characters(struct slice text);
/* What it is called where there is little room. */
void svg_name(struct slice name, size_t most, char text[SVG_NAME_MAX]);

#endif
