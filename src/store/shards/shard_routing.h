/* Shard routing: statements that name no account, when the rows of accounts are on several servers.
 * Such a statement is sent to all servers and fails while one is unavailable. In that case the
 * available servers are asked which accounts the statement concerns, and it is restricted to these
 * accounts. Without shards, and while all servers are available, nothing is asked. Private to
 * src/store. */
#ifndef STORE_SHARDS_SHARD_ROUTING_H
#define STORE_SHARDS_SHARD_ROUTING_H

#include "store/shards/shard_work.h"

/* Where a row is searched: a table and the SQL text before and after the value. Constants of the
 * program. */
struct routing_place {
	const char *table, *before, *after;
};
#define ROUTING_AT(table, column)                                                                  \
	{                                                                                              \
		table, column " = ", ""                                                                    \
	}
#define ROUTING_PLACE(table, column) ((struct routing_place)ROUTING_AT(table, column))
/* Finds the account of such a row by asking each available server. Returns ERR_NOT_FOUND,
 * ERR_UNAVAILABLE when none of them has the row and a server is unavailable, and ERR_USAGE when
 * nothing is distributed. */
int routing_locate(struct db *db, const struct routing_place *place, struct slice value,
                   int64_t *ret_account, struct error *error) MUST_CHECK;
/* Returns whether the account was asked for and found, so that the statement must name it. When the
 * row may be on an unavailable server, the connection fails. */
bool routing_is_located(struct db_connection *connection, const struct routing_place *place,
                        struct slice value, int64_t *ret_account);
/* A statement about one row. $1, which is bound, is the search value. The second text of `both`
 * also names the account as $2, which is then bound. */
struct routing_texts {
	const char *all, *located;
};
#define ROUTING_BOTH(text, alias)                                                                  \
	{                                                                                              \
		text, text " AND " alias "account = $2"                                                    \
	}
#define ROUTING_TEXTS(text, alias) ((struct routing_texts)ROUTING_BOTH(text, alias))
struct db_query *routing_query_one(struct db_connection *connection, struct routing_place place,
                                   struct slice value, struct routing_texts both);

/* Lists the accounts of a page of a list into *ret, which shard_work_free frees: the given account,
 * or for ROUTING_ALL those that have rows of the page, as far as their servers are available.
 * `rows` selects accounts from tables in braces, in the order of the list and after its cursor;
 * each ? in it is replaced by the next of the `values`. */
#define ROUTING_ALL INT64_C(-1)
struct routing_value {
	const struct slice *text; /* NULL: `number` is used */
	int64_t number;
};
int routing_find_page(struct db_connection *connection, int64_t account, const char *rows,
                      const struct routing_value *values, int64_t limit, struct work_accounts *ret,
                      struct error *error) MUST_CHECK;
/* Prepares a list statement. `some` is the same statement as `all` with WORK_ACCOUNTS, whose
 * parameter is bound last. */
struct db_query *routing_query(struct db_connection *connection, const struct work_accounts *of,
                               const char *all, const char *some);
/* Adds up, over the available servers, the counts of `texts`: SELECTs of a number called account
 * from tables in braces. *ret_distributed false: nothing is distributed and nothing was counted. */
int routing_count(struct db *db, const char *const *texts, size_t count, int64_t *ret_counts,
                  bool *ret_distributed, struct error *error) MUST_CHECK;
/* Keeps, of the accounts that the query returns, those whose servers are available, in *ret, which
 * shard_work_free frees. */
int routing_keep_available(struct db_connection *connection, struct db_query *accounts,
                           struct work_accounts *ret, struct error *error) MUST_CHECK;
/* Does the same for the accounts of which the user is a member; all accounts when nothing is
 * distributed. */
int routing_of_user(struct db_connection *connection, const char *user_id,
                    struct work_accounts *ret, struct error *error) MUST_CHECK;
/* Returns an unused account or channel number, in a write transaction. The highest number may be on
 * an unavailable server, so it is also stored. */
enum routing_numbered { ROUTING_ACCOUNTS, ROUTING_CHANNELS };
int routing_take_number(struct db_connection *connection, enum routing_numbered what, int64_t *ret,
                        struct error *error) MUST_CHECK;
/* Returns the last number that was assigned; 0: none. While a server is unavailable, it is the last
 * stored number. */
int routing_read_number(struct db_connection *connection, enum routing_numbered what, int64_t *ret,
                        struct error *error) MUST_CHECK;
/* Stores the last number, while all servers are available, as the one to continue from. */
int routing_store_number(struct db_connection *connection, enum routing_numbered what,
                         struct error *error) MUST_CHECK;
/* Fails the connection while a server is unavailable, for statements whose result is wrong when
 * rows are missing. */
void routing_require_all(struct db_connection *connection);

#endif
