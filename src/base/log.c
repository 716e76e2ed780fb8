#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"

#define LINE_SIZE_MAX ((size_t)64 * 1024)
#define VALUE_SIZE_MAX ((size_t)4096)

static _Atomic enum log_level lowest = LOG_INFO;

void log_set_level(enum log_level level)
{
	lowest = level;
}

/* Values come from anywhere: what is not UTF-8 becomes '?', so that the line stays JSON. */
static void add_value(struct json_writer *writer, struct buf *scratch, const char *name,
                      const char *value)
{
	if (!value) {
		json_null(writer, name);
		return;
	}
	struct slice rest = utf8_cut(slice_of(value), VALUE_SIZE_MAX);
	if (utf8_valid(rest)) {
		json_slice(writer, name, rest);
		return;
	}
	buf_clear(scratch);
	while (rest.size) {
		size_t size = utf8_character(rest);
		if (size)
			buf_add(scratch, rest.data, size);
		else
			buf_add_byte(scratch, '?');
		size += !size;
		rest = slice_make(rest.data + size, rest.size - size);
	}
	json_slice(writer, name, buf_slice(scratch));
}

static void put_line(const char *data, size_t size)
{
	while (write(STDERR_FILENO, data, size) < 0 && errno == EINTR)
		continue;
}

void log_write(enum log_level level, const char *event, ...)
{
	static const char *const names[] = {"debug", "info", "warning", "error"};
	if (level < lowest)
		return;
	char time[TIME_TEXT_SIZE];
	time_format(clock_now_us(), time);
	BUF_AUTO struct buf line;
	BUF_AUTO struct buf scratch;
	buf_init(&line, LINE_SIZE_MAX);
	buf_init(&scratch, VALUE_SIZE_MAX);
	struct json_writer writer = {.out = &line};
	json_begin_object(&writer, NULL);
	json_text(&writer, "time", time);
	json_text(&writer, "level", names[level]);
	add_value(&writer, &scratch, "event", event);
	va_list list;
	va_start(list, event);
	for (const char *name; (name = va_arg(list, const char *)) != NULL;)
		add_value(&writer, &scratch, name, va_arg(list, const char *));
	va_end(list);
	json_end_object(&writer);
	buf_add_byte(&line, '\n');
	if (buf_check(&line) == 0 && buf_check(&scratch) == 0) {
		put_line(line.data, line.size);
		return;
	}
	char lost[128];
	int size = snprintf(lost, sizeof lost,
	                    "{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"log_line_lost\"}\n", time,
	                    names[level]);
	put_line(lost, (size_t)size);
}
