/* The tiles of the log's tree, and its size. */
#include "store/tlog/append.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* ---- tiles ---- */

static int read_tile(struct db_connection *connection, const struct tile_id *id,
                     struct sha256 *ret_hashes, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT hashes FROM log_tiles WHERE level = $1 AND tile = $2");
	db_bind(query, (int64_t)id->level, (int64_t)id->index);
	size_t size = id->width * sizeof *ret_hashes;
	bool found = db_step(query);
	struct slice hashes = found ? db_blob(query, 0) : slice_make(NULL, 0);
	found = found && hashes.size >= size;
	if (found)
		memcpy(ret_hashes, hashes.data, size);
	int result = db_end(query, error);
	if (!result && !found)
		return error_cause(error, ERR_CORRUPT,
		                   "tile %" PRIu64 " of level %d of the log has less than %u hashes",
		                   id->index, id->level, id->width);
	return result;
}

static int read_in_transaction(void *context, const struct tile_id *id, struct sha256 *ret_hashes,
                               struct error *error)
{
	return read_tile(context, id, ret_hashes, error);
}

static int write_in_transaction(void *context, const struct tile_id *id,
                                const struct sha256 *hashes, struct error *error)
{
	struct db_query *query =
		db_query(context, "INSERT INTO log_tiles (level, tile, hashes) VALUES ($1, $2, $3)"
	                      " ON CONFLICT (level, tile) DO UPDATE SET hashes = excluded.hashes");
	db_bind(query, (int64_t)id->level, (int64_t)id->index);
	db_bind_blob(query, hashes, id->width * sizeof *hashes);
	return db_execute(query, NULL, error);
}

int log_append(struct db_connection *connection, uint64_t size, const struct sha256 *leaves,
               size_t count, struct error *error)
{
	const struct tile_store tiles = {read_in_transaction, write_in_transaction, connection};
	return tiles_append(&tiles, size, leaves, count, error);
}

int log_root(struct db_connection *connection, uint64_t size, struct sha256 *ret,
             struct error *error)
{
	const struct tile_store tiles = {.read = read_in_transaction, .context = connection};
	struct tile_reader *reader = malloc(sizeof *reader);
	if (!reader)
		return ERR_NO_MEMORY;
	const struct merkle_source source = tile_reader_init(reader, &tiles, size);
	int result = merkle_root(&source, size, ret, error);
	free(reader);
	return result;
}

int store_read_log_tile(struct store *store, const struct tile_id *id, struct sha256 *ret_hashes,
                        struct error *error)
{
	assert(id->level >= 0 && id->width >= 1 && id->width <= TILE_WIDTH);
	struct db_connection *connection = begin_read(store, &error);
	return end_read(connection, read_tile(connection, id, ret_hashes, error));
}

/* ---- the size ---- */

#define HEAD_COLUMNS "SELECT log_size, log_root, round FROM seal_rounds"

static void read_head(struct db_query *query, struct log_head *ret)
{
	*ret = (struct log_head){.root = merkle_empty_root(), .round = db_integer(query, 2)};
	if (db_is_null(query, 0))
		return;
	ret->size = (uint64_t)db_integer(query, 0);
	ret->root = store_sha256(db_blob(query, 1));
}

static int read_last_head(struct db_connection *connection, struct log_head *ret,
                          struct error *error)
{
	struct db_query *query = db_query(connection, HEAD_COLUMNS " ORDER BY round DESC LIMIT 1");
	*ret = (struct log_head){.root = merkle_empty_root()};
	if (db_step(query))
		read_head(query, ret);
	return db_end(query, error);
}

int store_get_log_head(struct store *store, struct log_head *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct log_head head;
	int result = end_read(connection, read_last_head(connection, &head, error));
	if (!result)
		*ret = head;
	return result;
}

int store_get_log_head_of(struct store *store, int64_t round, struct log_head *ret,
                          struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, HEAD_COLUMNS " WHERE round = $1 AND log_size IS NOT NULL");
	db_bind_integer(query, round);
	struct log_head head;
	bool found = db_step(query);
	if (found)
		read_head(query, &head);
	int result = end_read(connection, db_end(query, error));
	if (!result && found)
		*ret = head;
	return result || found ? result : ERR_NOT_FOUND;
}

/* ---- staging ---- */

int log_find_position(struct db_connection *connection, int64_t round, int64_t number,
                      struct log_position *ret, struct error *error)
{
	*ret = (struct log_position){.is_open = true};
	if (number == 0) {
		struct log_head head;
		int result = read_last_head(connection, &head, error);
		ret->size = head.size;
		return result;
	}
	struct db_query *query = db_query(connection, "SELECT log_first, roots FROM round_blocks"
	                                              " WHERE round = $1 AND block = $2 - 1");
	db_bind(query, round, number);
	ret->is_open = db_step(query) && !db_is_null(query, 0);
	if (ret->is_open)
		ret->size = (uint64_t)db_integer(query, 0) + db_blob(query, 1).size / SHA256_SIZE;
	return db_end(query, error);
}
