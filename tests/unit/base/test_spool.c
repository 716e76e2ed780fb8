/* Spooled data is returned unchanged, at any size and however often it is requested. A failed call
 * of the file system is reported. */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "testing.h"
#include "base/spool.h"
#include "failing.h"
#include "scratch.h"

#define KIB ((size_t)1024)
#define TEXT_MAX (1024 * KIB)

static char directory[SCRATCH_MAX];
static char text[TEXT_MAX], back[TEXT_MAX];

static int start(void **state)
{
	scratch_make(directory);
	for (size_t i = 0; i < TEXT_MAX; i++)
		text[i] = (char)(i * 7 + i / 251 + i / 65536);
	return 0;
}

static int stop(void **state)
{
	scratch_remove(directory);
	return 0;
}

static int files_there(void)
{
	DIR *files = opendir(directory);
	int count = 0;
	assert_non_null(files);
	for (struct dirent *file; (file = readdir(files));)
		count += strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0;
	closedir(files);
	return count;
}

struct taken {
	size_t size;
	int calls, stop_at; /* 0: never */
};

static int take(void *context, const void *data, size_t size, struct error *error)
{
	struct taken *taken = context;
	if (++taken->calls == taken->stop_at)
		return error_cause(error, ERR_REFUSED, "enough");
	assert_true(size > 0 && taken->size + size <= TEXT_MAX);
	memcpy(back + taken->size, data, size);
	taken->size += size;
	return OK;
}

static int add(struct spool *spool, size_t from, size_t to, size_t step, struct error *error)
{
	int result = OK;
	for (size_t at = from; at < to && !result; at += step)
		result = spool_add(spool, slice_make(text + at, to - at < step ? to - at : step), error);
	return result;
}

static void holds(struct spool *spool, size_t size)
{
	struct taken taken = {0};
	memset(back, 0, size);
	assert_int_equal(spool_size(spool), size);
	assert_int_equal(spool_give(spool, take, &taken, NULL), OK);
	assert_int_equal(taken.size, size);
	assert_memory_equal(back, text, size);
}

TEST_CASE(comes_back)
{
	static const size_t sizes[] = {0,
	                               1,
	                               64 * KIB - 1,
	                               64 * KIB,
	                               64 * KIB + 1,
	                               128 * KIB - 1,
	                               128 * KIB,
	                               128 * KIB + 1,
	                               TEXT_MAX - 5};
	static const size_t steps[] = {TEXT_MAX, 64 * KIB, 93, 64 * KIB - 1, 64 * KIB + 1};
	struct spool *again = spool_make(directory);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
			struct spool *spool = spool_make(directory);
			assert_int_equal(add(spool, 0, sizes[i], steps[k], NULL), OK);
			holds(spool, sizes[i]);
			holds(spool, sizes[i]);
			/* More may be added after it was read. */
			assert_int_equal(add(spool, sizes[i], sizes[i] + 5, steps[k], NULL), OK);
			holds(spool, sizes[i] + 5);
			spool_free(spool);
			/* A cleared spool is as good as a new one, whatever it held. */
			size_t before = sizes[(i + k) % (sizeof sizes / sizeof *sizes)];
			assert_int_equal(add(again, 0, before, steps[k], NULL), OK);
			assert_int_equal(spool_clear(again, NULL), OK);
			holds(again, 0);
			assert_int_equal(add(again, 0, sizes[i], steps[k], NULL), OK);
			holds(again, sizes[i]);
			assert_int_equal(spool_clear(again, NULL), OK);
		}
	spool_free(again);
	spool_free(NULL);
	assert_int_equal(files_there(), 0);
}

/* The callback may end the read early; nothing is lost. */
TEST_CASE(taker_ends_it)
{
	const size_t size = 200 * KIB;
	struct spool *spool = spool_make(directory);
	assert_int_equal(add(spool, 0, size, 1000, NULL), OK);
	for (int at = 1; at <= 4; at++) {
		struct taken taken = {.stop_at = at};
		struct error error = {0};
		assert_int_equal(spool_give(spool, take, &taken, &error), ERR_REFUSED);
		assert_string_equal(error.cause, "enough");
		assert_int_equal(taken.calls, at);
		holds(spool, size);
	}
	spool_free(spool);
}

TEST_CASE(no_place)
{
	char path[SCRATCH_MAX + 16];
	struct error error = {0};
	snprintf(path, sizeof path, "%s/missing", directory);
	struct spool *spool = spool_make(path);
	/* Data that fits into memory needs no file. */
	assert_int_equal(add(spool, 0, 64 * KIB - 1, 1000, NULL), OK);
	holds(spool, 64 * KIB - 1);
	assert_int_equal(add(spool, 0, 1, 1, &error), ERR_IO);
	assert_non_null(strstr(error.cause, path));
	spool_free(spool);
	snprintf(path, sizeof path, "%s/file", directory);
	fclose(fopen(path, "w"));
	spool = spool_make(path);
	assert_int_equal(add(spool, 0, 65 * KIB, 1000, NULL), ERR_IO);
	spool_free(spool);
	remove(path);
}

static int keep_and_give(struct error *error)
{
	struct taken taken = {0};
	struct spool *spool = spool_make(directory);
	if (!spool)
		return ERR_NO_MEMORY;
	int result = add(spool, 0, 300 * KIB, 1000, error);
	if (!result)
		result = spool_clear(spool, error);
	if (!result)
		result = add(spool, 0, 150 * KIB, 1000, error);
	if (!result)
		result = spool_give(spool, take, &taken, error);
	if (!result)
		assert_true(taken.size == 150 * KIB && memcmp(back, text, taken.size) == 0);
	spool_free(spool);
	return result;
}

TEST_CASE(each_call_fails)
{
	static const int numbers[][2] = {{EIO, ERR_IO}, {ENOSPC, ERR_NO_SPACE}, {EDQUOT, ERR_NO_SPACE}};
	for (size_t i = 0; i < 3; i++) {
		bool truncating = false;
		failing_errno = numbers[i][0];
		for (int at = 1;; at++) {
			struct error error = {0};
			failing_arm(FAILING_FILES, at);
			int result = keep_and_give(&error);
			const char *failed = failing_disarm();
			if (!failed) {
				assert_int_equal(result, OK);
				assert_true(at > 8);
				break;
			}
			truncating |= strcmp(failed, "ftruncate64") == 0;
			assert_int_equal(result, numbers[i][1]);
			assert_non_null(strstr(error.cause, directory));
			assert_int_equal(files_there(), 0);
		}
		assert_true(truncating);
	}
	failing_errno = EIO;
	for (int at = 1;; at++) {
		struct error error = {0};
		failing_arm(FAILING_MEMORY, at);
		int result = keep_and_give(&error);
		if (!failing_disarm())
			break;
		assert_int_equal(result, ERR_NO_MEMORY);
	}
}

TEST_MAIN(start, stop)
