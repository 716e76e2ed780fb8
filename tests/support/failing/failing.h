/* Makes one library call of a run fail: each in turn, when a test counts up.
 *
 *	for (int at = 1; ; at++) {
 *		failing_arm(FAILING_MEMORY | FAILING_FILES, at);
 *		int result = …;
 *		const char *failed = failing_disarm();
 *		if (!failed)
 *			break; // the run has fewer calls: all have had their turn
 *		…  // what must hold although `failed` failed in the middle
 *	}
 *
 * Only calls that our own code makes are counted, in the thread that armed it, or with
 * failing_arm_others in all threads but that one; calls.def names them, and parts.def our own. An
 * executable gets this by `failing` in its dependencies, and by `failing_parts` our own as well. */
#ifndef FAILING_H
#define FAILING_H

#include <stdbool.h>

enum failing_kind {
	FAILING_MEMORY = 1,         /* of the heap: NULL */
	FAILING_FILES = 2,          /* of the file system: -1 or NULL, with failing_errno */
	FAILING_OPENSSL = 4,        /* 0 or NULL */
	FAILING_SQLITE = 8,         /* a statement: SQLITE_IOERR */
	FAILING_POSTGRES = 16,      /* libpq's connecting and sending: NULL, 0 or -1 */
	FAILING_POSTGRES_WAIT = 32, /* its moving of bytes, of which a run may have more or fewer */
	FAILING_CURL = 64,          /* for want of memory */
	FAILING_TOKEN = 4096,       /* libp11's: -1 or NULL */
	FAILING_SYSTEM = 128,       /* sockets, polling, threads: -1, or a thread's EAGAIN */
	FAILING_PARTS = 256,        /* of one of our folders, by another: failing_code */
	FAILING_ARENAS = 512,       /* of arenas, buffers, digests, trees: there is no memory */
	FAILING_TRAFFIC = 1024,     /* of connections: -1, with failing_errno */
	FAILING_JOURNAL = 2048,     /* a file system's, found after a sync: a store is poisoned by it */
};

/* What errno is after a failed call of the file system; EIO unless set. */
extern int failing_errno;
/* What a function of ours gives back; ERR_UNAVAILABLE unless set. It has done nothing then. */
extern int failing_code;

/* The at-th such call from now on (from 1) fails, once. */
void failing_arm(unsigned kinds, int at);
/* The same of the calls that other threads make, such as those of a server whose client arms it. */
void failing_arm_others(unsigned kinds, int at);
/* The name of the call that failed since, NULL if none did. No call fails any more. */
const char *failing_disarm(void);
/* Whether an error tells of such a failure, rather than of what was asked for. Of failing_parts. */
bool failing_is_fault(int result);

#endif
