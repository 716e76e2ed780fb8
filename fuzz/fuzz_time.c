/* Parsed times are written back as the same moment. */
#include "base/clock.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t time_us = TIME_NONE;
	int64_t again_us = TIME_NONE;
	struct error error;
	error_clear(&error);
	if (time_parse(slice_make(data, size), "time", &time_us, &error) != 0) {
		require(error.code == ERR_VALIDATION && error.english[0], "a rejected text has a message");
		require(time_us == TIME_NONE, "a rejected text writes nothing");
		return 0;
	}
	char text[TIME_TEXT_SIZE];
	char day[11];
	char month[8];
	time_format(time_us, text);
	require(strlen(text) == TIME_TEXT_SIZE - 1, "the text has 27 characters");
	require(time_parse(slice_of(text), "time", &again_us, NULL) == 0,
	        "the time can be parsed again");
	require(time_us == again_us, "the moment is the same");
	time_day_key(time_us, day);
	time_month_key(time_us, month);
	require(memcmp(day, text, 10) == 0 && memcmp(month, text, 7) == 0,
	        "day and month are prefixes");
	int64_t next_us = time_next_day(time_us);
	require(next_us > time_us && next_us - time_us <= US_PER_DAY && next_us % US_PER_DAY == 0,
	        "the next day follows");
	return 0;
}
