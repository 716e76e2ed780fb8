#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/confine.h"

#define TEXT(number) #number
#define PATH_OF_FILE(number) "/proc/self/fd/" TEXT(number)

static int add_files(const struct child *child, posix_spawn_file_actions_t *actions)
{
	int failed = 0;
	for (int i = 0; i < CHILD_FILES && !failed; i++)
		failed = posix_spawn_file_actions_adddup2(actions, child->files[i], i);
	if (!failed)
		failed = posix_spawn_file_actions_adddup2(actions, child->program, CHILD_PROGRAM_FILE);
	if (!failed)
		failed = posix_spawn_file_actions_addclosefrom_np(actions, CHILD_PROGRAM_FILE + 1);
	return failed;
}

int child_start(const struct child *child, pid_t *ret_id, struct error *error)
{
	static char *const environment[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t signals;
	if (posix_spawn_file_actions_init(&actions) != 0)
		return ERR_NO_MEMORY;
	if (posix_spawnattr_init(&attributes) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return ERR_NO_MEMORY;
	}
	sigfillset(&signals);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	sigemptyset(&signals);
	posix_spawnattr_setsigmask(&attributes, &signals);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int failed = add_files(child, &actions);
	if (!failed)
		failed = posix_spawn(ret_id, PATH_OF_FILE(CHILD_PROGRAM_FILE), &actions, &attributes,
		                     child->words, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	bool lacks_memory = failed == ENOMEM || failed == EAGAIN;
	return failed ? error_cause(error, lacks_memory ? ERR_NO_MEMORY : ERR_UNAVAILABLE,
	                            "starting the %s: %s", child->words[0], strerror(failed))
	              : OK;
}

int child_await(const struct child *child, pid_t id, struct error *error)
{
	int64_t deadline_us = clock_monotonic_us() + child->timeout_ms * INT64_C(1000);
	struct pollfd ended = {.fd = pidfd_open(id, 0), .events = POLLIN};
	const char *name = child->words[0];
	int ready = -1, status = 0;
	while (ended.fd >= 0) {
		int64_t left_ms = (deadline_us - clock_monotonic_us()) / 1000;
		ready = poll(&ended, 1, left_ms > 0 ? (int)left_ms : 0);
		if (ready >= 0 || errno != EINTR)
			break;
	}
	if (ready <= 0)
		kill(id, SIGKILL);
	if (ended.fd >= 0)
		close(ended.fd);
	while (waitpid(id, &status, 0) < 0 && errno == EINTR)
		;
	if (ready == 0)
		return error_cause(error, ERR_UNAVAILABLE, "the %s did not end in time", name);
	if (ready < 0)
		return error_cause(error, ERR_UNAVAILABLE, "waiting for the %s: %s", name, strerror(errno));
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		return CHILD_FAILED;
	if (WIFSIGNALED(status))
		return error_cause(error, ERR_UNAVAILABLE, "the %s was ended by signal %d", name,
		                   WTERMSIG(status));
	return WEXITSTATUS(status) == 0 ? OK : CHILD_FAILED;
}

int child_run(const struct child *child, struct error *error)
{
	pid_t id;
	int result = child_start(child, &id, error);
	return result ? result : child_await(child, id, error);
}

int child_bound(const struct child_bounds *bounds, struct error *error)
{
	/* The hard limit is one second later than the soft limit, so that SIGXCPU reports the
	 * reason. */
	struct rlimit seconds = {bounds->seconds, bounds->seconds + 1};
	struct rlimit file = {bounds->file_bytes, bounds->file_bytes};
	struct rlimit memory = {bounds->memory_bytes, bounds->memory_bytes};
	close(CHILD_PROGRAM_FILE);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, bounds->name);
	(void)setrlimit(RLIMIT_CPU, &seconds);
	(void)setrlimit(RLIMIT_FSIZE, &file);
	if (CHILD_BOUNDS_MEMORY && bounds->memory_bytes)
		(void)setrlimit(RLIMIT_AS, &memory);
	return confine_memory(error); /* execve reset the setting that the parent made */
}

/* ---- paths of programs ---- */

int child_find(const char *name, const char *installed, char path[CHILD_PATH_MAX],
               struct error *error)
{
	ssize_t size = readlink("/proc/self/exe", path, CHILD_PATH_MAX);
	if (size < 0)
		return error_cause(error, ERR_IO, "/proc/self/exe: %s", strerror(errno));
	char *end = memrchr(path, '/', (size_t)size);
	if (!end || (size_t)(end - path) + 1 + strlen(name) >= CHILD_PATH_MAX ||
	    strlen(installed) >= CHILD_PATH_MAX)
		return error_cause(error, ERR_IO, "/proc/self/exe: its path is too long");
	memcpy(end + 1, name, strlen(name) + 1);
	if (access(path, F_OK) != 0)
		memcpy(path, installed, strlen(installed) + 1);
	return OK;
}

int child_open(const char *name, const char *installed, int *ret_program, struct error *error)
{
	char path[CHILD_PATH_MAX];
	int result = child_find(name, installed, path, error);
	if (result)
		return result;
	*ret_program = open(path, O_PATH | O_CLOEXEC);
	return *ret_program >= 0 ? OK
	                         : error_cause(error, ERR_UNAVAILABLE, "%s: %s", path, strerror(errno));
}
