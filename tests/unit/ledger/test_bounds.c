/* The limits fit the numbers as they are packed or written, and the documentation states them.
 *     test-ledger-bounds docs/operate/limits.md */
#include <inttypes.h>

#include "testing.h"
#include "ledger/ledger.h"

static const char *handbook;

TEST_CASE(the_last_chain_is_the_last_channels)
{
	assert_int_equal(CHANNEL_MAX, 4194303);
	assert_int_equal(CHAIN_MAX, CHANNEL_MAX * 2 + 1);
	/* The last possible event has the greatest number, and no event follows it. */
	uint64_t last = (uint64_t)CHAIN_MAX << EVENT_SEQUENCE_BITS | EVENT_SEQUENCE_MAX;
	assert_true(last == (uint64_t)INT64_MAX);
}

TEST_CASE(identifiers_have_room_for_the_last)
{
	char id[ID_SIZE], digits[16], channel_id[ID_SIZE];
	enum mode mode;
	int64_t sequence;
	event_id_make("chn_0123456789abcdef", MODE_TEST, EVENT_SEQUENCE_MAX, id);
	assert_string_equal(id, "evt_0123456789abcdeftzzzzzzzz");
	assert_true(event_id_read(slice_of(id), channel_id, &mode, &sequence));
	assert_int_equal(sequence, EVENT_SEQUENCE_MAX);
	event_id_make("chn_0123456789abcdef", MODE_TEST, EVENT_SEQUENCE_MAX + 1, id);
	assert_false(event_id_read(slice_of(id), channel_id, &mode, &sequence));
	assert_int_equal(snprintf(digits, sizeof digits, "%07d", CERTIFICATION_NUMBER_MAX), 7);
	assert_int_equal(snprintf(digits, sizeof digits, "%07d", CERTIFICATION_NUMBER_MAX + 1), 8);
	assert_int_equal(snprintf(digits, sizeof digits, "%06d", CONFIG_VERSION_MAX), 6);
}

TEST_CASE(a_bound_is_near_from_four_fifths_on)
{
	for (enum bound bound = 0; bound < BOUND_COUNT; bound++) {
		int64_t first = (bound_most(bound) * 4 + 4) / 5;
		assert_false(bound_is_near(bound, 0));
		assert_false(bound_is_near(bound, first - 1));
		assert_true(bound_is_near(bound, first));
		assert_true(bound_is_near(bound, bound_most(bound)));
		assert_true(bound_is_near(bound, INT64_MAX));
	}
}

TEST_CASE(a_day_takes_so_many_configurations)
{
	const int64_t day_us = 20000 * US_PER_DAY;
	assert_true(day_has_room(day_us, TIME_NONE));
	assert_true(day_has_room(day_us, day_us - 1));
	assert_false(day_has_room(day_us, day_us));
	assert_false(day_has_room(day_us + US_PER_DAY - 1, day_us));
	assert_true(day_has_room(day_us + US_PER_DAY, day_us + US_PER_DAY - 1));
	/* A channel that continues at the same rate: never more than a thousand on any day. */
	int64_t sealed_us[5 * CONFIG_VERSIONS_PER_DAY], days[16] = {0};
	size_t count = 0;
	for (int64_t at_us = day_us + 1; at_us < day_us + 4 * US_PER_DAY; at_us += 40 * US_PER_SECOND) {
		int64_t former_us = count < CONFIG_VERSIONS_PER_DAY
		                        ? TIME_NONE
		                        : sealed_us[count - CONFIG_VERSIONS_PER_DAY];
		if (!day_has_room(at_us, former_us))
			continue;
		sealed_us[count++] = at_us;
		days[(at_us - day_us) / US_PER_DAY]++;
	}
	for (int day = 0; day < 4; day++)
		assert_int_equal(days[day], CONFIG_VERSIONS_PER_DAY);
}

/* Writes 4194303 as 4,194,303. */
static void group(int64_t number, char text[32])
{
	char digits[24];
	int size = snprintf(digits, sizeof digits, "%" PRId64, number), at = 0;
	for (int i = 0; i < size; i++) {
		if (i > 0 && (size - i) % 3 == 0)
			text[at++] = ',';
		text[at++] = digits[i];
	}
	text[at] = '\0';
}

TEST_CASE(the_handbook_has_each)
{
	static char text[1 << 20];
	FILE *file = fopen(handbook, "r");
	assert_non_null(file);
	size_t size = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	assert_true(size > 0 && size < sizeof text - 1);
	for (enum bound bound = 0; bound < BOUND_COUNT; bound++) {
		char number[32], row[128];
		group(bound_most(bound), number);
		snprintf(row, sizeof row, "\n| `%s` | %s | %s", bound_label(bound), number,
		         bound_counted(bound));
		if (!strstr(text, row))
			fail_msg("%s lacks%s", handbook, row);
	}
}

TEST_CASE(an_accounts_own_bound_goes_before_the_setting)
{
	assert_int_equal(account_bound(0, 1000), 1000);
	assert_int_equal(account_bound(5, 1000), 5);
	assert_int_equal(account_bound(2000, 1000), 2000);
	assert_int_equal(account_bound(0, 0), 0);
	assert_false(account_bound_is_reached(3, 2));
	assert_true(account_bound_is_reached(3, 3));
	assert_true(account_bound_is_reached(3, 4)); /* the limit was lowered */
	assert_false(account_bound_is_reached(0, INT64_MAX));
}

TEST_CASE(the_rate_of_all_keys_follows_the_nearest_that_is_set)
{
	assert_int_equal(account_rate(7, 20, 300, 50), 7);
	assert_int_equal(account_rate(0, 20, 300, 50), 80);
	assert_int_equal(account_rate(0, 0, 300, 50), 300);
	assert_int_equal(account_rate(0, 0, 0, 50), 200);
	assert_int_equal(account_rate(0, 0, 0, 0), 1);
	assert_int_equal(account_rate(0, INT64_MAX, 0, 0), INT64_MAX);
}

int main(int count, char **arguments)
{
	if (count != 2)
		return 2;
	handbook = arguments[1];
	return tests_run(NULL, NULL, NULL, NULL);
}
