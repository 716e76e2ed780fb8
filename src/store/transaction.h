/* The store's own: transactions that write and that read, and rows whose texts lie in an arena. */
#ifndef STORE_TRANSACTION_H
#define STORE_TRANSACTION_H

#include "store/internal.h"

/* Begins; on failure nothing is held. */
int begin_write(struct store *store, struct db_connection **ret_connection, struct error *error)
	MUST_CHECK;
/* The same for what may be lost with a primary, outside of acts: rows that nobody is to find held
 * by a commit that waits for its standby (db_take_local). */
int begin_local(struct store *store, struct db_connection **ret_connection, struct error *error)
	MUST_CHECK;
/* Commits when `code` is 0, else rolls back, and gives the connection back. */
int end_write(struct db_connection *connection, int code, struct error *error) MUST_CHECK;
/* Runs `query`, the last of the change, and commits; ERR_NOT_FOUND when it changed no row. */
int end_write_of_one(struct db_connection *connection, struct db_query *query, struct error *error)
	MUST_CHECK;
int begin_read(struct store *store, struct db_connection **ret_connection, struct error *error)
	MUST_CHECK;
int end_read(struct db_connection *connection, int code) MUST_CHECK;

/* What the act that is under way in this transaction (store/audit/acts.h), if any, made:
 * identifiers that nobody has given. `name` is a literal. */
void act_made(struct db_connection *connection, const char *name, const char *id);
void act_made_account(struct db_connection *connection, const char *account_id, int64_t account);
/* The same for a number that came of it. */
void act_told(struct db_connection *connection, const char *name, int64_t number);
/* For begin_write and end_write: checks the user's standing, and notes how what the act names
 * stands now; adds its row. */
struct act;
int act_begin(struct db_connection *connection, struct act *act, struct error *error) MUST_CHECK;
/* Both, for an act without a store_acting. */
int act_write_alone(struct db_connection *connection, struct act *act, struct error *error)
	MUST_CHECK;
int act_write(struct db_connection *connection, struct act *act, struct error *error) MUST_CHECK;
/* The operator's act that is under way is one on each account of that user, with `worked_in` on
 * those that he has taken up alone; on none there: as it would be. Others' are left as they are. */
int act_on_accounts_of(struct db_connection *connection, const char *user_id, bool worked_in,
                       struct error *error) MUST_CHECK;
/* For a change that may take the user's own standing from him: checks it for the last time, behind
 * the locks of the change; else it is checked again when the row is added. */
int act_settle(struct db_connection *connection, struct error *error) MUST_CHECK;
/* An act without a store_acting whose arguments are a list called `name`, one item a line. */
int act_write_listing(struct db_connection *connection, struct act *act, const char *name,
                      const struct buf *lines, struct error *error) MUST_CHECK;

#define ROW_UNKNOWN_MAX 160
/* Columns as strings in the arena; `failed` once memory was short. */
struct row {
	struct db_query *query;
	struct arena *arena;
	bool failed;
	char unknown[ROW_UNKNOWN_MAX]; /* in words, what row_expect met; empty: nothing */
};
const char *row_string(struct row *row, int column);  /* NULL for NULL */
struct slice row_bytes(struct row *row, int column);  /* empty for NULL */
int64_t row_time(struct db_query *query, int column); /* TIME_NONE for NULL */

/* A column whose text stands for one of a few values, and which of them was `known`: where none
 * was, the end of the query tells it. `what` names the value, `id` whose it is. */
void row_expect(struct row *row, bool known, const char *what, int column, const char *id);
/* The same at once: ERR_CORRUPT. */
int unknown_text(const char *what, struct slice text, const char *id, struct error *error)
	MUST_CHECK;

/* Ends a query of which one row was expected: `found` is what db_step said. ERR_NOT_FOUND,
 * ERR_NO_MEMORY when a text found no room, ERR_CORRUPT when one was unknown. */
int row_result(struct row *row, bool found, struct error *error) MUST_CHECK;
/* The same, and ERR_NOT_FOUND names the thing ("account", …). */
int row_end(struct row *row, bool found, enum message what, struct slice id, struct error *error)
	MUST_CHECK;

/* Room for one more of `limit` + 1 rows read: the next item, or NULL when all `limit` are taken
 * (then *more is set) or memory is gone (then row->failed). */
void *list_add(struct row *row, void *items_pointer, size_t *count, bool *more, int64_t limit,
               size_t item_size);

/* The numbers behind identifiers. */
int find_account_number(struct db_connection *connection, struct slice account_id,
                        int64_t *ret_account, struct error *error) MUST_CHECK;
int find_channel_number(struct db_connection *connection, struct slice channel_id,
                        int64_t *ret_account, int64_t *ret_channel, struct error *error) MUST_CHECK;
/* Locks the account's row to the end of the transaction, which keeps to its shard: registration
 * waits, and what it reads and writes of the account stands still. */
int lock_account(struct db_connection *connection, int64_t account, struct error *error) MUST_CHECK;
/* When what is queued now is due: now, by the clock that all nodes share (db_now_us), since this
 * node's, by which now_us was taken, may be ahead of it. */
int64_t due_at_once_us(struct db_connection *connection, int64_t now_us);
/* Both, each 0 where the identifier is empty. */
int find_filters(struct db_connection *connection, struct slice account_id, struct slice channel_id,
                 int64_t *ret_account, int64_t *ret_channel, struct error *error) MUST_CHECK;

#endif
