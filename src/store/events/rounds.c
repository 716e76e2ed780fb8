/* Writing a round over its staged segments, and reading rounds. */
#include <assert.h>

#include "store/events/staged_round.h"
#include "store/notices/subscribers.h"
#include "store/tlog/append.h"

/* ---- a round ---- */

/* The log after the round. */
struct log_after {
	bool is_open; /* false: the log has not begun */
	uint64_t size;
	struct sha256 root;
};

static int find_log_after(struct db_connection *connection, const struct round_record *round,
                          int64_t blocks, struct log_after *ret, struct error *error)
{
	struct log_position position;
	int result = log_find_position(connection, round->round, blocks, &position, error);
	*ret = (struct log_after){.is_open = position.is_open, .size = position.size};
	return result || !position.is_open ? result
	                                   : log_root(connection, position.size, &ret->root, error);
}

static int insert_round(struct db_connection *connection, const struct round_record *round,
                        const struct log_after *log, struct error *error)
{
	struct db_query *query = db_query(
		connection,
		"INSERT INTO seal_rounds (round, root, authority, kind, sealed_at, obtained_at, request,"
		" response_head, token, token_hash, blocks, log_size, log_root)"
		" SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13"
		" WHERE (SELECT COALESCE(MAX(round), 0) FROM seal_rounds) = $1 - 1");
	db_bind(query, round->round, &round->root, round->authority, round->kind, round->sealed_at_us,
	        round->obtained_at_us, db_bytes(round->request), db_bytes(round->response_head),
	        db_bytes(round->token), &round->token_hash, db_bytes(round->blocks),
	        db_value_if(log->is_open, (int64_t)log->size), log->is_open ? &log->root : NULL);
	int64_t changes = 0;
	int result = db_execute(query, &changes, error);
	if (!result && changes != 1)
		return error_cause(error, ERR_REFUSED, "round %lld is not the next round",
		                   (long long)round->round);
	return result;
}

static int insert_second(struct db_connection *connection, int64_t round,
                         const struct round_token *token, struct error *error)
{
	struct db_query *query =
		db_query(connection, "INSERT INTO round_tokens (round, authority, kind, sealed_at, request,"
	                         " response_head, token) VALUES ($1, $2, $3, $4, $5, $6, $7)");
	db_bind(query, round, token->authority, token->kind, token->sealed_at_us,
	        db_bytes(token->request), db_bytes(token->response_head), db_bytes(token->token));
	return db_execute(query, NULL, error);
}

int store_write_round(struct store *store, const struct round_record *round, struct error *error)
{
	int64_t blocks = (int64_t)(round->blocks.size / SHA256_SIZE);
	if (blocks < 1 || round->blocks.size % SHA256_SIZE)
		return error_cause(error, ERR_USAGE, "the block roots of a round are not a list of hashes");
	assert(round->round >= 1 && round->token.size > 0);
	struct log_after log;
	struct db_connection *connection = begin_write(store, &error);
	int result = take_staged(connection, round->round, blocks, round->round + 1, 0, error)
		?: check_staged_changes(connection, round, error)
		?: find_log_after(connection, round, blocks, &log, error)
		?: insert_round(connection, round, &log, error);
	if (!result && round->second)
		result = insert_second(connection, round->round, round->second, error);
	if (!result)
		result = write_sealed_notices(connection, round->round, round->sealed_at_us, error);
	return end_write(connection, result, error);
}

/* ---- reading ---- */

int read_last_round(struct db_connection *connection, int64_t *ret_round,
                    struct sha256 *ret_token_hash, struct error *error)
{
	struct db_query *query = db_query(
		connection, "SELECT round, token_hash FROM seal_rounds ORDER BY round DESC LIMIT 1");
	*ret_round = 0;
	if (db_step(query)) {
		*ret_round = db_integer(query, 0);
		*ret_token_hash = store_sha256(db_blob(query, 1));
	}
	return db_end(query, error);
}

int store_last_round(struct store *store, int64_t *ret_round, struct sha256 *ret_token_hash,
                     struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t round;
	struct sha256 token_hash = {{0}};
	int result = end_read(connection, read_last_round(connection, &round, &token_hash, error));
	if (!result) {
		*ret_round = round;
		*ret_token_hash = token_hash;
	}
	return result;
}

int store_last_seal_time(struct store *store, int64_t *ret_sealed_at_us, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT sealed_at FROM seal_rounds ORDER BY round DESC LIMIT 1");
	int64_t sealed_at_us = db_step(query) ? db_integer(query, 0) : TIME_NONE;
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_sealed_at_us = sealed_at_us;
	return result;
}

int store_get_round(struct store *store, int64_t round, struct arena *arena,
                    struct round_record *ret_round, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query =
	                      db_query(connection,
	                               "SELECT root, authority, kind, sealed_at, obtained_at, request,"
	                               " response_head, token, token_hash, blocks FROM seal_rounds"
	                               " WHERE round = $1")};
	db_bind_integer(row.query, round);
	struct round_record record = {.round = round};
	bool found = db_step(row.query);
	if (found) {
		record.root = store_sha256(db_blob(row.query, 0));
		record.authority = row_string(&row, 1);
		record.kind = row_string(&row, 2);
		record.sealed_at_us = db_integer(row.query, 3);
		record.obtained_at_us = db_integer(row.query, 4);
		record.request = row_bytes(&row, 5);
		record.response_head = row_bytes(&row, 6);
		record.token = row_bytes(&row, 7);
		record.token_hash = store_sha256(db_blob(row.query, 8));
		record.blocks = row_bytes(&row, 9);
	}
	int result = end_read(connection, row_result(&row, found, error));
	if (!result)
		*ret_round = record;
	return result;
}

int store_get_second_token(struct store *store, int64_t round, struct arena *arena,
                           struct round_token *ret_token, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = db_query(connection, "SELECT authority, kind, sealed_at, request,"
	                                                " response_head, token FROM round_tokens"
	                                                " WHERE round = $1")};
	db_bind_integer(row.query, round);
	struct round_token token = {0};
	bool found = db_step(row.query);
	if (found) {
		token.authority = row_string(&row, 0);
		token.kind = row_string(&row, 1);
		token.sealed_at_us = db_integer(row.query, 2);
		token.request = row_bytes(&row, 3);
		token.response_head = row_bytes(&row, 4);
		token.token = row_bytes(&row, 5);
	}
	int result = end_read(connection, row_result(&row, found, error));
	if (!result)
		*ret_token = token;
	return result;
}
