#include "verify/verifier.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/confine.h"
#include "base/file.h"
#include "tlog/policy.h"
#include "verify/verify.h"

#define TRUST_MAX ((size_t)4 << 20)
#define POLICY_MEMORY_MAX ((size_t)1 << 20)
#define FILE_PATH "/proc/self/fd/0"

/* ---- the client ---- */

/* The file `trust` has the policy, a NUL, and the roots. */
struct files {
	int program, result, trust;
};

static void files_close(struct files *files)
{
	descriptor_close(&files->program);
	descriptor_close(&files->result);
	descriptor_close(&files->trust);
}

static int open_files(struct files *files, struct slice trust, struct error *error)
{
	files->program = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	files->result = memfd_create("result", MFD_CLOEXEC);
	files->trust = memfd_create("trust", MFD_CLOEXEC);
	if (files->program < 0)
		return error_cause(error, ERR_UNAVAILABLE, "/proc/self/exe: %s", strerror(errno));
	if (files->result < 0 || files->trust < 0 ||
	    pwrite(files->trust, trust.data, trust.size, 0) != (ssize_t)trust.size)
		return error_cause(error, ERR_NO_MEMORY, "creating the files for the verifier: %s",
		                   strerror(errno));
	return OK;
}

static int take_result(int file, struct buf *out, struct error *error)
{
	struct stat facts;
	if (fstat(file, &facts) != 0 || facts.st_size > (off_t)VERIFIER_RESULT_MAX)
		return error_cause(error, ERR_UNAVAILABLE, "the output of the verifier is too large");
	char *to = buf_extend(out, (size_t)facts.st_size);
	if (!to)
		return ERR_NO_MEMORY;
	return pread(file, to, (size_t)facts.st_size, 0) == facts.st_size
	           ? OK
	           : error_cause(error, ERR_UNAVAILABLE, "reading the output of the verifier");
}

int verifier_check(int file, struct slice roots_pem, struct slice log_policy, struct buf *out,
                   struct error *error)
{
	BUF_AUTO struct buf trust;
	buf_init(&trust, TRUST_MAX);
	buf_add_slice(&trust, log_policy);
	buf_add_byte(&trust, '\0');
	buf_add_slice(&trust, roots_pem);
	__attribute__((cleanup(files_close))) struct files files = {-1, -1, -1};
	char *const words[] = {VERIFIER_NAME, NULL};
	int result = buf_check(&trust);
	if (!result)
		result = open_files(&files, buf_slice(&trust), error);
	if (!result)
		result = child_run(
			&(struct child){
				files.program, words, {file, files.result, files.trust}, VERIFIER_TIMEOUT_S * 1000},
			error);
	if (result == CHILD_FAILED)
		result = error_set(error, ERR_TOO_LARGE, MSG_HTTP_CHECK_BOUNDS, NULL);
	return result ? result : take_result(files.result, out, error);
}

/* ---- the process ---- */

/* The file to check is opened again. */
static const struct confine_call reading_calls[] = {
	{SCMP_SYS(openat), CONFINE_READ_ONLY}, {SCMP_SYS(newfstatat), CONFINE_ALWAYS},
	{SCMP_SYS(statx), CONFINE_ALWAYS},     {SCMP_SYS(fcntl), CONFINE_ALWAYS},
	{SCMP_SYS(fadvise64), CONFINE_ALWAYS},
};

static int read_trust(struct buf *trust)
{
	struct stat facts;
	if (fstat(STDERR_FILENO, &facts) != 0 || facts.st_size < 1 || facts.st_size > (off_t)TRUST_MAX)
		return ERR_IO;
	char *to = buf_extend(trust, (size_t)facts.st_size);
	return to && pread(STDERR_FILENO, to, (size_t)facts.st_size, 0) == facts.st_size ? OK : ERR_IO;
}

static int check(struct slice roots_pem, const struct policy *policy)
{
	static const char *const paths[] = {FILE_PATH}, *const names[] = {VERIFIER_FILE};
	const struct verify_options options = {
		.names = names, .log_policy = policy, .log_policy_informs = true};
	struct slice pem = roots_pem.size > 0 ? roots_pem : (struct slice){0};
	struct trust_roots trusted = {.signers = pem, .timestamps = pem};
	struct verify_result found;
	struct error error = {0};
	int result = verify_paths(paths, 1, &trusted, &options, &found, &error);
	if (result)
		return result;
	verify_print(&found, true, stdout);
	return fflush(stdout) == 0 ? OK : ERR_IO;
}

static int confine(struct error *error)
{
	bool confined;
	int result = child_bound(&(struct child_bounds){"verifier", VERIFIER_SECONDS,
	                                                VERIFIER_RESULT_MAX, VERIFIER_MEMORY_MAX},
	                         error);
	(void)setpriority(PRIO_PROCESS, 0, 10);
	if (!result)
		result = confine_files(NULL, 0, &confined, error);
	if (!result && !confined)
		result = ERR_REFUSED;
	return result
	           ? result
	           : confine_calls(reading_calls, sizeof reading_calls / sizeof *reading_calls, error);
}

void verifier_run(void)
{
	struct error error = {0};
	struct policy policy = {0};
	BUF_AUTO struct buf trust;
	ARENA_AUTO struct arena arena;
	buf_init(&trust, TRUST_MAX);
	arena_init(&arena, POLICY_MEMORY_MAX);
	int result = read_trust(&trust);
	size_t policy_size = result ? 0 : strnlen(trust.data, trust.size);
	if (!result && policy_size > 0)
		result = policy_parse(&arena, slice_make(trust.data, policy_size), &policy, &error);
	if (!result)
		result = confine(&error);
	if (result)
		abort(); /* not caused by the file */
	const struct slice roots =
		slice_make(trust.data + policy_size + 1, trust.size - policy_size - 1);
	_exit(check(roots, policy_size > 0 ? &policy : NULL) ? 1 : 0);
}
