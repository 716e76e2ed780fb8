#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"

#define LINE_SIZE_MAX ((size_t)64 * 1024)
#define VALUE_SIZE_MAX ((size_t)4096)
#define WAITING_MAX ((size_t)1 << 20) /* bytes of lines */
#define STOP_TIME_S 2

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

/* ---- the thread that writes ---- */

struct line {
	struct line *next;
	size_t size;
	char data[];
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	pthread_t thread;
	struct line *first;
	struct line **end;
	size_t size; /* of all lines */
	uint64_t lost;
	bool stopping;
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Atomic pid_t writer_process; /* 0: there is no thread */

static void tell_lost(uint64_t lost)
{
	char time[TIME_TEXT_SIZE], text[160];
	time_format(clock_now_us(), time);
	int size = snprintf(text, sizeof text,
	                    "{\"time\":\"%s\",\"level\":\"warning\",\"event\":\"log_lines_lost\","
	                    "\"lines\":\"%llu\"}\n",
	                    time, (unsigned long long)lost);
	put_line(text, (size_t)size);
}

static void *write_lines(void *context)
{
	pthread_mutex_lock(&queue.mutex);
	while (queue.first || !queue.stopping) {
		struct line *line = queue.first;
		uint64_t lost = queue.lost;
		if (!line) {
			pthread_cond_wait(&queue.changed, &queue.mutex);
			continue;
		}
		queue.first = line->next;
		if (!queue.first)
			queue.end = &queue.first;
		queue.size -= line->size;
		queue.lost = 0;
		pthread_mutex_unlock(&queue.mutex);
		put_line(line->data, line->size);
		if (lost)
			tell_lost(lost);
		free(line);
		pthread_mutex_lock(&queue.mutex);
	}
	pthread_mutex_unlock(&queue.mutex);
	return NULL;
}

void log_start(void)
{
	sigset_t all, before;
	queue.end = &queue.first;
	queue.stopping = false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (atexit(log_stop) == 0 && pthread_create(&queue.thread, NULL, write_lines, NULL) == 0) {
		pthread_setname_np(queue.thread, "log");
		atomic_store(&writer_process, getpid());
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void log_stop(void)
{
	struct timespec until;
	if (atomic_load(&writer_process) != getpid())
		return;
	pthread_mutex_lock(&queue.mutex);
	queue.stopping = true;
	pthread_cond_signal(&queue.changed);
	pthread_mutex_unlock(&queue.mutex);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += STOP_TIME_S;
	/* One that hangs is left to the end of the process, and further lines to it. */
	if (pthread_clockjoin_np(queue.thread, NULL, CLOCK_MONOTONIC, &until) == 0)
		atomic_store(&writer_process, 0);
}

static void hand_over(const char *data, size_t size)
{
	struct line *line = malloc(sizeof *line + size);
	if (line) {
		*line = (struct line){.size = size};
		memcpy(line->data, data, size);
	}
	pthread_mutex_lock(&queue.mutex);
	if (line && queue.size + size <= WAITING_MAX) {
		*queue.end = line;
		queue.end = &line->next;
		queue.size += size;
		line = NULL;
		pthread_cond_signal(&queue.changed);
	} else {
		queue.lost++;
	}
	pthread_mutex_unlock(&queue.mutex);
	free(line);
}

static void give_line(const char *data, size_t size)
{
	pid_t process = atomic_load_explicit(&writer_process, memory_order_relaxed);
	if (process && process == getpid())
		hand_over(data, size);
	else
		put_line(data, size);
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
		give_line(line.data, line.size);
		return;
	}
	char lost[128];
	int size = snprintf(lost, sizeof lost,
	                    "{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"log_line_lost\"}\n", time,
	                    names[level]);
	give_line(lost, (size_t)size);
}
