#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/confine.h"
#include "proof/renderer.h"
#include "proof/renderer_process.h"
#include "proof/report_finish.h"
#include "proof/renderer_identity.h"
#include "proof/report_wire.h"

#define READING (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ALL_RIGHTS ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1) /* those of the first version */
#define FILE_MAX_BYTES ((rlim_t)128 << 20)

/* The libraries draw with threads and look for fonts; what they open they only read. */
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

static bool allow_below(int rules, const char *path, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = rights};
	if (!rights)
		return true; /* none of those that are handled: the kernel takes no empty rule */
	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return errno == ENOENT;
	bool added = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
	close(rule.parent_fd);
	return added;
}

static int fence(bool *ret_fenced, struct error *error)
{
	struct landlock_ruleset_attr attributes = {.handled_access_fs = ALL_RIGHTS};
#ifdef CONSTANCIA_COUNTS_COVERAGE /* what was counted is written at the end */
	attributes.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE;
#endif
	int rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
	*ret_fenced = rules >= 0;
	if (rules < 0)
		return !renderer_can_be_fenced()
		           ? OK
		           : error_cause(error, ERR_INTERNAL, "landlock: %s", strerror(errno));
	uint64_t reading = READING & attributes.handled_access_fs;
	bool fenced = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	              allow_below(rules, "/usr/share/fonts", reading) &&
	              allow_below(rules, "/var/cache/fontconfig", reading) &&
	              allow_below(rules, REPORT_PROFILE_PATH, reading & LANDLOCK_ACCESS_FS_READ_FILE) &&
	              syscall(SYS_landlock_restrict_self, rules, 0) == 0;
	int failure = errno;
	close(rules);
	return fenced ? OK : error_cause(error, ERR_INTERNAL, "landlock: %s", strerror(failure));
}

int renderer_confine(bool *ret_fenced, struct error *error)
{
	int result = fence(ret_fenced, error);
	return result
	           ? result
	           : confine_calls(drawing_calls, sizeof drawing_calls / sizeof *drawing_calls, error);
}

/* Neither a loop nor a report that grows without end gets far. */
static int bound(struct error *error)
{
	struct rlimit seconds = {RENDERER_TIMEOUT_S, RENDERER_TIMEOUT_S};
	struct rlimit file = {FILE_MAX_BYTES, FILE_MAX_BYTES};
	close(RENDERER_PROGRAM_FILE);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "renderer");
	(void)setrlimit(RLIMIT_CPU, &seconds);
	(void)setrlimit(RLIMIT_FSIZE, &file);
	return confine_memory(error); /* executing has undone what the service did */
}

/* Draws what the open facts say. */
static int draw(size_t size, struct error *error)
{
	static struct report_facts facts;
	enum language language;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, 2 * REPORT_WIRE_MAX);
	char *wire = arena_alloc(&arena, size + 1);
	if (!wire || pread(STDIN_FILENO, wire, size, 0) != (ssize_t)size)
		return error_cause(error, ERR_NO_MEMORY, "reading the facts");
	int result = report_wire_read(slice_make(wire, size), &arena, &facts, &language, error);
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
		return error_cause(error, ERR_VALIDATION, "no facts");
	int result = renderer_confine(&fenced, error);
	return result || found.st_size == 0 ? result : draw((size_t)found.st_size, error);
}

void renderer_run(const char *version)
{
	struct error error = {0};
	int result = bound(&error);
	if (!result)
		result = confine_and_draw(version, &error);
	if (result)
		(void)dprintf(STDERR_FILENO, "%d %s", result, error.cause);
	_exit(result ? 1 : 0); /* the libraries' own ends are none of ours */
}
