#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_CHANGES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY))

#define READING (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ALL_RIGHTS ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1) /* rights of Landlock ABI 1 */

static const struct confine_call basic_calls[] = {
	{SCMP_SYS(read), CONFINE_ALWAYS},
	{SCMP_SYS(write), CONFINE_ALWAYS},
	{SCMP_SYS(readv), CONFINE_ALWAYS},
	{SCMP_SYS(writev), CONFINE_ALWAYS},
	{SCMP_SYS(pread64), CONFINE_ALWAYS},
	{SCMP_SYS(pwrite64), CONFINE_ALWAYS},
	{SCMP_SYS(lseek), CONFINE_ALWAYS},
	{SCMP_SYS(fstat), CONFINE_ALWAYS},
	{SCMP_SYS(close), CONFINE_ALWAYS},
	{SCMP_SYS(brk), CONFINE_ALWAYS},
	{SCMP_SYS(mmap), CONFINE_NOT_EXECUTABLE},
	{SCMP_SYS(mprotect), CONFINE_NOT_EXECUTABLE},
	{SCMP_SYS(munmap), CONFINE_ALWAYS},
	{SCMP_SYS(mremap), CONFINE_ALWAYS},
	{SCMP_SYS(madvise), CONFINE_ALWAYS},
	{SCMP_SYS(futex), CONFINE_ALWAYS},
	{SCMP_SYS(sched_yield), CONFINE_ALWAYS},
	{SCMP_SYS(getrandom), CONFINE_ALWAYS},
	{SCMP_SYS(clock_gettime), CONFINE_ALWAYS},
	{SCMP_SYS(clock_nanosleep), CONFINE_ALWAYS},
	{SCMP_SYS(gettimeofday), CONFINE_ALWAYS},
	{SCMP_SYS(getpid), CONFINE_ALWAYS},
	{SCMP_SYS(gettid), CONFINE_ALWAYS},
	{SCMP_SYS(tgkill), CONFINE_OWN_PROCESS}, /* abort() */
	{SCMP_SYS(rt_sigaction), CONFINE_ALWAYS},
	{SCMP_SYS(rt_sigprocmask), CONFINE_ALWAYS},
	{SCMP_SYS(rt_sigreturn), CONFINE_ALWAYS},
	{SCMP_SYS(sigaltstack), CONFINE_ALWAYS},
	{SCMP_SYS(restart_syscall), CONFINE_ALWAYS},
	{SCMP_SYS(exit), CONFINE_ALWAYS},
	{SCMP_SYS(exit_group), CONFINE_ALWAYS},
#ifdef CONSTANCIA_COUNTS_COVERAGE /* counters are written at exit */
	{SCMP_SYS(openat), CONFINE_ALWAYS},
	{SCMP_SYS(newfstatat), CONFINE_ALWAYS},
	{SCMP_SYS(mkdir), CONFINE_ALWAYS},
	{SCMP_SYS(ftruncate), CONFINE_ALWAYS},
	{SCMP_SYS(fcntl), CONFINE_ALWAYS},
#endif
};

int confine_memory(struct error *error)
{
	struct rlimit none = {0};

	if (setrlimit(RLIMIT_CORE, &none) != 0)
		return error_cause(error, ERR_REFUSED, "setrlimit: %s", strerror(errno));
	if (prctl(PR_SET_DUMPABLE, 0) != 0)
		return error_cause(error, ERR_REFUSED, "prctl: %s", strerror(errno));
	return OK;
}

static int allow(scmp_filter_ctx filter, const struct confine_call *call)
{
	switch (call->condition) {
	case CONFINE_OWN_PROCESS:
		return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call->call, 1,
		                        SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
	case CONFINE_NOT_EXECUTABLE:
		return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call->call, 1,
		                        SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	case CONFINE_THREAD:
		return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call->call, 1,
		                        SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	case CONFINE_READ_ONLY:
		return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call->call, 1,
		                        SCMP_A2(SCMP_CMP_MASKED_EQ, OPEN_CHANGES, 0));
	case CONFINE_ALWAYS: break;
	}
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call->call, 0);
}

int confine_calls(const struct confine_call *calls, size_t count, struct error *error)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int result = filter ? 0 : -ENOMEM;

	for (size_t i = 0; !result && i < sizeof basic_calls / sizeof *basic_calls; i++)
		result = allow(filter, &basic_calls[i]);
	for (size_t i = 0; !result && i < count; i++)
		result = allow(filter, &calls[i]);
	/* A filter cannot inspect the flags of clone3. libc falls back to clone on ENOSYS. */
	if (!result)
		result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!result)
		result = seccomp_load(filter); /* sets no_new_privs, too */
	if (filter)
		seccomp_release(filter);
	if (!result)
		return OK;
	return error_cause(error, ERR_REFUSED, "seccomp: %s", strerror(-result));
}

/* ---- files ---- */

bool confine_knows_files(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

static bool allow_place(int rules, const struct confine_place *place, uint64_t handled)
{
	struct landlock_path_beneath_attr rule = {
		.allowed_access = handled & (place->below ? READING : LANDLOCK_ACCESS_FS_READ_FILE)};
	if (!rule.allowed_access)
		return true; /* no handled right: the kernel refuses an empty rule */
	rule.parent_fd = open(place->path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return errno == ENOENT;
	bool added = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
	close(rule.parent_fd);
	return added;
}

int confine_files(const struct confine_place *places, size_t count, bool *ret_confined,
                  struct error *error)
{
	struct landlock_ruleset_attr attributes = {.handled_access_fs = ALL_RIGHTS};
#ifdef CONSTANCIA_COUNTS_COVERAGE /* counters are written at exit */
	attributes.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE;
#endif
	int rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
	*ret_confined = rules >= 0;
	if (rules < 0)
		return !confine_knows_files()
		           ? OK
		           : error_cause(error, ERR_INTERNAL, "landlock: %s", strerror(errno));
	bool confined = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
	for (size_t i = 0; i < count && confined; i++)
		confined = allow_place(rules, &places[i], attributes.handled_access_fs);
	confined = confined && syscall(SYS_landlock_restrict_self, rules, 0) == 0;
	int failure = errno;
	close(rules);
	return confined ? OK : error_cause(error, ERR_INTERNAL, "landlock: %s", strerror(failure));
}
