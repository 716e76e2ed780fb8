/* Internal to log.c: stderr capture, which turns output of libraries on standard error into log
 * lines. */
#ifndef BASE_LOG_WORDS_H
#define BASE_LOG_WORDS_H

/* Implements log_words_open of log.h. Must be called before words_start. */
int words_open(const char *process);
/* Replaces standard error with a pipe that a thread reads. Captured lines and the log go to the
 * former standard error. Returns its descriptor, or -1 if nothing was changed. */
int words_start(const char *(*prefix)(void));
/* Writes all captured lines and restores standard error. */
void words_stop(void);

#endif
