/* The header Retry-After of answers. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "net/http.h"

#define DATE_SIZE 64
#define SECONDS_MAX (HTTP_RETRY_AFTER_MAX_US / US_PER_SECOND)

static bool read_seconds(struct slice value, int64_t *ret_seconds)
{
	int64_t seconds = 0;
	for (size_t i = 0; i < value.size; i++) {
		if (value.data[i] < '0' || value.data[i] > '9')
			return false;
		if (seconds < SECONDS_MAX)
			seconds = 10 * seconds + (value.data[i] - '0');
	}
	*ret_seconds = seconds;
	return value.size > 0;
}

/* Reads an HTTP date (RFC 9110 section 5.6.7). */
static bool read_date(struct slice value, int64_t *ret_seconds)
{
	static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
	                                    "%a %b %e %H:%M:%S %Y"};
	char text[DATE_SIZE];
	if (!value.size || value.size >= sizeof text)
		return false;
	memcpy(text, value.data, value.size);
	text[value.size] = '\0';
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		struct tm parts = {0};
		const char *end = strptime(text, forms[i], &parts);
		if (!end || end != text + value.size)
			continue;
		*ret_seconds = (int64_t)timegm(&parts);
		return true;
	}
	return false;
}

int64_t http_retry_after_us(struct slice value, int64_t now_us)
{
	int64_t seconds, wait_us = 0;
	if (read_seconds(value, &seconds))
		wait_us = (seconds < SECONDS_MAX ? seconds : SECONDS_MAX) * US_PER_SECOND;
	else if (read_date(value, &seconds))
		wait_us = seconds * US_PER_SECOND - now_us;
	if (wait_us < 0)
		return 0;
	return wait_us < HTTP_RETRY_AFTER_MAX_US ? wait_us : HTTP_RETRY_AFTER_MAX_US;
}
