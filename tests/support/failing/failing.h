/* Fault injection: makes one library call of a run fail. A test counts through all calls:
 *
 *	for (int at = 1; ; at++) {
 *		failing_arm(FAILING_MEMORY | FAILING_FILES, at);
 *		int result = …;
 *		const char *failed = failing_disarm();
 *		if (!failed)
 *			break; // the run has fewer calls: every call has failed once
 *		…  // check what must hold after the failure of `failed`
 *	}
 *
 * Counts only calls that our own code makes: in the thread that armed it, or with
 * failing_arm_others in all other threads. calls.def lists library calls, and parts.def our own
 * functions. An executable needs `failing` in its dependencies for the former, and `failing_parts`
 * for both. */
#ifndef FAILING_H
#define FAILING_H

#include <stdbool.h>

enum failing_kind {
	FAILING_MEMORY = 1,         /* heap: NULL */
	FAILING_FILES = 2,          /* file system: -1 or NULL, with failing_errno */
	FAILING_OPENSSL = 4,        /* 0 or NULL */
	FAILING_SQLITE = 8,         /* statements: SQLITE_IOERR */
	FAILING_POSTGRES = 16,      /* libpq, connecting and sending: NULL, 0 or -1 */
	FAILING_POSTGRES_WAIT = 32, /* libpq, data transfer; the number of calls varies between runs */
	FAILING_CURL = 64,          /* curl, out of memory */
	FAILING_TOKEN = 4096,       /* libp11: -1 or NULL */
	FAILING_SYSTEM = 128,       /* sockets, polling, threads: -1, or a thread's EAGAIN */
	FAILING_PARTS = 256,        /* our functions, called from another folder: failing_code */
	FAILING_ARENAS = 512,       /* arenas, buffers, digests, trees: out of memory */
	FAILING_TRAFFIC = 1024,     /* connections: -1, with failing_errno */
	FAILING_JOURNAL = 2048,     /* file system error detected after a sync; poisons a store */
};

/* errno after a failed call of the file system; default EIO. */
extern int failing_errno;
/* Result of a failing function of ours, which then has no effect; default ERR_UNAVAILABLE. */
extern int failing_code;

/* Makes the at-th such call from now on (from 1) fail, once. */
void failing_arm(unsigned kinds, int at);
/* The same for calls of other threads, such as those of a server in the same process. */
void failing_arm_others(unsigned kinds, int at);
/* Disarms; returns the name of the call that failed since, NULL if none did. */
const char *failing_disarm(void);
/* Returns whether an error results from such a failure, not from the request. In failing_parts. */
bool failing_is_fault(int result);

#endif
