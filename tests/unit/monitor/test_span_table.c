#include "testing.h"

#include "monitor/span_table.h"

#define TAGS 50000

/* Tags as a hostile log could choose them: of equal beginnings and ends. */
static struct sha256 tag_of(uint32_t number)
{
	struct sha256 tag = {{0}};
	memcpy(tag.bytes + 12, &number, sizeof number);
	return tag;
}

TEST_CASE(test_each_tag_has_its_span)
{
	struct span_table table = {0};
	struct chain_span *span;
	for (uint32_t round = 1; round <= 2; round++)
		for (uint32_t i = 0; i < TAGS; i++) {
			const struct sha256 tag = tag_of(i);
			assert_int_equal(span_table_find(&table, &tag, &span, NULL), OK);
			assert_int_equal(span->entries, round - 1);
			span->entries++;
			span->last += i;
		}
	assert_int_equal(table.count, TAGS);
	assert_true(table.capacity / 8 * 3 <= TAGS && table.capacity / 4 * 3 >= TAGS);
	for (uint32_t i = 0; i < TAGS; i++) {
		const struct sha256 tag = tag_of(i);
		assert_int_equal(span_table_find(&table, &tag, &span, NULL), OK);
		assert_int_equal(span->last, 2 * i);
	}
	span_table_free(&table);
	assert_null(table.slots);
}

/* A log that knows where the tags of one table are does not know it of the next one. */
TEST_CASE(test_places_differ_from_table_to_table)
{
	struct span_table tables[2] = {{0}};
	bool differ = false;
	for (uint32_t i = 0; i < 100; i++) {
		const struct sha256 tag = tag_of(i);
		ptrdiff_t places[2];
		for (size_t n = 0; n < 2; n++) {
			struct chain_span *span;
			assert_int_equal(span_table_find(&tables[n], &tag, &span, NULL), OK);
			span->entries++;
			places[n] = (char *)span - (char *)tables[n].slots;
		}
		differ |= places[0] != places[1];
	}
	assert_true(differ);
	span_table_free(&tables[0]);
	span_table_free(&tables[1]);
}

/* A full table refuses new tags, says what to do, and still has the others. */
TEST_CASE(test_a_full_table)
{
	struct span_table table = {0};
	struct chain_span *span;
	struct error error = {0};
	const struct sha256 known = tag_of(1), other = tag_of(2);
	assert_int_equal(span_table_find(&table, &known, &span, NULL), OK);
	span->entries++;
	const size_t capacity = table.capacity;
	table.count = SPAN_TABLE_MAX;
	assert_int_equal(span_table_find(&table, &other, &span, &error), ERR_TOO_LARGE);
	assert_non_null(strstr(error.cause, "log watch"));
	assert_int_equal(span_table_find(&table, &known, &span, NULL), OK);
	assert_int_equal(span->entries, 1);
	assert_int_equal(table.capacity, capacity);
	span_table_free(&table);
}

TEST_MAIN(NULL, NULL)
