/* How the totals are counted, and what they are counted from; for src/store alone. */
#ifndef STORE_USAGE_COUNT_H
#define STORE_USAGE_COUNT_H

#include "store/certifications/certifications.h"
#include "store/internal.h"

/* In the transaction that accepts, completes or fails a certification, which is told by its status;
 * at_us is when. */
int count_certification(struct db_connection *connection, const struct certification *certification,
                        enum certification_status status, int64_t at_us, struct error *error)
	MUST_CHECK;

/* In the transaction of a movement of credits that is not a registration's. */
int count_movement(struct db_connection *connection, int64_t account,
                   const struct ledger_entry *entry, int64_t at_us, struct error *error) MUST_CHECK;

/* In the transaction that writes a round of so many blocks, and so seals what is staged for it:
 * notes that it is to be counted (store_count_sealed). */
int count_sealed_later(struct db_connection *connection, int64_t round, int64_t blocks,
                       struct error *error) MUST_CHECK;

/* In the transaction that records an attempt, before it does: counts it unless it is there already,
 * and its end only where the delivery stands as it was loaded. */
struct attempt_record;
int count_attempt(struct db_connection *connection, const struct attempt_record *record,
                  struct error *error) MUST_CHECK;

/* In the transaction that fails deliveries that wait at an endpoint and are not tried any more,
 * before it does: counts those of SKIPPED_DELIVERIES whose schedule had begun, each on the day of
 * its last attempt. */
int count_skipped(struct db_connection *connection, int64_t account, int64_t endpoint,
                  struct error *error) MUST_CHECK;

/* What an account's stored_bytes are to be: the content of its events, by the daily totals, and the
 * objects of its documents. */
int stored_bytes_of(struct db_connection *connection, int64_t account, int64_t *ret_bytes,
                    struct error *error) MUST_CHECK;

/* The tables of a store that had none of these totals. */
int fill_totals(struct db_connection *connection, struct error *error) MUST_CHECK;

/* ---- statements that counting, filling and checking share ---- */

#define DELAY_COLUMNS                                                                              \
	"delay_ms, longest_ms, within_1s, within_10s, within_1m, within_10m, within_1h, within_1d"
/* What a row with the alias t becomes by one more. */
#define ADD_DELAYS                                                                                 \
	" delay_ms = t.delay_ms + excluded.delay_ms,"                                                  \
	" longest_ms = CASE WHEN excluded.longest_ms > t.longest_ms THEN excluded.longest_ms"          \
	" ELSE t.longest_ms END, within_1s = t.within_1s + excluded.within_1s,"                        \
	" within_10s = t.within_10s + excluded.within_10s,"                                            \
	" within_1m = t.within_1m + excluded.within_1m,"                                               \
	" within_10m = t.within_10m + excluded.within_10m,"                                            \
	" within_1h = t.within_1h + excluded.within_1h,"                                               \
	" within_1d = t.within_1d + excluded.within_1d"
/* The columns, of rows with `waited` in milliseconds that each stand for so many. */
#define COUNTED_WITHIN(number, above, most, name)                                                  \
	" COALESCE(sum(CASE WHEN waited > " above " AND waited <= " most " THEN " number               \
	" ELSE 0 END), 0) AS " name
#define COUNTED_DELAYS(number)                                                                                                                        \
	" sum(" number " * waited) AS delay_ms,"                                                                                                          \
	" max(CASE WHEN " number                                                                                                                          \
	" > 0 THEN waited ELSE 0 END) AS longest_ms," COUNTED_WITHIN(number, "-1", "1000", "within_1s") "," COUNTED_WITHIN(                               \
		number, "1000", "10000",                                                                                                                      \
		"within_10s") "," COUNTED_WITHIN(number, "10000", "60000",                                                                                    \
	                                     "within_1m") "," COUNTED_WITHIN(number, "60000",                                                             \
	                                                                     "600000",                                                                    \
	                                                                     "within_10m") "," COUNTED_WITHIN(number,                                     \
	                                                                                                      "600000",                                   \
	                                                                                                      "3600000",                                  \
	                                                                                                      "within_1h") "," COUNTED_WITHIN(number,     \
	                                                                                                                                      "3600000",  \
	                                                                                                                                      "86400000", \
	                                                                                                                                      "within_1d")
#define WAITED(us)                                                                                 \
	" CASE WHEN " us " < 0 THEN 0 WHEN " us " > 86400000000000 THEN 86400000000 ELSE (" us         \
	") / 1000 END AS waited"

/* Of rows account, day, events, waited: one for each segment. */
#define SEAL_COLUMNS "account, day, segments, events, " DELAY_COLUMNS
#define SEAL_TOTALS(segments)                                                                      \
	"SELECT account, day, count(*) AS segments, sum(events) AS events," COUNTED_DELAYS(            \
		"events") " FROM (" segments ") AS sealed GROUP BY account, day"
#define ADD_SEALS                                                                                  \
	" ON CONFLICT (account, day) DO UPDATE SET segments = t.segments + excluded.segments,"         \
	" events = t.events + excluded.events," ADD_DELAYS
/* Of the round $1, whose timestamp came at $2, at the places from $5 and before $6, behind the
 * account $3; acts are not counted. */
#define PLACED_SEGMENTS                                                                            \
	"SELECT account, CAST($2 AS BIGINT) / 86400000000 AS day,"                                     \
	" last_sequence - first_sequence + 1 AS events," WAITED(                                       \
		"CAST($2 AS BIGINT) - COALESCE(received_at, $2)") " FROM segments WHERE round = $1 AND place >= $5 AND place < $6 AND account > $3 AND chain > 0"
/* The totals of the next accounts, at most $4. */
#define PLACED_TOTALS SEAL_TOTALS(PLACED_SEGMENTS) " ORDER BY account LIMIT $4"
/* Of segments s: the part of what is sealed that has been counted. */
#define IS_COUNTED                                                                                 \
	"(s.round < (SELECT COALESCE(MIN(u.round), 9223372036854775807) FROM uncounted_rounds u)"      \
	" OR (s.round = (SELECT MIN(u.round) FROM uncounted_rounds u) AND s.place <"                   \
	" (SELECT u.place FROM uncounted_rounds u ORDER BY u.round LIMIT 1)))"
/* Segments s with their rounds r; those of before do not say when their first event came. */
#define SEALED_SEGMENTS(which)                                                                                                   \
	"SELECT account, obtained_at / 86400000000 AS day, events," WAITED(                                                          \
		"obtained_at - received_at") " FROM (SELECT s.account AS account,"                                                       \
									 " r.obtained_at AS obtained_at, s.last_sequence - s.first_sequence + 1 AS events,"          \
									 " COALESCE(s.received_at, (SELECT e.received_at FROM events e WHERE e.account = s.account"  \
									 " AND e.event = s.chain * 1099511627776 + s.first_sequence), r.obtained_at) AS received_at" \
									 " FROM segments s JOIN seal_rounds r ON r.round = s.round WHERE s.chain > 0 AND " which     \
									 ") AS segment"

/* Of the attempts that are kept, of one endpoint: at the notices behind $3, up to $4. */
#define DELIVERY_COLUMNS "account, day, endpoint, attempts, delivered, failed, " DELAY_COLUMNS
#define DELIVERY_TOTALS                                                                                                                                                \
	"SELECT account, day, endpoint, count(*) AS attempts, sum(delivered) AS delivered,"                                                                                \
	" sum(failed) AS failed," COUNTED_DELAYS(                                                                                                                          \
		"delivered") " FROM"                                                                                                                                           \
					 " (SELECT a.account AS account, a.endpoint AS endpoint, a.at / 86400000000 AS day,"                                                               \
					 " CASE WHEN d.status = 'delivered' AND d.attempts = a.attempt THEN 1 ELSE 0 END AS delivered,"                                                    \
					 " CASE WHEN d.status = 'failed' AND d.attempts = a.attempt THEN 1 ELSE 0 END AS failed," WAITED(                                                  \
						 "a.at + a.duration_us - COALESCE(d.replayed_at, n.created_at)") " FROM webhook_attempts a JOIN webhook_deliveries d ON d.account = a.account" \
																						 " AND d.endpoint = a.endpoint AND d.notice = a.notice"                        \
																						 " JOIN notices n ON n.account = a.account AND n.notice = a.notice"            \
																						 " WHERE a.account = $1 AND a.endpoint = $2 AND a.notice > $3 AND a.notice <= $4) AS attempt GROUP BY account, day, endpoint"

/* Those at the endpoint $2 of the account $1 that are skipped at once; the same ones in each
 * statement of a transaction of the writer. */
#define SKIPPED_DELIVERIES                                                                         \
	"SELECT notice, attempts, tries FROM webhook_deliveries WHERE account = $1 AND endpoint = $2"  \
	" AND status = 'waiting' ORDER BY replayed, next_attempt_at, notice LIMIT 500"
#define ADD_DELIVERIES                                                                               \
	" ON CONFLICT (account, day, endpoint) DO UPDATE SET attempts = t.attempts + excluded.attempts," \
	" delivered = t.delivered + excluded.delivered, failed = t.failed + excluded.failed," ADD_DELAYS

#endif
