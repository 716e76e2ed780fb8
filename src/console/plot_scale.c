/* Round numbers, and formatting of values. */
#include <assert.h>

#include "base/clock.h"
#include "console/plot.h"
#include "console/plot_scale.h"
#include "console/template.h"

#define STEPS_WANTED 5

/* Returns the next round step: 1, 2, 5, 10, ... */
static int64_t next_step(int64_t step)
{
	int64_t digit = step;
	while (digit >= 10)
		digit /= 10;
	return digit == 2 ? step / 2 * 5 : step * 2;
}

static int64_t floor_to(int64_t value, int64_t step)
{
	int64_t rest = value % step;
	return value - (rest < 0 ? rest + step : rest);
}

size_t plot_ticks(int64_t least, int64_t most, int64_t ticks[PLOT_TICKS_MAX])
{
	assert(least <= most && least >= -PLOT_VALUE_MAX && most <= PLOT_VALUE_MAX);
	int64_t step = 1;
	__int128 span = (__int128)most - least;
	while ((__int128)step * STEPS_WANTED < span)
		step = next_step(step);
	__int128 tick = floor_to(least, step);
	size_t count = 0;
	for (; count < 2 || ticks[count - 1] < most; tick += step) {
		assert(count < PLOT_TICKS_MAX);
		ticks[count++] = (int64_t)tick;
	}
	return count;
}

/* ---- values ---- */

void plot_value(struct buf *out, int64_t value, enum language language)
{
	if (value == PLOT_NONE)
		buf_add_text(out, "–");
	else
		template_number(out, value, language);
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
