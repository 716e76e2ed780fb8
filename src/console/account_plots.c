#include "console/account_plots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "console/billing_plots.h"
#include "console/plot.h"
#include "console/plot_scale.h"
#include "console/proof_picture.h"
#include "console/template.h"

#define SUMMARY_MAX 200
#define ENDS_MAX 60
#define LIMIT_NAME_MAX 80

struct picture {
	const struct json *state; /* answer of `account overview` */
	struct plot plot;
	int64_t values[PLOT_SERIES_MAX][PLOT_DAYS_MAX];
	char summary[SUMMARY_MAX], ends[ENDS_MAX];
};

/* Texts of the pictures in both languages. */
enum word {
	WORD_EVENTS,
	WORD_EVENTS_SUMMARY,
	WORD_OTHERS,
	WORD_CREDITS,
	WORD_CREDITS_SUMMARY,
	WORD_BALANCE,
	WORD_ENDS,
	WORD_LIMITS,
	WORD_LIMITS_SUMMARY,
	WORD_FIGURES,
	WORD_DAY_LIMIT,
	WORD_MONTH_LIMIT,
};
static const char *const words[][2] = {
	{"Live events by day and channel", "Eventos reales por día y canal"},
	{"One bar per day with one part per channel. Total: %s.",
     "Una barra por día con una parte por canal. Total: %s."},
	{"Other channels", "Otros canales"},
	{"Credits at the end of each day", "Créditos al final de cada día"},
	{"The balance by day as a line. Current: %s.", "El saldo por día como línea. Actual: %s."},
	{"Balance", "Saldo"},
	{"at the current rate until ", "al ritmo actual hasta el "},
	{"Use of limits", "Uso de los límites"},
	{"One bar per limit, full if the limit is exhausted. Limits: %s.",
     "Una barra por límite, llena si el límite está agotado. Límites: %s."},
	{"Data as a table", "Datos en una tabla"},
	{"by day", "por día"},
	{"by month", "por mes"},
};

static const char *say(enum word word, enum language language)
{
	return words[word][language == LANGUAGE_SPANISH];
}

/* ---- input ---- */

/* Returns the day; PLOT_NONE if it is not a day. */
static int64_t read_day(const struct json *json, const char *name)
{
	char text[TIME_TEXT_SIZE];
	struct slice day;
	int64_t time_us;
	if (!json_get_text(json, name, &day) || day.size != 10)
		return PLOT_NONE;
	snprintf(text, sizeof text, "%.10sT00:00:00Z", day.data);
	if (time_parse(slice_of(text), name, &time_us, NULL))
		return PLOT_NONE;
	return time_day(time_us);
}

static int64_t integer_of(const struct json *json, const char *name, int64_t otherwise)
{
	int64_t value;
	return json_get_integer(json, name, &value) ? value : otherwise;
}

/* Reads an array of integers. */
static size_t read_values(const struct json *array, int64_t values[PLOT_DAYS_MAX])
{
	size_t count = 0;
	for (const struct json *at = array ? array->first : NULL; at && count < PLOT_DAYS_MAX;
	     at = at->next) {
		char digits[24];
		snprintf(digits, sizeof digits, "%.*s", (int)(at->text.size < 23 ? at->text.size : 23),
		         at->type == JSON_NUMBER ? at->text.data : "0");
		values[count++] = strtoll(digits, NULL, 10);
	}
	return count;
}

/* ---- figures ---- */

static void summarize(struct picture *picture, enum word word, int64_t value)
{
	BUF_AUTO struct buf text;
	buf_init(&text, 64);
	plot_value(&text, value, picture->plot.language);
	const char *format = say(word, picture->plot.language), *place = strstr(format, "%s");
	snprintf(picture->summary, sizeof picture->summary, "%.*s%s%s", (int)(place - format), format,
	         text.data ? text.data : "", place + 2);
	picture->plot.summary = picture->summary;
}

static void open_figure(struct buf *out, const char *title)
{
	buf_add_text(out, "<figure class=\"plotted\"><figcaption>");
	template_escape(out, slice_of(title), TEMPLATE_IN_TEXT);
	buf_add_text(out, "</figcaption>");
}

static void open_figures(struct buf *out, enum language language)
{
	buf_printf(out, "<details><summary>%s</summary>", say(WORD_FIGURES, language));
}

int figure_draw(const struct plot *plot, struct buf *out)
{
	open_figure(out, plot->title);
	int result = plot_draw(plot, out);
	open_figures(out, plot->language);
	if (!result)
		result = plot_table(plot, out);
	buf_add_text(out, "</details></figure>");
	return result ? result : buf_check(out);
}

static void add_series(struct picture *picture, struct slice name)
{
	struct plot *plot = &picture->plot;
	plot->series[plot->series_count] =
		(struct plot_series){name, picture->values[plot->series_count]};
	plot->series_count++;
}

/* ---- the plots ---- */

static int draw_events(struct picture *picture, struct buf *out)
{
	struct plot *plot = &picture->plot;
	const struct json *events = json_member(picture->state, "events");
	const struct json *channels = events ? json_member(events, "channels") : NULL;
	if (!channels || !channels->first)
		return OK;
	plot->title = say(WORD_EVENTS, plot->language);
	plot->first_day = read_day(events, "first_day");
	plot->days = PLOT_DAYS_MAX;
	for (const struct json *at = channels->first; at && plot->series_count < PLOT_SERIES_MAX;
	     at = at->next) {
		struct slice name = slice_of(say(WORD_OTHERS, plot->language));
		(void)json_get_text(at, "name", &name);
		size_t days = read_values(json_member(at, "counts"), picture->values[plot->series_count]);
		plot->days = days < plot->days ? days : plot->days;
		add_series(picture, name);
	}
	summarize(picture, WORD_EVENTS_SUMMARY, integer_of(events, "total", 0));
	return figure_draw(plot, out);
}

static int draw_credits(struct picture *picture, struct buf *out)
{
	struct plot *plot = &picture->plot;
	const struct json *credits = json_member(picture->state, "credits");
	const struct json *forecast = credits ? json_member(credits, "forecast") : NULL;
	plot->days = credits ? read_values(json_member(credits, "balances"), picture->values[0]) : 0;
	if (!plot->days)
		return OK;
	plot->title = say(WORD_CREDITS, plot->language);
	plot->shape = PLOT_LINES;
	plot->first_day = read_day(credits, "first_day");
	add_series(picture, slice_of(say(WORD_BALANCE, plot->language)));
	plot->ends_on = forecast ? read_day(forecast, "runs_out_on") : PLOT_NONE;
	if (plot->ends_on >= 0 && plot->ends_on < PLOT_DAY_MAX) {
		BUF_AUTO struct buf text;
		buf_init(&text, ENDS_MAX);
		plot_date(&text, plot->ends_on, plot->language);
		snprintf(picture->ends, sizeof picture->ends, "%s%s", say(WORD_ENDS, plot->language),
		         text.data ? text.data : "");
		plot->ends = picture->ends;
	}
	summarize(picture, WORD_CREDITS_SUMMARY, picture->values[0][plot->days - 1]);
	return figure_draw(plot, out);
}

/* Names a limit; a key by its last characters, as in the list of keys. */
static void name_limit(const struct json *limit, enum language language, char name[SUMMARY_MAX])
{
	struct slice channel = slice_of("?"), key = slice_of(""), period = slice_of("");
	(void)json_get_text(limit, "channel_name", &channel);
	bool of_key = json_get_text(limit, "key_last_four", &key);
	(void)json_get_text(limit, "period", &period);
	channel = utf8_cut(channel, LIMIT_NAME_MAX);
	key = utf8_cut(key, LIMIT_NAME_MAX);
	snprintf(name, SUMMARY_MAX, "%.*s%s%.*s, %s", (int)channel.size, channel.data,
	         of_key ? " · …" : "", (int)key.size, key.data,
	         say(slice_is(period, "day") ? WORD_DAY_LIMIT : WORD_MONTH_LIMIT, language));
}

static int draw_limits(struct picture *picture, struct buf *out)
{
	struct plot_limit items[PLOT_LIMITS_MAX];
	char names[PLOT_LIMITS_MAX][SUMMARY_MAX];
	enum language language = picture->plot.language;
	struct plot_limits limits = {.id = picture->plot.id, .language = language, .items = items};
	const struct json *rows = json_member(picture->state, "limits");
	for (const struct json *at = rows ? rows->first : NULL; at && limits.count < PLOT_LIMITS_MAX;
	     at = at->next) {
		name_limit(at, language, names[limits.count]);
		items[limits.count] =
			(struct plot_limit){slice_of(names[limits.count]), integer_of(at, "used", 0),
		                        integer_of(at, "max_events", 1)};
		limits.count++;
	}
	if (!limits.count)
		return OK;
	summarize(picture, WORD_LIMITS_SUMMARY, (int64_t)limits.count);
	limits.title = say(WORD_LIMITS, language);
	limits.summary = picture->summary;
	open_figure(out, limits.title);
	int result = plot_limits_draw(&limits, out);
	open_figures(out, language);
	if (!result)
		result = plot_limits_table(&limits, out);
	buf_add_text(out, "</details></figure>");
	return result ? result : buf_check(out);
}

int account_picture(const char *name, const struct json *data, enum language language,
                    struct buf *out)
{
	const struct json *state = data ? json_member(data, "state") : NULL;
	struct picture picture = {.state = state,
	                          .plot = {.id = name, .language = language, .ends_on = PLOT_NONE}};
	if (strcmp(name, "proof") == 0)
		return proof_picture(data, language, out);
	if (billing_has_picture(name))
		return billing_picture(name, data, language, out);
	if (!state)
		return OK;
	if (strcmp(name, "events") == 0)
		return draw_events(&picture, out);
	if (strcmp(name, "credits") == 0)
		return draw_credits(&picture, out);
	if (strcmp(name, "limits") == 0)
		return draw_limits(&picture, out);
	return OK;
}
