/* Files are read, written, digested and removed completely, or an error is returned, with each call
 * of the file system failing in turn. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"
#include "base/file.h"
#include "failing.h"
#include "scratch.h"

#define BIG ((size_t)300000) /* more than a buffer or a pipe holds */
#define PIPE_BYTES 65536

static char directory[SCRATCH_MAX];
static char one[80];
static char *big;
static struct error error;

static int start(void **state)
{
	big = malloc(BIG);
	assert_non_null(big);
	for (size_t i = 0; i < BIG; i++)
		big[i] = (char)(i * 31 + i / 251);
	scratch_make(directory);
	snprintf(one, sizeof one, "%s/one", directory);
	DESCRIPTOR_AUTO int file = open(one, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(file_write_all(file, slice_make(big, BIG)));
	return 0;
}

static int stop(void **state)
{
	free(big);
	scratch_remove(directory);
	return 0;
}

TEST_CASE(a_descriptor_closes_itself_unless_taken)
{
	int closed, taken;
	{
		DESCRIPTOR_AUTO int gone = open(one, O_RDONLY);
		DESCRIPTOR_AUTO int kept = open(one, O_RDONLY);
		DESCRIPTOR_AUTO int none = -1;
		closed = gone;
		taken = descriptor_take(&kept);
		assert_true(gone >= 0 && taken >= 0 && kept == -1 && none == -1);
		errno = ENOTDIR;
	}
	assert_int_equal(errno, ENOTDIR);
	assert_int_equal(fcntl(taken, F_GETFD), 0);
	assert_int_equal(fcntl(closed, F_GETFD), -1);
	close(taken);
	errno = ENOTDIR;
	closed = 1 << 20; /* closing it fails; errno stays unchanged */
	descriptor_close(&closed);
	assert_int_equal(errno, ENOTDIR);
}

TEST_CASE(an_errno_becomes_a_code)
{
	assert_int_equal(file_code(ENOSPC), ERR_NO_SPACE);
	assert_int_equal(file_code(EDQUOT), ERR_NO_SPACE);
	assert_int_equal(file_code(EFBIG), ERR_NO_SPACE);
	assert_int_equal(file_code(EIO), ERR_IO);
	assert_int_equal(file_code(ENOENT), ERR_IO);
	errno = ENOSPC;
	assert_int_equal(file_fail(&error, "filling", "/a/b"), ERR_NO_SPACE);
	assert_string_equal(error.cause, "filling /a/b: No space left on device");
}

static int read_with(size_t limit, struct buf *out)
{
	buf_free(out);
	buf_init(out, limit);
	buf_add_byte(out, '+');
	return file_read_whole(one, out, &error);
}

TEST_CASE(a_file_is_read_whole_or_not_at_all)
{
	BUF_AUTO struct buf text = {0};
	assert_int_equal(read_with(BIG + 1, &text), OK);
	assert_true(text.size == BIG + 1 && text.data[0] == '+' && !text.full);
	assert_memory_equal(text.data + 1, big, BIG);
	assert_int_equal(read_with(BIG, &text), ERR_IO);
	assert_true(text.full);
	assert_non_null(strstr(error.cause, "/one: over 300000 bytes"));
	buf_clear(&text);
	assert_int_equal(file_read_whole("/nothing/here", &text, &error), ERR_IO);
	assert_non_null(strstr(error.cause, "opening /nothing/here: "));
	assert_int_equal(file_read_whole(directory, &text, &error), ERR_IO);
	assert_false(text.full);
	for (int at = 1;; at++) {
		failing_arm(FAILING_MEMORY | FAILING_FILES | FAILING_ARENAS, at);
		int result = read_with(BIG + 1, &text);
		const char *failed = failing_disarm();
		assert_true(failed ? result == ERR_IO || result == ERR_NO_MEMORY : !result);
		if (!failed)
			break;
	}
}

static int digest(uint64_t *ret_size_bytes, struct sha256 *ret_digest)
{
	DESCRIPTOR_AUTO int file = open(one, O_RDONLY | O_CLOEXEC);
	assert_true(file >= 0 && lseek(file, 1, SEEK_SET) == 1);
	failing_arm(FAILING_FILES, (int)*ret_size_bytes);
	int result = file_digest(file, one, ret_size_bytes, ret_digest, &error);
	return result;
}

TEST_CASE(the_rest_of_a_file_is_digested)
{
	struct sha256 wanted = sha256_of(big + 1, BIG - 1);
	for (uint64_t at = 1;; at++) {
		struct sha256 found = {0};
		uint64_t size_bytes = at;
		int result = digest(&size_bytes, &found);
		if (failing_disarm()) {
			assert_int_equal(result, ERR_IO);
			assert_true(size_bytes == at && found.bytes[0] == 0); /* untouched */
			continue;
		}
		assert_int_equal(result, OK);
		assert_true(size_bytes == BIG - 1 && sha256_equal(&found, &wanted));
		break;
	}
}

struct pipe_end {
	int descriptor;
	pthread_t writer;
};

static void pass_over(int number)
{
	(void)number;
}

/* Reads everything. An interrupted write to a full pipe ends early, or with EINTR when it had just
 * begun. */
static void *drain(void *context)
{
	const struct pipe_end *end = context;
	char *got = calloc(1, BIG);
	size_t at = 0;
	for (int waiting = 0; waiting < PIPE_BYTES;)
		if (ioctl(end->descriptor, FIONREAD, &waiting) != 0)
			return NULL;
	for (int i = 0; i < 100; i++, sched_yield())
		pthread_kill(end->writer, SIGUSR1);
	for (ssize_t size; got && (size = read(end->descriptor, got + at, BIG - at)) > 0;)
		at += (size_t)size;
	return got;
}

TEST_CASE(all_is_written_in_pieces_too)
{
	int ends[2];
	pthread_t reader;
	void *got = NULL;
	struct sigaction action = {.sa_handler = pass_over};
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES), PIPE_BYTES);
	struct pipe_end end = {ends[0], pthread_self()};
	assert_int_equal(pthread_create(&reader, NULL, drain, &end), 0);
	assert_true(file_write_all(ends[1], slice_make(big, BIG)));
	close(ends[1]);
	pthread_join(reader, &got);
	close(ends[0]);
	assert_non_null(got);
	assert_memory_equal(got, big, BIG);
	free(got);

	DESCRIPTOR_AUTO int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_false(file_write_all(full, slice_of("x")));
	assert_int_equal(errno, ENOSPC);
	assert_true(file_write_all(-1, slice_of("")));
}

TEST_CASE(what_lies_at_an_offset_is_written_and_read_whole)
{
	char path[100], *got = calloc(1, BIG);
	assert_non_null(got);
	snprintf(path, sizeof path, "%s/places", directory);
	DESCRIPTOR_AUTO int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	assert_true(file_write_at(file, slice_make(big, BIG), 7));
	assert_true(file_write_at(file, slice_of("begun: "), 0));
	assert_int_equal(lseek(file, 0, SEEK_CUR), 0);
	assert_true(file_read_at(file, got, BIG, 7));
	assert_memory_equal(got, big, BIG);
	assert_true(file_read_at(file, got, 7, 0));
	assert_memory_equal(got, "begun: ", 7);
	assert_false(file_read_at(file, got, BIG, 8));
	assert_int_equal(errno, 0); /* the file ends earlier */
	assert_int_equal(lseek(file, 0, SEEK_CUR), 0);
	failing_arm(FAILING_FILES, 1);
	assert_false(file_read_at(file, got, 1, 0));
	assert_non_null(failing_disarm());
	assert_int_not_equal(errno, 0);
	failing_arm(FAILING_FILES, 1);
	assert_false(file_write_at(file, slice_of("x"), 0));
	assert_non_null(failing_disarm());
	DESCRIPTOR_AUTO int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_false(file_write_at(full, slice_of("x"), 0));
	assert_int_equal(errno, ENOSPC);
	assert_true(file_write_at(-1, slice_of(""), 0) && file_read_at(-1, got, 0, 0));
	free(got);
}

static char awaited[100], taken[100];

TEST_CASE(a_file_is_replaced_whole)
{
	static char long_path[PATH_MAX];
	struct stat facts;
	BUF_AUTO struct buf read = {.limit = BIG};
	snprintf(awaited, sizeof awaited, "%s/awaited", directory);
	assert_int_equal(file_replace(awaited, slice_of("once"), &error), OK);
	assert_int_equal(file_replace(awaited, slice_of("again"), &error), OK);
	assert_int_equal(file_read_whole(awaited, &read, &error), OK);
	assert_true(slice_is(buf_slice(&read), "again"));
	assert_true(stat(awaited, &facts) == 0 && (facts.st_mode & 0777) == 0600);
	assert_int_equal(file_replace("/nothing/here", slice_of(""), &error), ERR_IO);
	memset(long_path, 'x', sizeof long_path - 1);
	assert_int_equal(file_replace(long_path, slice_of(""), &error), ERR_IO);
	(void)unlink(awaited);
}

#define TAKEN 300

static void *take_away(void *context)
{
	(void)context;
	for (int times = 0; times < TAKEN;)
		times += rename(awaited, taken) == 0;
	return NULL;
}

TEST_CASE(who_waits_for_a_file_may_take_it_away_at_once)
{
	pthread_t taker;
	snprintf(awaited, sizeof awaited, "%s/awaited", directory);
	snprintf(taken, sizeof taken, "%s/taken", directory);
	assert_int_equal(pthread_create(&taker, NULL, take_away, NULL), 0);
	int failed = 0;
	for (int times = 0; times < TAKEN; times++) {
		failed += file_replace(awaited, slice_of("ready"), &error) != OK;
		while (access(awaited, F_OK) == 0)
			sched_yield();
	}
	assert_int_equal(pthread_join(taker, NULL), 0);
	assert_int_equal(failed, 0);
	(void)unlink(taken);
}

TEST_CASE(a_lock_has_one_holder)
{
	char path[100], link[100];
	int first = -1, second = -1;
	snprintf(path, sizeof path, "%s/lock", directory);
	snprintf(link, sizeof link, "%s/link", directory);
	assert_int_equal(file_lock(path, &first, &error), OK);
	assert_int_equal(file_lock(path, &second, &error), ERR_UNAVAILABLE);
	assert_true(first >= 0 && second == -1);
	close(first);
	assert_int_equal(file_lock(path, &second, &error), OK);
	close(second);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(file_lock(link, &second, &error), ERR_IO);
}

/* All is removed or an error is returned; the target of a link is never removed. */
TEST_CASE(trees_are_removed)
{
	char tree[100], path[200];
	snprintf(tree, sizeof tree, "%s/tree", directory);
	for (int at = 1;; at++) {
		mkdir(tree, 0700);
		snprintf(path, sizeof path, "%s/below", tree);
		mkdir(path, 0700);
		snprintf(path, sizeof path, "%s/below/link", tree);
		(void)!symlink(directory, path);
		failing_arm(FAILING_FILES, at);
		int result = file_remove_tree(tree, &error);
		const char *failed = failing_disarm();
		assert_int_equal(result, failed ? ERR_IO : OK);
		assert_int_equal(access(tree, F_OK) == 0, failed != NULL);
		if (!failed)
			break;
	}
	assert_int_equal(file_remove_tree(tree, &error), OK);
	assert_int_equal(access(one, F_OK), 0);
}

TEST_CASE(opening_waits_for_nobody)
{
	char other[64];
	struct stat facts;
	snprintf(other, sizeof other, "%s/other", directory);
	assert_int_equal(mkfifo(other, 0600), 0);
	alarm(120);
	DESCRIPTOR_AUTO int pipe = file_open_to_read(other, 0, &facts);
	alarm(0);
	assert_true(pipe >= 0 && S_ISFIFO(facts.st_mode));
	assert_int_equal(fcntl(pipe, F_GETFD), FD_CLOEXEC);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(symlink(one, other), 0);
	assert_int_equal(file_open_to_read(other, O_NOFOLLOW, &facts), -1);
	assert_int_equal(errno, ELOOP);
	DESCRIPTOR_AUTO int file = file_open_to_read(other, 0, &facts);
	assert_true(file >= 0 && S_ISREG(facts.st_mode));
	assert_int_equal(facts.st_size, BIG);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(file_open_to_read(other, 0, &facts), -1);
	assert_int_equal(errno, ENOENT);
}

TEST_CASE(an_unnamed_file_never_has_a_name)
{
	char read_back[5], nowhere[SCRATCH_MAX + 10];
	struct inotify_event seen;
	DESCRIPTOR_AUTO int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	assert_true(inotify_add_watch(watch, directory, IN_CREATE | IN_DELETE) >= 0);
	DESCRIPTOR_AUTO int file = file_open_unnamed(directory);
	assert_true(file >= 0);
	assert_true(file_write_all(file, slice_of("hello")));
	assert_true(file_read_at(file, read_back, 5, 0));
	assert_memory_equal(read_back, "hello", 5);
	struct stat facts;
	assert_int_equal(fstat(file, &facts), 0);
	assert_int_equal(facts.st_mode, S_IFREG | 0600);
	assert_int_equal(facts.st_nlink, 0);
	assert_int_equal(fcntl(file, F_GETFD), FD_CLOEXEC);
	assert_int_equal(read(watch, &seen, sizeof seen), -1);
	assert_int_equal(errno, EAGAIN);
	snprintf(nowhere, sizeof nowhere, "%s/nowhere", directory);
	assert_int_equal(file_open_unnamed(nowhere), -1);
	assert_int_equal(errno, ENOENT);
}

TEST_CASE(as_many_can_be_open_as_the_hard_bound_says)
{
	struct rlimit before, few, after;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){10, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	file_allow_many();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
	assert_true(after.rlim_cur == before.rlim_max);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_MAIN(start, stop)
