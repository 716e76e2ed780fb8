/* Internal to log.c: stderr capture, which turns output of libraries on standard error into log
 * lines. */
#ifndef BASE_STDERR_CAPTURE_H
#define BASE_STDERR_CAPTURE_H

/* Implements log_open_stderr_capture of log.h. Must be called before stderr_capture_start. */
int stderr_capture_open(const char *process);
/* Replaces standard error with a pipe that a thread reads. Captured lines and the log go to the
 * former standard error. Returns its descriptor, or -1 if nothing was changed. */
int stderr_capture_start(const char *(*prefix)(void));
/* Writes all captured lines and restores standard error. */
void stderr_capture_stop(void);

#endif
