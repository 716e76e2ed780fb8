/* JSON lines on standard error, one write(2) each. Thread safe. Libraries below src/service do
 * not log: they report errors. Secrets never come here. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

void log_set_level(enum log_level level);
/* `fields` are pairs name, value (const char *), closed by NULL; a NULL value is written null. */
void log_write(enum log_level level, const char *event, ...) __attribute__((sentinel));

#define log_info(...) log_write(LOG_INFO, __VA_ARGS__, NULL)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__, NULL)
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__, NULL)

#endif
