/* What a process gives up for good: being looked into, and system calls.
 *
 * A filter names the calls that are allowed; every other one fails with EPERM. Failing instead of
 * killing is a choice: a library that looks for something optional (a locale, a newer call) then
 * goes on as if the machine did not have it, so that another libc or a sanitizer does not turn
 * into an outage, and whoever has taken the process over gains nothing by it. */
#ifndef BASE_CONFINE_H
#define BASE_CONFINE_H

#include <stddef.h>

#include "base/error.h"

/* No core dump, and no other process of the same user may read this one's memory. For every
 * process that holds secrets. ERR_REFUSED with the cause. */
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

#endif
