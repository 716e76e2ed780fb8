#include "store/notices/test_notices.h"

#include "base/tuned.h"
#include "store/notices/test_copy.h"
#include "store/transaction.h"

#define FORGOTTEN_AT_ONCE 500 /* notices per transaction */

/* Reads the position of the chain's last notice; 0: there is none. */
static int read_last(struct db_connection *connection, int64_t account, int64_t chain,
                     int64_t *ret_position, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT position FROM test_notices WHERE account = $1 AND chain = $2"
	                         " ORDER BY position DESC LIMIT 1");
	db_bind(query, account, chain);
	*ret_position = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

/* Returns a position above all that the chain had. The time keeps it there when the notices have
 * been removed. The caller holds the lock of the account. */
static int next_position(struct db_connection *connection, int64_t account, int64_t chain,
                         int64_t now_us, int64_t *ret_position, struct error *error)
{
	int64_t last;
	int result = read_last(connection, account, chain, &last, error);
	*ret_position = last < now_us ? now_us : last + 1;
	return result;
}

/* Removes all but the newest. */
static int remove_surplus(struct db_connection *connection, int64_t account, int64_t chain,
                          struct error *error)
{
	struct db_query *query = db_query(
		connection, "DELETE FROM test_notices WHERE account = $1 AND chain = $2 AND position <="
					" (SELECT position FROM test_notices WHERE account = $1 AND chain = $2"
					" ORDER BY position DESC LIMIT 1 OFFSET $3)");
	db_bind(query, account, chain, tuned_up_to("test_notices", TEST_NOTICES_MAX));
	return db_execute(query, NULL, error);
}

static int insert(struct db_connection *connection, int64_t account, int64_t chain,
                  const struct test_notice *notice, struct error *error)
{
	struct db_query *query =
		db_query(connection, "INSERT INTO test_notices(account, chain, position, notice_id, type,"
	                         " created_at, data) VALUES ($1, $2, $3, $4, $5, $6, $7)");
	db_bind(query, account, chain, notice->position, notice->notice_id, notice->type,
	        notice->created_at_us, notice->data);
	int result = db_execute(query, NULL, error);
	return result ? result : remove_surplus(connection, account, chain, error);
}

int copy_test_notice(struct db_connection *connection, int64_t account, int64_t chain,
                     int64_t now_us, struct error *error)
{
	int64_t position;
	int result = next_position(connection, account, chain, now_us, &position, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "INSERT INTO test_notices(account, chain, position, notice_id, type,"
	                         " created_at, data) SELECT account, $2, $3, notice_id, type,"
	                         " created_at, data FROM notices WHERE account = $1"
	                         " ORDER BY notice DESC LIMIT 1");
	db_bind(query, account, chain, position);
	result = db_execute(query, NULL, error);
	return result ? result : remove_surplus(connection, account, chain, error);
}

int store_create_test_notice(struct store *store, int64_t account, int64_t chain,
                             enum notice_type type, struct slice data, int64_t now_us,
                             struct test_notice *ret, struct error *error)
{
	struct test_notice notice = {.type = notice_type_text(type), .data = data};
	store_fresh_id("ntc_", notice.notice_id);
	struct db_connection *connection = begin_write(store, &error);
	int result = lock_account(connection, account, error);
	if (!result)
		result = next_position(connection, account, chain, now_us, &notice.position, error);
	notice.created_at_us = notice.position;
	if (!result)
		result = insert(connection, account, chain, &notice, error);
	result = end_write(connection, result, error);
	if (!result)
		*ret = notice;
	return result;
}

/* ---- reads ---- */

static void read_notice(struct row *row, void *record)
{
	struct test_notice *notice = record;
	notice->position = db_integer(row->query, 0);
	store_copy_id(notice->notice_id, db_text(row->query, 1));
	notice->type = row_string(row, 2);
	notice->created_at_us = db_integer(row->query, 3);
	const char *data = row_string(row, 4);
	notice->data = slice_of(data ? data : "");
}

int store_list_test_notices(struct store *store, int64_t account, int64_t chain, int64_t after,
                            int64_t limit, struct arena *arena, struct test_notice_list *ret,
                            struct error *error)
{
	static const struct row_type type = {.size = sizeof(struct test_notice),
	                                     .complete = read_notice};
	struct test_notice_list list = {0};
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT position, notice_id, type, created_at, data FROM test_notices"
	                         " WHERE account = $1 AND chain = $2 AND position > $3"
	                         " ORDER BY position LIMIT $4");
	db_bind(query, account, chain, after, limit + 1);
	struct row row = {.query = query, .arena = arena};
	int result = end_read(connection, row_list(&row, &type, LIST_OF(&list), limit, error));
	if (!result)
		*ret = list;
	return result;
}

int store_last_test_notice(struct store *store, int64_t account, int64_t chain,
                           int64_t *ret_position, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t position;
	int result = end_read(connection, read_last(connection, account, chain, &position, error));
	if (!result)
		*ret_position = position;
	return result;
}

/* ---- housekeeping ---- */

struct place {
	int64_t account, chain, position;
};

static int find_old(struct store *store, int64_t before_us, struct place *places, size_t *ret_count,
                    struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT account, chain, position FROM test_notices"
	                         " WHERE position < $1 ORDER BY position LIMIT $2");
	db_bind(query, before_us, FORGOTTEN_AT_ONCE);
	size_t count = 0;
	while (count < FORGOTTEN_AT_ONCE && db_step(query))
		places[count++] =
			(struct place){db_integer(query, 0), db_integer(query, 1), db_integer(query, 2)};
	*ret_count = count;
	return end_read(connection, db_end(query, error));
}

static int forget(struct store *store, const struct place *places, size_t count,
                  struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	int result = OK;
	for (size_t i = 0; i < count && !result; i++) {
		struct db_query *query =
			db_query(connection, "DELETE FROM test_notices WHERE account = $1 AND chain = $2"
		                         " AND position = $3");
		db_bind(query, places[i].account, places[i].chain, places[i].position);
		result = db_execute(query, NULL, error);
	}
	return end_write(connection, result, error);
}

int store_forget_test_notices(struct store *store, int64_t before_us, int64_t most,
                              int64_t *ret_removed, struct error *error)
{
	struct place places[FORGOTTEN_AT_ONCE];
	size_t count = 1;
	int64_t removed = 0;
	int result = OK;
	while (!result && count > 0 && removed < most) {
		result = find_old(store, before_us, places, &count, error);
		if (!result && count > 0)
			result = forget(store, places, count, error);
		removed += result ? 0 : (int64_t)count;
	}
	*ret_removed = removed;
	return result;
}
