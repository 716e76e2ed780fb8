#include "console/billing_plots.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "console/account_plots.h"
#include "console/plot.h"

#define SUMMARY_MAX 200

struct picture {
	struct plot plot;
	int64_t values[2][PLOT_DAYS_MAX];
	char summary[SUMMARY_MAX];
};

static const struct words {
	const char *title, *summary, *first, *second;
} words[2][2] = {
	{{"Events by day", "One bar per day: live and test events. Total: %s.", "Live", "Test"},
     {"Eventos por día", "Una barra por día: eventos reales y de prueba. Total: %s.", "Reales",
      "Prueba"}},
	{{"Credits at the end of each day", "The balance by day as a line. Last day: %s.", "Balance",
      ""},
     {"Créditos al final de cada día", "El saldo por día como línea. Último día: %s.", "Saldo",
      ""}},
};

/* Returns the day; -1 if it is not a day. */
static int64_t read_day(const struct json *row, const char *name)
{
	char text[TIME_TEXT_SIZE];
	struct slice day;
	int64_t time_us;
	if (!json_get_text(row, name, &day) || day.size != 10)
		return -1;
	snprintf(text, sizeof text, "%.10sT00:00:00Z", day.data);
	return time_parse(slice_of(text), name, &time_us, NULL) ? -1 : time_day(time_us);
}

/* Starts a plot from the first to the last day of the rows, which are sorted. */
static bool begin(struct picture *picture, const struct json *rows, const char *member,
                  int64_t otherwise)
{
	int64_t last = -1;
	picture->plot.first_day = -1;
	for (const struct json *row = rows ? rows->first : NULL; row; row = row->next) {
		last = read_day(row, member);
		if (picture->plot.first_day < 0)
			picture->plot.first_day = last;
	}
	int64_t first = picture->plot.first_day;
	if (first < 0 || last < first || last - first >= PLOT_DAYS_MAX)
		return false;
	picture->plot.days = (size_t)(last - first) + 1;
	for (size_t day = 0; day < picture->plot.days; day++)
		picture->values[0][day] = picture->values[1][day] = otherwise;
	return true;
}

static void put(struct picture *picture, const struct json *row, const char *day_member,
                size_t series, const char *member)
{
	int64_t value, day = read_day(row, day_member) - picture->plot.first_day;
	if (day >= 0 && day < (int64_t)picture->plot.days && json_get_integer(row, member, &value))
		picture->values[series][day] = value;
}

static int finish(struct picture *picture, const struct words *said, int64_t figure,
                  struct buf *out)
{
	BUF_AUTO struct buf text;
	buf_init(&text, 64);
	plot_value(&text, figure, picture->plot.language);
	const char *place = strstr(said->summary, "%s");
	snprintf(picture->summary, sizeof picture->summary, "%.*s%s%s", (int)(place - said->summary),
	         said->summary, text.data ? text.data : "", place + 2);
	picture->plot.title = said->title;
	picture->plot.summary = picture->summary;
	picture->plot.series[0] = (struct plot_series){slice_of(said->first), picture->values[0]};
	picture->plot.series[1] = (struct plot_series){slice_of(said->second), picture->values[1]};
	picture->plot.series_count = *said->second ? 2 : 1;
	return figure_draw(&picture->plot, out);
}

static int draw_usage(struct picture *picture, const struct json *rows, const struct words *said,
                      struct buf *out)
{
	int64_t sum = 0, events;
	if (!begin(picture, rows, "period", 0))
		return OK;
	for (const struct json *row = rows->first; row; row = row->next) {
		struct slice mode = {"", 0};
		(void)json_get_text(row, "mode", &mode);
		put(picture, row, "period", slice_is(mode, "test"), "events");
		sum += json_get_integer(row, "events", &events) ? events : 0;
	}
	return finish(picture, said, sum, out);
}

static int draw_history(struct picture *picture, const struct json *rows, const struct words *said,
                        struct buf *out)
{
	if (!begin(picture, rows, "day", PLOT_NONE))
		return OK;
	picture->plot.shape = PLOT_LINES;
	for (const struct json *row = rows->first; row; row = row->next)
		put(picture, row, "day", 0, "balance");
	return finish(picture, said, picture->values[0][picture->plot.days - 1], out);
}

bool billing_has_picture(const char *name)
{
	return strcmp(name, "usage") == 0 || strcmp(name, "history") == 0;
}

int billing_picture(const char *name, const struct json *data, enum language language,
                    struct buf *out)
{
	bool usage = strcmp(name, "usage") == 0;
	const struct json *answer = data ? json_member(data, usage ? "days" : "history") : NULL;
	const struct json *rows = answer ? json_member(answer, "data") : NULL;
	struct picture picture = {.plot = {.id = name, .language = language, .ends_on = PLOT_NONE}};
	const struct words *said = &words[!usage][language == LANGUAGE_SPANISH];
	return usage ? draw_usage(&picture, rows, said, out) : draw_history(&picture, rows, said, out);
}
