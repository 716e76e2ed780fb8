#include "store/accounts/accounts.h"

#include <inttypes.h>
#include <stdio.h>

#include "store/accounts/account_bounds.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"

#define MOVEMENT_MEMORY_MAX ((size_t)4 << 20) /* thresholds and their notices */

/* ---- accounts ---- */

#define INSERTED(numbered)                                                                                                \
	"INSERT INTO accounts (account_id, name, email, language, created_at, active_at, rate_live,"                          \
	" unpaid_limit, bound_rate, bound_channels, bound_keys, bound_certifications, bound_stored_bytes, account) " numbered \
	" RETURNING account"

static int insert_account(struct db_connection *connection, const struct account_record *given,
                          const char *account_id, int64_t now_us, int64_t *ret_account,
                          struct error *error)
{
	bool sharded = db_is_sharded(db_of(connection));
	int64_t number = 0;
	int result = sharded ? routing_take_number(connection, ROUTING_ACCOUNTS, &number, error) : OK;
	if (result)
		return result;
	struct db_query *query =
		sharded
			? db_query(
				  connection,
				  INSERTED("VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"))
			: db_query(connection,
	                   INSERTED("SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,"
	                            " COALESCE(MAX(account), 0) + 1 FROM accounts"));
	db_bind(query, account_id, given->name, given->email,
	        given->language == LANGUAGE_SPANISH ? "es" : "en", now_us, now_us - now_us % US_PER_DAY,
	        db_null_if(given->rate_live, 0), given->unpaid_limit, db_null_if(given->bounds.rate, 0),
	        db_null_if(given->bounds.channels, 0), db_null_if(given->bounds.keys, 0),
	        db_null_if(given->bounds.certifications, 0), db_null_if(given->bounds.stored_bytes, 0));
	if (sharded)
		db_bind_integer(query, number);
	*ret_account = db_step(query) ? db_integer(query, 0) : 0;
	return db_execute(query, NULL, error);
}

static int move_credits(struct db_connection *connection, int64_t account,
                        const struct credit_movement *movement, int64_t now_us,
                        struct credit_outcome *ret, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, MOVEMENT_MEMORY_MAX);
	struct ledger_account state = {0};
	int code = store_load_account(connection, account, &arena, &state, error);
	if (code)
		return code;
	bool revert = strcmp(movement->kind, "revert") == 0;
	if (!revert && movement->credits < 0 && state.balance + movement->credits < 0) {
		char balance[24];
		snprintf(balance, sizeof balance, "%" PRId64, state.balance);
		return error_set(error, ERR_REFUSED, MSG_STORE_NEGATIVE_ADJUSTMENT, balance, NULL);
	}
	struct ledger_result result = {0};
	int64_t settled = 0;
	code = ledger_move_credits(&state, movement->credits, movement->kind, movement->reference,
	                           &arena, &result, &settled, error);
	if (!code && settled)
		code = store_settle(connection, account, settled, error);
	if (!code)
		code = store_write_entries(connection, &state, result.entries, now_us, error);
	if (!code)
		code = store_write_notices(connection, account, result.notices, MODE_LIVE, now_us, error);
	if (!code) /* requested by an operator, not the owner */
		code = store_save_account(connection, &state, TIME_NONE, error);
	if (!code)
		*ret = (struct credit_outcome){state.balance, state.unpaid_events, settled};
	if (!code)
		audit_add_number(connection, "balance", state.balance);
	return code;
}

static int create_account(struct db_connection *connection, const struct account_record *given,
                          int64_t credits, int64_t now_us, const char *account_id,
                          struct error *error)
{
	int64_t account = 0;
	int result = insert_account(connection, given, account_id, now_us, &account, error);
	audit_add_created_account(connection, account_id, account);
	if (result || !credits)
		return result;
	struct credit_outcome outcome;
	struct credit_movement movement = {credits, "adjustment", "initial credits"};
	return move_credits(connection, account, &movement, now_us, &outcome, error);
}

int store_create_account(struct store *store, const struct account_record *given, int64_t credits,
                         int64_t now_us, char ret_account_id[ID_SIZE], struct error *error)
{
	char account_id[ID_SIZE];
	store_fresh_id("acc_", account_id);
	struct db_connection *connection = begin_write(store, &error);
	int result = create_account(connection, given, credits, now_us, account_id, error);
	result = end_write(connection, result, error);
	if (!result)
		memcpy(ret_account_id, account_id, ID_SIZE);
	return result;
}

#define ACCOUNT_COLUMNS                                                                            \
	"SELECT a.account_id, a.name, a.email, a.language, a.created_at, a.active_at,"                 \
	" a.suspended, a.disabled, a.rate_live, a.balance, a.unpaid_events, a.unpaid_limit,"           \
	" t.events, t.content_bytes, t.certifications, a.passkeys_required, a.bound_rate,"             \
	" a.bound_channels, a.bound_keys, a.bound_certifications, a.bound_stored_bytes"                \
	" FROM accounts a LEFT JOIN test_usage t ON t.account = a.account AND t.day = $1"

static const struct member account_columns[] = COLUMNS_OF(
	struct account_record, account_id, name, email, language, created_at_us, active_at_us,
	suspended, disabled, rate_live, balance, unpaid_events, unpaid_limit, test_events_today,
	test_bytes_today, test_certifications_today, passkeys_required, bounds.rate, bounds.channels,
	bounds.keys, bounds.certifications, bounds.stored_bytes);

static void complete_account(struct row *row, void *to)
{
	struct account_record *record = to;
	record->language = slice_is(db_text(row->query, 3), "es") ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH;
}

static const struct row_type account_type =
	ROW_TYPE(struct account_record, account_columns, complete_account);

int store_find_account(struct store *store, struct slice account_id, int64_t now_us,
                       struct arena *arena, struct account_record *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t account = 0;
	int result = find_account_number(connection, account_id, &account, error);
	if (result)
		return end_read(connection, result);
	char day[11];
	time_day_key(now_us, day);
	struct row row = {.arena = arena,
	                  .query = db_query(connection, ACCOUNT_COLUMNS " WHERE a.account = $2")};
	db_bind(row.query, day, account);
	struct account_record record;
	result = end_read(connection, row_find(&row, &account_type, &record, MSG_STORE_NO_ACCOUNT,
	                                       account_id, error));
	if (!result)
		*ret = record;
	return result;
}

static int count_stored(struct db_connection *connection, int64_t account, int64_t *ret,
                        struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT stored_bytes FROM accounts WHERE account = $1");
	db_bind_integer(query, account);
	*ret = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

/* Keys are not on a shard, so they take a query of their own. */
static int count_uses(struct db_connection *connection, int64_t account, int64_t now_us,
                      struct account_uses *ret, struct error *error)
{
	return count_account_channels(connection, account, &ret->channels, error)
		?: count_account_keys(db_side_connection(connection), account, &ret->keys, error)
		?: count_certifications_of_day(connection, account, now_us, &ret->certifications, error)
		?: count_stored(connection, account, &ret->stored_bytes, error);
}

int store_count_account_uses(struct store *store, struct slice account_id, int64_t now_us,
                             struct account_uses *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t account = 0;
	struct account_uses uses;
	int result = find_account_number(connection, account_id, &account, error);
	if (!result)
		result = count_uses(connection, account, now_us, &uses, error);
	result = end_read(connection, result);
	if (!result)
		*ret = uses;
	return result;
}

#define LISTED(of) ACCOUNT_COLUMNS " WHERE a.account > $2" of " ORDER BY a.account LIMIT $3"

int store_list_accounts(struct store *store, struct slice after, int64_t limit, int64_t now_us,
                        struct arena *arena, struct account_list *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int result = OK;
	int64_t after_number = 0;
	if (after.size)
		result = find_account_number(connection, after, &after_number, error);
	if (result)
		return end_read(connection, result);
	SHARD_WORK_AUTO struct work_accounts of = {0};
	result =
		routing_find_page(connection, ROUTING_ALL,
	                      "SELECT account FROM {accounts} WHERE account > ? ORDER BY account",
	                      &(struct routing_value){.number = after_number}, limit + 1, &of, error);
	if (result)
		return end_read(connection, result);
	char day[11];
	time_day_key(now_us, day);
	struct row row = {
		.arena = arena,
		.query = routing_query(connection, &of, LISTED(""), LISTED(WORK_ACCOUNTS("a", "$4")))};
	db_bind(row.query, day, after_number, limit + 1);
	shard_work_bind(row.query, &of);
	struct account_list list = {.partial = of.partial};
	result = end_read(connection, row_list(&row, &account_type, LIST_OF(&list), limit, error));
	if (!result)
		*ret = list;
	return result;
}

int store_count_passkey_accounts(struct store *store, int64_t *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT COUNT(*) FROM accounts WHERE passkeys_required <> 0");
	if (db_step(query))
		*ret = db_integer(query, 0);
	return end_read(connection, db_end(query, error));
}

static int change_account(struct db_connection *connection, struct slice account_id,
                          const struct account_change *change, int64_t now_us, struct error *error)
{
	int64_t account = 0;
	int result = find_account_number(connection, account_id, &account, error);
	if (result)
		return result;
	struct db_query *query = db_query(
		connection,
		"UPDATE accounts SET name = COALESCE($2, name),"
		" email = CASE WHEN CAST($3 AS TEXT) IS NULL THEN email WHEN $3 = '' THEN NULL ELSE $3 END,"
		" language = COALESCE($4, language),"
		" rate_live = CASE WHEN $5 < 0 THEN rate_live WHEN $5 = 0 THEN NULL ELSE $5 END,"
		" unpaid_limit = CASE WHEN $6 < 0 THEN unpaid_limit ELSE $6 END,"
		" suspended = CASE WHEN $7 < 0 THEN suspended ELSE $7 END,"
		" passkeys_required = CASE WHEN $10 < 0 THEN passkeys_required ELSE $10 END,"
		" active_at = CASE WHEN $8 = 0 THEN $9 ELSE active_at END,"
		" bound_rate = CASE WHEN $11 < 0 THEN bound_rate WHEN $11 = 0 THEN NULL ELSE $11 END,"
		" bound_channels = CASE WHEN $12 < 0 THEN bound_channels WHEN $12 = 0 THEN NULL ELSE $12 END,"
		" bound_keys = CASE WHEN $13 < 0 THEN bound_keys WHEN $13 = 0 THEN NULL ELSE $13 END,"
		" bound_certifications = CASE WHEN $14 < 0 THEN bound_certifications"
		" WHEN $14 = 0 THEN NULL ELSE $14 END,"
		" bound_stored_bytes = CASE WHEN $15 < 0 THEN bound_stored_bytes"
		" WHEN $15 = 0 THEN NULL ELSE $15 END,"
		" disabled = CASE WHEN $8 < 0 THEN disabled ELSE $8 END WHERE account = $1");
	db_bind(query, account, change->name, change->email,
	        change->language < 0                   ? NULL
	        : change->language == LANGUAGE_SPANISH ? "es"
	                                               : "en",
	        change->rate_live, change->unpaid_limit, change->suspended, change->disabled,
	        now_us - now_us % US_PER_DAY, change->passkeys_required, change->bounds.rate,
	        change->bounds.channels, change->bounds.keys, change->bounds.certifications,
	        change->bounds.stored_bytes);
	return db_execute(query, NULL, error);
}

int store_change_account(struct store *store, struct slice account_id,
                         const struct account_change *change, int64_t now_us, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	return end_write(connection, change_account(connection, account_id, change, now_us, error),
	                 error);
}

/* ---- credits ---- */

int store_move_credits(struct store *store, struct slice account_id,
                       const struct credit_movement *movement, int64_t now_us,
                       struct credit_outcome *ret, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	int64_t account = 0;
	struct credit_outcome outcome;
	int result = find_account_number(connection, account_id, &account, error);
	if (!result)
		result = move_credits(connection, account, movement, now_us, &outcome, error);
	result = end_write(connection, result, error);
	if (!result)
		*ret = outcome;
	return result;
}

static const struct member credit_columns[] =
	COLUMNS_OF(struct credit_record, number, at_us, kind, credits, balance, channel_id,
               first_sequence, last_sequence, reference);
static const struct row_type credit_type = ROW_TYPE(struct credit_record, credit_columns, NULL);

int store_list_credits(struct store *store, const struct credit_filter *filter, struct arena *arena,
                       struct credit_list *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t account = 0;
	int result = find_account_number(connection, filter->account_id, &account, error);
	if (result)
		return end_read(connection, result);
	struct row row = {
		.arena = arena,
		.query = db_query(connection,
	                      "SELECT e.number, e.at, e.kind, e.credits, e.balance, c.channel_id,"
	                      " e.first_sequence, e.last_sequence, e.reference"
	                      " FROM credit_entries e LEFT JOIN channels c"
	                      " ON c.account = e.account AND c.channel = e.chain / 2"
	                      " WHERE e.account = $1 AND e.number < $2 AND ($3 = '' OR e.kind = $3)"
	                      " AND e.at >= $4 AND e.at < $5 ORDER BY e.number DESC LIMIT $6")};
	db_bind(row.query, account, filter->before ? filter->before : INT64_MAX, filter->kind,
	        filter->since_us == TIME_NONE ? 0 : filter->since_us,
	        filter->until_us == TIME_NONE ? INT64_MAX : filter->until_us, filter->limit + 1);
	struct credit_list list = {0};
	result =
		end_read(connection, row_list(&row, &credit_type, LIST_OF(&list), filter->limit, error));
	if (!result)
		*ret = list;
	return result;
}
