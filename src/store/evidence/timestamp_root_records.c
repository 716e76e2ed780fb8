#include "store/evidence/timestamp_root_records.h"

#include "store/transaction.h"

static int check_room(struct db_connection *connection, const struct sha256 *sha256,
                      struct error *error)
{
	struct db_query *query = db_query(connection, "SELECT COUNT(*) FROM timestamp_roots"
	                                              " WHERE sha256 <> $1");
	db_bind_blob(query, sha256, sizeof *sha256);
	bool full = db_step(query) && db_integer(query, 0) >= TIMESTAMP_ROOTS_MAX;
	int result = db_end(query, error);
	return result || !full ? result
	                       : error_cause(error, ERR_FULL,
	                                     "the store has %d timestamp roots, the maximum: use a "
	                                     "timestamp authority of one of these roots",
	                                     TIMESTAMP_ROOTS_MAX);
}

int store_add_timestamp_root(struct store *store, const struct sha256 *sha256, struct slice pem,
                             struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	int result = check_room(connection, sha256, error);
	if (result)
		return end_write(connection, result, error);
	struct db_query *query =
		db_query(connection, "INSERT INTO timestamp_roots (sha256, certificate, first_used)"
	                         " VALUES ($1, $2, $3) ON CONFLICT DO NOTHING");
	db_bind(query, sha256, pem, store_now_us(store));
	return end_write(connection, db_execute(query, NULL, error), error);
}

int store_list_timestamp_roots(struct store *store, struct arena *arena, const char ***ret_items,
                               size_t *ret_count, struct error *error)
{
	const char **items = NULL;
	bool more = false;
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {
		.query = db_query(connection,
	                      "SELECT certificate FROM timestamp_roots ORDER BY first_used, sha256"),
		.arena = arena,
	};
	static const struct member column[] = {{"certificate", MEMBER_STRING, 0, sizeof *items}};
	static const struct row_type type = ROW_TYPE(*items, column, NULL);
	*ret_count = 0;
	int result = row_list(&row, &type, &items, ret_count, &more, TIMESTAMP_ROOTS_MAX, error);
	*ret_items = items;
	return end_read(connection, result);
}
