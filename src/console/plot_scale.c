/* Round numbers and how values are written. */
#include <assert.h>

#include "base/clock.h"
#include "console/plot.h"
#include "console/plot_scale.h"
#include "console/template.h"

#define STEPS_WANTED 5
#define SECOND 1000
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

/* The next round step; of times, by what clocks show. */
static int64_t next_step(int64_t step, enum plot_unit unit)
{
	static const int64_t clock[] = {SECOND,      2 * SECOND,  5 * SECOND, 10 * SECOND, 15 * SECOND,
	                                30 * SECOND, MINUTE,      2 * MINUTE, 5 * MINUTE,  10 * MINUTE,
	                                15 * MINUTE, 30 * MINUTE, HOUR,       2 * HOUR,    3 * HOUR,
	                                6 * HOUR,    12 * HOUR,   DAY};
	if (unit == PLOT_MILLISECONDS)
		for (size_t i = 0; i < sizeof clock / sizeof *clock && step < DAY; i++)
			if (clock[i] > step && step >= SECOND)
				return clock[i];
	int64_t whole = unit == PLOT_MILLISECONDS && step >= DAY ? DAY : 1;
	int64_t digit = step / whole;
	while (digit >= 10)
		digit /= 10;
	return digit == 2 ? step / 2 * 5 : step * 2;
}

static int64_t floor_to(int64_t value, int64_t step)
{
	int64_t rest = value % step;
	return value - (rest < 0 ? rest + step : rest);
}

size_t plot_ticks(int64_t least, int64_t most, enum plot_unit unit, int64_t ticks[PLOT_TICKS_MAX])
{
	assert(least <= most && least >= -PLOT_VALUE_MAX && most <= PLOT_VALUE_MAX);
	int64_t step = 1;
	__int128 span = (__int128)most - least;
	while ((__int128)step * STEPS_WANTED < span)
		step = next_step(step, unit);
	__int128 tick = floor_to(least, step);
	size_t count = 0;
	for (; count < 2 || ticks[count - 1] < most; tick += step) {
		assert(count < PLOT_TICKS_MAX);
		ticks[count++] = (int64_t)tick;
	}
	return count;
}

/* ---- values ---- */

/* With one decimal where it is none. */
static void add_tenths(struct buf *out, int64_t value, int64_t unit, enum language language)
{
	int64_t tenths = (value * 10 + unit / 2) / unit;
	template_number(out, tenths / 10, language);
	if (tenths % 10)
		buf_printf(out, "%c%d", language == LANGUAGE_SPANISH ? ',' : '.', (int)(tenths % 10));
}

static void add_two(struct buf *out, int64_t value, int64_t unit, const char *name, int64_t part,
                    const char *part_name, enum language language)
{
	template_number(out, value / unit, language);
	buf_printf(out, " %s", name);
	if (value % unit / part)
		buf_printf(out, " %d %s", (int)(value % unit / part), part_name);
}

void plot_value(struct buf *out, int64_t value, enum plot_unit unit, enum language language)
{
	if (value == PLOT_NONE)
		buf_add_text(out, "–");
	else if (unit == PLOT_COUNT)
		template_number(out, value, language);
	else if (value < SECOND) {
		template_number(out, value, language);
		buf_add_text(out, value ? " ms" : "");
	} else if (value < MINUTE) {
		add_tenths(out, value, SECOND, language);
		buf_add_text(out, " s");
	} else if (value < HOUR)
		add_two(out, value, MINUTE, "min", SECOND, "s", language);
	else if (value < DAY)
		add_two(out, value, HOUR, "h", MINUTE, "min", language);
	else
		add_two(out, value, DAY, "d", HOUR, "h", language);
}

void plot_day(struct buf *out, int64_t day, enum language language)
{
	static const char *const months[2][12] = {
		{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"},
		{"ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sep", "oct", "nov", "dic"}};
	char key[11]; /* 2026-11-21 */
	time_day_key(day * US_PER_DAY, key);
	int month = (key[5] - '0') * 10 + key[6] - '0', date = (key[8] - '0') * 10 + key[9] - '0';
	buf_printf(out, "%d %s", date, months[language == LANGUAGE_SPANISH][month - 1]);
}

void plot_date(struct buf *out, int64_t day, enum language language)
{
	char key[11];
	time_day_key(day * US_PER_DAY, key);
	plot_day(out, day, language);
	buf_printf(out, " %.4s", key);
}
