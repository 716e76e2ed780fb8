/* System libraries that are loaded on first use. Loading their dependencies takes a large part of
 * the startup time and memory of a process, and most commands and the signing process need none of
 * them.
 *
 * A folder that uses such a library has a list of the functions that it calls, libNAME.txt, from
 * which scripts/forwarders makes libNAME.h and libNAME.c. These define the functions as the
 * library's header declares them; each forwards to the library. Callers use them as usual, after
 * libNAME_load. A call without a loaded library is a programming error and terminates the
 * process. */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stdatomic.h>

#include "base/error.h"

struct library_function {
	const char *name;
	void **place; /* receives its address */
};

struct library {
	const char *name; /* file name with version: "libpq.so.5" */
	const struct library_function *functions;
	size_t count;
	atomic_bool loaded;
};

/* Loads the library on the first call. Any thread may call, any number of times. ERR_UNAVAILABLE
 * with the cause: the library is missing or lacks a function. */
int library_load(struct library *library, struct error *error) MUST_CHECK;

#endif
