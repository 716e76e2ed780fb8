/* Libraries of the system that are loaded when something first needs them. What they bring along is
 * a large part of the time of a start and of a process's memory, and most commands and the signing
 * process need none of it.
 *
 * A folder that uses such a library has a file named after it: a table of the functions it calls,
 *
 *     #define FUNCTIONS(FUNCTION)                                        \
 *         FUNCTION(CURL *, curl_easy_init, (void), ())                   \
 *         FUNCTION(void, curl_easy_cleanup, (CURL * easy), (easy))
 *     LIBRARY_FUNCTIONS(FUNCTIONS)
 *
 * defines them as the library's header declares them, and each calls the library's own. So callers
 * are written as ever, but something before them has loaded the library: calling it unloaded is a
 * mistake of ours, and ends the process. */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <assert.h>
#include <stdatomic.h>

#include "base/error.h"

struct library_function {
	const char *name;
	void **place; /* where its address goes */
};

struct library {
	const char *name; /* the file's, with its version: "libpq.so.5" */
	const struct library_function *functions;
	size_t count;
	atomic_bool loaded;
};

/* Once for all; from any thread, any number of times. ERR_UNAVAILABLE with the cause: it is not
 * there, or has not all functions. */
int library_load(struct library *library, struct error *error) MUST_CHECK;

#define LIBRARY_POINTER(type, name, parameters, arguments) static __typeof__(name) *name##_loaded;
#define LIBRARY_CALL(type, name, parameters, arguments)                                            \
	type name parameters                                                                           \
	{                                                                                              \
		assert(name##_loaded);                                                                     \
		return name##_loaded arguments;                                                            \
	}
#define LIBRARY_ROW(type, name, parameters, arguments) {#name, (void **)&name##_loaded},

#define LIBRARY_FUNCTIONS(FUNCTIONS) FUNCTIONS(LIBRARY_POINTER) FUNCTIONS(LIBRARY_CALL)

#endif
