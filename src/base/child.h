/* Runs helper programs in separate processes. A fault in a helper does not affect this process, and
 * its memory is freed when it ends. A helper has an empty environment and no open files except
 * those that the caller passes. */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define CHILD_PATH_MAX 4096
#define CHILD_FILES 3        /* 0, 1 and 2 of the child */
#define CHILD_PROGRAM_FILE 3 /* descriptor of its own executable at start */

struct child {
	int program;        /* the executable, open */
	char *const *words; /* its name and arguments, ended by NULL */
	int files[CHILD_FILES];
	int timeout_ms; /* the child is killed after this time */
};

/* Runs a child and waits until it ends. Returns 0 if its exit code is 0, and CHILD_FAILED if it is
 * another or the CPU time limit was reached. ERR_UNAVAILABLE: the child did not start, crashed or
 * timed out. ERR_NO_MEMORY. Any thread may call. */
#define CHILD_FAILED 1
int child_run(const struct child *child, struct error *error) MUST_CHECK;
/* The two steps of child_run. A started child must be waited for. */
int child_start(const struct child *child, pid_t *ret_id, struct error *error) MUST_CHECK;
int child_await(const struct child *child, pid_t id, struct error *error) MUST_CHECK;

/* Opens a helper program: `name` in the directory of this program, as in a build tree, or else the
 * `installed` path. No environment variable changes the choice. ERR_UNAVAILABLE. */
int child_open(const char *name, const char *installed, int *ret_program, struct error *error)
	MUST_CHECK;
/* Finds the path that child_open opens. */
int child_find(const char *name, const char *installed, char path[CHILD_PATH_MAX],
               struct error *error) MUST_CHECK;

/* Restricts the calling child process; it must be called first. The process is killed when its
 * parent ends, is limited in CPU time and file size, and cannot be traced or dumped. Closes
 * CHILD_PROGRAM_FILE. */
struct child_bounds {
	const char *name; /* shown in the process list */
	unsigned seconds;
	size_t file_bytes;
	size_t memory_bytes; /* address space; 0: no limit */
};
/* Sanitizers reserve huge address ranges, so their builds have no memory limit. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define CHILD_BOUNDS_MEMORY false
#else
#define CHILD_BOUNDS_MEMORY true
#endif
int child_bound(const struct child_bounds *bounds, struct error *error) MUST_CHECK;

#endif
