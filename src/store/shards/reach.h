/* Shard routing: statements that name no account, when the rows of accounts are on several servers.
 * Such a statement is sent to all servers and fails while one is unavailable. In that case the
 * available servers are asked which accounts the statement concerns, and it is restricted to these
 * accounts. Without shards, and while all servers are available, nothing is asked. Private to
 * src/store. */
#ifndef STORE_SHARDS_REACH_H
#define STORE_SHARDS_REACH_H

#include "store/shards/work.h"

/* Where a row is searched: a table and the SQL text before and after the value. Constants of the
 * program. */
struct reach_place {
	const char *table, *before, *after;
};
#define REACH_AT(table, column)                                                                    \
	{                                                                                              \
		table, column " = ", ""                                                                    \
	}
#define REACH_PLACE(table, column) ((struct reach_place)REACH_AT(table, column))
/* Finds the account of such a row by asking each available server. Returns ERR_NOT_FOUND,
 * ERR_UNAVAILABLE when none of them has the row and a server is unavailable, and ERR_USAGE when
 * nothing is distributed. */
int reach_locate(struct db *db, const struct reach_place *place, struct slice value,
                 int64_t *ret_account, struct error *error) MUST_CHECK;
/* Returns whether the account was asked for and found, so that the statement must name it. When the
 * row may be on an unavailable server, the connection fails. */
bool reach_locates(struct db_connection *connection, const struct reach_place *place,
                   struct slice value, int64_t *ret_account);
/* A statement about one row. $1, which is bound, is the search value. The second text of `both`
 * also names the account as $2, which is then bound. */
struct reach_texts {
	const char *all, *located;
};
#define REACH_BOTH(text, alias)                                                                    \
	{                                                                                              \
		text, text " AND " alias "account = $2"                                                    \
	}
#define REACH_TEXTS(text, alias) ((struct reach_texts)REACH_BOTH(text, alias))
struct db_query *reach_query_one(struct db_connection *connection, struct reach_place place,
                                 struct slice value, struct reach_texts both);

/* Lists the accounts of a page of a list into *ret, which work_free frees: the given account, or
 * for REACH_ALL those that have rows of the page, as far as their servers are available. `rows`
 * selects accounts from tables in braces, in the order of the list and after its cursor; each ? in
 * it is replaced by the next of the `values`. */
#define REACH_ALL INT64_C(-1)
struct reach_value {
	const struct slice *text; /* NULL: `number` is used */
	int64_t number;
};
int reach_find_page(struct db_connection *connection, int64_t account, const char *rows,
                    const struct reach_value *values, int64_t limit, struct work_of *ret,
                    struct error *error) MUST_CHECK;
/* Prepares a list statement. `some` is the same statement as `all` with WORK_OF, whose parameter is
 * bound last. */
struct db_query *reach_query(struct db_connection *connection, const struct work_of *of,
                             const char *all, const char *some);
/* Adds up, over the available servers, the counts of `parts`: SELECTs of a number called account
 * from tables in braces. *ret_distributed false: nothing is distributed and nothing was counted. */
int reach_count(struct db *db, const char *const *parts, size_t count, int64_t *ret_counts,
                bool *ret_distributed, struct error *error) MUST_CHECK;
/* Keeps, of the accounts that the query returns, those whose servers are available, in *ret, which
 * work_free frees. */
int reach_keep(struct db_connection *connection, struct db_query *accounts, struct work_of *ret,
               struct error *error) MUST_CHECK;
/* Does the same for the accounts of which the user is a member; all accounts when nothing is
 * distributed. */
int reach_of_user(struct db_connection *connection, const char *user_id, struct work_of *ret,
                  struct error *error) MUST_CHECK;
/* Returns an unused account or channel number, in a write transaction. The highest number may be on
 * an unavailable server, so it is also stored. */
enum reach_numbered { REACH_ACCOUNTS, REACH_CHANNELS };
int reach_take_number(struct db_connection *connection, enum reach_numbered what, int64_t *ret,
                      struct error *error) MUST_CHECK;
/* Returns the last number that was assigned; 0: none. While a server is unavailable, as far as it
 * is stored. */
int reach_read_number(struct db_connection *connection, enum reach_numbered what, int64_t *ret,
                      struct error *error) MUST_CHECK;
/* Stores the last number, while all servers are available, as the one to continue from. */
int reach_remember_number(struct db_connection *connection, enum reach_numbered what,
                          struct error *error) MUST_CHECK;
/* Fails the connection while a server is unavailable, for statements whose result is wrong when
 * rows are missing. */
void reach_want_all(struct db_connection *connection);

#endif
