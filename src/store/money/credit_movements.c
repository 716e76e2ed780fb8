/* Loading and saving of the money of an account: balance, credit entries, thresholds, unpaid
 * events. */
#include <assert.h>

#include "base/clock.h"
#include "store/notices/fan_out.h"
#include "store/store_internal.h"
#include "store/usage/count.h"

static int load_thresholds(struct db_connection *connection, size_t count, struct arena *arena,
                           struct ledger_account *account, struct error *error)
{
	account->thresholds = arena_alloc(arena, count * sizeof *account->thresholds);
	if (!account->thresholds)
		return ERR_NO_MEMORY;
	struct db_query *query =
		db_query(connection, "SELECT threshold_id, credits, armed FROM balance_thresholds "
	                         "WHERE account = $1 ORDER BY threshold_id");
	db_bind_integer(query, account->account);
	int result = OK;
	while (account->threshold_count < count && db_step(query)) {
		struct ledger_threshold *threshold = &account->thresholds[account->threshold_count++];
		struct slice id = db_text(query, 0);
		threshold->threshold_id = arena_copy(arena, id.data, id.size);
		threshold->credits = db_integer(query, 1);
		threshold->armed = db_integer(query, 2) != 0;
		if (!threshold->threshold_id)
			result = ERR_NO_MEMORY;
	}
	int ended = db_end(query, error);
	return ended ? ended : result;
}

int store_load_account(struct db_connection *connection, int64_t account, struct arena *arena,
                       struct ledger_account *ret, struct error *error)
{
	db_bind_to_shard(connection, account);
	struct db_query *query = db_query(
		connection, "SELECT balance, unpaid_events, unpaid_limit, last_entry, last_unpaid, "
					"stored_bytes, COALESCE(bound_stored_bytes, 0), "
					"(SELECT count(*) FROM balance_thresholds WHERE account = $1) "
					"FROM accounts WHERE account = $1 FOR UPDATE");
	db_bind_integer(query, account);
	bool found = db_step(query);
	size_t thresholds = 0;
	*ret = (struct ledger_account){.account = account};
	if (found) {
		ret->balance = db_integer(query, 0);
		ret->unpaid_events = db_integer(query, 1);
		ret->unpaid_limit = db_integer(query, 2);
		ret->last_entry = db_integer(query, 3);
		ret->last_unpaid = db_integer(query, 4);
		ret->stored_bytes = db_integer(query, 5);
		ret->stored_max = db_integer(query, 6);
		thresholds = (size_t)db_integer(query, 7);
	}
	int result = db_end(query, error);
	if (result)
		return result;
	if (!found)
		return ERR_NOT_FOUND;
	return thresholds ? load_thresholds(connection, thresholds, arena, ret, error) : OK;
}

int store_load_test_usage(struct db_connection *connection, const char *day,
                          struct ledger_account *account, struct error *error)
{
	struct db_query *query = db_query(connection, "SELECT events, content_bytes FROM test_usage "
	                                              "WHERE account = $1 AND day = $2");
	db_bind(query, account->account, day);
	if (db_step(query)) {
		account->test_events_today = db_integer(query, 0);
		account->test_bytes_today = db_integer(query, 1);
	}
	return db_end(query, error);
}

static int save_thresholds(struct db_connection *connection, const struct ledger_account *account,
                           struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < account->threshold_count && !result; i++) {
		const struct ledger_threshold *threshold = &account->thresholds[i];
		if (!threshold->changed)
			continue;
		struct db_query *query = db_query(connection, "UPDATE balance_thresholds SET armed = $3 "
		                                              "WHERE account = $1 AND threshold_id = $2");
		db_bind(query, account->account, threshold->threshold_id, threshold->armed);
		result = db_execute(query, NULL, error);
	}
	return result;
}

int store_save_account(struct db_connection *connection, const struct ledger_account *account,
                       int64_t active_us, struct error *error)
{
	struct db_query *query = db_query(
		connection, "UPDATE accounts SET balance = $2, unpaid_events = $3, last_entry = $4, "
					"last_unpaid = $5, active_at = CASE WHEN $6 < 0 THEN active_at ELSE $6 END, "
					"stored_bytes = $7 "
					"WHERE account = $1");
	db_bind(query, account->account, account->balance, account->unpaid_events, account->last_entry,
	        account->last_unpaid, active_us == TIME_NONE ? -1 : active_us - active_us % US_PER_DAY,
	        account->stored_bytes);
	int result = db_execute(query, NULL, error);
	return result ? result : save_thresholds(connection, account, error);
}

int store_write_entries(struct db_connection *connection, struct ledger_account *account,
                        const struct ledger_entry *entries, int64_t now_us, struct error *error)
{
	int result = OK;
	for (const struct ledger_entry *entry = entries; entry && !result; entry = entry->next) {
		assert(!entry->next || entry->next->balance == entry->balance + entry->next->credits);
		assert(entry->next || entry->balance == account->balance);
		assert(!entry->chain ||
		       (entry->first_sequence >= 1 &&
		        entry->credits == entry->first_sequence - entry->last_sequence - 1));
		struct db_query *query = db_query(
			connection, "INSERT INTO credit_entries(account, number, at, kind, credits, balance, "
						"chain, first_sequence, last_sequence, reference) "
						"VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");
		db_bind(query, account->account, ++account->last_entry, now_us, entry->kind, entry->credits,
		        entry->balance);
		if (entry->chain) {
			db_bind(query, entry->chain->chain, entry->first_sequence, entry->last_sequence);
		} else {
			db_bind_null(query);
			db_bind_null(query);
			db_bind_null(query);
		}
		db_bind_string(query, entry->reference);
		result = db_execute(query, NULL, error);
		/* What a registration pays is counted with its events in daily_usage. */
		if (!result && !entry->chain)
			result = count_movement(connection, account->account, entry, now_us, error);
	}
	return result;
}

/* One sequence numbers all notices in the order in which they are written. 0: the engine assigns
 * the number. */
static int next_notice(struct db_connection *connection, int64_t *ret_number, struct error *error)
{
	struct db_connection *unsharded = db_side_connection(connection);
	*ret_number = 0;
	if (unsharded == connection)
		return OK;
	struct db_query *query =
		db_query(unsharded, "SELECT nextval(pg_get_serial_sequence('notices', 'notice'))");
	if (db_step(query))
		*ret_number = db_integer(query, 0);
	int result = db_end(query, error);
	return result;
}

/* Returns the creation time of the account's next notice: later than that of its last one, whatever
 * the clocks of the nodes. The caller holds the lock of the account. */
static int next_creation(struct db_connection *connection, int64_t account, int64_t now_us,
                         int64_t *ret_us, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT created_at FROM notices WHERE account = $1"
	                         " ORDER BY notice DESC LIMIT 1");
	db_bind(query, account);
	int64_t last_us = db_step(query) ? db_integer(query, 0) : now_us - 1;
	*ret_us = last_us < now_us ? now_us : last_us + 1;
	return db_end(query, error);
}

#define NEW_NOTICE(column, value)                                                                  \
	"INSERT INTO notices(account, notice_id, type, mode, created_at, data" column                  \
	") VALUES ($1, $2, $3, $4, $5, $6" value ") RETURNING notice"

static int write_notice(struct db_connection *connection, int64_t account,
                        const struct ledger_notice *notice, enum mode mode, int64_t created_at_us,
                        int64_t *ret_number, struct error *error)
{
	char id[ID_SIZE];
	int64_t number;
	int result = next_notice(connection, &number, error);
	if (result)
		return result;
	store_fresh_id("ntc_", id);
	struct db_query *query = number ? db_query(connection, NEW_NOTICE(", notice", ", $7"))
	                                : db_query(connection, NEW_NOTICE("", ""));
	db_bind(query, account, id, notice_type_text(notice->type), mode_text(mode), created_at_us,
	        notice->data);
	if (number)
		db_bind_integer(query, number);
	*ret_number = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

int store_write_notices(struct db_connection *connection, int64_t account,
                        const struct ledger_notice *notices, enum mode mode, int64_t now_us,
                        struct error *error)
{
	struct fan_out out;
	int64_t created_at_us = now_us;
	int result = notices ? next_creation(connection, account, now_us, &created_at_us, error)
	                           ?: fan_out_open(connection, account, now_us, &out, error)
	                     : OK;
	for (const struct ledger_notice *notice = notices; notice && !result; notice = notice->next) {
		int64_t number;
		const char *type = notice_type_text(notice->type);
		if (notice_type_is_opt_in(slice_of(type)) && !fan_out_is_wanted(&out, type))
			continue;
		result = write_notice(connection, account, notice, mode, created_at_us++, &number, error);
		if (!result)
			result = fan_out_notice(connection, &out, number, type, error);
	}
	return result;
}

int store_settle(struct db_connection *connection, int64_t account, int64_t count,
                 struct error *error)
{
	assert(count > 0);
	struct db_query *query =
		db_query(connection,
	             "DELETE FROM unpaid_events WHERE account = $1 AND number IN "
	             "(SELECT number FROM unpaid_events WHERE account = $1 ORDER BY number LIMIT $2)");
	db_bind(query, account, count);
	int64_t changes;
	int result = db_execute(query, &changes, error);
	if (!result && changes != count)
		return error_cause(error, ERR_CORRUPT,
		                   "%lld unpaid events are listed, but %lld were counted",
		                   (long long)changes, (long long)count);
	return result;
}
