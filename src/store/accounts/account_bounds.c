#include "store/accounts/account_bounds.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "ledger/bounds.h"
#include "store/transaction.h"

static int read_number(struct db_query *query, int64_t *ret, struct error *error)
{
	int64_t number = db_step(query) ? db_integer(query, 0) : 0;
	int result = db_end(query, error);
	if (!result)
		*ret = number;
	return result;
}

int count_account_channels(struct db_connection *connection, int64_t account, int64_t *ret,
                           struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT COUNT(*) FROM channels WHERE account = $1");
	db_bind_integer(query, account);
	return read_number(query, ret, error);
}

int count_account_keys(struct db_connection *connection, int64_t account, int64_t *ret,
                       struct error *error)
{
	struct db_query *query = db_query(
		connection, "SELECT COUNT(*) FROM api_keys WHERE account = $1 AND revoked_at IS NULL");
	db_bind_integer(query, account);
	return read_number(query, ret, error);
}

int count_certifications_of_day(struct db_connection *connection, int64_t account, int64_t at_us,
                                int64_t *ret, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT CAST(COALESCE(SUM(requested), 0) AS BIGINT)"
	                         " FROM daily_certifications"
	                         " WHERE account = $1 AND day = $2 AND chain % 2 = $3");
	db_bind(query, account, time_day(at_us), MODE_LIVE);
	return read_number(query, ret, error);
}

static int refuse(enum message message, int code, int64_t most, struct error *error)
{
	char number[24];
	snprintf(number, sizeof number, "%" PRId64, most);
	return error_set(error, code, message, number, NULL);
}

typedef int count_function(struct db_connection *connection, int64_t account, int64_t *ret,
                           struct error *error);

/* Returns OK when one more is allowed by the account's own limit, which `own_sql` reads, or else by
 * `general`. */
static int check_count(struct db_connection *connection, int64_t account, const char *own_sql,
                       int64_t general, count_function *count, enum message full,
                       struct error *error)
{
	struct db_query *query = db_query(connection, own_sql);
	db_bind_integer(query, account);
	int64_t own = 0, used = 0;
	int result = read_number(query, &own, error);
	int64_t most = account_bound(own, general);
	if (!result && most)
		result = count(connection, account, &used, error);
	if (result || !account_bound_is_reached(most, used))
		return result;
	return refuse(full, ERR_FULL, most, error);
}

int check_account_channels(struct db_connection *connection, int64_t account, int64_t general,
                           struct error *error)
{
	return check_count(connection, account,
	                   "SELECT bound_channels FROM accounts WHERE account = $1", general,
	                   count_account_channels, MSG_STORE_ACCOUNT_CHANNELS_FULL, error);
}

int check_account_keys(struct db_connection *connection, int64_t account, int64_t general,
                       struct error *error)
{
	return check_count(connection, account, "SELECT bound_keys FROM accounts WHERE account = $1",
	                   general, count_account_keys, MSG_STORE_ACCOUNT_KEYS_FULL, error);
}

int check_certifications_of_day(struct db_connection *connection, int64_t account, int64_t general,
                                int64_t at_us, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT bound_certifications FROM accounts WHERE account = $1");
	db_bind_integer(query, account);
	int64_t own = 0, used = 0;
	int result = read_number(query, &own, error);
	int64_t most = account_bound(own, general);
	if (!result && most)
		result = count_certifications_of_day(connection, account, at_us, &used, error);
	if (result || !account_bound_is_reached(most, used))
		return result;
	result = refuse(MSG_STORE_CERTIFICATIONS_OF_DAY, ERR_RATE_LIMITED, most, error);
	if (error)
		error->retry_after_seconds =
			(int)((time_next_day(at_us) - at_us + US_PER_SECOND - 1) / US_PER_SECOND);
	return result;
}
