/* System libraries that are loaded on first use. Loading their dependencies takes a large part of
 * the startup time and memory of a process, and most commands and the signing process need none of
 * them.
 *
 * A folder that uses such a library has a file named after it, with a table of the functions that
 * it calls:
 *
 *     #define FUNCTIONS(FUNCTION)                                        \
 *         FUNCTION(CURL *, curl_easy_init, (void), ())                   \
 *         FUNCTION(void, curl_easy_cleanup, (CURL * easy), (easy))
 *     LIBRARY_FUNCTIONS(FUNCTIONS)
 *
 * LIBRARY_FUNCTIONS defines these functions as the library's header declares them; each forwards to
 * the library. Callers use them as usual, after library_load. A call without a loaded library is a
 * programming error and terminates the process. */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <assert.h>
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
