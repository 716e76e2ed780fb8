/* The verifier in a process of its own, for files that anybody may hand in: it has no network, no
 * secrets, no file but the one to be checked, and bounds on time and memory.
 *
 * The process is this program again, under another name, with three open files: what is checked,
 * where the result goes, and the roots that are trusted. main gives it to verifier_run. */
#ifndef VERIFY_VERIFIER_H
#define VERIFY_VERIFIER_H

#include "base/buf.h"
#include "base/error.h"

#define VERIFIER_NAME "constancia-verifier"
#define VERIFIER_FILE "file" /* the name of the file in reports */
#define VERIFIER_SECONDS 10  /* of a processor */
#define VERIFIER_TIMEOUT_S 13
#define VERIFIER_MEMORY_MAX ((size_t)512 << 20) /* address space */
#define VERIFIER_RESULT_MAX ((size_t)3 << 20)

/* Checks the open regular file, from its beginning, against roots (PEM; may be empty), and appends
 * what verify_print writes as JSON: by a process that may have been taken over by what it read, so
 * that only its form can be relied on. ERR_TOO_LARGE when it came to a bound of processor time or
 * memory, as it would again; ERR_UNAVAILABLE with the cause when it crashed, did not end in time or
 * could not be confined to that file; ERR_NO_MEMORY. Waits; any thread may call. */
int verifier_check(int file, struct slice roots_pem, struct buf *out, struct error *error)
	MUST_CHECK;
/* The process. */
_Noreturn void verifier_run(void);

#endif
