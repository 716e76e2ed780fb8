/* The entries of the log, which are kept with the blocks of their rounds. */
#include <assert.h>
#include <inttypes.h>

#include "store/events/segments.h"
#include "store/tlog/append.h"

/* Reads entries of one block. *ret_count is 0 if there is no block with that entry. */
static int read_of_block(struct db_connection *connection, uint64_t first, uint64_t size,
                         size_t limit, struct tlog_entry *ret_entries, size_t *ret_count,
                         struct error *error)
{
	struct db_query *query =
		db_query_long(connection, "SELECT log_first, log_entries FROM round_blocks"
	                              " WHERE log_first <= $1 ORDER BY log_first DESC LIMIT 1");
	db_bind_integer(query, (int64_t)first);
	*ret_count = 0;
	if (db_step(query)) {
		uint64_t skipped = first - (uint64_t)db_integer(query, 0);
		struct slice packed = db_blob(query, 1);
		uint64_t end = packed.size / TLOG_ENTRY_PACKED_SIZE;
		if (end > size - (first - skipped))
			end = size - (first - skipped);
		for (; skipped < end && *ret_count < limit; skipped++)
			ret_entries[(*ret_count)++] =
				tlog_entry_unpack((const uint8_t *)packed.data + skipped * TLOG_ENTRY_PACKED_SIZE);
	}
	return db_end(query, error);
}

int store_read_log_entries(struct store *store, uint64_t first, size_t limit,
                           struct tlog_entry *ret_entries, size_t *ret_count, struct error *error)
{
	struct log_head head;
	assert(limit >= 1);
	*ret_count = 0;
	int result = store_get_log_head(store, &head, error);
	if (!result && first >= head.size)
		return ERR_NOT_FOUND;
	struct db_connection *connection = begin_read(store, &error);
	while (!result && *ret_count < limit && first + *ret_count < head.size) {
		size_t count;
		result = read_of_block(connection, first + *ret_count, head.size, limit - *ret_count,
		                       ret_entries + *ret_count, &count, error);
		if (!result && count == 0)
			result = error_cause(error, ERR_CORRUPT, "entry %" PRIu64 " of the log is missing",
			                     first + *ret_count);
		*ret_count += count;
	}
	return end_read(connection, result);
}

int store_find_log_index(struct store *store, int64_t round, int64_t place, uint64_t *ret_index,
                         struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT log_first FROM round_blocks WHERE round = $1 AND block = $2"
	                         " AND log_first IS NOT NULL");
	db_bind(query, round, place / ROUND_BLOCK_SEGMENTS_MAX);
	bool found = place >= 0 && db_step(query);
	int64_t log_first = found ? db_integer(query, 0) : 0;
	int result = end_read(connection, db_end(query, error));
	if (!result && found)
		*ret_index = (uint64_t)(log_first + place % ROUND_BLOCK_SEGMENTS_MAX);
	return result || found ? result : ERR_NOT_FOUND;
}
