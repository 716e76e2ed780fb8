#include "report/report_sheet.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cairo-pdf.h>
#include <qrencode.h>

#define TOP 78.0
#define BOTTOM (SHEET_PAGE_HEIGHT - 64.0)
#define HEADER_Y 44.0
#define FOOTER_Y (SHEET_PAGE_HEIGHT - 48.0)
#define BANNER_HEIGHT 25.0
/* Marks may extend slightly beyond the height of their line. */
#define CLIP_TOLERANCE 1.5

static const struct {
	const char *font;
	enum sheet_colour colour;
	float line_spacing; /* 0: the font's own */
} styles[SHEET_STYLE_COUNT] = {
	[SHEET_TITLE] = {"Noto Serif,Noto Sans CJK JP,DejaVu Sans 25", SHEET_ACCENT, 0},
	[SHEET_SUBTITLE] = {"Noto Sans,Noto Sans CJK JP,DejaVu Sans 11", SHEET_GREY, 0},
	[SHEET_HEADING] = {"Noto Serif,Noto Sans CJK JP,DejaVu Sans Bold 13", SHEET_ACCENT, 0},
	[SHEET_SUBHEADING] = {"Noto Sans,Noto Sans CJK JP,DejaVu Sans Bold 9.5", SHEET_INK, 0},
	[SHEET_BODY] = {"Noto Sans,Noto Sans CJK JP,DejaVu Sans 9.3", SHEET_INK, 0},
	[SHEET_STRONG] = {"Noto Sans,Noto Sans CJK JP,DejaVu Sans Bold 9.3", SHEET_INK, 0},
	[SHEET_SMALL] = {"Noto Sans,Noto Sans CJK JP,DejaVu Sans 8", SHEET_GREY, 0},
	[SHEET_CODE] = {"DejaVu Sans Mono,Noto Sans,Noto Sans CJK JP Bold 10.5", SHEET_INK, 0},
	[SHEET_MONO] = {"DejaVu Sans Mono,Noto Sans,Noto Sans CJK JP 8", SHEET_INK, 1.25F},
	[SHEET_TABLE] = {"Noto Sans,Noto Sans CJK JP,DejaVu Sans 7.6", SHEET_INK, 0},
	[SHEET_TABLE_MONO] = {"DejaVu Sans Mono,Noto Sans,Noto Sans CJK JP 6.6", SHEET_INK, 1.4F},
	[SHEET_TABLE_HEAD] = {"Noto Sans,Noto Sans CJK JP,DejaVu Sans Bold 7.3", SHEET_ACCENT, 0},
	[SHEET_NOTICE] = {"Noto Sans,Noto Sans CJK JP,DejaVu Sans Bold 10.5", SHEET_WARNING, 0},
};

static const double colours[][3] = {
	[SHEET_NO_COLOUR] = {0, 0, 0},
	[SHEET_INK] = {0.11, 0.13, 0.16},
	[SHEET_ACCENT] = {0.10, 0.25, 0.36},
	[SHEET_GREY] = {0.36, 0.40, 0.44},
	[SHEET_RULE] = {0.80, 0.83, 0.86},
	[SHEET_TINT] = {0.955, 0.965, 0.972},
	[SHEET_WARNING] = {0.62, 0.13, 0.11},
	[SHEET_WARNING_TINT] = {0.992, 0.949, 0.941},
	[SHEET_WATERMARK] = {0.973, 0.906, 0.898},
	[SHEET_WHITE] = {1, 1, 1},
};

static void set_colour(struct sheet *sheet, enum sheet_colour colour)
{
	cairo_set_source_rgb(sheet->cairo, colours[colour][0], colours[colour][1], colours[colour][2]);
}

static void fill(struct sheet *sheet, enum sheet_colour colour, double x, double y, double width,
                 double height)
{
	if (!sheet->cairo || colour == SHEET_NO_COLOUR)
		return;
	set_colour(sheet, colour);
	cairo_rectangle(sheet->cairo, x, y, width, height);
	cairo_fill(sheet->cairo);
}

void sheet_open(struct sheet *sheet, const char *tag)
{
	if (sheet->cairo && tag)
		cairo_tag_begin(sheet->cairo, tag, NULL);
}

void sheet_close(struct sheet *sheet, const char *tag)
{
	if (sheet->cairo && tag)
		cairo_tag_end(sheet->cairo, tag);
}

static PangoLayout *layout_new(struct sheet *sheet, enum sheet_style style, const char *text,
                               double width, bool right_aligned)
{
	PangoLayout *layout = pango_layout_new(sheet->pango);
	PangoAttrList *attributes = pango_attr_list_new();
	/* Ligatures would make the text harder to search and to copy. */
	pango_attr_list_insert(attributes, pango_attr_font_features_new("liga=0, clig=0, tnum=1"));
	pango_attr_list_insert(attributes, pango_attr_insert_hyphens_new(FALSE));
	pango_layout_set_attributes(layout, attributes);
	pango_attr_list_unref(attributes);
	pango_layout_set_font_description(layout, sheet->fonts[style]);
	pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
	pango_layout_set_width(layout, (int)(width * PANGO_SCALE));
	pango_layout_set_alignment(layout, right_aligned ? PANGO_ALIGN_RIGHT : PANGO_ALIGN_LEFT);
	pango_layout_set_line_spacing(layout, styles[style].line_spacing);
	pango_layout_set_text(layout, text, -1);
	return layout;
}

/* Draws one line outside the text flow, shortened to its width. */
static void draw_line(struct sheet *sheet, enum sheet_style style, enum sheet_colour colour,
                      const char *text, double x, double y, double width, PangoAlignment alignment)
{
	if (!sheet->cairo)
		return;
	PangoLayout *layout = layout_new(sheet, style, text, width, false);
	pango_layout_set_single_paragraph_mode(layout, TRUE);
	pango_layout_set_ellipsize(layout, PANGO_ELLIPSIZE_END);
	pango_layout_set_alignment(layout, alignment);
	set_colour(sheet, colour);
	cairo_move_to(sheet->cairo, x, y);
	pango_cairo_show_layout(sheet->cairo, layout);
	g_object_unref(layout);
}

static void draw_banner(struct sheet *sheet)
{
	cairo_t *cairo = sheet->cairo;
	if (!cairo)
		return;
	PangoLayout *mark = layout_new(sheet, SHEET_NOTICE, sheet->frame->banner, 1000, false);
	pango_layout_set_single_paragraph_mode(mark, TRUE);
	int width;
	int height;
	pango_layout_get_size(mark, &width, &height);
	double scale = 690.0 / ((double)width / PANGO_SCALE);
	cairo_save(cairo);
	cairo_translate(cairo, SHEET_PAGE_WIDTH / 2, SHEET_PAGE_HEIGHT / 2);
	cairo_rotate(cairo, -0.9);
	cairo_scale(cairo, scale, scale);
	set_colour(sheet, SHEET_WATERMARK);
	cairo_move_to(cairo, -(double)width / PANGO_SCALE / 2, -(double)height / PANGO_SCALE / 2);
	pango_cairo_show_layout(cairo, mark);
	cairo_restore(cairo);
	g_object_unref(mark);
	fill(sheet, SHEET_WARNING, 0, 0, SHEET_PAGE_WIDTH, BANNER_HEIGHT);
	draw_line(sheet, SHEET_NOTICE, SHEET_WHITE, sheet->frame->banner, SHEET_LEFT, 5, SHEET_WIDTH,
	          PANGO_ALIGN_CENTER);
}

static void page_number(const struct sheet *sheet, char *text, size_t size)
{
	const char *format = sheet->frame->page_format;
	size_t used = 0;
	for (; *format && used + 12 < size; format++) {
		int number = strncmp(format, "{0}", 3) == 0   ? sheet->page
		             : strncmp(format, "{1}", 3) == 0 ? sheet->page_count
		                                              : -1;
		if (number < 0) {
			text[used++] = *format;
			continue;
		}
		used += (size_t)snprintf(text + used, size - used, "%d", number);
		format += 2;
	}
	text[used] = '\0';
}

static void page_begin(struct sheet *sheet)
{
	sheet->page++;
	sheet->y = TOP;
	const struct sheet_frame *frame = sheet->frame;
	if (frame->banner)
		draw_banner(sheet);
	double half = SHEET_WIDTH / 2 - 6;
	double right = SHEET_LEFT + SHEET_WIDTH - half;
	draw_line(sheet, SHEET_SMALL, SHEET_GREY, frame->header_left, SHEET_LEFT, HEADER_Y, half,
	          PANGO_ALIGN_LEFT);
	draw_line(sheet, SHEET_SMALL, SHEET_GREY, frame->header_right, right, HEADER_Y, half,
	          PANGO_ALIGN_RIGHT);
	fill(sheet, SHEET_RULE, SHEET_LEFT, HEADER_Y + 15, SHEET_WIDTH, 0.6);
	char number[64];
	page_number(sheet, number, sizeof(number));
	fill(sheet, SHEET_RULE, SHEET_LEFT, FOOTER_Y - 5, SHEET_WIDTH, 0.6);
	draw_line(sheet, SHEET_SMALL, SHEET_GREY, frame->footer_left, SHEET_LEFT, FOOTER_Y,
	          SHEET_WIDTH * 0.75, PANGO_ALIGN_LEFT);
	draw_line(sheet, SHEET_SMALL, SHEET_GREY, number, SHEET_LEFT + SHEET_WIDTH * 0.75, FOOTER_Y,
	          SHEET_WIDTH * 0.25, PANGO_ALIGN_RIGHT);
}

static void page_end(struct sheet *sheet)
{
	if (sheet->cairo)
		cairo_show_page(sheet->cairo);
}

void sheet_begin(struct sheet *sheet, cairo_t *cairo, PangoContext *pango,
                 const struct sheet_frame *frame, int page_count)
{
	*sheet =
		(struct sheet){.cairo = cairo, .pango = pango, .frame = frame, .page_count = page_count};
	for (int i = 0; i < SHEET_STYLE_COUNT; i++)
		sheet->fonts[i] = pango_font_description_from_string(styles[i].font);
	sheet_open(sheet, "Document");
	page_begin(sheet);
}

void sheet_end(struct sheet *sheet)
{
	page_end(sheet);
	sheet_close(sheet, "Document");
	for (int i = 0; i < SHEET_STYLE_COUNT; i++)
		pango_font_description_free(sheet->fonts[i]);
}

/* The progress of setting a cell. */
struct progress {
	PangoLayout *layout;
	int line_count;
	int next_line;
	int fitting_lines; /* lines in the current slice */
	double fitting_height;
	double drop; /* offset by which the first lines of a row share a baseline */
};

static double line_height(PangoLayoutIter *iterator)
{
	int top;
	int bottom;
	pango_layout_iter_get_line_yrange(iterator, &top, &bottom);
	return (double)(bottom - top) / PANGO_SCALE;
}

/* Returns an iterator at the next line to set. */
static PangoLayoutIter *iterator_at(const struct progress *progress)
{
	PangoLayoutIter *iterator = pango_layout_get_iter(progress->layout);
	for (int i = 0; i < progress->next_line; i++)
		pango_layout_iter_next_line(iterator);
	return iterator;
}

static void measure(struct progress *progress, double room)
{
	progress->fitting_lines = 0;
	progress->fitting_height = progress->next_line == 0 ? progress->drop : 0;
	if (progress->next_line == progress->line_count)
		return;
	PangoLayoutIter *iterator = iterator_at(progress);
	do {
		double height = line_height(iterator);
		if (progress->fitting_height + height > room)
			break;
		progress->fitting_height += height;
		progress->fitting_lines++;
	} while (pango_layout_iter_next_line(iterator));
	pango_layout_iter_free(iterator);
}

static void draw_lines(struct sheet *sheet, const struct sheet_cell *cell,
                       const struct progress *progress, double y)
{
	cairo_t *cairo = sheet->cairo;
	double x = SHEET_LEFT + cell->x;
	cairo_save(cairo);
	cairo_rectangle(cairo, x - CLIP_TOLERANCE, y - CLIP_TOLERANCE, cell->width + 2 * CLIP_TOLERANCE,
	                progress->fitting_height + 2 * CLIP_TOLERANCE);
	cairo_clip(cairo);
	set_colour(sheet, cell->colour ? cell->colour : styles[cell->style].colour);
	PangoLayoutIter *iterator = iterator_at(progress);
	double used = progress->next_line == 0 ? progress->drop : 0;
	for (int i = 0; i < progress->fitting_lines; i++) {
		int top;
		int bottom;
		PangoRectangle logical;
		pango_layout_iter_get_line_yrange(iterator, &top, &bottom);
		pango_layout_iter_get_line_extents(iterator, NULL, &logical);
		int baseline = pango_layout_iter_get_baseline(iterator);
		cairo_move_to(cairo, x + (double)logical.x / PANGO_SCALE,
		              y + used + (double)(baseline - top) / PANGO_SCALE);
		pango_cairo_show_layout_line(cairo, pango_layout_iter_get_line_readonly(iterator));
		used += line_height(iterator);
		pango_layout_iter_next_line(iterator);
	}
	pango_layout_iter_free(iterator);
	cairo_restore(cairo);
}

static void draw_cell(struct sheet *sheet, const struct sheet_cell *cell,
                      const struct progress *progress, double y)
{
	/* A cell without text is still tagged as a table cell. */
	sheet_open(sheet, cell->tag);
	if (cell->link) {
		char attributes[1100];
		snprintf(attributes, sizeof(attributes), "uri='%s'", cell->link);
		cairo_tag_begin(sheet->cairo, CAIRO_TAG_LINK, attributes);
	}
	if (progress->fitting_lines > 0)
		draw_lines(sheet, cell, progress, y);
	if (cell->link)
		cairo_tag_end(sheet->cairo, CAIRO_TAG_LINK);
	sheet_close(sheet, cell->tag);
}

static void draw_slice(struct sheet *sheet, const struct sheet_row *row,
                       const struct progress *progress, double height)
{
	double left = SHEET_LEFT + row->x;
	double width = row->width > 0 ? row->width : SHEET_WIDTH - row->x;
	double full = row->space_above + height + row->space_below;
	fill(sheet, row->background, left, sheet->y, width, full);
	fill(sheet, row->bar, left, sheet->y, 2.5, full);
	fill(sheet, row->rule, left, sheet->y + full - 0.5, width, 0.5);
	sheet_open(sheet, row->tag);
	for (int i = 0; i < row->count; i++)
		draw_cell(sheet, &row->cells[i], &progress[i], sheet->y + row->space_above);
	sheet_close(sheet, row->tag);
}

static void page_break(struct sheet *sheet)
{
	page_end(sheet);
	page_begin(sheet);
	if (!sheet->repeating)
		return;
	struct sheet_row row = sheet->repeated;
	row.tag = NULL;
	for (int i = 0; i < row.count; i++)
		row.cells[i].tag = NULL;
	sheet_add(sheet, &row);
}

void sheet_repeat(struct sheet *sheet, const struct sheet_row *row)
{
	sheet_add(sheet, row);
	sheet->repeated = *row;
	sheet->repeating = true;
}

void sheet_repeat_end(struct sheet *sheet)
{
	sheet->repeating = false;
}

/* Computes the part of the row that fits on this page. Returns false if the row must begin on the
 * next page. */
static bool fit_slice(struct sheet *sheet, const struct sheet_row *row, struct progress *progress,
                      double page_top, double *ret_height)
{
	double spaces = row->space_above + row->space_below;
	double room = BOTTOM - sheet->y - spaces;
	bool whole = true;
	bool begun = false;
	bool any = false;
	double height = 0;
	double whole_height = 0;
	for (int i = 0; i < row->count; i++) {
		struct progress *cell = &progress[i];
		begun |= cell->next_line > 0;
		measure(cell, BOTTOM - page_top - spaces);
		whole_height = cell->fitting_height > whole_height ? cell->fitting_height : whole_height;
		bool on_one_page = cell->next_line + cell->fitting_lines == cell->line_count;
		measure(cell, room);
		height = cell->fitting_height > height ? cell->fitting_height : height;
		any |= cell->fitting_lines > 0;
		whole &= on_one_page;
	}
	/* A row that would leave half of the page empty begins here. */
	bool moves = whole && !begun && whole_height > room && room < (BOTTOM - TOP) / 2;
	if (sheet->y > page_top + 0.01 && (!any || moves))
		return false;
	if (!any)
		/* A line higher than a page is cut off, which avoids an endless loop. */
		for (int i = 0; i < row->count; i++) {
			struct progress *cell = &progress[i];
			cell->fitting_lines = cell->next_line < cell->line_count;
			cell->fitting_height = height = room;
		}
	*ret_height = height;
	return true;
}

static bool row_done(const struct sheet_row *row, const struct progress *progress)
{
	for (int i = 0; i < row->count; i++)
		if (progress[i].next_line < progress[i].line_count)
			return false;
	return true;
}

static void lay_out(struct sheet *sheet, const struct sheet_row *row, struct progress *progress)
{
	int lowest = 0;
	for (int i = 0; i < row->count; i++) {
		const struct sheet_cell *cell = &row->cells[i];
		progress[i] = (struct progress){
			.layout = layout_new(sheet, cell->style, cell->text, cell->width, cell->right_aligned)};
		progress[i].line_count = pango_layout_get_line_count(progress[i].layout);
		int baseline = pango_layout_get_baseline(progress[i].layout);
		lowest = baseline > lowest ? baseline : lowest;
	}
	for (int i = 0; i < row->count; i++) {
		int baseline = pango_layout_get_baseline(progress[i].layout);
		progress[i].drop = (double)(lowest - baseline) / PANGO_SCALE;
	}
}

void sheet_add(struct sheet *sheet, const struct sheet_row *row)
{
	struct progress progress[SHEET_COLUMNS_MAX];
	lay_out(sheet, row, progress);
	double page_top = TOP;
	do {
		double height;
		if (!fit_slice(sheet, row, progress, page_top, &height)) {
			page_break(sheet);
			page_top = sheet->y;
			continue;
		}
		if (sheet->cairo)
			draw_slice(sheet, row, progress, height);
		sheet->y += row->space_above + height + row->space_below;
		for (int i = 0; i < row->count; i++)
			progress[i].next_line += progress[i].fitting_lines;
	} while (!row_done(row, progress));
	for (int i = 0; i < row->count; i++)
		g_object_unref(progress[i].layout);
}

struct sheet sheet_measuring_copy(const struct sheet *sheet)
{
	struct sheet trial = *sheet;
	trial.cairo = NULL;
	trial.y = TOP;
	return trial;
}

void sheet_space(struct sheet *sheet, double height)
{
	sheet->y += height;
}

bool sheet_at_top(const struct sheet *sheet)
{
	return sheet->y < TOP + 0.01;
}

void sheet_require_space(struct sheet *sheet, double height)
{
	if (BOTTOM - sheet->y < height)
		page_break(sheet);
}

int sheet_qr(struct sheet *sheet, const char *text, double x, double y, double size,
             struct error *error)
{
	if (!sheet->cairo)
		return OK;
	QRcode *code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_M);
	if (!code)
		return error_cause(error, ERR_INTERNAL, "the address does not fit in a QR code");
	double side = size / code->width;
	sheet_open(sheet, "Figure");
	set_colour(sheet, SHEET_INK);
	for (int row = 0; row < code->width; row++)
		for (int column = 0, run; column < code->width; column += run) {
			const unsigned char *module = &code->data[row * code->width + column];
			for (run = 1; column + run < code->width && ((module[run] ^ module[0]) & 1) == 0;)
				run++;
			if (module[0] & 1)
				cairo_rectangle(sheet->cairo, x + column * side, y + row * side, run * side, side);
		}
	cairo_fill(sheet->cairo);
	sheet_close(sheet, "Figure");
	QRcode_free(code);
	return OK;
}
