/* What a process gives up for good: being looked into, and system calls.
 *
 * A filter names the calls that are allowed; every other one fails with EPERM. Failing instead of
 * killing is a choice: a library that looks for something optional (a locale, a newer call) then
 * goes on as if the machine did not have it, so that another libc or a sanitizer does not turn
 * into an outage, and whoever has taken the process over gains nothing by it. */
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
	CONFINE_OWN_PROCESS,    /* the first argument is this process's id */
	CONFINE_NOT_EXECUTABLE, /* the third argument is a protection without PROT_EXEC */
	CONFINE_THREAD,         /* clone, for a thread of this process */
	CONFINE_READ_ONLY,      /* the third argument are flags of openat that change nothing */
};

struct confine_call {
	int call; /* SCMP_SYS(name) */
	enum confine_condition condition;
};

/* From here on this process, and what it begets, makes only these calls and those that every
 * program needs once it runs: for memory, clocks, randomness, locks among threads, reading and
 * writing what is open, and ending. No new privileges can be had any more, either. ERR_REFUSED with
 * the cause. */
int confine_calls(const struct confine_call *calls, size_t count, struct error *error) MUST_CHECK;

/* What of the file system stays readable; everything else is out of reach, and nothing can be
 * changed. What is open stays open. */
struct confine_place {
	const char *path; /* one that is not there needs no leave */
	bool below;       /* a directory, and all in it */
};
/* ERR_INTERNAL with the cause. *ret_confined: false where the kernel has no Landlock (5.13), which
 * is no error: what this user may read stays readable. */
int confine_files(const struct confine_place *places, size_t count, bool *ret_confined,
                  struct error *error) MUST_CHECK;
bool confine_knows_files(void);
/* A build that counts coverage lets its processes write what they counted, whatever fences them. */
#ifdef CONSTANCIA_COUNTS_COVERAGE
#define CONFINE_IS_WHOLE false
#else
#define CONFINE_IS_WHOLE true
#endif

#endif
