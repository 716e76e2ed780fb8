/* What rounds seal, counted behind them: each block in a short transaction of its own, however many
 * accounts a round is of, since registration waits for whoever writes. How far that went is marked
 * where the round is written, so whoever comes next goes on from there. */
#include "store/events/segments.h"
#include "store/shards/work.h"
#include "store/transaction.h"
#include "store/usage/count.h"
#include "store/usage/totals.h"

#define SEAL_VALUES (4 + 2 + DELAY_BOUNDS) /* of SEAL_COLUMNS; the account first */
#define ACCOUNTS_AT_ONCE 256

struct uncounted {
	int64_t round, obtained_at_us;
	int64_t place, places;
};

int count_sealed_later(struct db_connection *connection, int64_t round, int64_t blocks,
                       struct error *error)
{
	struct db_query *query = db_query(
		connection, "INSERT INTO uncounted_rounds (round, place, places) VALUES ($1, 0, $2)");
	db_bind_integer(query, round);
	db_bind_integer(query, blocks * ROUND_BLOCK_SEGMENTS_MAX);
	return db_execute(query, NULL, error);
}

static int find_uncounted(struct db_connection *connection, bool *ret_found, struct uncounted *ret,
                          struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT u.round, r.obtained_at, u.place, u.places"
	                         " FROM uncounted_rounds u JOIN seal_rounds r ON r.round = u.round"
	                         " ORDER BY u.round LIMIT 1");
	*ret_found = db_step(query);
	if (*ret_found)
		*ret = (struct uncounted){db_integer(query, 0), db_integer(query, 1), db_integer(query, 2),
		                          db_integer(query, 3)};
	return db_end(query, error);
}

/* The next accounts of a block. Nothing of it reads an event, so that none that cannot be read
 * keeps it from being counted: when the first of each segment came was noted when it was staged. */
static int read_sealed(struct db_connection *connection, const struct uncounted *block,
                       int64_t after_account, int64_t rows[ACCOUNTS_AT_ONCE][SEAL_VALUES],
                       size_t *ret_count, struct error *error)
{
	struct db_query *query = db_query(connection, PLACED_TOTALS);
	db_bind_integer(query, block->round);
	db_bind_integer(query, block->obtained_at_us);
	db_bind_integer(query, after_account);
	db_bind_integer(query, ACCOUNTS_AT_ONCE);
	db_bind_integer(query, block->place);
	db_bind_integer(query, block->place + ROUND_BLOCK_SEGMENTS_MAX);
	size_t count = 0;
	for (; count < ACCOUNTS_AT_ONCE && db_step(query); count++)
		for (int i = 0; i < SEAL_VALUES; i++)
			rows[count][i] = db_integer(query, i);
	*ret_count = count;
	return db_end(query, error);
}

static int add_sealed(struct db_connection *connection, const int64_t row[SEAL_VALUES],
                      struct error *error)
{
	struct db_query *query =
		db_query(connection, "INSERT INTO daily_seals AS t (" SEAL_COLUMNS ") VALUES"
	                         " ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)" ADD_SEALS);
	for (int i = 0; i < SEAL_VALUES; i++)
		db_bind_integer(query, row[i]);
	return db_execute(query, NULL, error);
}

static int count_block(struct db_connection *connection, const struct uncounted *block,
                       struct error *error)
{
	int64_t rows[ACCOUNTS_AT_ONCE][SEAL_VALUES];
	int64_t after_account = -1;
	size_t count;
	int result;
	do {
		result = read_sealed(connection, block, after_account, rows, &count, error);
		for (size_t i = 0; i < count && !result; i++)
			result = add_sealed(connection, rows[i], error);
		if (count)
			after_account = rows[count - 1][0];
	} while (!result && count == ACCOUNTS_AT_ONCE);
	return result;
}

static int move_mark_on(struct db_connection *connection, const struct uncounted *block,
                        struct error *error)
{
	int64_t next = block->place + ROUND_BLOCK_SEGMENTS_MAX;
	if (next >= block->places) {
		struct db_query *query =
			db_query(connection, "DELETE FROM uncounted_rounds WHERE round = $1");
		db_bind_integer(query, block->round);
		return db_execute(query, NULL, error);
	}
	struct db_query *query =
		db_query(connection, "UPDATE uncounted_rounds SET place = $2 WHERE round = $1");
	db_bind_integer(query, block->round);
	db_bind_integer(query, next);
	return db_execute(query, NULL, error);
}

static int count_next(struct store *store, struct error *error)
{
	struct db_connection *connection;
	struct uncounted block;
	bool found;
	int result = begin_write(store, &connection, error);
	if (result)
		return result;
	result = find_uncounted(connection, &found, &block, error);
	if (!result && found)
		result = count_block(connection, &block, error);
	if (!result && found)
		result = move_mark_on(connection, &block, error);
	return end_write(connection, result, error);
}

int store_count_sealed(struct store *store, bool *ret_more, struct error *error)
{
	struct db_connection *connection;
	struct uncounted block;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	result = end_read(connection, find_uncounted(connection, ret_more, &block, error));
	/* A block is of accounts on any server: it waits while one is away. */
	*ret_more = !result && *ret_more && work_is_of_all(store);
	return !result && *ret_more ? count_next(store, error) : result;
}
