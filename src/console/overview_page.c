#include "console/overview_page.h"

#include <stdio.h>

#include "base/clock.h"

#define DAYS 90
#define DATE_TEXT 11

struct sums {
	int64_t events, bytes, certifications;
};

static void add_row(const struct json *row, struct sums *sums)
{
	int64_t events = 0, bytes = 0, certifications = 0;
	json_get_integer(row, "events", &events);
	json_get_integer(row, "content_bytes", &bytes);
	json_get_integer(row, "certifications_completed", &certifications);
	sums->events += events;
	sums->bytes += bytes;
	sums->certifications += certifications;
}

static void put_sums(struct json_writer *data, const char *member, const char *since,
                     const struct sums *sums)
{
	json_begin_object(data, member);
	json_text(data, "since", since);
	json_integer(data, "events", sums->events);
	json_integer(data, "content_bytes", sums->bytes);
	json_integer(data, "certifications", sums->certifications);
	json_end_object(data);
}

/* Reads the usage of each of the last days. */
static int ask_usage(struct visit *visit, const char *first, struct json **ret)
{
	char arguments[100];
	struct slice text;
	snprintf(arguments, sizeof arguments,
	         "{\"by\":\"day\",\"mode\":\"live\",\"from\":\"%s\",\"limit\":%d}", first, DAYS + 1);
	return ask_operation(visit, "usage", slice_of(arguments), &text, ret);
}

int overview_usage(struct visit *visit, struct json_writer *data)
{
	char first[DATE_TEXT], today[DATE_TEXT];
	struct sums of_today = {0}, of_days = {0};
	struct json *json;
	struct slice period;
	if (!is_operation_allowed(visit, "usage"))
		return OK;
	time_day_key(visit->now_us - (DAYS - 1) * US_PER_DAY, first);
	time_day_key(visit->now_us, today);
	int result = ask_usage(visit, first, &json);
	if (result)
		return result;
	const struct json *rows = json_member(json, "data");
	for (const struct json *row = rows ? rows->first : NULL; row; row = row->next) {
		add_row(row, &of_days);
		if (json_get_text(row, "period", &period) && slice_is(period, today))
			add_row(row, &of_today);
	}
	put_sums(data, "today", today, &of_today);
	put_sums(data, "days", first, &of_days);
	return OK;
}
