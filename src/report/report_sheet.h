/* The pages of a report: text in boxes, lists and tables that flow from page to page.
 *
 * The same calls are made twice. The first pass, without a cairo context, only counts the pages;
 * the second pass draws them. Every text has a layout of its own, so that no text can reorder
 * another. Structure tags enclose text only. Rules, backgrounds, headers, footers and repeated
 * table headings are untagged, and report_finish.h marks them as artifacts. Internal to src/report.
 */
#ifndef REPORT_REPORT_SHEET_H
#define REPORT_REPORT_SHEET_H

#include <stdbool.h>

#include <cairo.h>
#include <pango/pangocairo.h>

#include "base/error.h"

#define SHEET_PAGE_WIDTH 595.276
#define SHEET_PAGE_HEIGHT 841.89
#define SHEET_LEFT 62.0
#define SHEET_WIDTH (SHEET_PAGE_WIDTH - 2 * SHEET_LEFT)
#define SHEET_COLUMNS_MAX 6
#define SHEET_HEADING_SPACE 15.0 /* above a heading that is not at the top of a page */

enum sheet_style {
	SHEET_TITLE,
	SHEET_SUBTITLE,
	SHEET_HEADING,
	SHEET_SUBHEADING,
	SHEET_BODY,
	SHEET_STRONG,
	SHEET_SMALL,
	SHEET_CODE,
	SHEET_MONO,
	SHEET_TABLE,
	SHEET_TABLE_MONO,
	SHEET_TABLE_HEAD,
	SHEET_NOTICE,
	SHEET_STYLE_COUNT
};

enum sheet_colour {
	SHEET_NO_COLOUR,
	SHEET_INK,
	SHEET_ACCENT,
	SHEET_GREY,
	SHEET_RULE,
	SHEET_TINT,
	SHEET_WARNING,
	SHEET_WARNING_TINT,
	SHEET_WATERMARK,
	SHEET_WHITE
};

/* The content of every page's margins. Short trusted or cleaned strings, shortened if too long. */
struct sheet_frame {
	const char *header_left;
	const char *header_right;
	const char *footer_left;
	const char *page_format; /* with {0}: page number, {1}: page count */
	const char *banner;      /* the mark of the test mode; NULL: none */
};

/* One box of text. The text is UTF-8, either trusted or a result of report_visible. */
struct sheet_cell {
	const char *text;
	enum sheet_style style;
	enum sheet_colour colour; /* SHEET_NO_COLOUR: the style's own */
	const char *tag;
	const char *link; /* NULL, or an address for a link tag inside */
	double x;         /* from the left margin */
	double width;
	bool right_aligned;
};

struct sheet_row {
	struct sheet_cell cells[SHEET_COLUMNS_MAX];
	int count;
	const char *tag; /* tag around the cells; NULL: none */
	double space_above;
	double space_below;
	enum sheet_colour background;
	enum sheet_colour bar;  /* at the left edge */
	enum sheet_colour rule; /* below */
	double x;               /* left edge of background, bar and rule, from the left margin */
	double width;           /* 0: to the right margin */
};

struct sheet_column {
	const char *heading;
	double width;
	bool right_aligned;
};

struct sheet {
	cairo_t *cairo; /* NULL: only counting */
	PangoContext *pango;
	const struct sheet_frame *frame;
	PangoFontDescription *fonts[SHEET_STYLE_COUNT];
	double y;
	int page; /* from 1 */
	int page_count;
	bool repeating;
	struct sheet_row repeated;          /* row at the top of every new page */
	const struct sheet_column *columns; /* columns of the open table */
	int column_count;
};

/* Opens the first page. All arguments must outlive the sheet. */
void sheet_begin(struct sheet *sheet, cairo_t *cairo, PangoContext *pango,
                 const struct sheet_frame *frame, int page_count);
/* Closes the last page. The number of pages is in sheet->page. */
void sheet_end(struct sheet *sheet);

/* Sets a row, on several pages if necessary. */
void sheet_add(struct sheet *sheet, const struct sheet_row *row);
/* Sets a row, and again at the top of every new page until sheet_repeat_end. */
void sheet_repeat(struct sheet *sheet, const struct sheet_row *row);
void sheet_repeat_end(struct sheet *sheet);
/* Returns a copy at the top of an empty page that draws nothing, for measuring. */
struct sheet sheet_measuring_copy(const struct sheet *sheet);
void sheet_space(struct sheet *sheet, double height);
bool sheet_at_top(const struct sheet *sheet);
/* Begins a new page unless `height` is left on this one. */
void sheet_require_space(struct sheet *sheet, double height);

void sheet_open(struct sheet *sheet, const char *tag);
void sheet_close(struct sheet *sheet, const char *tag);

/* Draws the QR code of a text with its upper left corner at x, y. `size` is the length of its side.
 * The caller leaves the quiet zone. Returns ERR_INTERNAL if the text does not fit in a code. */
int sheet_qr(struct sheet *sheet, const char *text, double x, double y, double size,
             struct error *error) MUST_CHECK;

/* The blocks below are in report_block.c. */

void sheet_heading(struct sheet *sheet, const char *text);
void sheet_paragraph(struct sheet *sheet, enum sheet_style style, const char *text);
/* Adds an item to the open list (sheet_open "L"). */
void sheet_item(struct sheet *sheet, const char *mark, const char *text);
/* Adds a label and its value to the open list. */
void sheet_fact(struct sheet *sheet, const char *label, enum sheet_style style, const char *value,
                const char *link);
/* Adds a highlighted box with a coloured bar. */
void sheet_notice(struct sheet *sheet, const char *title, const char *text);

/* Begins a table. Its heading is repeated on every page. */
void sheet_table_begin(struct sheet *sheet, const struct sheet_column *columns, int count);
/* Adds a row of column_count texts with one style per column. */
void sheet_table_row(struct sheet *sheet, const char *const *texts, const enum sheet_style *styles);
void sheet_table_end(struct sheet *sheet);

#endif
