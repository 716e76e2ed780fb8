/* Plots: round numbers, complete and harmless output, and the figures in it. */
#include "testing.h"
#include "base/json.h"
#include "console/account_plots.h"
#include "console/plot.h"

#define OUT_MAX ((size_t)4 << 20)
#define FIRST_DAY 20500 /* 2026-02-16 */

/* ---- round numbers ---- */

static bool is_round(int64_t step)
{
	while (step % 10 == 0)
		step /= 10;
	return step == 1 || step == 2 || step == 5;
}

static void check_ticks(int64_t least, int64_t most)
{
	int64_t ticks[PLOT_TICKS_MAX];
	size_t count = plot_ticks(least, most, ticks);
	assert_in_range(count, 2, PLOT_TICKS_MAX);
	int64_t step = ticks[1] - ticks[0];
	if (!is_round(step))
		fail_msg("%lld to %lld: a step of %lld", (long long)least, (long long)most,
		         (long long)step);
	for (size_t i = 0; i < count; i++) {
		assert_true(i == 0 || ticks[i] - ticks[i - 1] == step);
		assert_true(ticks[i] % step == 0); /* 0 is a tick where it is in range */
	}
	assert_true(ticks[0] <= least && ticks[count - 1] >= most);
	if (most > least) /* at most a step of empty space at either end */
		assert_true(least - ticks[0] < step && ticks[count - 1] - most < step);
}

static int64_t any_value(void)
{
	uint64_t bits = ((uint64_t)rand() << 40 ^ (uint64_t)rand() << 20 ^ (uint64_t)rand());
	int64_t value = (int64_t)bits >> rand() % 62;
	value %= PLOT_VALUE_MAX;
	return rand() % 3 ? (value < 0 ? -value : value) : value;
}

TEST_CASE(ticks_are_round_and_hold_all)
{
	static const int64_t edges[][2] = {{0, 0},
	                                   {0, 1},
	                                   {-1, 0},
	                                   {0, PLOT_VALUE_MAX},
	                                   {-PLOT_VALUE_MAX, PLOT_VALUE_MAX},
	                                   {-PLOT_VALUE_MAX, -PLOT_VALUE_MAX},
	                                   {PLOT_VALUE_MAX, PLOT_VALUE_MAX}};
	for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
		check_ticks(edges[i][0], edges[i][1]);
	for (int i = 0; i < 200000; i++) {
		int64_t a = any_value(), b = any_value();
		check_ticks(a < b ? a : b, a < b ? b : a);
	}
}

TEST_CASE(values_are_written_as_the_language_does)
{
	static const struct {
		int64_t value;
		const char *english, *spanish;
	} rows[] = {
		{0, "0", "0"},
		{-1234567, "−1,234,567", "−1.234.567"},
		{INT64_MAX, "9,223,372,036,854,775,807", "9.223.372.036.854.775.807"},
		{PLOT_NONE, "–", "–"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		BUF_AUTO struct buf english = {.limit = 100};
		BUF_AUTO struct buf spanish = {.limit = 100};
		plot_value(&english, rows[i].value, LANGUAGE_ENGLISH);
		plot_value(&spanish, rows[i].value, LANGUAGE_SPANISH);
		assert_string_equal(english.data, rows[i].english);
		assert_string_equal(spanish.data, rows[i].spanish);
	}
}

/* ---- what is drawn ---- */

/* Elements are closed in order, attributes are quoted, and nothing carries styles or scripts. */
static void check_markup(const char *text)
{
	const char *open[40];
	size_t sizes[40], depth = 0;
	for (const char *at = text; (at = strchr(at, '<')); at++) {
		const char *name = at + 1 + (at[1] == '/');
		size_t size = strcspn(name, " />");
		const char *end = name;
		for (bool quoted = false; *end && (quoted || *end != '>'); end++) {
			quoted ^= *end == '"';
			assert_true(*end != '<');
		}
		assert_true(*end == '>');
		if (at[1] == '/') {
			assert_true(depth > 0);
			depth--;
			assert_true(sizes[depth] == size && memcmp(open[depth], name, size) == 0);
		} else if (end[-1] != '/') {
			assert_true(depth < 40);
			open[depth] = name;
			sizes[depth++] = size;
		}
		at = end;
	}
	assert_int_equal(depth, 0);
	static const char *const never[] = {" style=", "<style", "<script", " on",
	                                    "href",    "nan",    "inf"};
	for (size_t i = 0; i < sizeof never / sizeof *never; i++)
		for (const char *at = text; (at = strstr(at, never[i])); at++)
			if (never[i][0] == '<' || strchr(at, '=') == at + strlen(never[i]) - 1)
				fail_msg("%s in %.80s", never[i], at);
}

static void draw(const struct plot *plot, struct buf *out)
{
	assert_int_equal(plot_draw(plot, out), OK);
	assert_non_null(strstr(out->data, "role=\"img\""));
	assert_non_null(strstr(out->data, "<title id="));
	assert_non_null(strstr(out->data, "<desc id="));
	check_markup(out->data);
	BUF_AUTO struct buf table = {.limit = OUT_MAX};
	assert_int_equal(plot_table(plot, &table), OK);
	check_markup(table.data);
	size_t rows = 0;
	for (const char *at = table.data; (at = strstr(at, "scope=\"row\"")); at++)
		rows++;
	assert_int_equal(rows, plot->days);
}

static void draw_once(const struct plot *plot)
{
	BUF_AUTO struct buf out = {.limit = OUT_MAX};
	draw(plot, &out);
}

TEST_CASE(any_figures_are_drawn)
{
	static const int64_t extremes[] = {0, 1, -1, 7, INT64_MAX, -INT64_MAX, PLOT_NONE, 1000000};
	static int64_t values[PLOT_SERIES_MAX][PLOT_DAYS_MAX];
	static const size_t counts[] = {0, 1, 2, 7, 90, PLOT_DAYS_MAX};
	for (int turn = 0; turn < 400; turn++) {
		struct plot plot = {.id = "p",
		                    .title = "T",
		                    .summary = "S",
		                    .language = turn % 2 ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH,
		                    .shape = turn / 2 % 2 ? PLOT_LINES : PLOT_BARS,
		                    .first_day = turn % 5 ? FIRST_DAY : 0,
		                    .days = counts[rand() % 6],
		                    .series_count = (size_t)rand() % (PLOT_SERIES_MAX + 1),
		                    .ends_on = rand() % 2 ? PLOT_NONE : FIRST_DAY + rand() % 1000,
		                    .ends = "until <then>"};
		for (size_t i = 0; i < plot.series_count; i++) {
			plot.series[i] = (struct plot_series){slice_of("a"), values[i]};
			for (size_t day = 0; day < plot.days; day++)
				values[i][day] = rand() % 2 ? extremes[rand() % 8] : rand() % 500;
		}
		draw_once(&plot);
	}
}

TEST_CASE(too_much_is_refused)
{
	struct plot plot = {.id = "p", .title = "T", .summary = "S", .ends_on = PLOT_NONE};
	BUF_AUTO struct buf out = {.limit = OUT_MAX};
	plot.days = PLOT_DAYS_MAX + 1;
	assert_int_equal(plot_draw(&plot, &out), ERR_USAGE);
	assert_int_equal(plot_table(&plot, &out), ERR_USAGE);
	plot.days = 0;
	plot.series_count = PLOT_SERIES_MAX + 1;
	assert_int_equal(plot_draw(&plot, &out), ERR_USAGE);
	plot.series_count = 0;
	plot.first_day = -1;
	assert_int_equal(plot_draw(&plot, &out), ERR_USAGE);
	plot.first_day = INT64_MAX;
	assert_int_equal(plot_table(&plot, &out), ERR_USAGE);
	struct plot_limits limits = {
		.id = "l", .title = "T", .summary = "S", .count = PLOT_LIMITS_MAX + 1};
	assert_int_equal(plot_limits_draw(&limits, &out), ERR_USAGE);
	assert_int_equal(plot_limits_table(&limits, &out), ERR_USAGE);
	plot.first_day = FIRST_DAY;
	BUF_AUTO struct buf small = {.limit = 100};
	assert_int_equal(plot_draw(&plot, &small), ERR_NO_MEMORY);
}

static const char *const hostile[] = {
	"<script>alert(1)</script>",
	"\"><svg onload=alert(1)>",
	"]]>&amp;&#60;'`",
	"\xff\xfe\x80",
	"a\x01\x02\x7f",
	("\xe2\x80\xae"
     "txt.exe"),
	"",
	"a name that goes on and on and on, longer than any legend has room for, ñññññññññññ"};

TEST_CASE(names_do_no_harm)
{
	static int64_t values[] = {1, 2, 3};
	struct plot plot = {.id = "p",
	                    .days = 3,
	                    .first_day = FIRST_DAY,
	                    .ends_on = FIRST_DAY + 9,
	                    .series_count = PLOT_SERIES_MAX};
	struct plot_limit items[PLOT_SERIES_MAX];
	for (size_t i = 0; i < PLOT_SERIES_MAX; i++) {
		plot.series[i] = (struct plot_series){slice_of(hostile[i]), values};
		items[i] = (struct plot_limit){slice_of(hostile[i]), 3, 2};
		plot.title = plot.summary = plot.ends = hostile[i];
		for (int shape = 0; shape < 2; shape++) {
			plot.shape = shape ? PLOT_LINES : PLOT_BARS;
			plot.series_count = i + 1;
			BUF_AUTO struct buf out = {.limit = OUT_MAX};
			draw(&plot, &out);
			assert_null(strstr(out.data, "<script"));
			assert_null(strstr(out.data, "<svg onload"));
			assert_null(strchr(out.data, '\x01'));
			assert_null(strchr(out.data, '\xff'));
			assert_null(strstr(out.data, "\xe2\x80\xae"));
		}
	}
	struct plot_limits limits = {
		.id = "l", .title = "T", .summary = "S", .items = items, .count = PLOT_SERIES_MAX};
	BUF_AUTO struct buf out = {.limit = OUT_MAX};
	assert_int_equal(plot_limits_draw(&limits, &out), OK);
	assert_int_equal(plot_limits_table(&limits, &out), OK);
	check_markup(out.data);
	assert_null(strstr(out.data, "<script"));
}

/* By a pattern each, or by dashes and marks: never by colour alone. */
TEST_CASE(series_are_told_apart_without_colour)
{
	static int64_t values[] = {4, 5};
	struct plot plot = {.id = "p",
	                    .title = "T",
	                    .summary = "S",
	                    .days = 2,
	                    .first_day = FIRST_DAY,
	                    .series_count = PLOT_SERIES_MAX,
	                    .ends_on = PLOT_NONE};
	for (size_t i = 0; i < PLOT_SERIES_MAX; i++)
		plot.series[i] = (struct plot_series){slice_of("a"), values};
	BUF_AUTO struct buf bars = {.limit = OUT_MAX};
	BUF_AUTO struct buf lines = {.limit = OUT_MAX};
	draw(&plot, &bars);
	for (size_t i = 1; i < PLOT_SERIES_MAX; i++) {
		char use[40], pattern[40];
		snprintf(use, sizeof use, "url(#p-p%zu)", i);
		snprintf(pattern, sizeof pattern, "id=\"p-p%zu\"", i);
		const char *first = strstr(bars.data, use); /* in the bars, and in the legend */
		assert_non_null(first);
		assert_non_null(strstr(first + 1, use));
		assert_non_null(strstr(bars.data, pattern));
	}
	plot.shape = PLOT_LINES;
	draw(&plot, &lines);
	const char *seen[PLOT_SERIES_MAX];
	for (size_t i = 0; i < PLOT_SERIES_MAX; i++) {
		char start[60];
		snprintf(start, sizeof start, "plot-line plot-%zu\" stroke-dasharray=\"", i);
		seen[i] = strstr(lines.data, start);
		assert_non_null(seen[i]);
		seen[i] += strlen(start);
		for (size_t j = 0; j < i; j++)
			assert_true(strncmp(seen[i], seen[j], strcspn(seen[i], "\"") + 1) != 0);
	}
}

TEST_CASE(a_forecast_goes_on_to_nothing)
{
	static int64_t values[] = {30, 20, 10};
	struct plot plot = {.id = "p",
	                    .title = "T",
	                    .summary = "S",
	                    .shape = PLOT_LINES,
	                    .days = 3,
	                    .first_day = FIRST_DAY,
	                    .series_count = 1,
	                    .series = {{slice_of("a"), values}},
	                    .ends_on = FIRST_DAY + 3,
	                    .ends = "until then"};
	BUF_AUTO struct buf with = {.limit = OUT_MAX};
	BUF_AUTO struct buf without = {.limit = OUT_MAX};
	draw(&plot, &with);
	assert_non_null(strstr(with.data, "until then"));
	assert_non_null(strstr(with.data, "stroke-dasharray=\"2 4\""));
	for (int64_t over = 0; over < 3; over++) { /* it is already exceeded */
		plot.ends_on = FIRST_DAY + over;
		buf_clear(&without);
		draw(&plot, &without);
		assert_null(strstr(without.data, "until then"));
	}
}

/* ---- of an account ---- */

static const char *const pictures[] = {"events", "credits", "limits", "unknown"};

static size_t draw_all(const char *text, enum language language, struct buf *out)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)8 << 20};
	struct json *json;
	size_t drawn = 0;
	assert_int_equal(json_parse(&arena, slice_of(text), NULL, &json, NULL), OK);
	for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
		size_t before = out->size;
		assert_int_equal(account_picture(pictures[i], json, language, out), OK);
		drawn += out->size > before;
	}
	if (out->size)
		check_markup(out->data);
	return drawn;
}

TEST_CASE(an_account_is_drawn)
{
	static const char text[] =
		"{\"state\":{\"events\":{\"first_day\":\"2026-02-16\",\"total\":1009,\"channels\":["
		"{\"channel_id\":\"chn_1\",\"name\":\"<b>Orders\",\"counts\":[1,1000]},"
		"{\"channel_id\":null,\"name\":null,\"counts\":[3,5]}]},"
		"\"credits\":{\"first_day\":\"2026-02-16\",\"balances\":[50,40],"
		"\"forecast\":{\"runs_out_on\":\"2026-02-21\"}},"
		"\"limits\":[{\"channel_name\":\"<i>Till\",\"key_last_four\":\"aB1_\",\"period\":\"day\","
		"\"max_events\":2000,\"used\":1500}]}}";
	BUF_AUTO struct buf english = {.limit = OUT_MAX};
	BUF_AUTO struct buf spanish = {.limit = OUT_MAX};
	assert_int_equal(draw_all(text, LANGUAGE_ENGLISH, &english), 3);
	assert_int_equal(draw_all(text, LANGUAGE_SPANISH, &spanish), 3);
	static const char *const in_english[] = {"&lt;b&gt;Orders",
	                                         "Other channels",
	                                         "Total: 1,009.",
	                                         "at the current rate until 21 Feb 2026",
	                                         "&lt;i&gt;Till · …aB1_, by day",
	                                         "1,500 / 2,000"};
	static const char *const in_spanish[] = {"Otros canales", "Total: 1009.",
	                                         "al ritmo actual hasta el 21 feb 2026", "1500 / 2000"};
	for (size_t i = 0; i < sizeof in_english / sizeof *in_english; i++)
		if (!strstr(english.data, in_english[i]))
			fail_msg("no %s", in_english[i]);
	for (size_t i = 0; i < sizeof in_spanish / sizeof *in_spanish; i++)
		if (!strstr(spanish.data, in_spanish[i]))
			fail_msg("no %s", in_spanish[i]);
}

TEST_CASE(what_is_not_there_is_not_drawn)
{
	static const char *const documents[] = {
		"{}",
		"{\"state\":{}}",
		"{\"state\":null}",
		("{\"state\":{\"events\":{\"channels\":[]},\"credits\":{\"balances\":[]},"
	     "\"limits\":[]}}"),
	};
	for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
		BUF_AUTO struct buf out = {.limit = OUT_MAX};
		assert_int_equal(draw_all(documents[i], LANGUAGE_ENGLISH, &out), 0);
	}
}

int main(void)
{
	srand((unsigned)test_seed());
	return tests_run(NULL, NULL, NULL, NULL);
}
