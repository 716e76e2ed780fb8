#include "store/transaction.h"

#include <assert.h>
#include <stdio.h>

#include "store/audit/acts.h"
#include "store/people/standing.h"
#include "store/shards/reach.h"

int begin_write(struct store *store, struct db_connection **ret_connection, struct error *error)
{
	bool urgent = store->act && store->act->urgent && !store->act->recorded;
	struct db_connection *connection =
		urgent ? db_take_local(store->db) : db_take_writer(store->db);
	int result = db_begin(connection, error);
	if (result) {
		db_give(connection);
		return result;
	}
	/* An operation of several transactions is recorded with the first and authorized in each. */
	if (store->act && !store->act->recorded) {
		db_keep(connection, store->act);
		result = act_begin(connection, store->act, error);
	} else if (store->act && store->act->standing) {
		result = standing_check(connection, store->act->standing, error);
	}
	if (result) {
		db_give(connection);
		return result;
	}
	*ret_connection = connection;
	return OK;
}

int begin_local(struct store *store, struct db_connection **ret_connection, struct error *error)
{
	struct db_connection *connection = db_take_local(store->db);
	int result = db_begin(connection, error);
	if (result) {
		db_give(connection);
		return result;
	}
	*ret_connection = connection;
	return OK;
}

int end_write(struct db_connection *connection, int result, struct error *error)
{
	struct act *act = db_kept(connection);
	assert(!act || !act->recorded); /* an operation has one record */
	if (!result && act)
		result = act_write(connection, act, error);
	if (!result)
		result = db_commit(connection, error);
	if (act)
		act->recorded = !result;
	db_give(connection);
	return result;
}

int end_write_of_one(struct db_connection *connection, struct db_query *query, struct error *error)
{
	int64_t changes = 0;
	int result = db_execute(query, &changes, error);
	if (!result && changes != 1)
		result = ERR_NOT_FOUND;
	return end_write(connection, result, error);
}

int begin_read(struct store *store, struct db_connection **ret_connection, struct error *error)
{
	struct db_connection *connection = db_take_reader(store->db);
	int result = db_begin(connection, error);
	if (result) {
		db_give(connection);
		return result;
	}
	*ret_connection = connection;
	return OK;
}

int end_read(struct db_connection *connection, int result)
{
	db_give(connection);
	return result;
}

struct slice row_bytes(struct row *row, int column)
{
	if (db_is_null(row->query, column))
		return slice_make("", 0);
	struct slice bytes = db_blob(row->query, column);
	const char *copy = arena_copy(row->arena, bytes.data, bytes.size);
	if (!copy)
		row->failed = true;
	return slice_make(copy, copy ? bytes.size : 0);
}

const char *row_string(struct row *row, int column)
{
	if (db_is_null(row->query, column))
		return NULL;
	struct slice text = db_text(row->query, column);
	const char *copy = arena_copy(row->arena, text.data, text.size);
	if (!copy)
		row->failed = true;
	return copy;
}

int64_t row_time(struct db_query *query, int column)
{
	return db_is_null(query, column) ? TIME_NONE : db_integer(query, column);
}

static void format_unknown(const char *what, struct slice text, const char *id,
                           char words[ROW_UNKNOWN_MAX])
{
	snprintf(words, ROW_UNKNOWN_MAX, "%.64s: \"%.*s\" is not a valid %s", id,
	         text.size < 32 ? (int)text.size : 32, text.data, what);
}

int unknown_text(const char *what, struct slice text, const char *id, struct error *error)
{
	char words[ROW_UNKNOWN_MAX];
	format_unknown(what, text, id, words);
	return error_cause(error, ERR_CORRUPT, "%s", words);
}

void row_expect(struct row *row, bool known, const char *what, int column, const char *id)
{
	if (!known && !*row->unknown)
		format_unknown(what, db_text(row->query, column), id, row->unknown);
}

static int not_found(enum message what, struct slice id, struct error *error)
{
	char text[ID_SIZE];
	store_copy_id(text, id);
	return error_set(error, ERR_NOT_FOUND, what, text, NULL);
}

int row_result(struct row *row, bool found, struct error *error)
{
	int result = db_end(row->query, error);
	if (result)
		return result;
	if (!found)
		return ERR_NOT_FOUND;
	if (row->failed)
		return error_cause(error, ERR_NO_MEMORY, "reading a row");
	return *row->unknown ? error_cause(error, ERR_CORRUPT, "%s", row->unknown) : OK;
}

int row_end(struct row *row, bool found, enum message what, struct slice id, struct error *error)
{
	int result = row_result(row, found, error);
	return result == ERR_NOT_FOUND ? not_found(what, id, error) : result;
}

void *list_add(struct row *row, void *items_pointer, size_t *count, bool *more, int64_t limit,
               size_t item_size)
{
	char **items = items_pointer;
	if (!*items)
		*items = arena_alloc(row->arena, (size_t)limit * item_size);
	if (!*items) {
		row->failed = true;
		return NULL;
	}
	if (*count == (size_t)limit) {
		*more = true;
		return NULL;
	}
	return *items + (*count)++ * item_size;
}

int find_account_number(struct db_connection *connection, struct slice account_id,
                        int64_t *ret_account, struct error *error)
{
	struct row row = {.query = reach_query_one(
						  connection, REACH_PLACE("accounts", "account_id"), account_id,
						  REACH_TEXTS("SELECT account FROM accounts WHERE account_id = $1", ""))};
	bool found = db_step(row.query);
	if (found)
		*ret_account = db_integer(row.query, 0);
	return row_end(&row, found, MSG_STORE_NO_ACCOUNT, account_id, error);
}

int find_channel_number(struct db_connection *connection, struct slice channel_id,
                        int64_t *ret_account, int64_t *ret_channel, struct error *error)
{
	struct row row = {
		.query = reach_query_one(
			connection, REACH_PLACE("channels", "channel_id"), channel_id,
			REACH_TEXTS("SELECT account, channel FROM channels WHERE channel_id = $1", ""))};
	bool found = db_step(row.query);
	if (found) {
		*ret_account = db_integer(row.query, 0);
		*ret_channel = db_integer(row.query, 1);
	}
	return row_end(&row, found, MSG_STORE_NO_CHANNEL, channel_id, error);
}

int lock_account(struct db_connection *connection, int64_t account, struct error *error)
{
	db_keep_to_shard(connection, account);
	struct db_query *query =
		db_query(connection, "SELECT account FROM accounts WHERE account = $1 FOR UPDATE");
	db_bind_integer(query, account);
	return db_execute(query, NULL, error);
}

int64_t due_at_once_us(struct db_connection *connection, int64_t now_us)
{
	int64_t shared_us = db_now_us(db_of(connection));
	return now_us < shared_us ? now_us : shared_us;
}

int find_filters(struct db_connection *connection, struct slice account_id, struct slice channel_id,
                 int64_t *ret_account, int64_t *ret_channel, struct error *error)
{
	int result = OK;
	int64_t account_of_channel = 0;
	*ret_account = *ret_channel = 0;
	if (account_id.size)
		result = find_account_number(connection, account_id, ret_account, error);
	if (!result && channel_id.size)
		result =
			find_channel_number(connection, channel_id, &account_of_channel, ret_channel, error);
	return result;
}
