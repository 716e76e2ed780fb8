/* The accounts with work, of shards that have more of them than a query returns. The stand-in for
 * the database has two shards with the given accounts. */
#include "testing.h"

#include <endian.h>

#include "store/shards/shard_work.h"

#define LIMIT 3
#define SHARDS 2
#define ACCOUNTS 10

static const int64_t shards[SHARDS][ACCOUNTS] = {{0, 2, 4, 6, 8, 10, 12, 14, 16, 18}, {1, 21}};
static const size_t counts[SHARDS] = {ACCOUNTS, 2};
static bool is_away; /* the server of the first shard */

bool __wrap_db_is_sharded(const struct db *db);
int __wrap_db_query_shards(struct db *db, const struct db_shard_part *parts, size_t count,
                           db_found_function *found, void *context,
                           struct db_shard_query_result *ret, struct error *error);

bool __wrap_db_is_sharded(const struct db *db)
{
	(void)db;
	return true;
}

/* All accounts have mails, and no other work. */
int __wrap_db_query_shards(struct db *db, const struct db_shard_part *parts, size_t count,
                           db_found_function *found, void *context,
                           struct db_shard_query_result *ret, struct error *error)
{
	(void)db, (void)error;
	assert_int_equal(count, WORK_KINDS);
	assert_int_equal(parts[WORK_TOPUPS].from, 0);
	for (size_t shard = is_away; shard < SHARDS; shard++) {
		size_t first = 0;
		while (first < counts[shard] && shards[shard][first] < parts[WORK_MAILS].from)
			first++;
		for (size_t i = 0; i < counts[shard] && i < LIMIT; i++)
			found(context, WORK_MAILS, shards[shard][(first + i) % counts[shard]], i + 1 == LIMIT);
	}
	*ret = (struct db_shard_query_result){.distributed = true, .all = !is_away};
	return OK;
}

#define ITEM_SIZE (4 + 8) /* an account in an array: its size and its number, big-endian */

/* Returns whether the account is among those with mails. */
static bool has_turn(struct work_accounts *of, int64_t account)
{
	uint64_t number = htobe64((uint64_t)account);
	const struct buf *wire = &of->accounts.wire;
	for (size_t i = 1; i <= of->accounts.count; i++)
		if (memcmp(wire->data + wire->size - i * ITEM_SIZE + 4, &number, sizeof number) == 0)
			return true;
	return false;
}

static void find(struct store *store, struct work_accounts *ret)
{
	work_invalidate(store);
	assert_int_equal(shard_work_find(store, WORK_MAILS, ret, NULL), OK);
	assert_false(ret->all);
}

TEST_CASE(each_account_has_its_turn)
{
	struct store store = {0};
	int turns[SHARDS][ACCOUNTS] = {0};
	assert_int_equal(shard_work_open(&store), OK);
	for (int round = 0; round < 2 * ACCOUNTS; round++) {
		struct work_accounts of;
		find(&store, &of);
		assert_int_equal(of.accounts.count, LIMIT + 2);
		for (size_t shard = 0; shard < SHARDS; shard++)
			for (size_t i = 0; i < counts[shard]; i++)
				turns[shard][i] += has_turn(&of, shards[shard][i]);
		shard_work_free(&of);
	}
	for (size_t i = 0; i < ACCOUNTS; i++)
		assert_int_equal(turns[0][i], 2 * LIMIT);
	assert_int_equal(turns[1][0], 2 * ACCOUNTS);
	assert_int_equal(turns[1][1], 2 * ACCOUNTS);
	shard_work_close(&store);
}

TEST_CASE(all_begin_with_the_first_again_when_none_is_left)
{
	struct store store = {0};
	struct work_accounts of;
	assert_int_equal(shard_work_open(&store), OK);
	find(&store, &of);
	shard_work_free(&of);
	find(&store, &of);
	assert_false(has_turn(&of, 0));
	shard_work_free(&of);
	is_away = true;
	find(&store, &of);
	assert_int_equal(of.accounts.count, 2);
	shard_work_free(&of);
	is_away = false;
	find(&store, &of);
	assert_true(has_turn(&of, 0));
	shard_work_free(&of);
	shard_work_close(&store);
}

TEST_MAIN(NULL, NULL)
