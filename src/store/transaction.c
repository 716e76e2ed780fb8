#include "store/transaction.h"

#include <assert.h>
#include <stdio.h>

#include "store/audit/audit_log.h"
#include "store/people/authorization.h"
#include "store/shards/shard_routing.h"

/* Fails the transaction with the error of its begin. */
static void fail(struct db_connection *connection, int result, const struct error *cause,
                 struct error **error)
{
	struct error first = *cause;
	first.code = result;
	(void)db_fail(connection, &first);
	if (error && *error)
		**error = *cause;
	if (error)
		*error = NULL;
}

static struct db_connection *begin(struct db_connection *connection, struct error **error)
{
	struct error cause = {0};
	int result = db_begin(connection, &cause);
	if (result)
		fail(connection, result, &cause, error);
	return connection;
}

struct db_connection *begin_write(struct store *store, struct error **error)
{
	struct act *act = store->act;
	bool urgent = act && act->urgent && !act->recorded;
	struct db_connection *connection =
		begin(urgent ? db_take_local(store->db) : db_take_writer(store->db), error);
	if (!act || db_failure(connection))
		return connection;
	struct error cause = {0};
	int result = OK;
	/* An operation of several transactions is recorded with the first and authorized in each. */
	if (!act->recorded) {
		db_attach(connection, act);
		result = audit_begin(connection, act, &cause);
	} else if (act->authorization) {
		result = authorization_check(connection, act->authorization, &cause);
	}
	if (result)
		fail(connection, result, &cause, error);
	return connection;
}

struct db_connection *begin_local(struct store *store, struct error **error)
{
	return begin(db_take_local(store->db), error);
}

struct db_connection *begin_registrar(struct store *store, struct error **error)
{
	assert(!db_is_shared(store->db));
	return begin(db_take_registrar(store->db, 0, 0), error);
}

/* Returns the first error: that of the transaction, or else that of its caller. */
static int first_error(struct db_connection *connection, int result)
{
	int failure = db_failure(connection);
	return failure ? failure : result;
}

int end_write(struct db_connection *connection, int result, struct error *error)
{
	struct act *act = db_attached(connection);
	assert(!act || !act->recorded); /* an operation has one record */
	result = first_error(connection, result);
	if (!result && act)
		result = audit_write(connection, act, error);
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

struct db_connection *begin_read(struct store *store, struct error **error)
{
	return begin(db_take_reader(store->db), error);
}

int end_read(struct db_connection *connection, int result)
{
	result = first_error(connection, result);
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
	assert(*count <= (size_t)limit);
	if (*count == (size_t)limit) {
		*more = true;
		return NULL;
	}
	return *items + (*count)++ * item_size;
}

static void read_column(struct row *row, const struct member *column, int place, char *member)
{
	struct db_query *query = row->query;
	struct slice text;
	switch (column->kind) {
	case MEMBER_OTHER: break;
	case MEMBER_CHARACTERS:
		text = db_text(query, place);
		memcpy(member, text.data, text.size < column->size ? text.size : column->size - 1);
		break;
	case MEMBER_STRING: *(const char **)member = row_string(row, place); break;
	case MEMBER_BYTES: *(struct slice *)member = row_bytes(row, place); break;
	case MEMBER_SHA256: *(struct sha256 *)member = store_sha256(db_blob(query, place)); break;
	case MEMBER_INT: *(int *)member = (int)db_integer(query, place); break;
	case MEMBER_INT64:
		*(int64_t *)member =
			member_is_time(column) ? row_time(query, place) : db_integer(query, place);
		break;
	case MEMBER_BOOL: *(bool *)member = db_integer(query, place) != 0; break;
	}
}

void row_read(struct row *row, const struct row_type *type, int first, void *record)
{
	memset(record, 0, type->size);
	for (size_t i = 0; i < type->count; i++) {
		assert(type->columns[i].offset < type->size);
		read_column(row, &type->columns[i], first + (int)i,
		            (char *)record + type->columns[i].offset);
	}
	if (type->complete)
		type->complete(row, record);
}

int row_find(struct row *row, const struct row_type *type, void *record, enum message what,
             struct slice id, struct error *error)
{
	bool found = db_step(row->query);
	if (found)
		row_read(row, type, 0, record);
	return row_end(row, found, what, id, error);
}

int row_list(struct row *row, const struct row_type *type, void *items_pointer, size_t *count,
             bool *more, int64_t limit, struct error *error)
{
	void *item;
	while (!row->failed && db_step(row->query) &&
	       (item = list_add(row, items_pointer, count, more, limit, type->size)))
		row_read(row, type, 0, item);
	return row_result(row, true, error);
}

int find_account_number(struct db_connection *connection, struct slice account_id,
                        int64_t *ret_account, struct error *error)
{
	struct row row = {.query = routing_query_one(
						  connection, ROUTING_PLACE("accounts", "account_id"), account_id,
						  ROUTING_TEXTS("SELECT account FROM accounts WHERE account_id = $1", ""))};
	bool found = db_step(row.query);
	if (found)
		*ret_account = db_integer(row.query, 0);
	return row_end(&row, found, MSG_STORE_NO_ACCOUNT, account_id, error);
}

int find_channel_number(struct db_connection *connection, struct slice channel_id,
                        int64_t *ret_account, int64_t *ret_channel, struct error *error)
{
	struct row row = {
		.query = routing_query_one(
			connection, ROUTING_PLACE("channels", "channel_id"), channel_id,
			ROUTING_TEXTS("SELECT account, channel FROM channels WHERE channel_id = $1", ""))};
	bool found = db_step(row.query);
	if (found) {
		*ret_account = db_integer(row.query, 0);
		*ret_channel = db_integer(row.query, 1);
	}
	return row_end(&row, found, MSG_STORE_NO_CHANNEL, channel_id, error);
}

int lock_account(struct db_connection *connection, int64_t account, struct error *error)
{
	db_bind_to_shard(connection, account);
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
