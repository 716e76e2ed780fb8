/* JSON lines on standard error, one write(2) each. Thread safe. Libraries below src/service do
 * not log: they report errors. Secrets never come here. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

void log_set_level(enum log_level level);
/* From here on a thread writes, so that nobody waits for whoever reads the log: up to 1 MiB of
 * lines waits for him, further ones are lost and counted (`log_lines_lost`). Without memory or a
 * thread every line is still written by who logs it, and in a forked child always. */
void log_start(void);
/* Waits until all is written, but no longer than two seconds, and ends the thread. exit(3) calls
 * it, _exit(2) does not. */
void log_stop(void);
/* `fields` are pairs name, value (const char *), closed by NULL; a NULL value is written null. */
void log_write(enum log_level level, const char *event, ...) __attribute__((sentinel));

#define log_info(...) log_write(LOG_INFO, __VA_ARGS__, NULL)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__, NULL)
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__, NULL)

#endif
