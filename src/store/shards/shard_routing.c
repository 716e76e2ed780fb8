#include "store/shards/shard_routing.h"

#include <assert.h>
#include <string.h>

#define QUESTION_MAX ((size_t)4096)
#define NUMBERS_TRIED_MAX 4096 /* numbers that are tried until one is on an available server */

/* ---- one row ---- */

struct located {
	bool found;
	int64_t account;
};

static void note_located(void *context, size_t part, int64_t account, bool is_limit)
{
	(void)part, (void)is_limit;
	*(struct located *)context = (struct located){true, account};
}

/* Writes an SQL literal. Rejects braces, which stand for tables. */
static bool add_literal(struct buf *text, struct slice value)
{
	buf_add(text, "'", 1);
	for (size_t i = 0; i < value.size; i++) {
		char c = value.data[i];
		if (c == '{' || c == '\\' || c == '\0' || (signed char)c < 0)
			return false;
		buf_add(text, "''", c == '\'' ? 2 : 0);
		if (c != '\'')
			buf_add(text, &c, 1);
	}
	buf_add(text, "'", 1);
	return true;
}

int routing_locate(struct db *db, const struct routing_place *place, struct slice value,
                   int64_t *ret_account, struct error *error)
{
	struct located located = {0};
	struct db_shard_query_result asked;
	BUF_AUTO struct buf text;
	buf_init(&text, QUESTION_MAX);
	buf_printf(&text, "SELECT account FROM {%s} WHERE %s", place->table, place->before);
	if (!add_literal(&text, value))
		return ERR_NOT_FOUND; /* not one of our identifiers */
	buf_add_text(&text, place->after);
	int result = buf_check(&text);
	if (result)
		return result == ERR_TOO_LARGE ? ERR_NOT_FOUND : result;
	const struct db_shard_part part = {.text = text.data, .limit = DB_PART_ACCOUNTS_MAX};
	result = db_query_shards(db, &part, 1, note_located, &located, &asked, error);
	if (!result && !asked.distributed)
		return ERR_USAGE;
	if (!result && located.found)
		*ret_account = located.account;
	else if (!result)
		result = asked.all ? ERR_NOT_FOUND
		                   : error_cause(error, ERR_UNAVAILABLE,
		                                 "it may be on a server that is unavailable");
	return result;
}

/* When no server has the row, or nothing is distributed, the unrestricted statement is used. */
bool routing_is_located(struct db_connection *connection, const struct routing_place *place,
                        struct slice value, int64_t *ret_account)
{
	struct db *db = db_of(connection);
	struct error error = {0};
	if (!db_has_unreachable(db))
		return false;
	int result = routing_locate(db, place, value, ret_account, &error);
	if (result && result != ERR_NOT_FOUND && result != ERR_USAGE) {
		error.code = result;
		(void)db_fail(connection, &error);
	}
	return !result;
}

struct db_query *routing_query_one(struct db_connection *connection, struct routing_place place,
                                   struct slice value, struct routing_texts both)
{
	int64_t account = 0;
	bool located = routing_is_located(connection, &place, value, &account);
	struct db_query *query = db_query(connection, located ? both.located : both.all);
	db_bind_text(query, value);
	if (located)
		db_bind_integer(query, account);
	return query;
}

/* ---- a page ---- */

static int write_page(struct buf *text, const char *rows, const struct routing_value *values,
                      int64_t limit)
{
	bool good = true;
	buf_add_text(text, "SELECT DISTINCT account FROM (");
	for (const char *at = rows; *at;) {
		size_t plain = strcspn(at, "?");
		buf_add(text, at, plain);
		at += plain;
		if (!*at)
			break;
		if (values->text)
			good = good && add_literal(text, *values->text);
		else
			buf_printf(text, "%lld", (long long)values->number);
		values++;
		at++;
	}
	buf_printf(text, " LIMIT %lld) AS page", (long long)limit);
	return good ? buf_check(text) : ERR_TOO_LARGE;
}

static void note_account(void *context, size_t part, int64_t account, bool is_limit)
{
	(void)part, (void)is_limit;
	db_array_add_integer(context, account);
}

/* Finds the first number from `account` on whose server is available. */
static int find_available(struct db_connection *connection, int64_t account, int64_t *ret,
                          struct error *error)
{
	int64_t end = account + NUMBERS_TRIED_MAX;
	while (account < end && db_is_unreachable(connection, account))
		account++;
	*ret = account;
	return account < end ? db_get_failure(connection, error)
	                     : error_cause(error, ERR_UNAVAILABLE, "no server is available");
}

/* An empty list would be searched on all servers, so it is replaced by one available account
 * without such rows. */
static int keep_to_some(struct db_connection *connection, struct work_accounts *of,
                        struct error *error)
{
	int64_t account = 0;
	bool none = of->accounts.count == 0 && db_has_unreachable(db_of(connection));
	int result = none ? find_available(connection, 1, &account, error) : OK;
	if (none && !result)
		db_array_add_integer(&of->accounts, account);
	return result ? result : buf_check(&of->accounts.wire);
}

int routing_find_page(struct db_connection *connection, int64_t account, const char *rows,
                      const struct routing_value *values, int64_t limit, struct work_accounts *ret,
                      struct error *error)
{
	struct db *db = db_of(connection);
	struct db_shard_query_result asked = {.distributed = true, .all = true};
	*ret = (struct work_accounts){.all = !db_is_sharded(db)};
	if (ret->all)
		return OK;
	db_array_init(&ret->accounts, DB_INTEGERS);
	ret->all = account == ROUTING_ALL && !db_has_unreachable(db);
	if (account != ROUTING_ALL)
		db_array_add_integer(&ret->accounts, account);
	if (ret->all || account != ROUTING_ALL)
		return buf_check(&ret->accounts.wire);
	BUF_AUTO struct buf text;
	buf_init(&text, QUESTION_MAX);
	int result = write_page(&text, rows, values, limit);
	if (result)
		return result == ERR_TOO_LARGE
		           ? error_cause(error, ERR_UNAVAILABLE, "a server is unavailable")
		           : result;
	const struct db_shard_part part = {.text = text.data, .limit = DB_PART_ACCOUNTS_MAX};
	result = db_query_shards(db, &part, 1, note_account, &ret->accounts, &asked, error);
	ret->all = !asked.distributed;
	ret->partial = !asked.all;
	return result ? result : keep_to_some(connection, ret, error);
}

struct db_query *routing_query(struct db_connection *connection, const struct work_accounts *of,
                               const char *all, const char *some)
{
	return db_query(connection, of->all ? all : some);
}

/* ---- counts ---- */

static void add_count(void *context, size_t part, int64_t number, bool is_limit)
{
	(void)is_limit;
	((int64_t *)context)[part] += number;
}

int routing_count(struct db *db, const char *const *texts, size_t count, int64_t *ret_counts,
                  bool *ret_distributed, struct error *error)
{
	struct db_shard_query_result asked;
	struct db_shard_part parts[DB_PARTS_MAX];
	assert(count <= DB_PARTS_MAX);
	for (size_t i = 0; i < count; i++)
		parts[i] = (struct db_shard_part){.text = texts[i], .limit = DB_PART_ACCOUNTS_MAX};
	memset(ret_counts, 0, count * sizeof *ret_counts);
	int result = db_query_shards(db, parts, count, add_count, ret_counts, &asked, error);
	*ret_distributed = asked.distributed;
	return result;
}

/* ---- known accounts ---- */

int routing_keep_available(struct db_connection *connection, struct db_query *accounts,
                           struct work_accounts *ret, struct error *error)
{
	*ret = (struct work_accounts){0};
	db_array_init(&ret->accounts, DB_INTEGERS);
	while (db_step(accounts)) {
		int64_t account = db_integer(accounts, 0);
		if (db_is_unreachable(connection, account))
			ret->partial = true;
		else
			db_array_add_integer(&ret->accounts, account);
	}
	int result = db_end(accounts, error);
	return result ? result : keep_to_some(connection, ret, error);
}

int routing_of_user(struct db_connection *connection, const char *user_id,
                    struct work_accounts *ret, struct error *error)
{
	*ret = (struct work_accounts){.all = true};
	if (!db_is_sharded(db_of(connection)))
		return OK;
	struct db_query *query =
		db_query(connection, "SELECT account FROM memberships WHERE user_id = $1");
	db_bind_string(query, user_id);
	return routing_keep_available(connection, query, ret, error);
}

/* ---- numbers ---- */

#define NO_NUMBER (-1)

static int read_number(struct db_query *query, int64_t *ret, struct error *error)
{
	*ret = db_step(query) ? db_integer(query, 0) : NO_NUMBER;
	return db_end(query, error);
}

static const char *setting_of(enum routing_numbered what)
{
	return what == ROUTING_ACCOUNTS ? "last_account" : "last_channel";
}

static int read_greatest(struct db_connection *connection, enum routing_numbered what, int64_t *ret,
                         struct error *error)
{
	return read_number(what == ROUTING_ACCOUNTS
	                       ? db_query(connection, "SELECT COALESCE(MAX(account), 0) FROM accounts")
	                       : db_query(connection, "SELECT COALESCE(MAX(channel), 0) FROM channels"),
	                   ret, error);
}

static int store_number(struct db_connection *connection, enum routing_numbered what,
                        int64_t number, struct error *error)
{
	struct db_query *query =
		db_query(connection, "INSERT INTO settings (name, value) VALUES ($1, CAST($2 AS TEXT))"
	                         " ON CONFLICT (name) DO UPDATE SET value = excluded.value");
	db_bind(query, setting_of(what), number);
	return db_execute(query, NULL, error);
}

int routing_store_number(struct db_connection *connection, enum routing_numbered what,
                         struct error *error)
{
	int64_t greatest;
	int result = read_greatest(connection, what, &greatest, error);
	return result ? result : store_number(connection, what, greatest, error);
}

int routing_read_number(struct db_connection *connection, enum routing_numbered what, int64_t *ret,
                        struct error *error)
{
	bool missing = db_has_unreachable(db_of(connection));
	int64_t remembered, greatest = 0;
	struct db_query *query =
		db_query(connection, "SELECT CAST(value AS BIGINT) FROM settings WHERE name = $1");
	db_bind_string(query, setting_of(what));
	int result = read_number(query, &remembered, error);
	if (!result && missing && remembered == NO_NUMBER)
		result = error_cause(error, ERR_UNAVAILABLE,
		                     "a server that may have the last number is unavailable");
	if (!result && !missing)
		result = read_greatest(connection, what, &greatest, error);
	if (!result)
		*ret = remembered > greatest ? remembered : greatest;
	return result;
}

int routing_take_number(struct db_connection *connection, enum routing_numbered what, int64_t *ret,
                        struct error *error)
{
	bool missing = db_has_unreachable(db_of(connection));
	int64_t last;
	int result = routing_read_number(connection, what, &last, error);
	if (result)
		return result;
	*ret = last + 1;
	result =
		what == ROUTING_ACCOUNTS && missing ? find_available(connection, *ret, ret, error) : OK;
	return result ? result : store_number(connection, what, *ret, error);
}

void routing_require_all(struct db_connection *connection)
{
	struct error error = {0};
	if (!db_has_unreachable(db_of(connection)))
		return;
	(void)error_cause(&error, ERR_UNAVAILABLE, "a server with some of its accounts is unavailable");
	(void)db_fail(connection, &error);
}
