/* The reader thread takes no locks and allocates no memory. So the last output of a process that
 * aborts while it holds an allocator lock is still written. */
#include "base/stderr_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"

#define SOURCES_MAX 4
#define TEXT_MAX ((size_t)2048)      /* of one line; longer lines are split */
#define LINE_MAX_SIZE ((size_t)4096) /* maximum size of one write, which a pipe does not split */
#define REST_WAIT_MS 200             /* wait for the rest of an incomplete line */
#define LOST_WAIT_MS 1000
#define LINES_MAX 200 /* per process and window; further lines are counted */
#define WINDOW_US (10 * US_PER_SECOND)
#define FLUSH_TIMEOUT_MS 1000

struct source {
	const char *process;
	int read_end;
	size_t size;
	char text[TEXT_MAX];
	int64_t window_us;
	int lines;
	uint64_t lost;
};

static struct {
	struct source sources[SOURCES_MAX];
	int count;
	int output; /* the former standard error; -1: not changed */
	int wake[2];
	const char *(*prefix)(void);
	pthread_t thread;
	_Atomic bool stopping;
	_Atomic bool idle; /* all captured data is written */
} words = {.output = -1, .wake = {-1, -1}};

/* Sanitizer reports exceed the pipe size and are parsed in their original form. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define CAN_TAKE false
#else
#define CAN_TAKE true
#endif

int stderr_capture_open(const char *process)
{
	int ends[2];
	if (!CAN_TAKE || words.count == SOURCES_MAX || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return -1;
	words.sources[words.count++] = (struct source){.process = process, .read_end = ends[0]};
	return ends[1];
}

/* ---- lines ---- */

static void put(char *line, size_t *size, const char *text)
{
	while (*text && *size < LINE_MAX_SIZE)
		line[(*size)++] = *text++;
}

static void put_text(char *line, size_t *size, struct slice rest)
{
	while (rest.size && *size + 16 < LINE_MAX_SIZE) {
		size_t step = utf8_character(rest);
		unsigned char first = (unsigned char)rest.data[0];
		bool plain = step && first >= 0x20 && first != 0x7f;
		if (first == '"' || first == '\\')
			line[(*size)++] = '\\';
		if (plain)
			memcpy(line + *size, rest.data, step);
		else
			line[*size] = '?';
		*size += plain ? step : 1;
		step += !step;
		rest = slice_make(rest.data + step, rest.size - step);
	}
}

static void write_line(const char *event, const char *process, const char *name, struct slice text)
{
	char line[LINE_MAX_SIZE], time[TIME_TEXT_SIZE];
	size_t size = 0;
	time_format(clock_now_us(), time);
	const char *const parts[] = {
		words.prefix(), "{\"time\":\"",
		time,           "\",\"level\":\"warning\",\"event\":\"",
		event,          "\",\"process\":\"",
		process,        "\",\"",
		name,           "\":\"",
	};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		put(line, &size, parts[i]);
	put_text(line, &size, text);
	put(line, &size, "\"}\n");
	while (write(words.output, line, size) < 0 && errno == EINTR)
		continue;
}

static void report_lost(struct source *source)
{
	char number[24];
	size_t size = sizeof number;
	for (uint64_t rest = source->lost; rest || size == sizeof number; rest /= 10)
		number[--size] = (char)('0' + rest % 10);
	write_line("library_messages_lost", source->process, "lines",
	           slice_make(number + size, sizeof number - size));
	source->lost = 0;
}

static void check_window(struct source *source)
{
	int64_t now_us = clock_monotonic_us();
	if (now_us - source->window_us <= WINDOW_US)
		return;
	if (source->lost)
		report_lost(source);
	source->window_us = now_us;
	source->lines = 0;
}

static void report(struct source *source)
{
	struct slice text = slice_make(source->text, source->size);
	source->size = 0;
	check_window(source);
	if (!text.size)
		return;
	if (++source->lines <= LINES_MAX)
		write_line("library_message", source->process, "text", text);
	else
		source->lost++;
}

static void take(struct source *source)
{
	char piece[1024];
	ssize_t size;
	while ((size = read(source->read_end, piece, sizeof piece)) > 0) {
		for (ssize_t i = 0; i < size; i++) {
			if (piece[i] != '\n')
				source->text[source->size++] = piece[i];
			if (piece[i] == '\n' || source->size == TEXT_MAX)
				report(source);
		}
	}
}

/* ---- the thread ---- */

/* Returns the milliseconds until the source must be served without new data, or -1. */
static int due_ms(const struct source *source)
{
	return source->size ? REST_WAIT_MS : source->lost ? LOST_WAIT_MS : -1;
}

static void serve(struct source *source, struct pollfd *end, bool readable)
{
	if (readable && end->revents)
		take(source);
	/* The process has closed its end. */
	if (readable && end->revents & POLLHUP)
		end->fd = -1;
	if ((!readable || end->fd < 0) && source->size)
		report(source);
	check_window(source);
}

static void *run_capture(void *context)
{
	struct pollfd ends[SOURCES_MAX + 1];
	int wait_ms = -1;
	for (int i = 0; i < words.count; i++)
		ends[i] = (struct pollfd){.fd = words.sources[i].read_end, .events = POLLIN};
	ends[words.count] = (struct pollfd){.fd = words.wake[0], .events = POLLIN};
	for (;;) {
		bool stopping = atomic_load(&words.stopping);
		int ready = poll(ends, (nfds_t)words.count + (stopping ? 0 : 1), stopping ? 0 : wait_ms);
		atomic_store(&words.idle, false);
		bool rest = false;
		wait_ms = -1;
		for (int i = 0; i < words.count; i++) {
			serve(&words.sources[i], &ends[i], ready > 0);
			int due = due_ms(&words.sources[i]);
			rest = rest || words.sources[i].size;
			wait_ms = wait_ms < 0 || (due >= 0 && due < wait_ms) ? due : wait_ms;
			if (stopping && ready <= 0 && words.sources[i].lost)
				report_lost(&words.sources[i]);
		}
		atomic_store(&words.idle, !rest);
		if (stopping && ready <= 0)
			return NULL;
	}
}

/* ---- the end ---- */

static void flush_on_crash(int signal_number)
{
	int waiting = 0;
	for (int i = 0; i < FLUSH_TIMEOUT_MS && !pthread_equal(pthread_self(), words.thread); i++) {
		bool readable = ioctl(STDERR_FILENO, FIONREAD, &waiting) != 0 || waiting == 0;
		if (readable && atomic_load(&words.idle))
			break;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	raise(signal_number); /* takes the default action after this handler returns */
}

static void handle_crashes(void)
{
	static const int crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
	struct sigaction action = {.sa_handler = flush_on_crash, .sa_flags = (int)SA_RESETHAND};
	for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
		sigaction(crashes[i], &action, NULL);
}

int stderr_capture_start(const char *(*prefix)(void))
{
	sigset_t all, before;
	int own = stderr_capture_open("constancia");
	words.output = own < 0 ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (words.output < 0 || pipe2(words.wake, O_CLOEXEC) != 0)
		return words.output = -1;
	words.prefix = prefix;
	atomic_store(&words.stopping, false);
	atomic_store(&words.idle, true);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool started = pthread_create(&words.thread, NULL, run_capture, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!started || dup2(own, STDERR_FILENO) < 0)
		return words.output = -1;
	close(own);
	pthread_setname_np(words.thread, "log-words");
	handle_crashes();
	return words.output;
}

void stderr_capture_stop(void)
{
	struct timespec until;
	if (words.output < 0)
		return;
	dup2(words.output, STDERR_FILENO);
	atomic_store(&words.stopping, true);
	(void)!write(words.wake[1], "", 1);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += FLUSH_TIMEOUT_MS / 1000;
	pthread_clockjoin_np(words.thread, NULL, CLOCK_MONOTONIC, &until);
}
