/* The verifier in a separate process. */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"
#include "base/confine.h"
#include "base/file.h"
#include "verify/verifier.h"
#include "test_archive_fixture.h"

static struct fixture fixture;
static struct fixture_archive archive;
static struct buf content;

static int set_up(void **state)
{
	static const struct fixture_plan plan = {MODE_LIVE, 20, 7, 14, 5, false, 0, FAULT_NONE};
	fixture_open(&fixture);
	assert_int_equal(fixture_make(&fixture, "archive", &plan, &archive), 0);
	buf_init(&content, (size_t)8 << 20);
	fixture_read(archive.path, &content);
	return 0;
}

static int tear_down(void **state)
{
	buf_free(&content);
	fixture_close(&fixture);
	return 0;
}

static int check(struct slice what, struct slice roots, struct buf *said)
{
	struct error error = {0};
	DESCRIPTOR_AUTO int file = memfd_create("file", MFD_CLOEXEC);
	assert_int_equal(write(file, what.data, what.size), what.size);
	buf_clear(said);
	int result = verifier_check(file, roots, slice_of(""), said, &error);
	if (result)
		print_message("%s\n", error.cause);
	buf_add_byte(said, 0);
	return result;
}

TEST_CASE(it_says_what_the_verifier_says)
{
	BUF_AUTO struct buf said = {.limit = VERIFIER_RESULT_MAX};
	assert_int_equal(check(buf_slice(&content), fixture.roots.signers, &said), OK);
	assert_non_null(strstr(said.data, "\"valid\":true"));
	assert_non_null(strstr(said.data, "\"trusted\":true"));
	assert_non_null(strstr(said.data, "\"path\":\"file\""));
	assert_null(strstr(said.data, "/proc/"));
	assert_int_equal(check(buf_slice(&content), slice_of(""), &said), OK);
	assert_non_null(strstr(said.data, "\"trusted\":false"));
	content.data[content.size / 2] ^= 1;
	assert_int_equal(check(buf_slice(&content), fixture.roots.signers, &said), OK);
	assert_non_null(strstr(said.data, "\"valid\":false"));
	content.data[content.size / 2] ^= 1;
	assert_int_equal(check(slice_of(""), fixture.roots.signers, &said), OK);
	assert_non_null(strstr(said.data, "\"could_not_check\":true"));
}

/* It may open no file of the disk, not even the one that it received. */
TEST_CASE(it_opens_no_file_of_the_disk)
{
	struct error error = {0};
	BUF_AUTO struct buf said = {.limit = VERIFIER_RESULT_MAX};
	DESCRIPTOR_AUTO int file = open(archive.path, O_RDONLY | O_CLOEXEC);
	if (!CONFINE_IS_WHOLE || !confine_knows_files())
		skip();
	assert_int_equal(verifier_check(file, fixture.roots.signers, slice_of(""), &said, &error), OK);
	buf_add_byte(&said, 0);
	assert_non_null(strstr(said.data, "cannot open: Permission denied"));
}

/* It does not start without the sandbox, because it could then read any file. */
TEST_CASE(it_needs_its_fence)
{
	struct error error = {0};
	BUF_AUTO struct buf said = {.limit = VERIFIER_RESULT_MAX};
	int status;
	pid_t id = fork();
	assert_true(id >= 0);
	if (id == 0) {
		DESCRIPTOR_AUTO int file = memfd_create("file", MFD_CLOEXEC);
		scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
		if (!filter ||
		    seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(landlock_create_ruleset),
		                     0) != 0 ||
		    seccomp_load(filter) != 0 || confine_knows_files() ||
		    file_write_all(file, buf_slice(&content)) == false)
			_exit(2);
		_exit(verifier_check(file, fixture.roots.signers, slice_of(""), &said, &error) ==
		              ERR_UNAVAILABLE
		          ? 0
		          : 1);
	}
	assert_int_equal(waitpid(id, &status, 0), id);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
	if (argc > 0 && strcmp(argv[0], VERIFIER_NAME) == 0)
		verifier_run();
	return tests_run(set_up, tear_down, NULL, NULL);
}
