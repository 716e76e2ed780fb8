/* The verifier in a separate process, for files from untrusted users. The process has no network,
 * no secrets, no file except the one to check, and limits on time and memory.
 *
 * It executes this program under another name, with three open files: the file to check, the
 * result, and the trusted roots. main calls verifier_run for that name. */
#ifndef VERIFY_VERIFIER_H
#define VERIFY_VERIFIER_H

#include "base/buf.h"
#include "base/error.h"

#define VERIFIER_NAME "constancia-verifier"
#define VERIFIER_FILE "file" /* name of the file in findings */
#define VERIFIER_SECONDS 10  /* processor time */
#define VERIFIER_TIMEOUT_S 13
#define VERIFIER_MEMORY_MAX ((size_t)512 << 20) /* address space */
#define VERIFIER_RESULT_MAX ((size_t)3 << 20)

/* Checks the open regular file, from its beginning, against roots (PEM; may be empty), and appends
 * the JSON document of verify_print. The policy (C2SP tlog-policy; may be empty) has the known keys
 * of logs and witnesses; what does not satisfy it is no finding. The file may have compromised the
 * process, so the caller can rely only on the form of the document. Returns ERR_TOO_LARGE if the
 * process reached a limit of processor time or memory, which it would reach again; ERR_UNAVAILABLE
 * with the cause if it crashed, timed out or could not be confined; ERR_NO_MEMORY. Blocks. Any
 * thread may call. */
int verifier_check(int file, struct slice roots_pem, struct slice log_policy, struct buf *out,
                   struct error *error) MUST_CHECK;
/* Runs the process. */
_Noreturn void verifier_run(void);

#endif
