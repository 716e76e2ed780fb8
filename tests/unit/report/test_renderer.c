/* Reports drawn by a separate program, and by programs that crash, hang or give wrong answers. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"
#include "base/child.h"
#include "report/renderer.h"
#include "report/renderer_process.h"
#include "report/report_wire.h"
#include "scratch.h"
#include "test_report_facts.h"
#include "test_report_tools.h"

static char directory[SCRATCH_MAX];
static char path[128];
static struct sample sample;

static int setup(void **state)
{
	scratch_make(directory);
	snprintf(path, sizeof(path), "%s/report.pdf", directory);
	sample_ordinary(&sample, 43);
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(directory);
	return 0;
}

static struct renderer open_program(const char *program)
{
	struct renderer renderer;
	struct error error = {0};
	if (renderer_open(program, &renderer, &error))
		fail_msg("%s", error.cause);
	return renderer;
}

static struct renderer own(void)
{
	assert_non_null(getenv("CONSTANCIA_RENDERER"));
	return open_program(getenv("CONSTANCIA_RENDERER"));
}

/* Makes a renderer from a shell script. */
static struct renderer script(const char *text, int timeout_ms)
{
	static int number;
	char name[160], whole[512];
	snprintf(name, sizeof(name), "%s/renderer-%d", directory, number++);
	snprintf(whole, sizeof(whole), "#!/bin/sh\n%s\n", text);
	tools_write(name, slice_of(whole));
	assert_int_equal(chmod(name, 0700), 0);
	struct renderer renderer = open_program(name);
	renderer.timeout_ms = timeout_ms;
	return renderer;
}

static void expect_nobody_left_behind(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* Closes the renderer. */
static void expect(struct renderer renderer, int result, const char *cause)
{
	struct error error = {0};
	tools_write(path, slice_of("what was there"));
	assert_int_equal(renderer_draw(&renderer, &sample.facts, LANGUAGE_ENGLISH, path, &error),
	                 result);
	renderer_close(&renderer);
	if (!strstr(error.cause, cause))
		fail_msg("%s", error.cause);
	assert_int_equal(access(path, F_OK), -1);
	expect_nobody_left_behind();
}

/* Checks whether it starts. Closes the renderer. */
static void expect_checked(struct renderer renderer, int result, const char *cause)
{
	struct error error = {0};
	bool started;
	assert_int_equal(renderer_check(&renderer, &started, &error), result);
	renderer_close(&renderer);
	if (!strstr(error.cause, cause))
		fail_msg("%s", error.cause);
	expect_nobody_left_behind();
}

TEST_CASE(draws_the_same)
{
	struct renderer renderer = own();
	struct error error = {0};
	for (int language = LANGUAGE_ENGLISH; language <= LANGUAGE_SPANISH; language++) {
		BUF_AUTO struct buf here = {0}, there = {0};
		assert_int_equal(tools_render(&sample.facts, language, path, &error), 0);
		tools_read(path, &here);
		if (renderer_draw(&renderer, &sample.facts, language, path, &error))
			fail_msg("%s", error.cause);
		tools_read(path, &there);
		assert_true(here.size > 0 && slice_equal(buf_slice(&here), buf_slice(&there)));
	}
	renderer_close(&renderer);
}

/* Equal facts at other addresses give the same bytes: the renderer, which reads hostile text, does
 * not learn the addresses of the service. */
TEST_CASE(is_sent_no_addresses)
{
	struct report_facts elsewhere;
	enum language language;
	struct error error = {0};
	ARENA_AUTO struct arena arena = {.limit = REPORT_WIRE_MAX};
	BUF_AUTO struct buf sent = {0}, again = {0};
	buf_init(&sent, REPORT_WIRE_MAX);
	buf_init(&again, REPORT_WIRE_MAX);
	assert_int_equal(report_wire_write(&sample.facts, LANGUAGE_SPANISH, &sent), OK);
	assert_int_equal(report_wire_read(buf_slice(&sent), &arena, &elsewhere, &language, &error), OK);
	assert_int_equal(language, LANGUAGE_SPANISH);
	assert_ptr_not_equal(elsewhere.events, sample.facts.events);
	assert_int_equal(report_wire_write(&elsewhere, language, &again), OK);
	assert_true(slice_equal(buf_slice(&sent), buf_slice(&again)));
}

TEST_CASE(says_whether_it_starts)
{
	struct renderer renderer;
	struct error error = {0};
	expect_checked(own(), OK, "");
	expect_checked(
		script("test \"${*%-*}\" = " CONSTANCIA_VERSION " && test ! -s /dev/stdin", 60000), OK, "");
	expect_checked(script("exit 127", 60000), ERR_INTERNAL, "renderer: ");
	expect_checked(script("kill -SEGV $$", 60000), ERR_UNAVAILABLE, "ended by signal 11");
	expect_checked(script("exec sleep 1000", 500), ERR_UNAVAILABLE, "not end in time");
	expect_checked(open_program("/dev/null"), ERR_UNAVAILABLE, "starting the renderer");
	assert_int_equal(renderer_open("/nonexistent", &renderer, &error), ERR_UNAVAILABLE);
	assert_non_null(strstr(error.cause, "/nonexistent: No such file"));
}

TEST_CASE(draws_for_its_own_version_alone)
{
	BUF_AUTO struct buf out = {0};
	assert_int_equal(tools_run(&out, "'%s' 0.0.0 </dev/null", getenv("CONSTANCIA_RENDERER")), 1);
	assert_non_null(strstr(out.data, "started by '0.0.0'"));
	buf_clear(&out); /* the same version, but another build */
	assert_int_equal(
		tools_run(&out, "'%s' %s </dev/null", getenv("CONSTANCIA_RENDERER"), CONSTANCIA_VERSION),
		1);
	assert_non_null(strstr(out.data, "started by '" CONSTANCIA_VERSION "'"));
}

/* An upgrade while a service keeps running. */
TEST_CASE(stays_the_program_that_was_opened)
{
	char program[160], other[160];
	BUF_AUTO struct buf out = {0};
	snprintf(program, sizeof(program), "%s/program", directory);
	snprintf(other, sizeof(other), "%s/other", directory);
	assert_int_equal(tools_run(&out, "cp '%s' '%s'", getenv("CONSTANCIA_RENDERER"), program), 0);
	struct renderer renderer = open_program(program);
	tools_write(other, slice_of("#!/bin/sh\nexit 1\n"));
	assert_int_equal(chmod(other, 0700), 0);
	assert_int_equal(rename(other, program), 0);
	expect_checked(open_program(program), ERR_INTERNAL, "renderer: ");
	expect_checked(renderer, OK, "");
}

TEST_CASE(says_what_is_wrong_with_the_facts)
{
	int64_t count = sample.facts.event_count++;
	expect(own(), ERR_VALIDATION, "numbers are inconsistent");
	sample.facts.event_count = count;
	const char *name = sample.facts.service_name;
	sample.facts.service_name = NULL;
	expect(own(), ERR_VALIDATION, "missing");
	sample.facts.service_name = name;
}

TEST_CASE(goes_on_after_one_that_crashes_or_hangs)
{
	expect(script("kill -SEGV $$", 60000), ERR_UNAVAILABLE, "ended by signal 11");
	expect(script("kill -KILL $$", 60000), ERR_UNAVAILABLE, "ended by signal 9");
	expect(script("kill -STOP $$", 500), ERR_UNAVAILABLE, "not end in time");
	expect(script("exec sleep 1000", 500), ERR_UNAVAILABLE, "not end in time");
	expect(script("exec 0<&- 1>&- 2>&-; exec sleep 1000", 500), ERR_UNAVAILABLE, "not end in time");
	draws_the_same(state);
}

TEST_CASE(believes_only_what_a_renderer_may_say)
{
	expect(script("exit 1", 60000), ERR_INTERNAL, "renderer: ");
	expect(script("printf -- '-25 forged' >&2; exit 1", 60000), ERR_INTERNAL, "-25 forged");
	expect(script("printf -- '0 fine' >&2; exit 3", 60000), ERR_INTERNAL, "0 fine");
	expect(script("printf -- '-19 disk\\033[2J\\n' >&2; exit 1", 60000), ERR_IO, "disk?[2J");
	/* Messages of libraries precede it. */
	expect(
		script("printf -- '\\n(x:1): Pango-WARNING **: no font\\n\\n-19 disk' >&2; exit 1", 60000),
		ERR_IO, "disk");
	expect(script("head -c 60000 /dev/zero >&2; printf -- '\\n-19 disk' >&2; exit 1", 60000),
	       ERR_IO, "disk");
	expect(script("printf -- '-19 disk\\nforged' >&2; exit 1", 60000), ERR_INTERNAL, "forged");
	expect(script("head -c 1000000 /dev/zero >&2; exit 1", 60000), ERR_INTERNAL, "renderer: ?");
}

TEST_CASE(gets_no_secrets_and_no_files)
{
	setenv("A_SECRET", "in the environment", 1);
	int open_file = open("/dev/null", O_RDONLY);
	while (open_file >= 0 && open_file <= CHILD_PROGRAM_FILE)
		open_file = dup(open_file);
	assert_true(open_file >= 0);
	char text[200];
	snprintf(text, sizeof(text),
	         "test -z \"$A_SECRET\" && test ! -e /proc/$$/fd/%d && "
	         "printf -- '-19 clean' >&2; exit 1",
	         open_file);
	expect(script(text, 60000), ERR_IO, "clean");
	close(open_file);
}

/* Returns the number of the first forbidden action that succeeds in a process confined like a
 * renderer. */
static int first_possible(const char *database)
{
	char *const words[] = {"/bin/true", NULL};
	bool fenced = false;
	struct error error = {0};
	if (renderer_confine(&fenced, &error))
		return 100;
#ifndef CONSTANCIA_COUNTS_COVERAGE /* these builds write files at the end */
	if (fenced && (open(database, O_RDONLY) >= 0 || errno != EACCES))
		return 1;
	if (fenced && (open("/etc/passwd", O_RDONLY) >= 0 || errno != EACCES))
		return 2;
	if (open(database, O_WRONLY) >= 0 || errno != EPERM)
		return 3;
	if (open(path, O_RDONLY | O_CREAT, 0600) >= 0 || errno != EPERM)
		return 4;
#endif
	if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM)
		return 5;
	if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || errno != EPERM)
		return 6;
	if (fork() >= 0 || errno != EPERM)
		return 7;
	if (syscall(SYS_clone3, NULL, 0) >= 0 || errno != ENOSYS)
		return 8;
	if (execve(words[0], words, NULL) == 0 || errno != EPERM)
		return 9;
	if (unlink(database) == 0 || errno != EPERM)
		return 10;
	if (rename(database, path) == 0 || errno != EPERM)
		return 11;
	if (kill(getppid(), 0) == 0 || errno != EPERM)
		return 12;
	if (open("/usr/share/fonts", O_RDONLY | O_DIRECTORY) < 0)
		return 13;
	return 0;
}

TEST_CASE(reaches_neither_the_store_nor_the_network)
{
	char database[160];
	int status = 0;
	snprintf(database, sizeof(database), "%s/constancia.db", directory);
	tools_write(database, slice_of("all that was declared"));
	pid_t child = fork();
	if (child == 0)
		_exit(first_possible(database));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

TEST_MAIN(setup, teardown)
