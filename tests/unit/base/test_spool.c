/* What is kept comes back as it was, however much it is, and as often as it is asked for; that a
 * call of the file system fails is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/spool.h"
#include "failing.h"
#include "scratch.h"

#define KIB ((size_t)1024)
#define TEXT_MAX (1024 * KIB)

static char directory[SCRATCH_MAX];
static char text[TEXT_MAX], back[TEXT_MAX];

static int start(void **state)
{
	(void)state;
	scratch_make(directory);
	for (size_t i = 0; i < TEXT_MAX; i++)
		text[i] = (char)(i * 7 + i / 251 + i / 65536);
	return 0;
}

static int stop(void **state)
{
	(void)state;
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

static void comes_back(void **state)
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
	(void)state;
	struct spool *again = spool_make(directory);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
			struct spool *spool = spool_make(directory);
			assert_int_equal(add(spool, 0, sizes[i], steps[k], NULL), OK);
			holds(spool, sizes[i]);
			holds(spool, sizes[i]);
			/* More may be added after it was given. */
			assert_int_equal(add(spool, sizes[i], sizes[i] + 5, steps[k], NULL), OK);
			holds(spool, sizes[i] + 5);
			spool_free(spool);
			/* One that was cleared is as good as another, whatever it held. */
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

/* Who takes ends it where he likes; nothing of it is lost. */
static void taker_ends_it(void **state)
{
	const size_t size = 200 * KIB;
	(void)state;
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

static void no_place(void **state)
{
	char path[SCRATCH_MAX + 16];
	struct error error = {0};
	(void)state;
	snprintf(path, sizeof path, "%s/missing", directory);
	struct spool *spool = spool_make(path);
	/* What fits into memory needs none. */
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

static void each_call_fails(void **state)
{
	static const int numbers[][2] = {{EIO, ERR_IO}, {ENOSPC, ERR_NO_SPACE}, {EDQUOT, ERR_NO_SPACE}};
	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_back),
		cmocka_unit_test(taker_ends_it),
		cmocka_unit_test(no_place),
		cmocka_unit_test(each_call_fails),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
