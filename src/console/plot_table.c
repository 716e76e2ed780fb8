/* The data of plots as tables, as an alternative to the pictures. */
#include "console/plot.h"
#include "console/plot_scale.h"
#include "console/template.h"

static void open_table(struct buf *out, const char *title, const char *first)
{
	buf_add_text(out, "<table><caption class=\"unseen\">");
	template_escape(out, slice_of(title), TEMPLATE_IN_TEXT);
	buf_printf(out, "</caption><thead><tr><th scope=\"col\">%s</th>", first);
}

static void add_head(struct buf *out, struct slice name)
{
	buf_add_text(out, "<th scope=\"col\">");
	template_escape(out, name, TEMPLATE_IN_TEXT);
	buf_add_text(out, "</th>");
}

/* Writes a value with its column name, which narrow screens show instead of the table head. */
static void add_value(struct buf *out, struct slice column, int64_t value, enum language language)
{
	buf_add_text(out, "<td data-label=\"");
	template_escape(out, column, TEMPLATE_IN_ATTRIBUTE);
	buf_add_text(out, "\">");
	plot_value(out, value, language);
	buf_add_text(out, "</td>");
}

/* Returns the name of the column of sums, which is the same in both languages. */
static struct slice sum_name(void)
{
	return slice_of("Total");
}

static bool has_sum(const struct plot *plot)
{
	return plot->shape == PLOT_BARS && plot->series_count > 1;
}

static void add_row(const struct plot *plot, size_t day, struct buf *out)
{
	__int128 sum = 0;
	buf_add_text(out, "<tr><th scope=\"row\">");
	plot_date(out, plot->first_day + (int64_t)day, plot->language);
	buf_add_text(out, "</th>");
	for (size_t i = 0; i < plot->series_count; i++) {
		int64_t value = plot->series[i].values[day];
		add_value(out, plot->series[i].name, value, plot->language);
		sum += value == PLOT_NONE ? 0 : value;
	}
	if (has_sum(plot))
		add_value(out, sum_name(),
		          sum > INT64_MAX    ? INT64_MAX
		          : sum < -INT64_MAX ? -INT64_MAX
		                             : (int64_t)sum,
		          plot->language);
	buf_add_text(out, "</tr>");
}

int plot_table(const struct plot *plot, struct buf *out)
{
	bool spanish = plot->language == LANGUAGE_SPANISH;
	int result = plot_check(plot);
	if (result)
		return result;
	open_table(out, plot->title, spanish ? "Día (UTC)" : "Day (UTC)");
	for (size_t i = 0; i < plot->series_count; i++)
		add_head(out, plot->series[i].name);
	if (has_sum(plot))
		add_head(out, sum_name());
	buf_add_text(out, "</tr></thead><tbody>");
	for (size_t day = plot->days; day-- > 0;)
		add_row(plot, day, out);
	buf_add_text(out, "</tbody></table>");
	return buf_check(out);
}

int plot_limits_table(const struct plot_limits *limits, struct buf *out)
{
	bool spanish = limits->language == LANGUAGE_SPANISH;
	struct slice used = slice_of(spanish ? "Usado" : "Used");
	struct slice most = slice_of(spanish ? "Máximo" : "Maximum");
	if (limits->count > PLOT_LIMITS_MAX)
		return ERR_USAGE;
	open_table(out, limits->title, spanish ? "Límite" : "Limit");
	add_head(out, used);
	add_head(out, most);
	buf_add_text(out, "</tr></thead><tbody>");
	for (size_t i = 0; i < limits->count; i++) {
		buf_add_text(out, "<tr><th scope=\"row\">");
		template_escape(out, limits->items[i].name, TEMPLATE_IN_TEXT);
		buf_add_text(out, "</th>");
		add_value(out, used, limits->items[i].used, limits->language);
		add_value(out, most, limits->items[i].most, limits->language);
		buf_add_text(out, "</tr>");
	}
	buf_add_text(out, "</tbody></table>");
	return buf_check(out);
}
