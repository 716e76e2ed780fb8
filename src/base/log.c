#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/stderr_capture.h"
#include "base/thread.h"
#include "base/utf8.h"

/* The journal truncates lines longer than its LineMax, and a truncated line is not valid JSON. */
#define LINE_SIZE_MAX ((size_t)48 * 1024)
/* Maximum size of a value; the short one applies if the line would be too long. */
#define VALUE_SIZE_MAX ((size_t)4096)
#define VALUE_SIZE_SHORT ((size_t)256)
#define LINE_END_SIZE 2               /* a brace and a line feed */
#define WAITING_MAX ((size_t)1 << 20) /* bytes of lines */
#define STOP_TIME_S 2
#define PAUSE_US 10000

static _Atomic enum log_level lowest = LOG_INFO;
static bool to_journal;
static bool captures_stderr;
static _Atomic int output = STDERR_FILENO;

static const char *const level_names[] = {"debug", "info", "warning", "error"};
static const char *const priorities[] = {"<7>", "<6>", "<4>", "<3>"};

void log_set_level(enum log_level level)
{
	lowest = level;
}

void log_detect_journal(void)
{
	struct stat found;
	char here[48];
	const char *journal = getenv("JOURNAL_STREAM");
	if (!journal || fstat(STDERR_FILENO, &found) != 0)
		return;
	snprintf(here, sizeof here, "%ju:%ju", (uintmax_t)found.st_dev, (uintmax_t)found.st_ino);
	to_journal = strcmp(here, journal) == 0;
}

void log_enable_stderr_capture(void)
{
	captures_stderr = true;
}

int log_open_stderr_capture(const char *process)
{
	return captures_stderr ? stderr_capture_open(process) : -1;
}

static const char *prefix(enum log_level level)
{
	return to_journal ? priorities[level] : "";
}

/* Values may come from any source. Invalid UTF-8 is replaced with '?', so that the line is valid
 * JSON. */
static void add_value(struct json_writer *writer, struct buf *scratch, size_t size_max,
                      const char *name, const char *value)
{
	if (!value) {
		json_null(writer, name);
		return;
	}
	struct slice rest = utf8_cut(slice_of(value), size_max);
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
	while (write(atomic_load_explicit(&output, memory_order_relaxed), data, size) < 0 &&
	       errno == EINTR)
		continue;
}

/* ---- the writer thread ---- */

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
	bool pausing; /* the thread polls again soon and need not be woken for a frequent line */
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Atomic pid_t writer_process; /* 0: no thread */

static void report_lost(uint64_t lost)
{
	char time[TIME_TEXT_SIZE], text[160];
	time_format(clock_now_us(), time);
	int size = snprintf(text, sizeof text,
	                    "%s{\"time\":\"%s\",\"level\":\"warning\",\"event\":\"log_lines_lost\","
	                    "\"lines\":\"%llu\"}\n",
	                    prefix(LOG_WARNING), time, (unsigned long long)lost);
	put_line(text, (size_t)size);
}

/* Writes whole lines of at most PIPE_BUF bytes together, which a pipe does not split. Called with
 * the mutex held; releases it while writing. */
static void write_some(void)
{
	static char text[PIPE_BUF];
	size_t size = 0;
	uint64_t lost = queue.lost;
	struct line *first = queue.first, *line = first;
	do {
		size += line->size;
		line = line->next;
	} while (line && size + line->size <= sizeof text);
	queue.first = line;
	if (!line)
		queue.end = &queue.first;
	queue.size -= size;
	queue.lost = 0;
	pthread_mutex_unlock(&queue.mutex);
	bool single = first->next == line;
	if (single)
		put_line(first->data, first->size);
	for (size_t at = 0; first != line;) {
		struct line *next = first->next;
		if (!single)
			memcpy(text + at, first->data, first->size);
		at += first->size;
		free(first);
		first = next;
	}
	if (!single)
		put_line(text, size);
	if (lost)
		report_lost(lost);
	pthread_mutex_lock(&queue.mutex);
}

/* Frequent lines come in bursts, and waking the thread for each costs more than the line. */
static void rest(void)
{
	queue.pausing = true;
	(void)thread_wait_until(&queue.changed, &queue.mutex, clock_monotonic_us() + PAUSE_US);
	queue.pausing = false;
}

static void *write_lines(void *context)
{
	bool written = false;
	pthread_mutex_lock(&queue.mutex);
	while (queue.first || !queue.stopping) {
		if (queue.first) {
			write_some();
			written = true;
		} else if (written) {
			rest();
			written = false;
		} else {
			pthread_cond_wait(&queue.changed, &queue.mutex);
		}
	}
	pthread_mutex_unlock(&queue.mutex);
	return NULL;
}

static const char *capture_prefix(void)
{
	return prefix(LOG_WARNING);
}

static void start_capture(void)
{
	int kept = captures_stderr ? stderr_capture_start(capture_prefix) : -1;
	if (kept >= 0)
		atomic_store(&output, kept);
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
		start_capture();
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void log_stop(void)
{
	struct timespec until;
	if (atomic_load(&writer_process) != getpid())
		return;
	stderr_capture_stop();
	pthread_mutex_lock(&queue.mutex);
	queue.stopping = true;
	pthread_cond_signal(&queue.changed);
	pthread_mutex_unlock(&queue.mutex);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += STOP_TIME_S;
	/* If the thread hangs, it keeps the queue until the process ends. */
	if (pthread_clockjoin_np(queue.thread, NULL, CLOCK_MONOTONIC, &until) == 0)
		atomic_store(&writer_process, 0);
}

static void enqueue_line(const char *data, size_t size, size_t room)
{
	struct line *line = malloc(sizeof *line + size);
	if (line) {
		*line = (struct line){.size = size};
		memcpy(line->data, data, size);
	}
	pthread_mutex_lock(&queue.mutex);
	if (line && queue.size + size <= room) {
		*queue.end = line;
		queue.end = &line->next;
		queue.size += size;
		line = NULL;
		if (!queue.pausing || room == WAITING_MAX || queue.size > room / 4)
			pthread_cond_signal(&queue.changed);
	} else {
		queue.lost++;
	}
	pthread_mutex_unlock(&queue.mutex);
	free(line);
}

static void give_line(const char *data, size_t size, size_t room)
{
	pid_t process = atomic_load_explicit(&writer_process, memory_order_relaxed);
	if (process && process == getpid())
		enqueue_line(data, size, room);
	else
		put_line(data, size);
}

/* ---- lines ---- */

static struct json_writer begin_line(struct buf *line, enum log_level level)
{
	char time[TIME_TEXT_SIZE];
	time_format(clock_now_us(), time);
	buf_init(line, LINE_SIZE_MAX);
	buf_add_text(line, prefix(level));
	struct json_writer writer = {.out = line};
	json_begin_object(&writer, NULL);
	json_text(&writer, "time", time);
	json_text(&writer, "level", level_names[level]);
	return writer;
}

static void end_line(struct json_writer *writer, bool whole, enum log_level level, size_t room)
{
	struct buf *line = writer->out;
	json_end_object(writer);
	buf_add_byte(line, '\n');
	if (whole && buf_check(line) == 0) {
		give_line(line->data, line->size, room);
		return;
	}
	char time[TIME_TEXT_SIZE], lost[128];
	time_format(clock_now_us(), time);
	int size = snprintf(lost, sizeof lost,
	                    "%s{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"log_line_lost\"}\n",
	                    prefix(level), time, level_names[level]);
	give_line(lost, (size_t)size, WAITING_MAX);
}

static void write_fields(enum log_level level, const char *event, va_list list)
{
	for (size_t size_max = VALUE_SIZE_MAX;; size_max = VALUE_SIZE_SHORT) {
		BUF_AUTO struct buf line;
		BUF_AUTO struct buf scratch;
		buf_init(&scratch, VALUE_SIZE_MAX);
		struct json_writer writer = begin_line(&line, level);
		add_value(&writer, &scratch, size_max, "event", event);
		va_list fields;
		va_copy(fields, list);
		for (const char *name; (name = va_arg(fields, const char *)) != NULL;)
			add_value(&writer, &scratch, size_max, name, va_arg(fields, const char *));
		va_end(fields);
		bool full = line.full || line.size + LINE_END_SIZE > LINE_SIZE_MAX;
		if (full && size_max == VALUE_SIZE_MAX)
			continue;
		end_line(&writer, buf_check(&scratch) == 0, level, WAITING_MAX);
		return;
	}
}

void log_write(enum log_level level, const char *event, ...)
{
	if (level < lowest)
		return;
	va_list list;
	va_start(list, event);
	write_fields(level, event, list);
	va_end(list);
}

void log_always(enum log_level level, const char *event, ...)
{
	va_list list;
	va_start(list, event);
	write_fields(level, event, list);
	va_end(list);
}

void log_write_frequent(enum log_level level, const char *event,
                        void (*fill)(struct json_writer *writer, const void *context),
                        const void *context)
{
	if (level < lowest)
		return;
	BUF_AUTO struct buf line;
	struct json_writer writer = begin_line(&line, level);
	json_text(&writer, "event", event);
	fill(&writer, context);
	end_line(&writer, true, level, WAITING_MAX / 2);
}

void log_write_last(enum log_level level, const char *event)
{
	const char *const parts[] = {
		prefix(level), "{\"level\":\"", level_names[level], "\",\"event\":\"", event, "\"}\n",
	};
	struct pollfd reader = {.fd = atomic_load(&output), .events = POLLOUT};
	char line[256];
	size_t size = 0;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		for (const char *at = parts[i]; *at && size < sizeof line; at++)
			line[size++] = *at;
	if (poll(&reader, 1, 0) == 1 && reader.revents & POLLOUT)
		put_line(line, size);
}
