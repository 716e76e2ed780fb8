#include "store/usage/count.h"

#include "base/clock.h"
#include "store/notices/deliveries.h"
#include "store/usage/totals.h"

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
	db_bind_integer(query, certification->account);
	db_bind_integer(query, time_day(at_us));
	db_bind_integer(query, certification->chain);
	db_bind_integer(query, certification->key);
	db_bind_integer(query, asked);
	db_bind_integer(query, completed);
	db_bind_integer(query, failed);
	db_bind_integer(
		query, completed ? certification->last_sequence - certification->first_sequence + 1 : 0);
	db_bind_integer(query, asked ? certification->fee : 0);
	db_bind_integer(query, failed ? certification->fee : 0);
	return db_execute(query, NULL, error);
}

int count_movement(struct db_connection *connection, int64_t account,
                   const struct ledger_entry *entry, int64_t at_us, struct error *error)
{
	struct db_query *query = db_query(
		connection, "INSERT INTO daily_credits AS t (account, day, kind, movements, credits)"
					" VALUES ($1, $2, $3, 1, $4) ON CONFLICT (account, day, kind) DO UPDATE SET"
					" movements = t.movements + 1, credits = t.credits + excluded.credits");
	db_bind_integer(query, account);
	db_bind_integer(query, time_day(at_us));
	db_bind_string(query, entry->kind);
	db_bind_integer(query, entry->credits);
	return db_execute(query, NULL, error);
}

/* ---- deliveries ---- */

const int64_t delay_bounds_ms[DELAY_BOUNDS] = {1000, 10000, 60000, 600000, 3600000, 86400000};

int64_t delay_ms(int64_t from_us, int64_t to_us)
{
	int64_t ms = to_us > from_us ? (to_us - from_us) / 1000 : 0;
	return ms < DELAY_MAX_MS ? ms : DELAY_MAX_MS;
}

int count_attempt(struct db_connection *connection, const struct attempt_record *record,
                  struct error *error)
{
	bool delivered = record->end == DELIVERY_DONE;
	int64_t waited_ms =
		delivered ? delay_ms(record->since_us, record->at_us + record->duration_us) : 0;
	struct db_query *query = db_query(
		connection,
		"INSERT INTO daily_deliveries AS t (" DELIVERY_COLUMNS ")"
		" SELECT account, $6, endpoint, 1, moved * $7, moved * $8, moved * $9, moved * $9,"
		" moved * $10, moved * $11, moved * $12, moved * $13, moved * $14, moved * $15 FROM"
		" (SELECT d.account, d.endpoint, CAST(CASE WHEN d.status = 'waiting' AND d.attempts = $4"
		" AND d.tries = $5 THEN 1 ELSE 0 END AS BIGINT) AS moved,"
		" (SELECT count(*) FROM webhook_attempts a WHERE a.account = $1 AND a.endpoint = $2"
		" AND a.notice = $3 AND a.attempt = $4 + 1) AS known FROM webhook_deliveries d"
		" WHERE d.account = $1 AND d.endpoint = $2 AND d.notice = $3) AS found"
		" WHERE moved = 1 OR known = 0" ADD_DELIVERIES);
	db_bind_integer(query, record->account);
	db_bind_integer(query, record->endpoint);
	db_bind_integer(query, record->notice);
	db_bind_integer(query, record->attempts);
	db_bind_integer(query, record->tries);
	db_bind_integer(query, time_day(record->at_us));
	db_bind_integer(query, delivered);
	db_bind_integer(query, record->end == DELIVERY_USED_UP);
	db_bind_integer(query, waited_ms);
	bool counted = !delivered;
	for (size_t i = 0; i < DELAY_BOUNDS; i++) {
		bool within = !counted && waited_ms <= delay_bounds_ms[i];
		db_bind_integer(query, within);
		counted |= within;
	}
	return db_execute(query, NULL, error);
}

int count_skipped(struct db_connection *connection, int64_t account, int64_t endpoint,
                  struct error *error)
{
	struct db_query *query = db_query(
		connection,
		"INSERT INTO daily_deliveries AS t (" DELIVERY_COLUMNS ")"
		" SELECT a.account, a.at / 86400000000, a.endpoint, 0, 0, count(*), 0, 0, 0, 0, 0, 0, 0, 0"
		" FROM (" SKIPPED_DELIVERIES ") AS d JOIN webhook_attempts a ON a.account = $1"
		" AND a.endpoint = $2 AND a.notice = d.notice AND a.attempt = d.attempts"
		" WHERE d.tries > 0 GROUP BY a.account, a.at / 86400000000, a.endpoint" ADD_DELIVERIES);
	db_bind_integer(query, account);
	db_bind_integer(query, endpoint);
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
