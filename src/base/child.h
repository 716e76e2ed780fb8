/* A program that does one thing for this one, in a process of its own: what it does cannot hurt
 * this process, and its memory ends with it. It has an empty environment, the open files that it is
 * given and no other. */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define CHILD_PATH_MAX 4096
#define CHILD_FILES 3        /* 0, 1 and 2 of the child */
#define CHILD_PROGRAM_FILE 3 /* where its own executable is open when it starts */

struct child {
	int program;        /* the executable, open */
	char *const *words; /* its name and arguments, closed by NULL */
	int files[CHILD_FILES];
	int timeout_ms; /* then it is ended */
};

/* Starts it and waits for its end. 0: it ended well; CHILD_FAILED: it ended with another exit code
 * than 0, or used up its processor seconds; ERR_UNAVAILABLE: it did not start, crashed, or did not
 * end in time; ERR_NO_MEMORY. Any thread may call. */
#define CHILD_FAILED 1
int child_run(const struct child *child, struct error *error) MUST_CHECK;

/* Opens a program that belongs to this one: that of its directory, as in a build, else the
 * installed one; no variable names another. ERR_UNAVAILABLE. */
int child_open(const char *name, const char *installed, int *ret_program, struct error *error)
	MUST_CHECK;
/* Where that is. */
int child_find(const char *name, const char *installed, char path[CHILD_PATH_MAX],
               struct error *error) MUST_CHECK;

/* For the child, before anything else: it ends with who started it, has no more processor seconds
 * and no larger files than these, and nobody may look into it. Closes CHILD_PROGRAM_FILE. */
struct child_bounds {
	const char *name; /* as the process list shows it */
	unsigned seconds;
	size_t file_bytes;
	size_t memory_bytes; /* address space; 0: no bound */
};
/* A sanitizer takes address space without end for itself: there is no bound of memory then. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define CHILD_BOUNDS_MEMORY false
#else
#define CHILD_BOUNDS_MEMORY true
#endif
int child_bound(const struct child_bounds *bounds, struct error *error) MUST_CHECK;

#endif
