/* Child processes: what they receive, how their end is reported, and what they may do. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "testing.h"
#include "base/child.h"
#include "base/confine.h"
#include "base/file.h"

extern char **environ;

static int run(const char *part, int timeout_ms, char *out, size_t size, struct error *error)
{
	DESCRIPTOR_AUTO int program = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	DESCRIPTOR_AUTO int said = memfd_create("said", 0); /* stays open, but is not handed down */
	char *const words[] = {"child-test", (char *)part, NULL};
	struct child child = {program, words, {said, said, said}, timeout_ms};
	int result = child_run(&child, error);
	ssize_t got = pread(said, out, size - 1, 0);
	assert_true(got >= 0);
	out[got] = 0;
	return result;
}

TEST_CASE(an_end_is_told)
{
	struct error error = {0};
	char said[64];
	assert_int_equal(run("good", 20000, said, sizeof said, &error), OK);
	assert_string_equal(said, "good");
	assert_int_equal(run("fails", 20000, said, sizeof said, &error), CHILD_FAILED);
	assert_int_equal(run("crashes", 20000, said, sizeof said, &error), ERR_UNAVAILABLE);
	assert_non_null(strstr(error.cause, "the child-test was ended by signal 9"));
	assert_int_equal(run("hangs", 200, said, sizeof said, &error), ERR_UNAVAILABLE);
	assert_non_null(strstr(error.cause, "did not end in time"));
}

TEST_CASE(it_gets_its_files_and_nothing_else)
{
	struct error error = {0};
	char said[64];
	assert_int_equal(setenv("SECRET", "x", 1), 0);
	assert_int_equal(run("counts", 20000, said, sizeof said, &error), OK);
	assert_string_equal(said, "files 3 variables 0");
}

TEST_CASE(bounds_are_kept)
{
	struct error error = {0};
	char said[64];
	if (!CONFINE_IS_WHOLE)
		skip();
	assert_int_equal(run("bounded", 20000, said, sizeof said, &error), OK);
	assert_string_equal(said, CHILD_BOUNDS_MEMORY ? "dumpable 0 memory 0" : "dumpable 0 memory 1");
	assert_int_equal(run("writes", 20000, said, sizeof said, &error), ERR_UNAVAILABLE);
	assert_non_null(strstr(error.cause, "signal 25"));
	assert_int_equal(run("spins", 60000, said, sizeof said, &error), CHILD_FAILED);
}

TEST_CASE(only_named_places_are_read)
{
	struct error error = {0};
	char said[64];
	if (!CONFINE_IS_WHOLE || !confine_knows_files())
		skip();
	assert_int_equal(run("confined", 20000, said, sizeof said, &error), OK);
	assert_string_equal(said, "named 1 other 0 open 1");
}

/* ---- the child ---- */

static int open_files(void)
{
	int count = 0;
	for (int i = 0; i < 256; i++)
		count += fcntl(i, F_GETFD) >= 0;
	return count;
}

static int bounded(bool writes)
{
	struct error error;
	if (child_bound(&(struct child_bounds){"bounded", 5, 1000, (size_t)256 << 20}, &error))
		return 1;
	static char large[2000];
	if (writes) /* it writes what fits, then gets the signal */
		return pwrite(1, large, sizeof large, 0) + pwrite(1, large, 1, 1000) < 0;
	dprintf(1, "dumpable %d memory %d", prctl(PR_GET_DUMPABLE),
	        mmap(NULL, (size_t)512 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	            MAP_FAILED);
	return 0;
}

static int spin(void)
{
	struct error error;
	if (child_bound(&(struct child_bounds){"spins", 1, 1000, 0}, &error))
		raise(SIGKILL);
	for (volatile bool on = true; on;)
		continue;
	return 0;
}

static int confined(void)
{
	static const struct confine_place places[] = {{"/etc/hostname", false}, {"/nowhere", true}};
	struct error error;
	bool fenced;
	char byte;
	int before = open("/etc/passwd", O_RDONLY);
	if (confine_files(places, 2, &fenced, &error))
		return 1;
	dprintf(1, "named %d other %d open %d", open("/etc/hostname", O_RDONLY) >= 0,
	        open("/etc/passwd", O_RDONLY) >= 0, read(before, &byte, 1) == 1);
	return 0;
}

static int be_child(const char *part)
{
	size_t variables = 0;
	close(CHILD_PROGRAM_FILE);
	while (environ && environ[variables])
		variables++;
	if (strcmp(part, "good") == 0)
		return dprintf(1, "good") < 0;
	if (strcmp(part, "crashes") == 0)
		raise(SIGKILL);
	if (strcmp(part, "hangs") == 0)
		for (;;)
			pause();
	if (strcmp(part, "counts") == 0)
		return dprintf(1, "files %d variables %zu", open_files(), variables) < 0;
	if (strcmp(part, "bounded") == 0 || strcmp(part, "writes") == 0)
		return bounded(part[0] == 'w');
	if (strcmp(part, "spins") == 0)
		return spin();
	if (strcmp(part, "confined") == 0)
		return confined();
	return 1;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[0], "child-test") == 0)
		_exit(be_child(argv[1])); /* a sanitizer needs, at its end, what is limited here */
	return tests_run(NULL, NULL, NULL, NULL);
}
