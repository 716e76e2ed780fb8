#include "store/usage/count.h"

#include "base/clock.h"

int count_certification(struct db_connection *connection, const struct certification *certification,
                        enum certification_status status, int64_t at_us, struct error *error)
{
	bool asked = status == CERTIFICATION_PROCESSING;
	bool completed = status == CERTIFICATION_COMPLETED;
	bool failed = status == CERTIFICATION_FAILED;
	struct db_query *query = db_query(
		connection,
		"INSERT INTO daily_certifications AS u (account, day, chain, key, requested, completed,"
		" failed, events, fees, refunds) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
		" ON CONFLICT (account, day, chain, key) DO UPDATE SET"
		" requested = u.requested + excluded.requested,"
		" completed = u.completed + excluded.completed, failed = u.failed + excluded.failed,"
		" events = u.events + excluded.events, fees = u.fees + excluded.fees,"
		" refunds = u.refunds + excluded.refunds");
	db_bind(query, certification->account, time_day(at_us), certification->chain,
	        certification->key, asked, completed, failed,
	        completed ? certification->last_sequence - certification->first_sequence + 1 : 0,
	        asked ? certification->fee : 0, failed ? certification->fee : 0);
	return db_execute(query, NULL, error);
}

int count_movement(struct db_connection *connection, int64_t account,
                   const struct ledger_entry *entry, int64_t at_us, struct error *error)
{
	struct db_query *query = db_query(
		connection, "INSERT INTO daily_credits AS t (account, day, kind, movements, credits)"
					" VALUES ($1, $2, $3, 1, $4) ON CONFLICT (account, day, kind) DO UPDATE SET"
					" movements = t.movements + 1, credits = t.credits + excluded.credits");
	db_bind(query, account, time_day(at_us), entry->kind, entry->credits);
	return db_execute(query, NULL, error);
}

/* ---- stored bytes ---- */

int stored_bytes_of(struct db_connection *connection, int64_t account, int64_t *ret_bytes,
                    struct error *error)
{
	struct db_query *query = db_query(
		connection, "SELECT CAST((SELECT COALESCE(sum(content_bytes), 0) FROM daily_usage"
					" WHERE account = $1) + (SELECT COALESCE(sum(COALESCE(own_bytes, size_bytes)),"
					" 0) FROM issued_files WHERE account = $1) AS BIGINT)");
	db_bind_integer(query, account);
	*ret_bytes = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}
