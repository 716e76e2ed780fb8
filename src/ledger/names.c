/* Texts of enumerators, and the periods of limits. */
#include <assert.h>

#include "base/clock.h"
#include "ledger/ledger.h"

const char *period_text(enum period period)
{
	return period == PERIOD_MONTH ? "month" : "day";
}

bool period_parse(struct slice text, enum period *ret)
{
	if (!slice_is(text, "day") && !slice_is(text, "month"))
		return false;
	*ret = slice_is(text, "month") ? PERIOD_MONTH : PERIOD_DAY;
	return true;
}

void period_key(enum period period, int64_t time_us, char key[PERIOD_KEY_SIZE])
{
	if (period == PERIOD_MONTH)
		time_month_key(time_us, key);
	else
		time_day_key(time_us, key);
}

void period_days(enum period period, int64_t time_us, int64_t *ret_first, int64_t *ret_last)
{
	if (period == PERIOD_MONTH)
		time_month_days(time_us, ret_first, ret_last);
	else
		*ret_first = *ret_last = time_day(time_us);
}

int64_t period_end_us(enum period period, int64_t time_us)
{
	int64_t first, last;
	period_days(period, time_us, &first, &last);
	return (last + 1) * US_PER_DAY;
}

const char *event_status_text(enum event_status status)
{
	static const char *const names[] = {"registered", "unpaid", "test"};
	assert((size_t)status < sizeof names / sizeof *names);
	return names[status];
}

const char *notice_type_text(enum notice_type type)
{
	static const char *const names[] = {
#define NOTICE_TYPE(name, text) text,
#include "ledger/notice_types.def"
#undef NOTICE_TYPE
	};
	assert((size_t)type < sizeof names / sizeof *names);
	return names[type];
}

bool notice_type_is_opt_in(struct slice type)
{
	static const char *const names[] = {
#define NOTICE_TYPE(name, text)
#define OPT_IN_NOTICE_TYPE(name, text) text,
#include "ledger/notice_types.def"
#undef NOTICE_TYPE
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (slice_is(type, names[i]))
			return true;
	return false;
}
