/* Documents that share the bytes of a stored object: any document is read completely and from any
 * offset, and only the differing bytes are stored. */
#include <unistd.h>

#include "testing.h"
#include "base/file.h"
#include "content/composite.h"
#include "scratch.h"

static char scratch[SCRATCH_MAX], path[SCRATCH_MAX + 16], own[SCRATCH_MAX + 16];
static struct content_store *store;

static int set_up(void **state)
{
	char url[SCRATCH_MAX + 16];
	scratch_make(scratch);
	snprintf(url, sizeof url, "file:%s/store", scratch);
	snprintf(path, sizeof path, "%s/file", scratch);
	snprintf(own, sizeof own, "%s/own", scratch);
	return content_open(url, true, &store, NULL);
}

static int tear_down(void **state)
{
	content_close(store);
	scratch_remove(scratch);
	return 0;
}

/* Repeats the same numbers in each run. */
static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static char *random_data(size_t size, uint32_t *seed)
{
	char *data = malloc(size + 1);
	assert_non_null(data);
	for (size_t i = 0; i < size; i++)
		data[i] = (char)next(seed);
	return data;
}

static void store_object(const char *name, const char *data, size_t size)
{
	struct content_writer *writer;
	assert_int_equal(content_write_begin(store, &writer, NULL), 0);
	assert_int_equal(content_write(writer, data, size, NULL), 0);
	assert_int_equal(content_write_commit(writer, name, NULL), 0);
}

static void check_read(const struct content_parts *parts, const char *data, size_t size,
                       size_t offset)
{
	struct content_reader *reader;
	uint64_t whole = 0;
	char *found = malloc(size + 1);
	size_t used = 0;
	int64_t got = 1;
	assert_non_null(found);
	assert_int_equal(content_parts_read(store, parts, offset, &reader, &whole, NULL), 0);
	assert_int_equal(whole, size);
	while (got > 0) {
		got = content_read(reader, found + used, size - offset - used + 1, NULL);
		assert_true(got >= 0);
		used += (size_t)got;
	}
	content_read_end(reader);
	assert_int_equal(used, size - offset);
	assert_memory_equal(found, data + offset, used);
	free(found);
}

/* Returns the number of bytes of the file that are stored, or -1 if it is not shared. */
static int64_t keep(const char *data, size_t size, uint32_t *seed)
{
	struct content_difference found;
	unlink(own);
	assert_int_equal(file_replace(path, slice_make(data, size), NULL), 0);
	int result = content_compare(store, path, "issued/aa/shared", own, &found, NULL);
	if (result == ERR_REFUSED)
		return -1;
	assert_int_equal(result, 0);
	assert_int_equal(content_put_file(store, own, "issued/aa/own", NULL), 0);
	struct content_parts parts = {"issued/aa/own", "issued/aa/shared", found.pieces};
	check_read(&parts, data, size, 0);
	check_read(&parts, data, size, size);
	for (int i = 0; i < 8; i++)
		check_read(&parts, data, size, next(seed) % size);
	assert_int_equal(content_delete(store, "issued/aa/own", NULL), 0);
	return (int64_t)found.own_bytes;
}

static void change(char *data, size_t at, size_t size, uint32_t *seed)
{
	for (size_t i = 0; i < size; i++)
		data[at + i] = (char)(data[at + i] + 1 + next(seed) % 255);
}

TEST_CASE(test_bytes_that_stand_where_they_stood)
{
	uint32_t seed = 7;
	const size_t size = CONTENT_MOVED_MAX + 700001;
	char *data = random_data(size, &seed);
	store_object("issued/aa/shared", data, size);
	change(data, 14, 9, &seed);
	change(data, size - 300, 4, &seed);
	assert_in_range(keep(data, size, &seed), 13, 2048);
	/* More and less at the end. */
	assert_in_range(keep(data, size - 5000, &seed), 9, 2048);
	char *longer = realloc(data, size + 100000);
	assert_non_null(longer);
	memset(longer + size, 'x', 100000);
	assert_in_range(keep(longer, size + 100000, &seed), 100013, 103000);
	free(longer);
}

TEST_CASE(test_bytes_that_moved)
{
	uint32_t seed = 11;
	const size_t size = 300000;
	char *data = random_data(size, &seed);
	store_object("issued/aa/shared", data, size);
	char *moved = malloc(size + 137);
	assert_non_null(moved);
	memcpy(moved, data, 500);
	memset(moved + 500, 'm', 137);
	memcpy(moved + 637, data + 500, size - 500);
	assert_in_range(keep(moved, size + 137, &seed), 137, 137 + 500);
	free(moved);
	free(data);
}

TEST_CASE(test_any_change)
{
	uint32_t seed = 13;
	int shared = 0;
	for (int i = 0; i < 60; i++) {
		size_t size = 1 + next(&seed) % 120000;
		/* Repeated data, where runs are found at wrong places. */
		char *data = random_data(size, &seed);
		if (i % 3 == 0)
			for (size_t at = 64; at < size; at++)
				data[at] = data[at % 64];
		store_object("issued/aa/shared", data, size);
		for (uint32_t changes = next(&seed) % 40; changes > 0; changes--) {
			size_t at = next(&seed) % size;
			change(data, at, at + 20 < size ? 20 : size - at, &seed);
		}
		shared += keep(data, size, &seed) >= 0;
		free(data);
	}
	assert_true(shared > 5);
}

TEST_CASE(test_what_has_little_in_common_is_refused)
{
	uint32_t seed = 17;
	char *data = random_data(100000, &seed), *other = random_data(100000, &seed);
	store_object("issued/aa/shared", data, 100000);
	assert_int_equal(keep(other, 100000, &seed), -1);
	memcpy(other, data, 40000);
	assert_int_equal(keep(other, 100000, &seed), -1);
	assert_int_equal(keep(data, 100000, &seed), -1); /* it would have no bytes of its own */
	free(data);
	free(other);
	struct content_difference found;
	unlink(own);
	assert_int_equal(content_compare(store, path, "issued/aa/none", own, &found, NULL),
	                 ERR_NOT_FOUND);
}

TEST_CASE(test_what_is_damaged_is_not_given)
{
	static const char *const texts[] = {"",     "+",
	                                    "5",    "+0",
	                                    "@+5",  "@5",
	                                    "@5+",  "+5 @0+1",
	                                    "-5",   "+5,",
	                                    "+5@",  "@1+99999999999999999999",
	                                    "@x+1", "@9223372036854775807+9223372036854775807"};
	struct content_reader *reader;
	uint64_t size;
	store_object("issued/aa/shared", "0123456789", 10);
	store_object("issued/aa/own", "abc", 3);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct content_parts parts = {"issued/aa/own", "issued/aa/shared", texts[i]};
		assert_int_equal(content_parts_read(store, &parts, 0, &reader, &size, NULL), ERR_CORRUPT);
	}
	struct content_parts parts = {"issued/aa/own", "issued/aa/shared", "+1@2+3+2@0+1"};
	check_read(&parts, "a234bc0", 7, 0);
	check_read(&parts, "a234bc0", 7, 5);
	/* A range that cannot be given completely gives nothing. */
	static const char *const beyond[] = {"@8+3", "+4", "@20+1", "+1@0+1+2@3+8", "@9+1+1@2+3+3"};
	for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
		parts.pieces = beyond[i];
		assert_int_equal(content_parts_read(store, &parts, 0, &reader, &size, NULL), ERR_CORRUPT);
	}
	parts.pieces = "@8+3+2";
	check_read(&parts, "xxxab", 5, 3);
	parts = (struct content_parts){"issued/aa/own", "issued/aa/missing", "+1@0+3+1"};
	for (uint64_t offset = 0; offset < 4; offset++)
		assert_int_equal(content_parts_read(store, &parts, offset, &reader, &size, NULL),
		                 ERR_CORRUPT);
	check_read(&parts, "xxxxb", 5, 4);
	parts = (struct content_parts){"issued/aa/missing", "issued/aa/shared", "+1@0+3+1"};
	assert_int_equal(content_parts_read(store, &parts, 0, &reader, &size, NULL), ERR_CORRUPT);
}

TEST_CASE(test_an_object_that_goes_while_it_is_read_is_an_error)
{
	char data[16];
	struct content_reader *reader;
	uint64_t size;
	store_object("issued/aa/shared", "0123456789", 10);
	store_object("issued/aa/own", "abc", 3);
	/* An earlier offset restarts the reader. */
	struct content_parts parts = {"issued/aa/own", "issued/aa/shared", "@5+1+3@0+1"};
	assert_int_equal(content_parts_read(store, &parts, 0, &reader, &size, NULL), 0);
	assert_int_equal(content_delete(store, "issued/aa/shared", NULL), 0);
	int64_t got = 1;
	while (got > 0)
		got = content_read(reader, data, sizeof data, NULL);
	assert_int_equal(got, ERR_CORRUPT);
	content_read_end(reader);
}

TEST_MAIN(set_up, tear_down)
