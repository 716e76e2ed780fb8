/* Log of JSON lines on standard error; each line is written with one write(2). Thread safe.
 * Libraries below src/service do not log but return errors. Secrets must never be logged. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct json_writer;

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

void log_set_level(enum log_level level);
/* If standard error is connected to the journal (JOURNAL_STREAM), prefixes each line with its
 * priority, `<3>` to `<7>`, which the journal removes (sd-daemon(3)). Call it once, before other
 * processes are forked. */
void log_detect_journal(void);
/* Enables stderr capture; call it before log_start in a server process. Output of libraries on
 * standard error, including failed assertions, then appears as log lines `library_message`. At most
 * 200 lines per process are logged in ten seconds; the number of further lines is logged as
 * `library_messages_lost`. Writers never block. Disabled in sanitizer builds, whose reports go to
 * standard error. */
void log_enable_stderr_capture(void);
/* Returns a descriptor to use as standard error of a process that is forked or started before
 * log_start. Its output is captured in the same way, under the name `process`, which must live on.
 * -1: the process keeps its standard error. */
int log_open_stderr_capture(const char *process);
/* Starts a thread that writes the log, so that callers never block on the reader of the log. Up to
 * 1 MiB of lines is queued; further lines are dropped and counted (`log_lines_lost`). Without
 * memory or a thread, and always in a forked child, the caller writes the line itself. */
void log_start(void);
/* Waits until all lines are written, at most two seconds, and stops the thread. exit(3) calls it,
 * _exit(2) does not. */
void log_stop(void);
/* Writes a line. The variadic arguments are pairs of name and value (const char *), ended by NULL;
 * a NULL value is written as null. */
void log_write(enum log_level level, const char *event, ...) __attribute__((sentinel));

/* As log_write, regardless of the log level. */
void log_always(enum log_level level, const char *event, ...) __attribute__((sentinel));

/* Writes a line without a time from a signal handler before the process ends. Drops the line if the
 * write would block. */
void log_write_last(enum log_level level, const char *event);

/* Writes a line of a frequent kind. `fill` adds its members with json_…; all texts must be UTF-8.
 * Such lines use at most half of the queue, so that they do not displace other lines. */
void log_write_frequent(enum log_level level, const char *event,
                        void (*fill)(struct json_writer *writer, const void *context),
                        const void *context);

#define log_info(...) log_write(LOG_INFO, __VA_ARGS__, NULL)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__, NULL)
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__, NULL)

#endif
