/* What libraries write to standard error by themselves, as lines of the log (log.h). */
#ifndef BASE_LOG_WORDS_H
#define BASE_LOG_WORDS_H

/* Before words_start: log_words_open of log.h. */
int words_open(const char *process);
/* Standard error becomes a pipe, which a thread of its own reads; what it reads, and the log, go to
 * where standard error went. Returns that descriptor, -1 when nothing was changed. */
int words_start(const char *(*prefix)(void));
/* Standard error is as it was, and everything that was said is written. */
void words_stop(void);

#endif
