/* Which connections are accepted, and which are evicted. */
#include "testing.h"
#include "base/clock.h"
#include "base/error.h"
#include "http/connection_table.h"

#define MAX 24
#define LATE (10 * US_PER_SECOND)

static struct connection_table *table;
static struct connection_entry entries[100];
static int entry_count;
static _Atomic int64_t cut_count;

static int start(void **state)
{
	entry_count = 0;
	cut_count = 0;
	table = connection_table_create(MAX, &cut_count);
	return table ? 0 : -1;
}

static int stop(void **state)
{
	for (int i = 0; i < entry_count; i++)
		connection_remove(table, &entries[i]);
	connection_table_free(table);
	return 0;
}

static int try_enter(struct connection_entry *entry, uint64_t address, bool is_proxy,
                     int64_t now_us)
{
	const struct connection_origin origin = {address, is_proxy, 20};
	*entry = (struct connection_entry){0};
	return connection_add(table, entry, &origin, -1, now_us);
}

static struct connection_entry *enter(uint64_t address, enum connection_kind kind, int64_t now_us)
{
	struct connection_entry *entry = &entries[entry_count++];
	assert_int_equal(try_enter(entry, address, false, now_us), OK);
	assert_true(connection_set_kind(table, entry, kind, now_us));
	return entry;
}

static void enter_many(uint64_t address, enum connection_kind kind, int count)
{
	for (int i = 0; i < count; i++)
		enter(address, kind, LATE);
}

static void expect_cut(const struct connection_entry *entry)
{
	assert_true(entry->is_cut);
	assert_null(entry->holder);
}

TEST_CASE(test_limits)
{
	struct connection_entry extra;
	enter_many(1, CONNECTION_BUSY, 20);
	assert_int_equal(try_enter(&extra, 1, false, LATE), ERR_RATE_LIMITED);
	enter_many(2, CONNECTION_BUSY, 4);
	assert_int_equal(try_enter(&extra, 3, false, LATE), ERR_BUSY);
	assert_int_equal(try_enter(&extra, 3, true, LATE), ERR_BUSY);
	assert_false(connection_evict(table, LATE));
	connection_remove(table, &entries[0]);
	enter(1, CONNECTION_BUSY, LATE);
	assert_int_equal(cut_count, 0);
}

/* The oldest connection of the address that has the most is evicted. */
TEST_CASE(test_unfinished_first)
{
	struct connection_entry *own = enter(3, CONNECTION_UNFINISHED, LATE - 1000);
	struct connection_entry *idle = enter(4, CONNECTION_IDLE, 0);
	enter_many(1, CONNECTION_UNFINISHED, 10);
	enter_many(2, CONNECTION_UNFINISHED, 12);
	enter(5, CONNECTION_UNFINISHED, LATE);
	expect_cut(&entries[12]);
	enter(6, CONNECTION_UNFINISHED, LATE);
	expect_cut(&entries[13]);
	assert_false(own->is_cut);
	assert_false(idle->is_cut);
	assert_int_equal(cut_count, 2);
	assert_false(connection_set_kind(table, &entries[12], CONNECTION_BUSY, LATE));
	assert_false(connection_cut(table, &entries[12], ""));
}

/* A late connection is evicted before idle ones, a new one after them. */
TEST_CASE(test_grace)
{
	struct connection_entry *late = enter(1, CONNECTION_UNFINISHED, 0);
	struct connection_entry *fresh = enter(2, CONNECTION_UNFINISHED, LATE);
	struct connection_entry *idle = enter(3, CONNECTION_IDLE, LATE);
	struct connection_entry *other = enter(3, CONNECTION_IDLE, LATE);
	enter(4, CONNECTION_IDLE, LATE);
	for (uint64_t address = 10; entry_count < MAX; address++)
		enter(address, CONNECTION_BUSY, LATE);
	assert_true(connection_evict(table, LATE));
	expect_cut(late);
	assert_true(connection_evict(table, LATE));
	expect_cut(idle);
	assert_true(connection_evict(table, LATE));
	assert_true(connection_evict(table, LATE));
	expect_cut(other);
	assert_false(fresh->is_cut);
	assert_true(connection_evict(table, LATE));
	expect_cut(fresh);
	assert_false(connection_evict(table, LATE));
}

/* An address with more connections than the one that would lose one loses its own. */
TEST_CASE(test_own)
{
	struct connection_entry *alone = enter(1, CONNECTION_IDLE, 0);
	enter_many(2, CONNECTION_BUSY, 15);
	struct connection_entry *own = enter(2, CONNECTION_IDLE, LATE);
	for (uint64_t address = 10; entry_count < MAX; address++)
		enter(address, CONNECTION_BUSY, LATE);
	connection_set_kind(table, own, CONNECTION_SLOW, LATE);
	struct connection_entry extra;
	assert_int_equal(try_enter(&extra, 2, false, LATE), ERR_BUSY);
	connection_set_kind(table, own, CONNECTION_IDLE, LATE);
	enter(2, CONNECTION_BUSY, LATE);
	expect_cut(own);
	assert_false(alone->is_cut);
	enter(30, CONNECTION_BUSY, LATE);
	expect_cut(alone);
}

/* A few slow requests are not an attack. Many are evicted after everything else, very many before
 * the idle connections. */
TEST_CASE(test_slow)
{
	struct connection_entry extra;
	enter_many(1, CONNECTION_SLOW, 8);
	enter_many(2, CONNECTION_SLOW, 8);
	enter_many(3, CONNECTION_BUSY, 8);
	assert_int_equal(try_enter(&extra, 4, false, LATE), ERR_BUSY);
	for (int i = 8; i < 16; i++)
		connection_remove(table, &entries[i]);
	struct connection_entry *idle = enter(4, CONNECTION_IDLE, LATE);
	struct connection_entry *other = enter(5, CONNECTION_IDLE, LATE);
	enter_many(1, CONNECTION_SLOW, 6);
	enter(6, CONNECTION_BUSY, LATE);
	expect_cut(idle);
	connection_remove(table, other);
	other = enter(5, CONNECTION_IDLE, LATE);
	for (int i = 16; i < 20; i++)
		connection_remove(table, &entries[i]);
	enter_many(1, CONNECTION_SLOW, 3);
	enter(7, CONNECTION_BUSY, LATE);
	enter(8, CONNECTION_BUSY, LATE);
	expect_cut(&entries[0]);
	assert_false(other->is_cut);
	enter(9, CONNECTION_BUSY, LATE);
	expect_cut(other);
	enter(10, CONNECTION_BUSY, LATE);
	expect_cut(&entries[1]);
}

/* Few connections each of many addresses: they are evicted when they have been slow for long, but
 * neither the last one of an address nor for each other. */
TEST_CASE(test_slow_for_long)
{
	struct connection_entry extra;
	struct connection_entry *alone = enter(9, CONNECTION_SLOW, 0);
	for (uint64_t address = 1; address <= 3; address++)
		enter_many(address, CONNECTION_SLOW, 7);
	enter_many(4, CONNECTION_SLOW, 2);
	assert_int_equal(try_enter(&extra, 5, false, LATE + 9 * US_PER_SECOND), ERR_BUSY);
	assert_int_equal(try_enter(&extra, 2, false, LATE + 10 * US_PER_SECOND), ERR_BUSY);
	enter(5, CONNECTION_BUSY, LATE + 10 * US_PER_SECOND);
	expect_cut(&entries[1]);
	for (uint64_t address = 10; address < 28; address++)
		enter(address, CONNECTION_BUSY, LATE + 10 * US_PER_SECOND);
	assert_int_equal(try_enter(&extra, 30, false, LATE + 10 * US_PER_SECOND), ERR_BUSY);
	assert_false(alone->is_cut);
	assert_int_equal(cut_count, 19);
}

/* The connections of a proxy belong to many clients: they are evicted last, and their number is not
 * compared. */
TEST_CASE(test_proxy)
{
	for (int i = 0; i < 22; i++) {
		assert_int_equal(try_enter(&entries[entry_count++], 1, true, LATE), OK);
		connection_set_kind(table, &entries[i], CONNECTION_IDLE, LATE);
	}
	struct connection_entry *direct = enter(1, CONNECTION_IDLE, LATE);
	enter(2, CONNECTION_BUSY, LATE);
	assert_int_equal(try_enter(&entries[entry_count++], 1, true, LATE), OK);
	expect_cut(direct);
	enter(3, CONNECTION_BUSY, LATE);
	expect_cut(&entries[0]);
}

TEST_CASE(test_counts_by_kind)
{
	size_t counts[CONNECTION_KINDS + 1];
	enter_many(1, CONNECTION_BUSY, 5);
	enter_many(2, CONNECTION_IDLE, 4);
	enter_many(3, CONNECTION_SLOW, 3);
	enter_many(4, CONNECTION_UNFINISHED, 2);
	assert_true(connection_set_kind(table, &entries[0], CONNECTION_IDLE, LATE));
	assert_true(connection_cut(table, &entries[5], ""));
	connection_remove(table, &entries[1]);
	connection_count(table, counts);
	static const size_t expected[] = {
		[CONNECTION_UNFINISHED] = 2,
		[CONNECTION_IDLE] = 4,
		[CONNECTION_SLOW] = 3,
		[CONNECTION_BUSY] = 3,
	};
	assert_memory_equal(counts, expected, sizeof counts);
}

TEST_CASE(test_forwarded)
{
	assert_int_equal(connection_forward(table, 7, 2), OK);
	assert_int_equal(connection_forward(table, 7, 2), OK);
	assert_int_equal(connection_forward(table, 7, 2), ERR_RATE_LIMITED);
	connection_forward_end(table, 7);
	assert_int_equal(connection_forward(table, 7, 2), OK);
	connection_forward_end(table, 7);
	connection_forward_end(table, 7);
}

TEST_MAIN_EACH(start, stop)
