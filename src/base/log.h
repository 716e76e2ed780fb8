/* JSON lines on standard error, whole in each write(2). Thread safe. Libraries below src/service do
 * not log: they report errors. Secrets never come here. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct json_writer;

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

void log_set_level(enum log_level level);
/* Where standard error goes to the journal (JOURNAL_STREAM names it), each line begins with its
 * priority, `<3>` to `<7>`, which the journal takes off (sd-daemon(3)). To be asked once, before
 * other processes are forked. */
void log_know_journal(void);
/* Before log_start, in a process that serves: what libraries write to standard error by themselves,
 * a failed assertion too, is to come as lines `library_message` from there on. At most 200 of a
 * process in ten seconds, the rest is counted (`library_messages_lost`); nobody waits for their
 * reader. Not where a sanitizer reports on standard error. */
void log_take_words(void);
/* The standard error for a process that is to be forked or started before log_start, which has its
 * words come out in the same way, under a name that lives on; -1: it keeps its own. */
int log_words_open(const char *process);
/* From here on a thread writes, so that nobody waits for whoever reads the log: up to 1 MiB of
 * lines waits for him, further ones are lost and counted (`log_lines_lost`). Without memory or a
 * thread every line is still written by who logs it, and in a forked child always. */
void log_start(void);
/* Waits until all is written, but no longer than two seconds, and ends the thread. exit(3) calls
 * it, _exit(2) does not. */
void log_stop(void);
/* `fields` are pairs name, value (const char *), closed by NULL; a NULL value is written null. */
void log_write(enum log_level level, const char *event, ...) __attribute__((sentinel));

/* The same, at whatever level the log is. */
void log_always(enum log_level level, const char *event, ...) __attribute__((sentinel));

/* From a signal's handler, before the end: a line without a time, unless its reader does not
 * read. */
void log_last(enum log_level level, const char *event);

/* A line of which there may be very many: `fill` adds its members with json_…, all texts UTF-8.
 * Such lines take at most half of what waits, so that no other is lost for them. */
void log_write_many(enum log_level level, const char *event,
                    void (*fill)(struct json_writer *writer, const void *context),
                    const void *context);

#define log_info(...) log_write(LOG_INFO, __VA_ARGS__, NULL)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__, NULL)
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__, NULL)

#endif
