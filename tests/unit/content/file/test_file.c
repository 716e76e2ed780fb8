/* Promises of the file implementation beyond the contract: the order of its steps to durability,
 * every step failing in turn, a full disk, no symbolic links, nothing readable by others. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"
#include "content/content.h"
#include "scratch.h"

static char scratch[SCRATCH_MAX];
static char steps[8192]; /* calls, in order, while `watching` */
static bool watching;
static int fail_at, called, fail_with; /* the call with that number fails with that errno */

int __real_fsync(int descriptor);
int __real_renameat(int from, const char *old, int to, const char *name);
int __real_mkdirat(int directory, const char *name, mode_t mode);
int __real_openat64(int directory, const char *name, int flags, mode_t mode);
ssize_t __real_write(int descriptor, const void *data, size_t size);
int __wrap_fsync(int descriptor);
int __wrap_renameat(int from, const char *old, int to, const char *name);
int __wrap_mkdirat(int directory, const char *name, mode_t mode);
int __wrap_openat64(int directory, const char *name, int flags, mode_t mode);
ssize_t __wrap_write(int descriptor, const void *data, size_t size);
int __real_sync_file_range(int descriptor, off_t offset, off_t size, unsigned flags);
int __wrap_sync_file_range(int descriptor, off_t offset, off_t size, unsigned flags);

/* The path that a descriptor refers to, below the store. */
static const char *place(int descriptor)
{
	static char path[PATH_MAX];
	char link[64];
	snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
	ssize_t size = readlink(link, path, sizeof path - 1);
	assert_true(size > 0);
	path[size] = '\0';
	const char *below = strstr(path, "/store");
	if (!below)
		return "ABOVE";
	below += strlen("/store");
	if (strncmp(below, "/.incoming/", 11) == 0)
		return "TEMPORARY";
	return *below ? below : "/";
}

static bool step(const char *what, int descriptor, const char *name)
{
	if (!watching)
		return false;
	size_t used = strlen(steps);
	static const char above[] = "fsync ABOVE\n"; /* their number depends on the machine */
	if (used >= sizeof above - 1 && strcmp(steps + used - (sizeof above - 1), above) == 0 &&
	    strcmp(place(descriptor), "ABOVE") == 0)
		return false;
	snprintf(steps + used, sizeof steps - used, "%s %s%s%s\n", what, place(descriptor),
	         name ? " " : "", name ? name : "");
	if (++called != fail_at)
		return false;
	errno = fail_with;
	return true;
}

int __wrap_fsync(int descriptor)
{
	return step("fsync", descriptor, NULL) ? -1 : __real_fsync(descriptor);
}

int __wrap_renameat(int from, const char *old, int to, const char *name)
{
	return step("rename", to, name) ? -1 : __real_renameat(from, old, to, name);
}

int __wrap_mkdirat(int directory, const char *name, mode_t mode)
{
	return step("mkdir", directory, name) ? -1 : __real_mkdirat(directory, name, mode);
}

int __wrap_openat64(int directory, const char *name, int flags, mode_t mode)
{
	if (flags & O_CREAT && step("create", directory, NULL))
		return -1;
	return __real_openat64(directory, name, flags, mode);
}

ssize_t __wrap_write(int descriptor, const void *data, size_t size)
{
	return watching && step("write", descriptor, NULL) ? -1 : __real_write(descriptor, data, size);
}

int __wrap_sync_file_range(int descriptor, off_t offset, off_t size, unsigned flags)
{
	return step("write out", descriptor, NULL)
	           ? -1
	           : __real_sync_file_range(descriptor, offset, size, flags);
}

static void watch(int number, int with)
{
	watching = true;
	fail_at = number;
	fail_with = with;
	called = 0;
	steps[0] = '\0';
}

static char *below(const char *name)
{
	static char path[4096];
	snprintf(path, sizeof path, "%s/store/%s", scratch, name);
	return path;
}

static struct content_store *open_store(void)
{
	char url[64];
	struct content_store *store = NULL;
	snprintf(url, sizeof url, "file:%s/store", scratch);
	assert_int_equal(content_open(url, true, &store, NULL), 0);
	return store;
}

static int put(struct content_store *store, const char *name, size_t size, struct error *error)
{
	static char zeros[65536];
	struct content_writer *writer = NULL;
	int result = content_write_begin(store, &writer, error);
	if (result)
		return result;
	for (size_t part; !result && size > 0; size -= part) {
		part = size < sizeof zeros ? size : sizeof zeros;
		result = content_write(writer, zeros, part, error);
	}
	if (!result)
		return content_write_commit(writer, name, error);
	content_write_abort(writer);
	return result;
}

static int count_entries(const char *path)
{
	DIR *directory = opendir(path);
	assert_non_null(directory);
	int count = 0;
	while (readdir(directory))
		count++;
	closedir(directory);
	return count - 2;
}

static int set_up(void **state)
{
	*state = open_store();
	return 0;
}

static int tear_down(void **state)
{
	char path[128];
	watching = false;
	content_close(*state);
	snprintf(path, sizeof path, "%s/store", scratch);
	scratch_remove(path);
	return 0;
}

TEST_CASE(test_order)
{
	watch(0, 0);
	assert_int_equal(put(*state, "event/aa/one", 10, NULL), 0);
	assert_string_equal(steps, "create /.incoming\n"
	                           "write TEMPORARY\n"
	                           "fsync TEMPORARY\n"
	                           "mkdir / event\n"
	                           "fsync /\n"
	                           "mkdir /event aa\n"
	                           "fsync /event\n"
	                           "rename /event/aa one\n"
	                           "fsync /event/aa\n");
	watch(0, 0);
	assert_int_equal(put(*state, "event/aa/two", 10, NULL), 0);
	assert_string_equal(steps, "create /.incoming\n"
	                           "write TEMPORARY\n"
	                           "fsync TEMPORARY\n"
	                           "rename /event/aa two\n"
	                           "fsync /event/aa\n");
}

static void make_file(const char *path, mode_t mode)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
	assert_true(file >= 0);
	assert_int_equal(fchmod(file, mode), 0);
	assert_int_equal(__real_write(file, "whole", 5), 5);
	close(file);
}

static struct stat facts_of(const char *path)
{
	struct stat facts;
	assert_int_equal(stat(path, &facts), 0);
	return facts;
}

/* A finished file is linked to a second name, synced before and after. It is copied when it cannot
 * be linked or when others could read it under the first name. */
TEST_CASE(test_finished_files)
{
	char path[128], object[128];
	snprintf(path, sizeof path, "%s/finished", scratch);
	snprintf(object, sizeof object, "%s/store/issued/aa/one", scratch);
	make_file(path, 0600);
	watch(0, 0);
	assert_int_equal(content_put_file(*state, path, "issued/aa/one", NULL), 0);
	assert_string_equal(steps, "fsync ABOVE\n"
	                           "mkdir / issued\n"
	                           "fsync /\n"
	                           "mkdir /issued aa\n"
	                           "fsync /issued\n"
	                           "fsync /issued/aa\n");
	assert_int_equal(facts_of(object).st_ino, facts_of(path).st_ino);
	/* An existing file of that name is replaced, not written to. */
	make_file(path, 0600);
	assert_int_equal(content_put_file(*state, path, "issued/aa/one", NULL), 0);
	assert_int_not_equal(facts_of(object).st_ino, facts_of(path).st_ino);
	unlink(path);
	make_file(path, 0644);
	snprintf(object, sizeof object, "%s/store/issued/aa/two", scratch);
	assert_int_equal(content_put_file(*state, path, "issued/aa/two", NULL), 0);
	assert_int_not_equal(facts_of(object).st_ino, facts_of(path).st_ino);
	assert_int_equal(facts_of(object).st_mode & 07777, 0600);
	for (int step = 1; step <= 2; step++) {
		unlink(path);
		make_file(path, 0600);
		watch(step, EIO);
		assert_int_equal(content_put_file(*state, path, "issued/aa/three", NULL), ERR_IO);
	}
	watching = false;
	unlink(path);
}

/* Non-blocking and blocking reads give one text, wherever one of them ends. */
TEST_CASE(test_reading_now)
{
	enum { SIZE = 1 << 20 };
	char *back = malloc(SIZE + 1);
	char path[128];
	struct content_reader *reader;
	uint64_t size;
	assert_non_null(back);
	assert_int_equal(put(*state, "event/aa/one", SIZE, NULL), 0);
	snprintf(path, sizeof path, "%s/store/event/aa/one", scratch);
	int file = open(path, O_WRONLY);
	for (int i = 0; i < SIZE; i += 4)
		assert_int_equal(pwrite(file, &i, 4, i), 4);
	assert_int_equal(fdatasync(file), 0);
	assert_int_equal(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(file);
	assert_int_equal(content_read_begin(*state, "event/aa/one", 4, &reader, &size, NULL), 0);
	int64_t used = 0, got = 1;
	for (int turn = 0; got > 0; turn++) {
		got = (int64_t)content_read_now(reader, back + used, (size_t)(turn % 3 ? 10000 : 70000));
		if (got == 0)
			got = content_read(reader, back + used, 5000, NULL);
		used += got;
	}
	assert_int_equal(got, 0);
	assert_int_equal(used, SIZE - 4);
	for (int i = 4; i < SIZE; i += 4)
		assert_memory_equal(back + i - 4, &i, 4);
	assert_int_equal(content_read_now(reader, back, 1), 0);
	content_read_end(reader);
	free(back);
}

/* A large object is written to the disk before its sync, which other syncs would wait for. The sync
 * might not report an error of that earlier write. */
TEST_CASE(test_large_ones_are_written_out)
{
	watch(0, 0);
	assert_int_equal(put(*state, "event/aa/large", 4 << 20, NULL), 0);
	assert_non_null(strstr(steps, "write out TEMPORARY\nfsync TEMPORARY\n"));
	watch(18, EIO); /* after create and 16 writes */
	assert_int_equal(put(*state, "event/aa/other", 4 << 20, NULL), ERR_IO);
	assert_non_null(strstr(steps, "write out"));
}

/* Directories that a killed process made without syncing are synced before use: those of the store
 * and its areas when it is opened, that of an area at its first write. The store does not wait for
 * other data of the file system, and errors of that data are not its errors. */
TEST_CASE(test_found_directories_are_synced)
{
	assert_int_equal(put(*state, "event/aa/one", 10, NULL), 0);
	content_close(*state);
	watch(0, 0);
	*state = open_store();
	assert_string_equal(steps, "fsync ABOVE\n"
	                           "mkdir / .incoming\n"
	                           "fsync /\n");
	watch(4, EIO); /* after create, write and fsync of the file */
	assert_int_equal(put(*state, "event/aa/two", 10, NULL), ERR_IO);
	static const char *const last[] = {"fsync /event\n", ""};
	for (size_t i = 0; i < 2; i++) {
		char expected[256];
		snprintf(expected, sizeof expected,
		         "create /.incoming\n"
		         "write TEMPORARY\n"
		         "fsync TEMPORARY\n"
		         "%s"
		         "rename /event/aa two\n"
		         "fsync /event/aa\n",
		         last[i]);
		watch(0, 0);
		assert_int_equal(put(*state, "event/aa/two", 10, NULL), 0);
		assert_string_equal(steps, expected);
	}
}

/* No failed step is ignored, no file is left over, and a directory whose creation failed is created
 * again the next time. */
TEST_CASE(test_every_step_failing)
{
	static const struct {
		int number, code;
	} kinds[] = {{EIO, ERR_IO}, {ENOSPC, ERR_NO_SPACE}, {EDQUOT, ERR_NO_SPACE}, {EMFILE, ERR_IO}};
	/* The number of steps of the next attempt: as in test_order, less the steps already done. */
	static const int next_steps[] = {9, 9, 9, 9, 9, 7, 7, 5, 5};
	for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
		for (int i = 0; i < (int)(sizeof next_steps / sizeof *next_steps); i++) {
			struct error error = {0};
			watch(i + 1, kinds[kind].number);
			assert_int_equal(put(*state, "event/aa/one", 10, &error), kinds[kind].code);
			assert_int_equal(called, i + 1);
			assert_int_equal(error.code, kinds[kind].code);
			assert_int_equal(error_http_status(error.code), 503);
			assert_int_equal(count_entries(below(".incoming")), 0);
			watch(0, 0);
			assert_int_equal(put(*state, "event/aa/one", 10, NULL), 0);
			assert_int_equal(called, next_steps[i]);
			tear_down(state);
			set_up(state);
		}
}

TEST_CASE(test_rights)
{
	struct stat status;
	mode_t before = umask(0);
	assert_int_equal(put(*state, "event/aa/one", 10, NULL), 0);
	umask(before);
	static const char *const directories[] = {"", ".incoming", "event", "event/aa"};
	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
		assert_int_equal(stat(below(directories[i]), &status), 0);
		assert_int_equal(status.st_mode & 0077, 0);
	}
	assert_int_equal(stat(below("event/aa/one"), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
}

TEST_CASE(test_no_symbolic_links)
{
	char outside[64], target[96];
	struct content_reader *reader = NULL;
	uint64_t size = 0;
	snprintf(outside, sizeof outside, "%s/outside", scratch);
	snprintf(target, sizeof target, "%s/secret", outside);
	assert_int_equal(mkdir(outside, 0700), 0);
	assert_int_equal(close(creat(target, 0600)), 0);
	assert_int_equal(put(*state, "event/aa/one", 10, NULL), 0);
	assert_int_equal(symlink(outside, below("event/bb")), 0);
	assert_int_equal(symlink(target, below("event/aa/link")), 0);

	static const char *const names[] = {"event/bb/secret", "event/aa/link"};
	for (size_t i = 0; i < 2; i++) {
		assert_true(content_read_begin(*state, names[i], 0, &reader, &size, NULL) < 0);
		assert_int_equal(content_read_descriptor(*state, names[i], &size), -1);
	}
	assert_true(put(*state, "event/bb/new", 10, NULL) < 0);
	assert_int_equal(count_entries(outside), 1);
	content_discard(*state, "event/bb/secret");
	assert_int_equal(access(target, F_OK), 0);
	assert_int_equal(put(*state, "event/aa/link", 10, NULL), 0); /* replaces the link */
	struct stat status;
	assert_int_equal(stat(target, &status), 0);
	assert_int_equal(status.st_size, 0);
	assert_int_equal(unlink(target), 0);
	assert_int_equal(rmdir(outside), 0);
}

TEST_CASE(test_only_regular_files)
{
	struct content_reader *reader = NULL;
	uint64_t size = 0;
	assert_int_equal(mkfifo(below("pipe"), 0600), 0);
	assert_int_equal(content_read_begin(*state, "pipe", 0, &reader, &size, NULL), ERR_NOT_FOUND);
}

static int count_visit(void *context, const char *name)
{
	(void)name;
	++*(int *)context;
	return 0;
}

static int remove_upload(void *context, const char *name)
{
	(void)context, (void)name;
	return 0;
}

/* Lists all older objects, then the older files that writers left. */
static int sweep_older(struct content_store *store, int64_t age_us,
                       int (*visit)(void *context, const char *name), void *context)
{
	int64_t now_us = 0;
	int result = content_now_us(store, &now_us, NULL);
	struct content_range range = {.area = "", .since_us = INT64_MIN, .before_us = now_us - age_us};
	if (!result)
		result = content_list(store, &range, visit, context, NULL);
	return result ? result : content_remove_leftovers(store, &range, remove_upload, NULL, NULL);
}

TEST_CASE(test_leftovers)
{
	int visited = 0;
	assert_int_equal(close(creat(below(".incoming/0123456789abcdef0123456789abcdef"), 0600)), 0);
	assert_int_equal(close(creat(below(".incoming/not ours"), 0600)), 0);
	assert_int_equal(close(creat(below(".incoming/0123456789abcdef0123456789abcdeX"), 0600)), 0);
	assert_int_equal(close(creat(below("alien name"), 0600)), 0);
	assert_int_equal(sweep_older(*state, INT64_C(3600000000), count_visit, &visited), 0);
	assert_int_equal(count_entries(below(".incoming")), 3);
	static const struct timespec long_ago[] = {{.tv_sec = 1}, {.tv_sec = 1}};
	assert_int_equal(
		utimensat(AT_FDCWD, below(".incoming/0123456789abcdef0123456789abcdef"), long_ago, 0), 0);
	assert_int_equal(sweep_older(*state, INT64_C(3600000000), count_visit, &visited), 0);
	assert_int_equal(count_entries(below(".incoming")), 2);
	assert_int_equal(access(below(".incoming/0123456789abcdef0123456789abcdef"), F_OK), -1);
	assert_int_equal(unlink(below(".incoming/not ours")), 0);
	assert_int_equal(unlink(below(".incoming/0123456789abcdef0123456789abcdeX")), 0);
	assert_int_equal(access(below("alien name"), F_OK), 0);
	assert_int_equal(visited, 0);
}

/* Fills a disk of 256 KiB where mounting is allowed, otherwise up to a limit on the file size. Runs
 * in its own process and returns 0 if all expectations held. */
static int fill_disk(void)
{
	enum { LIMIT = 262144 };
	static const struct rlimit limit = {LIMIT, LIMIT};
	struct error error = {0};
	char disk[64], url[96];
	struct content_store *store = NULL;
	snprintf(disk, sizeof disk, "%s/disk", scratch);
	bool mounted = mkdir(disk, 0700) == 0 && geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
	               mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	               mount("disk", disk, "tmpfs", 0, "size=256k") == 0;
	signal(SIGXFSZ, SIG_IGN);
	if (!mounted && setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 10;
	snprintf(url, sizeof url, "file:%s/store", disk);
	if (content_open(url, true, &store, NULL))
		return 11;
	if (put(store, "a/aa/fits", LIMIT / 2, NULL))
		return 12;
	if (put(store, "a/aa/big", 2 * LIMIT, &error) != ERR_NO_SPACE || error.code != ERR_NO_SPACE)
		return 13;
	/* An object that did not fit leaves no trace, and its space is free at once. */
	return put(store, "a/aa/small", LIMIT / 4, NULL) ? 14 : mounted ? 0 : 1;
}

TEST_CASE_WITH(test_full_disk, NULL, NULL)
{
	int status = 0;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(fill_disk());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	print_message("full disk: by %s\n", WEXITSTATUS(status) ? "a limit on file size" : "tmpfs");
	assert_in_range(WEXITSTATUS(status), 0, 1);
}

int main(void)
{
	scratch_make(scratch);
	int failed = tests_run(NULL, NULL, set_up, tear_down);
	scratch_remove(scratch);
	return failed;
}
