/* Removal of staged blocks that cannot be timestamped; their contents are staged again. */
#include "store/evidence/evidence_rows.h"
#include "store/shards/shard_work.h"

/* Returns the last block of which any row exists; -1: none. */
static int find_last(struct db_connection *connection, int64_t stamp, int64_t *ret_block,
                     struct error *error)
{
	struct db_query *query = db_query(
		connection,
		"SELECT MAX(s.block) FROM (SELECT MAX(block) AS block FROM archive_timestamp_blocks"
		" WHERE stamp = $1 UNION ALL SELECT MAX(place) / 1024 FROM tokens_at_rest WHERE stamp = $1"
		" UNION ALL SELECT MAX(place) / 1024 FROM evidence_chains WHERE stamp = $1) s");
	db_bind_integer(query, stamp);
	*ret_block = db_step(query) && !db_is_null(query, 0) ? db_integer(query, 0) : -1;
	return db_end(query, error);
}

static int check_not_written(struct db_connection *connection, int64_t stamp, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT 1 FROM archive_timestamps WHERE stamp >= $1 LIMIT 1");
	db_bind_integer(query, stamp);
	bool found = db_step(query);
	int result = db_end(query, error);
	if (!result && found)
		return error_cause(error, ERR_REFUSED, "archive timestamp %lld is already written",
		                   (long long)stamp);
	return result;
}

static int unstage_block(struct db_connection *connection, int64_t stamp, int64_t block,
                         int64_t now_us, struct error *error)
{
	static const char *const statements[] = {
		"INSERT INTO evidence_queue (account, certification, reason, since, next_attempt_at,"
		" attempts) SELECT account, certification, CASE WHEN chain > 1 THEN 'digest'"
		" WHEN record > 1 THEN 'lost' ELSE 'first' END, $3, 0, 0 FROM evidence_chains"
		" WHERE stamp = $1 AND place / 1024 = $2 ON CONFLICT DO NOTHING",
		"DELETE FROM evidence_chains WHERE stamp = $1 AND place / 1024 = $2",
		("UPDATE tokens_at_rest SET stamp = NULL, place = NULL"
	     " WHERE stamp = $1 AND place / 1024 = $2"),
		"DELETE FROM archive_timestamp_blocks WHERE stamp = $1 AND block = $2",
	};
	int result = OK;
	for (size_t i = 0; i < sizeof statements / sizeof *statements && !result; i++) {
		struct db_query *query = db_query(connection, statements[i]);
		db_bind(query, stamp, block);
		if (i == 0)
			db_bind_integer(query, now_us);
		result = db_execute(query, NULL, error);
	}
	return result;
}

int store_unstage_leaves(struct store *store, int64_t stamp, int64_t from, int64_t now_us,
                         int64_t *ret_block, struct error *error)
{
	int64_t last = -1;
	struct db_connection *connection = begin_read(store, &error);
	int result = end_read(connection, find_last(connection, stamp, &last, error));
	if (result || last < from) {
		*ret_block = -1;
		return result;
	}
	connection = begin_write(store, &error);
	result = check_not_written(connection, stamp, error);
	if (!result)
		result = unstage_block(connection, stamp, last, now_us, error);
	result = end_write(connection, result, error);
	if (!result) {
		*ret_block = last;
		work_invalidate(store);
	}
	return result;
}
