/* Sandboxing of the calling process: no tracing, a system call filter and restricted file access.
 * None of it can be undone.
 *
 * A filter lists the allowed system calls; all others fail with EPERM. They fail instead of killing
 * the process for robustness: a library that probes for an optional file or a newer call continues
 * as on a system without it. So another libc or a sanitizer does not cause an outage, and an
 * attacker gains nothing. */
#ifndef BASE_CONFINE_H
#define BASE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Disables core dumps, debuggers, and reading this process's memory by other processes of the same
 * user. Every process that holds secrets calls it before it reads them, except a service that
 * `constancia dev --debuggable` started. ERR_REFUSED with the cause. */
int confine_memory(struct error *error) MUST_CHECK;

enum confine_condition {
	CONFINE_ALWAYS,
	CONFINE_OWN_PROCESS,    /* the first argument must be the id of this process */
	CONFINE_NOT_EXECUTABLE, /* the third argument must be a protection without PROT_EXEC */
	CONFINE_THREAD,         /* clone, only to create a thread of this process */
	CONFINE_READ_ONLY,      /* the third argument must be openat flags that modify nothing */
};

struct confine_call {
	int call; /* SCMP_SYS(name) */
	enum confine_condition condition;
};

/* Restricts this process and its children to `calls` and the calls that every running program
 * needs: memory, clocks, randomness, thread locks, I/O on open descriptors, and exit. New
 * privileges are also disabled. ERR_REFUSED with the cause. */
int confine_calls(const struct confine_call *calls, size_t count, struct error *error) MUST_CHECK;

/* Part of the file system that remains readable. All other files become inaccessible, and nothing
 * can be modified. Open descriptors remain usable. */
struct confine_place {
	const char *path; /* a missing path is ignored */
	bool below;       /* include everything below this directory */
};
/* Restricts file access to reading `places`. ERR_INTERNAL with the cause. A kernel without Landlock
 * (5.13) is no error: *ret_confined is false, and file permissions alone apply. */
int confine_files(const struct confine_place *places, size_t count, bool *ret_confined,
                  struct error *error) MUST_CHECK;
bool confine_knows_files(void);
/* A coverage build lets its processes write their counters in spite of all restrictions. */
#ifdef CONSTANCIA_COUNTS_COVERAGE
#define CONFINE_IS_WHOLE false
#else
#define CONFINE_IS_WHOLE true
#endif

#endif
