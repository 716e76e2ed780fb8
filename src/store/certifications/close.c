/* Closing of certified ranges by time. */
#include <assert.h>

#include "store/certifications/certifications.h"
#include "store/transaction.h"

static int read_last(struct db_connection *connection, int64_t account, int64_t chain,
                     int64_t *ret_us, struct error *error)
{
	struct db_query *query = db_query(
		connection, "SELECT last_received_at FROM chains WHERE account = $1 AND chain = $2");
	db_bind(query, account, chain);
	bool found = db_step(query);
	if (found)
		*ret_us = db_integer(query, 0);
	int result = db_end(query, error);
	return result || found ? result : ERR_NOT_FOUND;
}

static int write_last(struct db_connection *connection, int64_t account, int64_t chain,
                      int64_t last_us, struct error *error)
{
	struct db_query *query = db_query(connection, "UPDATE chains SET last_received_at = $3"
	                                              " WHERE account = $1 AND chain = $2");
	db_bind(query, account, chain, last_us);
	return db_execute(query, NULL, error);
}

/* Registration holds the lock of the account until its commit, so everything that was received is
 * visible here. */
static int close_range(struct db_connection *connection, int64_t account, int64_t chain,
                       const struct certification_range *range, const struct ledger_clock *clock,
                       int64_t *ret_cut_us, struct error *error)
{
	int64_t last_us = 0;
	int result = lock_account(connection, account, error);
	if (!result)
		result = read_last(connection, account, chain, &last_us, error);
	if (result)
		return result;
	const int64_t before_us = last_us;
	*ret_cut_us = range_cut_us(range, last_us, clock->now_us);
	if (!range_close(*ret_cut_us, &last_us))
		return OK;
	assert(last_us > before_us); /* received_at never decreases */
	if (chain % 2 == MODE_LIVE && ledger_clock_is_refused(clock))
		return error_cause(error, ERR_CLOCK,
		                   "the end of the range would be later than the current time");
	return write_last(connection, account, chain, last_us, error);
}

int store_close_range(struct store *store, int64_t account, int64_t chain,
                      const struct certification_range *range, const struct ledger_clock *clock,
                      int64_t *ret_cut_us, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	return end_write(connection,
	                 close_range(connection, account, chain, range, clock, ret_cut_us, error),
	                 error);
}
