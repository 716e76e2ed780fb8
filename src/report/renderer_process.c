#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/child.h"
#include "base/confine.h"
#include "report/renderer.h"
#include "report/renderer_identity.h"
#include "report/renderer_process.h"
#include "report/report_finish.h"
#include "report/report_wire.h"

#define FILE_MAX_BYTES ((size_t)128 << 20)

/* The libraries use threads and search for fonts. They open files only for reading. */
static const struct confine_call drawing_calls[] = {
	{SCMP_SYS(openat), CONFINE_READ_ONLY},  {SCMP_SYS(newfstatat), CONFINE_ALWAYS},
	{SCMP_SYS(statx), CONFINE_ALWAYS},      {SCMP_SYS(fstatfs), CONFINE_ALWAYS},
	{SCMP_SYS(statfs), CONFINE_ALWAYS},     {SCMP_SYS(access), CONFINE_ALWAYS},
	{SCMP_SYS(faccessat), CONFINE_ALWAYS},  {SCMP_SYS(faccessat2), CONFINE_ALWAYS},
	{SCMP_SYS(readlink), CONFINE_ALWAYS},   {SCMP_SYS(readlinkat), CONFINE_ALWAYS},
	{SCMP_SYS(getdents64), CONFINE_ALWAYS}, {SCMP_SYS(fcntl), CONFINE_ALWAYS},
	{SCMP_SYS(fadvise64), CONFINE_ALWAYS},  {SCMP_SYS(getuid), CONFINE_ALWAYS},
	{SCMP_SYS(geteuid), CONFINE_ALWAYS},    {SCMP_SYS(getgid), CONFINE_ALWAYS},
	{SCMP_SYS(getegid), CONFINE_ALWAYS},    {SCMP_SYS(sysinfo), CONFINE_ALWAYS},
	{SCMP_SYS(uname), CONFINE_ALWAYS},      {SCMP_SYS(sched_getaffinity), CONFINE_ALWAYS},
	{SCMP_SYS(clone), CONFINE_THREAD},      {SCMP_SYS(set_robust_list), CONFINE_ALWAYS},
	{SCMP_SYS(rseq), CONFINE_ALWAYS},
};

int renderer_confine(bool *ret_fenced, struct error *error)
{
	static const struct confine_place places[] = {
		{"/usr/share/fonts", true}, {"/var/cache/fontconfig", true}, {REPORT_PROFILE_PATH, false}};
	int result = confine_files(places, sizeof places / sizeof *places, ret_fenced, error);
	return result
	           ? result
	           : confine_calls(drawing_calls, sizeof drawing_calls / sizeof *drawing_calls, error);
}

/* Draws the report from the open file of facts. */
static int draw(size_t size, struct error *error)
{
	static struct report_facts facts;
	enum language language;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, 2 * REPORT_WIRE_MAX);
	char *wire = arena_alloc(&arena, size + 1);
	if (!wire || pread(STDIN_FILENO, wire, size, 0) != (ssize_t)size)
		return error_cause(error, ERR_NO_MEMORY, "reading the report data");
	struct slice in = slice_make(wire, size);
	int result = report_wire_read(in, &arena, &facts, &language, error);
	return result ? result : report_render(&facts, language, STDOUT_FILENO, error);
}

static int confine_and_draw(const char *version, struct error *error)
{
	struct stat found;
	bool fenced;
	if (strcmp(version, RENDERER_IDENTITY) != 0)
		return error_cause(error, ERR_INTERNAL,
		                   "version " RENDERER_IDENTITY ", but started by '%s'", version);
	if (fstat(STDIN_FILENO, &found) != 0 || (size_t)found.st_size > REPORT_WIRE_MAX)
		return error_cause(error, ERR_VALIDATION, "no report data");
	int result = renderer_confine(&fenced, error);
	if (result)
		return result;
	return found.st_size == 0 ? report_check_places(error) : draw((size_t)found.st_size, error);
}

void renderer_run(const char *version)
{
	struct error error = {0};
	/* These limits end an endless loop and a report that grows without end. */
	int result = child_bound(
		&(struct child_bounds){"renderer", RENDERER_TIMEOUT_S, FILE_MAX_BYTES, 0}, &error);
	if (!result)
		result = confine_and_draw(version, &error);
	if (result)
		(void)dprintf(STDERR_FILENO, "\n%d %s", result,
		              error.cause); /* after any output of the libraries */
	_exit(result ? 1 : 0);          /* skips the exit handlers of the libraries */
}
