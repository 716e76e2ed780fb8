/* Periodic changes of accounts: removal of old counts, and disabling of idle accounts. */
#include "base/json.h"
#include "store/accounts/accounts.h"
#include "store/notices/queue_mail.h"
#include "store/transaction.h"

#define TEST_USAGE_KEPT_US (30 * US_PER_DAY)

/* active_at has the precision of a day and covers live registrations, certifications and purchases.
 * Test registrations are read from the chains. */
#define IS_IDLE                                                                                    \
	" disabled = 0 AND active_at < $1 AND NOT EXISTS (SELECT 1 FROM chains c"                      \
	" WHERE c.account = accounts.account AND c.last_received_at >= $1)"

static int next_idle(struct store *store, int64_t before_us, int64_t after, int64_t *ret_account,
                     struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query = db_query(connection, "SELECT account FROM accounts WHERE" IS_IDLE
	                                              " AND account > $2 ORDER BY account LIMIT 1");
	db_bind(query, before_us, after);
	int64_t account = db_step(query) ? db_integer(query, 0) : 0;
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_account = account;
	return result;
}

static int tell_owner(struct db_connection *connection, int64_t account, int64_t active_us,
                      int64_t now_us, struct error *error)
{
	BUF_AUTO struct buf values;
	buf_init(&values, MAIL_VALUES_MAX);
	struct json_writer writer = {.out = &values};
	json_begin_object(&writer, NULL);
	json_time(&writer, "active_at", active_us);
	json_end_object(&writer);
	int result = buf_check(&values);
	return result ? result
	              : store_queue_mail(connection, account, MAIL_ACCOUNT_DISABLED, buf_slice(&values),
	                                 now_us, error);
}

/* Disables the account unless it has become active since it was found. */
static int disable(struct db_connection *connection, int64_t account, int64_t before_us,
                   int64_t now_us, bool *ret_disabled, struct error *error)
{
	struct db_query *query = db_query(connection, "UPDATE accounts SET disabled = 1 WHERE" IS_IDLE
	                                              " AND account = $2 RETURNING active_at");
	db_bind(query, before_us, account);
	*ret_disabled = db_step(query);
	int64_t active_us = *ret_disabled ? db_integer(query, 0) : 0;
	int result = db_execute(query, NULL, error);
	if (!result && *ret_disabled)
		result = tell_owner(connection, account, active_us, now_us, error);
	return result;
}

int store_disable_idle_accounts(struct store *store, int64_t before_us, int64_t *ret_count,
                                struct error *error)
{
	int64_t account = 0;
	int64_t count = 0;
	before_us -= before_us % US_PER_DAY;
	int result, failure = OK;
	while (!(result = next_idle(store, before_us, account, &account, error)) && account) {
		bool disabled = false;
		struct error *first = error;
		struct db_connection *connection = begin_write(store, &first);
		result = end_write(
			connection,
			disable(connection, account, before_us, db_now_us(store->db), &disabled, first), first);
		if (result == ERR_UNAVAILABLE || result == ERR_UNKNOWN_OUTCOME)
			break;
		failure = result ? result : failure; /* of this account only */
		count += disabled && !result;
	}
	*ret_count = count;
	return result ? result : failure;
}

int store_forget_usage(struct store *store, int64_t now_us, struct error *error)
{
	char day[11];
	time_day_key(now_us - TEST_USAGE_KEPT_US, day);
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = db_query(connection, "DELETE FROM test_usage WHERE day < $1");
	db_bind_string(query, day);
	return end_write(connection, db_execute(query, NULL, error), error);
}
