/* Write and read transactions, and rows whose texts are copied to an arena. Private to
 * src/store. */
#ifndef STORE_TRANSACTION_H
#define STORE_TRANSACTION_H

#include "base/members.h"
#include "store/store_internal.h"

/* A transaction keeps its first error, so that callers check once. After a failure, including one
 * of its begin, all statements of the transaction do nothing and return that error, and so does its
 * end. */

/* Begins a write transaction. If the begin fails, it reports the reason in **error and sets *error
 * to NULL, so that later calls do not replace it. `error` itself may be NULL. */
struct db_connection *begin_write(struct store *store, struct error **error) MUST_CHECK;
/* Does the same for changes that may be lost in a fail-over and are not audited. Their rows are
 * then never locked by a commit that waits for its standby (db_take_local). */
struct db_connection *begin_local(struct store *store, struct error **error) MUST_CHECK;
/* Does the same on the embedded engine, as registrations do: freed pages are not overwritten. */
struct db_connection *begin_registrar(struct store *store, struct error **error) MUST_CHECK;
/* Commits when `code` is 0 and nothing has failed, else rolls back. Returns the connection to the
 * pool. */
int end_write(struct db_connection *connection, int code, struct error *error) MUST_CHECK;
/* Runs `query`, the last statement of the change, and commits. Returns ERR_NOT_FOUND when it
 * changed no row. */
int end_write_of_one(struct db_connection *connection, struct db_query *query, struct error *error)
	MUST_CHECK;
struct db_connection *begin_read(struct store *store, struct error **error) MUST_CHECK;
int end_read(struct db_connection *connection, int code) MUST_CHECK;

/* Add, to the audited operation of this transaction, if any (store/audit/audit_log.h), an
 * identifier that the operation created. `name` is a literal. */
void audit_add_created(struct db_connection *connection, const char *name, const char *id);
void audit_add_created_account(struct db_connection *connection, const char *account_id,
                               int64_t account);
/* Adds a number that resulted from the operation. */
void audit_add_number(struct db_connection *connection, const char *name, int64_t number);
/* audit_begin, for begin_write, checks the user's authorization and reads the values of the named
 * objects before the change. audit_write, for end_write, adds the audit record. */
struct act;
int audit_begin(struct db_connection *connection, struct act *act, struct error *error) MUST_CHECK;
/* Does both, for an audited operation without a store_audited handle. */
int audit_write_alone(struct db_connection *connection, struct act *act, struct error *error)
	MUST_CHECK;
int audit_write(struct db_connection *connection, struct act *act, struct error *error) MUST_CHECK;
/* Records the operator's operation in progress on each account of that user; with `worked_in` only
 * on accounts in which the user has worked. If there is no such account, it is recorded as it would
 * be otherwise. Operations of users are not changed. */
int audit_on_user_accounts(struct db_connection *connection, const char *user_id, bool worked_in,
                           struct error *error) MUST_CHECK;
/* For a change that may remove the user's own authorization: checks it for the last time, after the
 * change has taken its locks. Otherwise it is checked again when the record is added. */
int audit_settle_authorization(struct db_connection *connection, struct error *error) MUST_CHECK;
/* Records an operation without a store_audited handle; its arguments are a list called `name`, one
 * item per line. */
int audit_write_list(struct db_connection *connection, struct act *act, const char *name,
                     const struct buf *lines, struct error *error) MUST_CHECK;

#define ROW_UNKNOWN_MAX 160
/* Columns as strings in the arena; `failed` is set when memory is exhausted. */
struct row {
	struct db_query *query;
	struct arena *arena;
	bool failed;
	char unknown[ROW_UNKNOWN_MAX]; /* an invalid value found by row_expect, in words; empty: none */
};
const char *row_string(struct row *row, int column);  /* NULL for NULL */
struct slice row_bytes(struct row *row, int column);  /* empty for NULL */
int64_t row_time(struct db_query *query, int column); /* TIME_NONE for NULL */

/* For a column with one of several fixed values: `known` says whether the value was recognized. If
 * not, the end of the query reports it. `what` names the value and `id` its object. */
void row_expect(struct row *row, bool known, const char *what, int column, const char *id);
/* Reports it immediately; returns ERR_CORRUPT. */
int unknown_text(const char *what, struct slice text, const char *id, struct error *error)
	MUST_CHECK;

/* Ends a query of which one row was expected; `found` is the result of db_step. Returns
 * ERR_NOT_FOUND, ERR_NO_MEMORY when a text could not be copied, or ERR_CORRUPT when a value was
 * unknown. */
int row_result(struct row *row, bool found, struct error *error) MUST_CHECK;
/* Does the same, with a message that names the object ("account", …) for ERR_NOT_FOUND. */
int row_end(struct row *row, bool found, enum message what, struct slice id, struct error *error)
	MUST_CHECK;

/* Initializes an array of the members that the columns of a row fill, in their order. */
#define COLUMNS_OF(record, ...)                                                                    \
	{                                                                                              \
		FOR_EACH(MEMBER, record, __VA_ARGS__)                                                      \
	}
/* Describes how rows become records. Texts that are too long for their member are cut, and times
 * are TIME_NONE for NULL. `complete` reads the columns of members of other types; NULL: none. All
 * other members are 0. */
struct row_type {
	const struct member *columns;
	size_t count;
	size_t size;
	void (*complete)(struct row *row, void *record);
};
#define ROW_TYPE(record, columns, complete)                                                        \
	{                                                                                              \
		columns, sizeof columns / sizeof *columns, sizeof(record), complete                        \
	}
/* Reads the current row, from column `first` on. */
void row_read(struct row *row, const struct row_type *type, int first, void *record);
/* Steps once, reads the row and ends the query as row_end does. */
int row_find(struct row *row, const struct row_type *type, void *record, enum message what,
             struct slice id, struct error *error) MUST_CHECK;
/* Reads a list of which the query returns up to `limit` + 1 rows, and ends the query. *more is set
 * if there is a row past the limit. `items_pointer`, `count` and `more` start as 0; LIST_OF passes
 * them. */
int row_list(struct row *row, const struct row_type *type, void *items_pointer, size_t *count,
             bool *more, int64_t limit, struct error *error) MUST_CHECK;
#define LIST_OF(list) &(list)->items, &(list)->count, &(list)->more

/* Adds an item to a list of which `limit` + 1 rows are read. Returns the item, or NULL when `limit`
 * items exist (then *more is set) or memory is exhausted (then row->failed is set). */
void *list_add(struct row *row, void *items_pointer, size_t *count, bool *more, int64_t limit,
               size_t item_size);

/* Find the internal numbers of identifiers. */
int find_account_number(struct db_connection *connection, struct slice account_id,
                        int64_t *ret_account, struct error *error) MUST_CHECK;
int find_channel_number(struct db_connection *connection, struct slice channel_id,
                        int64_t *ret_account, int64_t *ret_channel, struct error *error) MUST_CHECK;
/* Locks the account's row until the end of the transaction, which is then limited to the shard of
 * the account. Registration waits, and what it reads and writes of the account does not change. */
int lock_account(struct db_connection *connection, int64_t account, struct error *error) MUST_CHECK;
/* Returns when something that is queued now is due: now, by the clock shared by all nodes
 * (db_now_us). now_us was taken from the clock of this node, which may be ahead. */
int64_t due_at_once_us(struct db_connection *connection, int64_t now_us);
/* Finds both numbers, each 0 when the identifier is empty. */
int find_filters(struct db_connection *connection, struct slice account_id, struct slice channel_id,
                 int64_t *ret_account, int64_t *ret_channel, struct error *error) MUST_CHECK;

#endif
