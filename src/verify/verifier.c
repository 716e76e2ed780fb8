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
#include "verify/verify.h"

#define ROOTS_MAX ((size_t)4 << 20)
#define FILE_PATH "/proc/self/fd/0"

/* ---- the client ---- */

struct files {
	int program, result, roots;
};

static void files_close(struct files *files)
{
	descriptor_close(&files->program);
	descriptor_close(&files->result);
	descriptor_close(&files->roots);
}

static int open_files(struct files *files, struct slice roots_pem, struct error *error)
{
	files->program = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	files->result = memfd_create("result", MFD_CLOEXEC);
	files->roots = memfd_create("roots", MFD_CLOEXEC);
	if (files->program < 0)
		return error_cause(error, ERR_UNAVAILABLE, "/proc/self/exe: %s", strerror(errno));
	if (files->result < 0 || files->roots < 0 ||
	    pwrite(files->roots, roots_pem.data, roots_pem.size, 0) != (ssize_t)roots_pem.size)
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

int verifier_check(int file, struct slice roots_pem, struct buf *out, struct error *error)
{
	__attribute__((cleanup(files_close))) struct files files = {-1, -1, -1};
	char *const words[] = {VERIFIER_NAME, NULL};
	int result = open_files(&files, roots_pem, error);
	if (!result)
		result = child_run(
			&(struct child){
				files.program, words, {file, files.result, files.roots}, VERIFIER_TIMEOUT_S * 1000},
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

static int read_roots(struct buf *roots)
{
	struct stat facts;
	if (fstat(STDERR_FILENO, &facts) != 0 || facts.st_size > (off_t)ROOTS_MAX)
		return ERR_IO;
	char *to = facts.st_size > 0 ? buf_extend(roots, (size_t)facts.st_size) : NULL;
	if (facts.st_size == 0)
		return OK;
	return to && pread(STDERR_FILENO, to, (size_t)facts.st_size, 0) == facts.st_size ? OK : ERR_IO;
}

static int check(const struct buf *roots)
{
	static const char *const paths[] = {FILE_PATH}, *const names[] = {VERIFIER_FILE};
	static const struct verify_options options = {.names = names};
	struct slice pem = roots->size > 0 ? buf_slice(roots) : (struct slice){0};
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
	BUF_AUTO struct buf roots;
	buf_init(&roots, ROOTS_MAX);
	int result = read_roots(&roots);
	if (!result)
		result = confine(&error);
	if (result)
		abort(); /* not caused by the file */
	_exit(check(&roots) ? 1 : 0);
}
