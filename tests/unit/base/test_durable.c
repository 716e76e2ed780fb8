/* A durable operation is durable when each call of the file system fails in turn. Otherwise it
 * returns an error and can be repeated. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"
#include "base/durable.h"
#include "base/file.h"
#include "failing.h"
#include "scratch.h"

static char directory[SCRATCH_MAX];
static char one[80], other[80], below[80], in_below[96];

static int start(void **state)
{
	scratch_make(directory);
	snprintf(one, sizeof one, "%s/one", directory);
	snprintf(other, sizeof other, "%s/other", directory);
	snprintf(below, sizeof below, "%s/below", directory);
	snprintf(in_below, sizeof in_below, "%s///", below);
	return 0;
}

static int stop(void **state)
{
	scratch_remove(directory);
	return 0;
}

static void holds(const char *path, const char *text)
{
	char found[64] = "";
	int file = open(path, O_RDONLY);
	assert_true(file >= 0 && read(file, found, sizeof found - 1) >= 0);
	close(file);
	assert_string_equal(found, text);
}

static bool goes_on(const char *what, int at, int result, int wanted, const struct error *error)
{
	const char *failed = failing_disarm();
	if (failed ? result != wanted && result : result)
		fail_msg("%s, call %d, %s: %d %s", what, at, failed ? failed : "none", result,
		         error->cause);
	return failed;
}

/* `refused`: whether every fault must be reported. */
#define IN_TURN(refused, expression)                                                               \
	do {                                                                                           \
		static const int numbers[][2] = {{EIO, ERR_IO}, {ENOSPC, ERR_NO_SPACE}};                   \
		for (int i = 0; i < 2; i++) {                                                              \
			struct error error;                                                                    \
			int at = 0, code;                                                                      \
			failing_errno = numbers[i][0];                                                         \
			do {                                                                                   \
				error = (struct error){0};                                                         \
				failing_arm(FAILING_FILES | FAILING_JOURNAL, ++at);                                \
				code = (expression);                                                               \
				if ((refused) && !code && failing_disarm())                                        \
					fail_msg(#expression ", call %d passed over", at);                             \
			} while (goes_on(#expression, at, code, numbers[i][1], &error));                       \
		}                                                                                          \
		failing_errno = EIO;                                                                       \
	} while (0)

static int copy(struct error *error)
{
	(void)unlink(other);
	return durable_copy(one, other, error);
}

/* Directories of /proc cannot be synced: /proc/self/cwd leads to another file system, as a mount on
 * a read-only one does; /proc/self/status does not. */
TEST_CASE(what_it_is_mounted_on_need_not_be_synced)
{
	struct error error = {0};
	assert_int_equal(durable_sync_above("/proc/self/cwd", &error), OK);
	assert_int_equal(durable_sync_above("/proc/self/status", &error), ERR_IO);
	assert_non_null(strstr(error.cause, "syncing above /proc/self/status"));
}

/* The sync of a name succeeded, but the journal that holds it was aborted. */
TEST_CASE(a_name_is_believed_when_its_file_system_still_works)
{
	struct error error = {0};
	failing_arm(FAILING_JOURNAL, 1);
	assert_int_equal(durable_sync_above(directory, &error), ERR_IO);
	assert_string_equal(failing_disarm(), "fremovexattr");
	failing_arm(FAILING_JOURNAL, 1);
	assert_int_equal(durable_make_directory(below, &error), ERR_IO);
	assert_string_equal(failing_disarm(), "fremovexattr");
	/* The first one is the sync of the bytes. */
	failing_arm(FAILING_JOURNAL, 2);
	assert_int_equal(durable_replace(other, 0600, slice_of("text"), &error), ERR_IO);
	assert_string_equal(failing_disarm(), "fremovexattr");
	(void)unlink(other);
	(void)rmdir(below);
}

/* When a process closes a file, it loses its locks on that file, whichever part of it set them. */
TEST_CASE(locks_are_kept)
{
	struct error error = {0};
	int status;
	DESCRIPTOR_AUTO int file = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	assert_true(file >= 0);
	assert_int_equal(fcntl(file, F_SETLK, &lock), 0);
	assert_int_equal(durable_sync_above(other, &error), OK);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(fcntl(file, F_SETLK, &lock) == 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	(void)unlink(other);
}

TEST_CASE(test_faults)
{
	IN_TURN(true, durable_replace(one, 0640, slice_of("text"), &error));
	holds(one, "text");
	struct stat facts;
	assert_true(stat(one, &facts) == 0 && (facts.st_mode & 0777) == 0640);
	IN_TURN(true, durable_sync(one, &error));
	IN_TURN(true, durable_sync(directory, &error));
	IN_TURN(true, durable_sync_above(one, &error));
	IN_TURN(true, durable_make_directory(below, &error));
	IN_TURN(true, durable_make_parent(in_below, &error));
	IN_TURN(false, durable_rewrite(one, 100, &error)); /* a second attempt succeeds */
	holds(one, "text");
	IN_TURN(true, copy(&error));
	holds(other, "text");
}

TEST_CASE(test_odd_places)
{
	static char long_path[PATH_MAX + 8];
	struct error error = {0};
	memset(long_path, 'x', sizeof long_path - 1);
	assert_int_equal(durable_replace(long_path, 0600, slice_of(""), &error), ERR_IO);
	assert_int_equal(durable_copy(one, one, &error), ERR_IO);
	assert_int_equal(durable_copy(in_below, other, &error), ERR_IO);
	assert_int_equal(durable_sync("/nothing/here", &error), ERR_IO);
	assert_int_equal(durable_sync_above("/nothing/here", &error), ERR_IO);
	assert_int_equal(durable_rewrite("/nothing/here", 1, &error), OK);
	assert_int_equal(durable_rewrite(directory, 1, &error), ERR_IO);
	assert_int_equal(durable_sync_above(in_below, &error), OK);
	(void)rmdir(below);
	assert_int_equal(durable_sync_above(below, &error), ERR_IO); /* no such name */
	assert_int_equal(durable_sync_above("/etc", &error), OK);
	/* A name without a directory refers to the working directory. */
	assert_int_equal(chdir(directory), 0);
	assert_int_equal(durable_sync_above("one", &error), OK);
	assert_int_equal(chdir("/"), 0);
}

TEST_MAIN(start, stop)
