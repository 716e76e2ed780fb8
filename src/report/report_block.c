/* Blocks of a report: headings, paragraphs, facts, notices, tables. */
#include "report/report_sheet.h"

#define FACT_LABEL_WIDTH 122.0
#define TABLE_PADDING 3.5
#define TABLE_INSET 5.0
#define TABLE_GAP 10.0

static void add_text(struct sheet *sheet, const char *tag, enum sheet_style style, const char *text)
{
	struct sheet_cell cell = {.text = text, .style = style, .tag = tag, .width = SHEET_WIDTH};
	sheet_add(sheet, &(struct sheet_row){.count = 1, .space_below = 4, .cells[0] = cell});
}

void sheet_heading(struct sheet *sheet, const char *text)
{
	sheet_require_space(sheet, 140);
	if (!sheet_at_top(sheet))
		sheet_space(sheet, SHEET_HEADING_SPACE);
	add_text(sheet, "H2", SHEET_HEADING, text);
}

void sheet_paragraph(struct sheet *sheet, enum sheet_style style, const char *text)
{
	static const char *const tags[SHEET_STYLE_COUNT] = {
		[SHEET_TITLE] = "H1", [SHEET_HEADING] = "H2", [SHEET_SUBHEADING] = "H3"};
	add_text(sheet, tags[style] ? tags[style] : "P", style, text);
}

void sheet_item(struct sheet *sheet, const char *mark, const char *text)
{
	sheet_add(sheet, &(struct sheet_row){
						 .count = 2,
						 .tag = "LI",
						 .space_below = 3,
						 .cells = {{.text = mark,
	                                .style = SHEET_STRONG,
	                                .colour = SHEET_ACCENT,
	                                .tag = "Lbl",
	                                .width = 14},
	                               {.text = text,
	                                .style = SHEET_BODY,
	                                .tag = "LBody",
	                                .x = 18,
	                                .width = SHEET_WIDTH - 18}},
					 });
}

void sheet_fact(struct sheet *sheet, const char *label, enum sheet_style style, const char *value,
                const char *link)
{
	sheet_add(sheet, &(struct sheet_row){
						 .count = 2,
						 .tag = "LI",
						 .space_above = 3.5,
						 .space_below = 4,
						 .rule = SHEET_RULE,
						 .cells = {{.text = label,
	                                .style = SHEET_SMALL,
	                                .tag = "Lbl",
	                                .width = FACT_LABEL_WIDTH - 8},
	                               {.text = value,
	                                .style = style,
	                                .colour = link ? SHEET_ACCENT : SHEET_NO_COLOUR,
	                                .tag = "LBody",
	                                .link = link,
	                                .x = FACT_LABEL_WIDTH,
	                                .width = SHEET_WIDTH - FACT_LABEL_WIDTH}},
					 });
}

void sheet_notice(struct sheet *sheet, const char *title, const char *text)
{
	struct sheet_row row = {
		.count = 1,
		.space_above = 7,
		.background = SHEET_WARNING_TINT,
		.bar = SHEET_WARNING,
		.cells[0] = {
			.text = title, .style = SHEET_NOTICE, .tag = "P", .x = 14, .width = SHEET_WIDTH - 28}};
	sheet_require_space(sheet, 60);
	sheet_add(sheet, &row);
	row.space_above = 1;
	row.space_below = 8;
	row.cells[0].text = text;
	row.cells[0].style = SHEET_BODY;
	sheet_add(sheet, &row);
}

/* Lays out the cells of a table row or heading next to each other. */
static struct sheet_row table_row(const struct sheet *sheet, const char *row_tag,
                                  const char *cell_tag)
{
	struct sheet_row row = {.count = sheet->column_count,
	                        .tag = row_tag,
	                        .space_above = TABLE_PADDING,
	                        .space_below = TABLE_PADDING,
	                        .rule = SHEET_RULE};
	double x = TABLE_INSET;
	for (int i = 0; i < sheet->column_count; i++) {
		const struct sheet_column *column = &sheet->columns[i];
		row.cells[i] = (struct sheet_cell){.tag = cell_tag,
		                                   .x = x,
		                                   .width = column->width - TABLE_GAP,
		                                   .right_aligned = column->right_aligned};
		x += column->width;
	}
	return row;
}

void sheet_table_begin(struct sheet *sheet, const struct sheet_column *columns, int count)
{
	sheet_require_space(sheet, 70);
	sheet_open(sheet, "Table");
	sheet->columns = columns;
	sheet->column_count = count;
	struct sheet_row row = table_row(sheet, "TR", "TH");
	row.background = SHEET_TINT;
	row.rule = SHEET_ACCENT;
	for (int i = 0; i < count; i++) {
		row.cells[i].text = columns[i].heading;
		row.cells[i].style = SHEET_TABLE_HEAD;
	}
	sheet_repeat(sheet, &row);
}

void sheet_table_row(struct sheet *sheet, const char *const *texts,
                     const enum sheet_style *row_styles)
{
	struct sheet_row row = table_row(sheet, "TR", "TD");
	for (int i = 0; i < row.count; i++) {
		row.cells[i].text = texts[i];
		row.cells[i].style = row_styles[i];
	}
	sheet_add(sheet, &row);
}

void sheet_table_end(struct sheet *sheet)
{
	sheet_close(sheet, "Table");
	sheet_repeat_end(sheet);
	sheet_space(sheet, 6);
}
