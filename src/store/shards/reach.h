/* Statements that name no account, where accounts' rows are on several servers: each goes over all
 * of them, and fails while one is away. So the others are asked then whose rows it is about, and it
 * is kept to those accounts. Elsewhere, and while all are there, nobody is asked. Inside src/store
 * only.
 */
#ifndef STORE_SHARDS_REACH_H
#define STORE_SHARDS_REACH_H

#include "store/shards/work.h"

/* The program's own words: where a row is looked for, and by what, in front of the value and behind
 * it. */
struct reach_place {
	const char *table, *before, *after;
};
#define REACH_AT(table, column)                                                                    \
	{                                                                                              \
		table, column " = ", ""                                                                    \
	}
#define REACH_PLACE(table, column) ((struct reach_place)REACH_AT(table, column))
/* The account of such a row, asked of each server that is there. ERR_NOT_FOUND; ERR_UNAVAILABLE:
 * none of those has it, and one is away; ERR_USAGE: nothing is distributed. */
int reach_locate(struct db *db, const struct reach_place *place, struct slice value,
                 int64_t *ret_account, struct error *error) MUST_CHECK;
/* Whether that had to be asked, and a statement that finds the row shall name the account. That the
 * row may be on the missing server is the connection's failure then. */
bool reach_locates(struct db_connection *connection, const struct reach_place *place,
                   struct slice value, int64_t *ret_account);
/* A statement about one row: $1, which is bound, is what it is found by, and of `both` texts the
 * second one names the account as $2, which is bound, too. */
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

/* The accounts of a page of a list, into what work_free frees: the one that is named (`account`, or
 * REACH_ALL), or those that have rows of the page, as far as their servers are there. `rows`
 * selects accounts from tables in braces, in the order of the list and behind its cursor; each ? in
 * it is the next of the `values`. */
#define REACH_ALL INT64_C(-1)
struct reach_value {
	const struct slice *text; /* NULL: the number */
	int64_t number;
};
int reach_find_page(struct db_connection *connection, int64_t account, const char *rows,
                    const struct reach_value *values, int64_t limit, struct work_of *ret,
                    struct error *error) MUST_CHECK;
/* `some` is the same statement as `all` with WORK_OF, whose parameter is bound last. */
struct db_query *reach_query(struct db_connection *connection, const struct work_of *of,
                             const char *all, const char *some);
/* What is counted by `parts`, SELECTs of a number called account from tables in braces, on the
 * servers that are there. *ret_distributed: false: nothing is, and nothing was counted. */
int reach_count(struct db *db, const char *const *parts, size_t count, int64_t *ret_counts,
                bool *ret_distributed, struct error *error) MUST_CHECK;
/* Of the accounts that the query gives, those whose servers are there, into what work_free frees.
 */
int reach_keep(struct db_connection *connection, struct db_query *accounts, struct work_of *ret,
               struct error *error) MUST_CHECK;
/* The same of those that the user is a member of; of all, where nothing is distributed. */
int reach_of_user(struct db_connection *connection, const char *user_id, struct work_of *ret,
                  struct error *error) MUST_CHECK;
/* In a transaction of the writer's: a number that no account, or channel, has. The greatest one may
 * be on a server that is away: it is remembered. */
enum reach_numbered { REACH_ACCOUNTS, REACH_CHANNELS };
int reach_take_number(struct db_connection *connection, enum reach_numbered what, int64_t *ret,
                      struct error *error) MUST_CHECK;
/* The last number that was taken; 0: none. While a server is away, as far as it is remembered. */
int reach_read_number(struct db_connection *connection, enum reach_numbered what, int64_t *ret,
                      struct error *error) MUST_CHECK;
/* Likewise, while all servers are there: the one to go on from. */
int reach_remember_number(struct db_connection *connection, enum reach_numbered what,
                          struct error *error) MUST_CHECK;
/* Fails the connection while a server is away: for what is wrong where rows are missing. */
void reach_want_all(struct db_connection *connection);

#endif
