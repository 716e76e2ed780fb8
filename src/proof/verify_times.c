#include <inttypes.h>
#include <stdio.h>

#include "proof/verify_check.h"

#define HOUR_US (3600 * US_PER_SECOND)

void verify_span(int64_t span_us, char text[VERIFY_SPAN_SIZE])
{
	int64_t unit_us = span_us >= 2 * US_PER_DAY ? US_PER_DAY
	                  : span_us >= 2 * HOUR_US  ? HOUR_US
	                                            : US_PER_SECOND;
	snprintf(text, VERIFY_SPAN_SIZE, "%" PRId64 " %s", span_us / unit_us,
	         unit_us == US_PER_DAY ? "days"
	         : unit_us == HOUR_US  ? "hours"
	                               : "s");
}

void verify_stated_time(struct run *run, const char *path, const char *where, const char *what,
                        int64_t stated_us, int64_t gen_time_us)
{
	char stated[TIME_TEXT_SIZE], proven[TIME_TEXT_SIZE], span[VERIFY_SPAN_SIZE];
	time_format(stated_us, stated);
	time_format(gen_time_us, proven);
	if (stated_us > gen_time_us + VERIFY_CLOCK_TOLERANCE_US) {
		verify_add(run, VERIFY_WRONG, path, where,
		           "%s is %s, after the signature's own timestamp of %s", what, stated, proven);
	} else if (gen_time_us - stated_us > VERIFY_DELAY_MAX_US) {
		verify_span(gen_time_us - stated_us, span);
		verify_add(run, VERIFY_WARNING, path, where,
		           "%s is %s, but the signature's timestamp is of %s, %s later: that it was signed "
		           "before is only stated",
		           what, stated, proven, span);
	}
}
