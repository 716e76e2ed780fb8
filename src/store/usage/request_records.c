#include "store/usage/request_records.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/tuned.h"
#include "store/transaction.h"

#define FORGOTTEN_AT_ONCE 500 /* rows per transaction */
#define NUMBER_BYTES 8
#define CURSOR_DIGITS 16

/* ---- identifiers ---- */

static bool parse_hex(struct slice text, int64_t *ret)
{
	uint8_t bytes[NUMBER_BYTES];
	uint64_t number = 0;
	if (!hex_decode(text, bytes, sizeof bytes))
		return false;
	for (size_t i = 0; i < sizeof bytes; i++)
		number = number << 8 | bytes[i];
	*ret = (int64_t)number;
	return true;
}

bool request_number_parse(struct slice id, int64_t *ret_number)
{
	return id.size == 4 + CURSOR_DIGITS && memcmp(id.data, "req_", 4) == 0 &&
	       parse_hex(slice_make(id.data + 4, CURSOR_DIGITS), ret_number);
}

void request_number_text(int64_t number, char ret[REQUEST_NUMBER_SIZE])
{
	snprintf(ret, REQUEST_NUMBER_SIZE, "req_%016" PRIx64, (uint64_t)number);
}

static bool parse_cursor(struct slice text, int64_t *ret_at_us, int64_t *ret_number)
{
	return text.size == 2 * CURSOR_DIGITS + 1 && text.data[CURSOR_DIGITS] == '-' &&
	       parse_hex(slice_make(text.data, CURSOR_DIGITS), ret_at_us) &&
	       parse_hex(slice_make(text.data + CURSOR_DIGITS + 1, CURSOR_DIGITS), ret_number);
}

/* ---- adding ---- */

static int add_one(struct db_connection *connection, const struct request_record *record,
                   struct error *error)
{
	assert(record->represents > 0);
	struct db_query *query = db_query(
		connection,
		"INSERT INTO requests (account, at, request, channel, key, method, route, path, query,"
		" status, code, incident, duration, bytes_in, bytes_out, aborted, represents)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)"
		" ON CONFLICT (account, at, request) DO NOTHING");
	db_bind(query, record->account, record->at_us, record->number, record->channel, record->key,
	        record->method, record->route, slice_of(record->path), slice_of(record->query),
	        record->status, record->code);
	db_bind_string(query, *record->incident_id ? record->incident_id : NULL);
	db_bind(query, record->duration, record->bytes_in, record->bytes_out, record->aborted,
	        record->represents);
	return db_execute(query, NULL, error);
}

int store_add_requests(struct store *store, const struct request_record *records, size_t count,
                       size_t *ret_added, struct error *error)
{
	struct db_connection *connection = begin_local(store, &error);
	size_t added = 0;
	int result = OK;
	for (size_t i = 0; i < count && !result; i++) {
		if (db_is_unreachable(connection, records[i].account))
			continue;
		result = add_one(connection, &records[i], error);
		added++;
	}
	result = end_write(connection, result, error);
	if (!result)
		*ret_added = added;
	return result;
}

/* ---- listing ---- */

static const struct member columns[] = COLUMNS_OF(
	struct request_view, at_us, method, route, path, query, status, code, incident_id, duration,
	bytes_in, bytes_out, aborted, represents, channel_id, channel_name, key_id, key_name, mode);

static void complete(struct row *row, void *to)
{
	struct request_view *view = to;
	int64_t number = db_integer(row->query, (int)(sizeof columns / sizeof *columns));
	request_number_text(number, view->request_id);
	snprintf(view->cursor, sizeof view->cursor, "%016" PRIx64 "-%016" PRIx64, (uint64_t)view->at_us,
	         (uint64_t)number);
}

static const struct row_type view_type = ROW_TYPE(struct request_view, columns, complete);

/* Selects the rows first and then reads the names. */
#define REQUESTS(condition)                                                                        \
	"SELECT r.at, r.method, r.route, r.path, r.query, r.status, r.code, r.incident, r.duration,"   \
	" r.bytes_in, r.bytes_out, r.aborted, r.represents, c.channel_id, v.name, k.key_id, k.name,"   \
	" k.mode, r.request FROM (SELECT at, request, channel, key, method, route, path, query,"       \
	" status, code, incident, duration, bytes_in, bytes_out, aborted, represents FROM requests"    \
	" WHERE account = $1 AND at >= $2 AND at < $3 AND at <= $4 AND (at < $4 OR request < $5)"      \
	" AND ($6 = 0 OR channel = $6) AND ($7 = 0 OR key = $7) AND status >= $8 AND status <= $9"     \
	" " condition " ORDER BY at DESC, request DESC LIMIT $10) AS r"                                \
	" LEFT JOIN channels c ON c.account = $1 AND c.channel = r.channel"                            \
	" LEFT JOIN channel_configs v ON v.account = $1 AND v.channel = r.channel"                     \
	" AND v.version = c.config_version"                                                            \
	" LEFT JOIN api_keys k ON k.key = r.key AND k.account = $1"                                    \
	" ORDER BY r.at DESC, r.request DESC"

struct numbers {
	int64_t account, channel, key; /* 0: any */
	int64_t past_at_us, past_number;
};

static int find_channel(struct db_connection *connection, struct slice channel_id,
                        struct numbers *numbers, struct error *error)
{
	int64_t account = 0;
	char text[ID_SIZE];
	int result = find_channel_number(connection, channel_id, &account, &numbers->channel, error);
	if (result || account == numbers->account)
		return result;
	store_copy_id(text, channel_id);
	return error_set(error, ERR_NOT_FOUND, MSG_STORE_NO_CHANNEL, text, NULL);
}

static int find_key(struct db_connection *connection, struct slice key_id, struct numbers *numbers,
                    struct error *error)
{
	struct row row = {.query = db_query(connection, "SELECT key FROM api_keys"
	                                                " WHERE key_id = $1 AND account = $2")};
	db_bind(row.query, key_id, numbers->account);
	bool found = db_step(row.query);
	if (found)
		numbers->key = db_integer(row.query, 0);
	return row_end(&row, found, MSG_STORE_NO_KEY, key_id, error);
}

static int find_numbers(struct db_connection *connection, const struct request_filter *filter,
                        struct numbers *numbers, struct error *error)
{
	*numbers = (struct numbers){.past_at_us = INT64_MAX, .past_number = INT64_MAX};
	if (filter->after.size &&
	    !parse_cursor(filter->after, &numbers->past_at_us, &numbers->past_number))
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_CURSOR, NULL);
	int result = find_account_number(connection, filter->account_id, &numbers->account, error);
	if (!result && filter->channel_id.size)
		result = find_channel(connection, filter->channel_id, numbers, error);
	if (!result && filter->key_id.size)
		result = find_key(connection, filter->key_id, numbers, error);
	return result;
}

int store_list_requests(struct store *store, const struct request_filter *filter, int64_t limit,
                        struct arena *arena, struct request_view_list *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct numbers numbers;
	int result = find_numbers(connection, filter, &numbers, error);
	if (result)
		return end_read(connection, result);
	struct row row = {.arena = arena,
	                  .query = filter->has_number
	                               ? db_query(connection, REQUESTS("AND request = $11"))
	                               : db_query(connection, REQUESTS(""))};
	db_bind(row.query, numbers.account, filter->since_us, filter->until_us, numbers.past_at_us,
	        numbers.past_number, numbers.channel, numbers.key, filter->lowest_status,
	        filter->highest_status, limit + 1);
	if (filter->has_number)
		db_bind(row.query, filter->number);
	struct request_view_list list = {0};
	result = end_read(connection, row_list(&row, &view_type, LIST_OF(&list), limit, error));
	if (!result)
		*ret = list;
	return result;
}

/* ---- deleting ---- */

/* Finds the next account that has rows, and its oldest row. 0: no further account. */
static int find_next(struct store *store, int64_t past, int64_t *ret_account, int64_t *ret_at_us,
                     struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT account, at FROM requests WHERE account > $1"
	                         " ORDER BY account, at LIMIT 1");
	db_bind(query, past);
	bool found = db_step(query);
	*ret_account = found ? db_integer(query, 0) : 0;
	*ret_at_us = found ? db_integer(query, 1) : 0;
	return end_read(connection, db_end(query, error));
}

static int remove_some(struct store *store, int64_t account, int64_t before_us, int64_t *removed,
                       struct error *error)
{
	struct db_connection *connection = begin_local(store, &error);
	struct db_query *query = db_query(
		connection, "DELETE FROM requests WHERE account = $1 AND at < $2 AND at <= (SELECT MAX(at)"
					" FROM (SELECT at FROM requests WHERE account = $1 AND at < $2 ORDER BY at"
					" LIMIT $3) AS oldest)");
	db_bind(query, account, before_us, tuned_up_to("forgotten", FORGOTTEN_AT_ONCE));
	int result = db_execute(query, removed, error);
	return end_write(connection, result, error);
}

int store_forget_requests(struct store *store, int64_t before_us, const atomic_bool *stopping,
                          int64_t *ret_removed, struct error *error)
{
	int64_t account = 0, at_us = 0, removed = 0;
	int result = find_next(store, 0, &account, &at_us, error);
	while (!result && account && !(stopping && atomic_load(stopping))) {
		int64_t some = 0;
		if (at_us < before_us)
			result = remove_some(store, account, before_us, &some, error);
		removed += some;
		if (!result) /* the same account again while it may have more */
			result = find_next(store, some ? account - 1 : account, &account, &at_us, error);
	}
	*ret_removed = removed;
	return result;
}
