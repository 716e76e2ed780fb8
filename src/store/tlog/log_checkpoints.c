#include "store/tlog/log_checkpoints.h"

#include <assert.h>

#include "store/transaction.h"

int store_add_log_checkpoint(struct store *store, const struct log_checkpoint *checkpoint,
                             struct error *error)
{
	assert(checkpoint->size > 0 && checkpoint->note.size > 0);
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query =
		db_query(connection, "INSERT INTO log_checkpoints (origin, size, root, signed_at, note,"
	                         " cosignatures, cosigners, is_final)"
	                         " VALUES ($1, $2, $3, $4, $5, '', 0, $6) ON CONFLICT DO NOTHING");
	db_bind(query, checkpoint->origin, (int64_t)checkpoint->size, &checkpoint->root,
	        checkpoint->signed_at_us, checkpoint->note, checkpoint->is_final);
	return end_write(connection, db_execute(query, NULL, error), error);
}

int store_set_cosignatures(struct store *store, const struct log_checkpoint *checkpoint,
                           struct slice known, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query =
		db_query(connection, "UPDATE log_checkpoints SET cosignatures = $3, cosigners = $4,"
	                         " is_final = $5 WHERE origin = $1 AND size = $2 AND cosignatures = $6"
	                         " AND is_final <= $5");
	db_bind(query, checkpoint->origin, (int64_t)checkpoint->size, checkpoint->cosignatures,
	        checkpoint->cosigners, checkpoint->is_final, known);
	return end_write_of_one(connection, query, error);
}

#define COLUMNS                                                                                    \
	"SELECT origin, size, root, signed_at, note, cosignatures, cosigners, is_final"                \
	" FROM log_checkpoints WHERE origin = $1"

static struct log_checkpoint take_columns(struct row *row)
{
	return (struct log_checkpoint){
		.origin = row_string(row, 0),
		.size = (uint64_t)db_integer(row->query, 1),
		.root = store_sha256(db_blob(row->query, 2)),
		.signed_at_us = db_integer(row->query, 3),
		.note = slice_of(row_string(row, 4)),
		.cosignatures = slice_of(row_string(row, 5)),
		.cosigners = db_integer(row->query, 6),
		.is_final = db_integer(row->query, 7) == 1,
	};
}

static int read_one(struct db_connection *connection, struct row *row, struct log_checkpoint *ret,
                    struct error *error)
{
	struct log_checkpoint checkpoint = {0};
	bool found = db_step(row->query);
	if (found)
		checkpoint = take_columns(row);
	int result = end_read(connection, row_result(row, found, error));
	if (!result)
		*ret = checkpoint;
	return result;
}

int store_get_newest_checkpoint(struct store *store, const char *origin,
                                enum checkpoint_choice choice, struct arena *arena,
                                struct log_checkpoint *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = db_query(connection, COLUMNS " AND is_final >= $2"
	                                                        " ORDER BY size DESC LIMIT 1")};
	db_bind(row.query, origin, (int64_t)(choice == CHECKPOINT_FINAL));
	return read_one(connection, &row, ret, error);
}

int store_list_final_checkpoints(struct store *store, const char *origin, size_t limit,
                                 struct arena *arena, struct log_checkpoint **ret_items,
                                 size_t *ret_count, struct error *error)
{
	struct log_checkpoint *items = arena_alloc(arena, limit * sizeof *items);
	size_t count = 0;
	if (!items)
		return ERR_NO_MEMORY;
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = db_query(connection, COLUMNS " AND is_final = 1"
	                                                        " ORDER BY size DESC LIMIT $2")};
	db_bind(row.query, origin, (int64_t)limit);
	while (count < limit && db_step(row.query))
		items[count++] = take_columns(&row);
	int result = end_read(connection, row_result(&row, true, error));
	if (!result) {
		*ret_items = items;
		*ret_count = count;
	}
	return result;
}

int store_find_covering_checkpoint(struct store *store, const char *origin, uint64_t index,
                                   int64_t cosigners_min, struct arena *arena,
                                   struct log_checkpoint *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = db_query(connection, COLUMNS " AND size > $2 AND cosigners >= $3"
	                                                        " ORDER BY size LIMIT 1")};
	db_bind(row.query, origin, (int64_t)index, cosigners_min);
	return read_one(connection, &row, ret, error);
}

int store_get_log_end(struct store *store, const char *origin, bool *ret_ended, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT 1 FROM rollbacks WHERE ended_log = $1 LIMIT 1");
	db_bind(query, origin);
	*ret_ended = db_step(query);
	return end_read(connection, db_end(query, error));
}
