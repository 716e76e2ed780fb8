/* The digests that a second thread computes are those of the files at the time of the request. When
 * one is missing or its file was replaced, the caller computes it. */
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"
#include "base/clock.h"
#include "base/file.h"
#include "failing.h"
#include "verify/verify_check.h"
#include "test_archive_fixture.h"

#define INPUTS_MAX 40
#define ROUNDS 60
#define PATIENCE_US INT64_C(120000000)

static struct fixture fixture;
static char paths[INPUTS_MAX][FIXTURE_PATH_SIZE];
static struct input inputs[INPUTS_MAX];
static const struct verify_options use_threads = {.use_threads = true};
static char bytes[(size_t)2 << 20];
static uint64_t random_state = 13;

static uint32_t random_below(uint32_t count)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)((random_state >> 33) % count);
}

static int start(void **state)
{
	fixture_open(&fixture);
	for (int i = 0; i < INPUTS_MAX; i++)
		snprintf(paths[i], sizeof paths[i], "%s/input-%d", fixture.directory, i);
	return 0;
}

static void write_file(const char *path)
{
	size_t size = random_below(4) ? random_below(5000) : random_below(sizeof bytes);
	for (size_t i = 0; i < size; i += 1 + i / 64)
		bytes[i] = (char)random_below(256);
	fixture_write(path, slice_make(bytes, size));
}

static void replace_file(const char *path)
{
	char other[FIXTURE_PATH_SIZE + 8];
	snprintf(other, sizeof other, "%s-new", path);
	write_file(other);
	assert_int_equal(rename(other, path), 0);
}

static struct run begin(size_t count)
{
	struct run run = {.options = &use_threads, .inputs = inputs, .input_count = count};
	for (size_t i = 0; i < count; i++)
		inputs[i] = (struct input){.path = paths[i], .file = paths[i]};
	verify_sums_begin(&run);
	return run;
}

/* Returns whether it was known; then it must be right. */
static bool ask(struct run *run, size_t i)
{
	struct stat facts;
	struct zip_sum found, wanted;
	DESCRIPTOR_AUTO int file = file_open_to_read(paths[i], 0, &facts);
	struct zip_identity identity = {0};
	if (file >= 0)
		identity = zip_identity(&facts);
	if (!verify_sums_find(run, &run->inputs[i], &identity, &found))
		return false;
	assert_true(file >= 0 && S_ISREG(facts.st_mode));
	assert_int_equal(zip_open_file_sum(file, paths[i], &wanted, NULL), 0);
	assert_int_equal(found.size_bytes, wanted.size_bytes);
	assert_true(sha256_equal(&found.sha256, &wanted.sha256));
	return true;
}

TEST_CASE(right_sums)
{
	int known = 0;
	for (int i = 0; i < INPUTS_MAX; i++)
		write_file(paths[i]);
	/* A busy machine needs more rounds and longer pauses until the thread is first often enough. */
	const int64_t end = clock_monotonic_us() + PATIENCE_US;
	for (int round = 0; round < ROUNDS || (known <= ROUNDS && clock_monotonic_us() < end);
	     round++) {
		const size_t count = round < 4 ? (size_t)round : 1 + random_below(INPUTS_MAX);
		struct run run = begin(count);
		if (count < 2)
			assert_null(run.sums);
		if (random_below(2))
			usleep(random_below(3000) * (uint32_t)(1 + round / ROUNDS));
		/* The caller may fixture_tear_down before the end. */
		size_t asked = random_below(3) ? count : random_below((uint32_t)count + 1);
		for (size_t i = 0; i < asked; i++) {
			/* Some are never requested, as if they could not be opened. */
			if (random_below(10))
				known += ask(&run, i);
		}
		verify_sums_end(&run);
		assert_null(run.sums);
		verify_sums_end(&run);
	}
	assert_true(known > ROUNDS);
}

/* Between the digest and the request they are removed, replaced, or become something other than a
 * file. */
TEST_CASE(changing_files)
{
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < INPUTS_MAX; i++)
			write_file(paths[i]);
		struct run run = begin(INPUTS_MAX);
		usleep(random_below(2) ? random_below(20000) : 0);
		for (size_t i = 0; i < INPUTS_MAX; i++) {
			bool gone = false;
			switch (random_below(5)) {
			case 0: replace_file(paths[i]); break;
			case 1:
				unlink(paths[i]);
				gone = true;
				break;
			case 2:
				unlink(paths[i]);
				assert_int_equal(mkdir(paths[i], 0700), 0);
				gone = true;
				break;
			case 3:
				unlink(paths[i]);
				assert_int_equal(mkfifo(paths[i], 0600), 0);
				gone = true;
				break;
			}
			bool known = ask(&run, i);
			if (gone)
				assert_false(known);
		}
		verify_sums_end(&run);
		for (int i = 0; i < INPUTS_MAX; i++)
			remove(paths[i]);
	}
}

/* Containers append inputs, and the list is reallocated. */
TEST_CASE(appended_inputs)
{
	for (int i = 0; i < INPUTS_MAX; i++)
		write_file(paths[i]);
	struct run run = begin(10);
	struct input *moved = calloc(INPUTS_MAX, sizeof *moved);
	memcpy(moved, inputs, 10 * sizeof *moved);
	memset(inputs, 0xff, sizeof inputs);
	for (size_t i = 10; i < INPUTS_MAX; i++)
		moved[i] = (struct input){.path = paths[i], .file = paths[i]};
	run.inputs = moved;
	run.input_count = INPUTS_MAX;
	for (size_t i = 0; i < INPUTS_MAX; i++) {
		bool known = ask(&run, i);
		if (i >= 10)
			assert_false(known);
	}
	verify_sums_end(&run);
	free(moved);
}

/* The digest of the last one would take hours. */
TEST_CASE(an_end_that_waits_for_no_digest)
{
	write_file(paths[0]);
	fixture_write(paths[1], slice_of(""));
	assert_int_equal(truncate(paths[1], (off_t)4 << 40), 0);
	struct run run = begin(2);
	usleep(100000);
	verify_sums_end(&run);
	assert_null(run.sums);
	unlink(paths[1]);
}

TEST_CASE(without_thread)
{
	for (int at = 1; at <= 4; at++) {
		failing_arm(FAILING_MEMORY | FAILING_SYSTEM, at);
		struct run run = begin(3);
		const char *failed = failing_disarm();
		assert_true(!failed == (run.sums != NULL));
		assert_false(failed && ask(&run, 2));
		verify_sums_end(&run);
	}
}

/* The whole verifier: the same findings with and without threads. */
TEST_CASE(same_findings)
{
	struct fixture_archive made;
	struct verify_result result;
	const struct fixture_plan plan = {MODE_LIVE, 12, 3, 9, 4, true, 4, FAULT_NONE};
	char directory[FIXTURE_PATH_SIZE], missing[FIXTURE_PATH_SIZE], empty[FIXTURE_PATH_SIZE],
		noise[FIXTURE_PATH_SIZE], fifo[FIXTURE_PATH_SIZE];
	assert_int_equal(fixture_make(&fixture, "made", &plan, &made), 0);
	snprintf(directory, sizeof directory, "%s/directory", fixture.directory);
	snprintf(missing, sizeof missing, "%s/missing", fixture.directory);
	snprintf(empty, sizeof empty, "%s/empty", fixture.directory);
	snprintf(noise, sizeof noise, "%s/noise", fixture.directory);
	snprintf(fifo, sizeof fifo, "%s/fifo", fixture.directory);
	assert_int_equal(mkdir(directory, 0700), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fixture_write(empty, slice_of(""));
	write_file(noise);
	const char *const all[] = {made.path, made.part_paths[0], missing,           fifo,
	                           empty,     made.part_paths[1], directory,         noise,
	                           made.path, made.part_paths[2], made.part_paths[0]};
	for (size_t first = 0; first < sizeof all / sizeof *all; first++)
		for (size_t last = first + 1; last <= sizeof all / sizeof *all; last++) {
			fixture_verify(all + first, last - first, &fixture.roots, &result);
			verify_result_free(&result);
		}
}

struct meddling {
	const char *path;
	int calls;
};

static int meddle(void *context, const char *path, uint64_t done, uint64_t total)
{
	struct meddling *meddling = context;
	(void)path, (void)done, (void)total;
	if (meddling->calls++ == 0 && meddling->path)
		replace_file(meddling->path);
	return meddling->path ? 0 : ERR_REFUSED;
}

/* Cancelled, or with a file replaced, at the first progress callback. */
TEST_CASE(in_the_middle)
{
	struct fixture_archive made;
	struct verify_result result;
	const struct fixture_plan plan = {MODE_LIVE, 9000, 3, 8999, 4000, false, 0, FAULT_NONE};
	fixture_forget(&fixture);
	assert_int_equal(fixture_make(&fixture, "middle", &plan, &made), 0);
	write_file(paths[0]);
	const char *const all[] = {made.path, paths[0], made.path};
	for (int replaces = 0; replaces < 2; replaces++) {
		struct meddling meddling = {.path = replaces ? paths[0] : NULL};
		struct verify_options options = {
			.use_threads = true, .progress = meddle, .progress_context = &meddling};
		int code = verify_paths(all, 3, &fixture.roots, &options, &result, NULL);
		assert_true(meddling.calls > 0);
		assert_int_equal(code, replaces ? 0 : ERR_REFUSED);
		if (!code)
			verify_result_free(&result);
	}
}

/* Only whether something is wrong: it ends at the first finding, whichever thread digests. */
TEST_CASE(at_the_first_wrong_thing)
{
	struct fixture_archive made;
	const struct fixture_plan plan = {MODE_LIVE, 12, 1, 9, 4, false, 0, FAULT_RECEIVED_BEFORE};
	fixture_forget(&fixture);
	assert_int_equal(fixture_make(&fixture, "wrong", &plan, &made), 0);
	const char *const all[] = {made.path, paths[0], made.path, paths[1]};
	for (int i = 0; i < 20; i++) {
		struct verify_result result;
		struct verify_options options = {.use_threads = i % 2, .stop_early = true};
		(void)!verify_paths(all, 4, &fixture.roots, &options, &result, NULL);
		assert_int_equal(verify_exit_code(&result), 1);
		verify_result_free(&result);
	}
}

TEST_MAIN(start, fixture_tear_down)
