#include "base/schedule.h"

#include <assert.h>

#include "base/clock.h"

#define JITTER_PERCENT 10

bool schedule_parse(const char *text, struct schedule *ret)
{
	struct schedule schedule = {0};
	while (text && *text) {
		size_t size = strcspn(text, ",");
		struct slice item = slice_make(text, size);
		while (item.size && item.data[0] == ' ')
			item = slice_make(item.data + 1, item.size - 1);
		while (item.size && item.data[item.size - 1] == ' ')
			item.size--;
		if (schedule.count == SCHEDULE_WAITS_MAX ||
		    !duration_parse(item, &schedule.waits_us[schedule.count++]))
			return false;
		text += size + (text[size] == ',');
	}
	*ret = schedule;
	return true;
}

int64_t schedule_wait_us(const struct schedule *schedule, int64_t tries, uint32_t random)
{
	assert(tries >= 1);
	if (tries > (int64_t)schedule->count)
		return -1;
	int64_t wait_us = schedule->waits_us[tries - 1];
	int64_t jitter_us = wait_us / 100 * JITTER_PERCENT;
	return wait_us + (int64_t)((double)jitter_us * ((double)random / UINT32_MAX));
}

int64_t backoff_us(int64_t failures, int64_t first_us, int64_t longest_us)
{
	int64_t wait_us = first_us;
	for (int64_t i = 1; i < failures && wait_us < longest_us; i++)
		wait_us *= 2;
	return wait_us < longest_us ? wait_us : longest_us;
}
