#include "testing.h"

#include "monitor/chain_span.h"
#include "monitor/span_table.h"

static enum span_verdict add(struct chain_span *span, int64_t first, int64_t last)
{
	const struct tlog_entry entry = {.first_sequence = first, .last_sequence = last};
	return chain_span_add(span, &entry);
}

TEST_CASE(test_segments_follow_each_other)
{
	struct chain_span span = {0};
	assert_int_equal(add(&span, 5, 7), SPAN_FOLLOWS);
	assert_int_equal(add(&span, 8, 8), SPAN_FOLLOWS);
	assert_int_equal(add(&span, 9, 900), SPAN_FOLLOWS);
	assert_int_equal(span.first, 5);
	assert_int_equal(span.last, 900);
	assert_int_equal(span.entries, 3);
}

TEST_CASE(test_segments_that_do_not)
{
	const struct {
		int64_t first, last;
		enum span_verdict verdict;
	} cases[] = {{1, 4, SPAN_GAP},       {1, 5, SPAN_OVERLAPS},    {5, 5, SPAN_OVERLAPS},
	             {9, 9, SPAN_OVERLAPS},  {9, 12, SPAN_OVERLAPS},   {1, 100, SPAN_OVERLAPS},
	             {10, 10, SPAN_FOLLOWS}, {10, 1000, SPAN_FOLLOWS}, {11, 11, SPAN_GAP}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct chain_span span = {5, 9, 1};
		assert_int_equal(add(&span, cases[i].first, cases[i].last), cases[i].verdict);
		assert_true(span.first <= 5 && span.first <= cases[i].first);
		assert_true(span.last >= 9 && span.last >= cases[i].last);
	}
}

TEST_CASE(test_a_table_of_many_chains)
{
	struct span_table table = {0};
	for (int round = 1; round <= 3; round++)
		for (uint32_t i = 0; i < 5000; i++) {
			struct chain_span *span;
			/* Equal beginnings: the slots collide. */
			struct sha256 tag = {{0}};
			memcpy(tag.bytes + (i % 2 ? 0 : 8), &i, sizeof i);
			assert_int_equal(span_table_find(&table, &tag, &span, NULL), OK);
			assert_int_equal(add(span, round, round), SPAN_FOLLOWS);
			assert_int_equal(span->entries, round);
		}
	assert_int_equal(table.count, 5000);
	span_table_free(&table);
	assert_int_equal(table.count, 0);
}

TEST_MAIN(NULL, NULL)
