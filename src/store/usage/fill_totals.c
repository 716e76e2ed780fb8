/* The daily totals of credits, seals and deliveries of a store that had none: from the entries,
 * segments and attempts that are there. Attempts are kept for a while only: what is older than that
 * is lost. Each statement goes over a bounded part, and its groups are few. */
#include "base/clock.h"
#include "store/usage/count.h"

/* So many that none lasts for long: a server ends what does. */
#define ROUNDS_AT_ONCE 8
#define ENTRIES_AT_ONCE (1 << 17)
#define DELIVERIES_AT_ONCE 4096
#define PLACES_AT_ONCE 256

struct place {
	int64_t account, number; /* of an account alone: 0 */
	int64_t last;            /* its last entry */
};

/* ---- seals ---- */

/* What is staged, and sealed by the next round, has no time of its first event yet. */
static int note_staged(struct db_connection *connection, struct error *error)
{
	struct db_query *query = db_query(
		connection, "UPDATE segments SET received_at = (SELECT e.received_at FROM events e"
					" WHERE e.account = segments.account"
					" AND e.event = segments.chain * 1099511627776 + segments.first_sequence)"
					" WHERE round > (SELECT COALESCE(MAX(round), 0) FROM seal_rounds)");
	return db_execute(query, NULL, error);
}

static int fill_seals(struct db_connection *connection, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT COALESCE(MAX(round), 0) FROM seal_rounds");
	int64_t last = db_step(query) ? db_integer(query, 0) : 0;
	int result = db_end(query, error);
	for (int64_t first = 1; first <= last && !result; first += ROUNDS_AT_ONCE) {
		query =
			db_query(connection, "INSERT INTO daily_seals AS t (" SEAL_COLUMNS ") " SEAL_TOTALS(
									 SEALED_SEGMENTS("s.round >= $1 AND s.round <= $2")) ADD_SEALS);
		db_bind_integer(query, first);
		db_bind_integer(query, first + ROUNDS_AT_ONCE - 1);
		int64_t changes;
		result = db_execute(query, &changes, error);
	}
	return result ? result : note_staged(connection, error);
}

/* ---- credits ---- */

static int fill_account(struct db_connection *connection, const struct place *account,
                        struct error *error)
{
	int result = OK;
	for (int64_t first = 1; first <= account->last && !result; first += ENTRIES_AT_ONCE) {
		struct db_query *query = db_query(
			connection,
			"INSERT INTO daily_credits AS t (account, day, kind, movements, credits)"
			" SELECT account, at / 86400000000, kind, count(*), sum(credits) FROM credit_entries"
			" WHERE account = $1 AND number >= $2 AND number <= $3 AND kind <> 'events'"
			" GROUP BY account, at / 86400000000, kind ON CONFLICT (account, day, kind)"
			" DO UPDATE SET movements = t.movements + excluded.movements,"
			" credits = t.credits + excluded.credits");
		db_bind_integer(query, account->account);
		db_bind_integer(query, first);
		db_bind_integer(query, first + ENTRIES_AT_ONCE - 1);
		int64_t changes;
		result = db_execute(query, &changes, error);
	}
	return result;
}

static struct db_query *next_accounts(struct db_connection *connection, const struct place *after)
{
	struct db_query *query = db_query(connection, "SELECT account, 0, last_entry FROM accounts"
	                                              " WHERE account > $1 ORDER BY account LIMIT $2");
	db_bind_integer(query, after->account);
	db_bind_integer(query, PLACES_AT_ONCE);
	return query;
}

/* ---- deliveries ---- */

/* The last notice of the next portion; 0: there is none. */
static int next_notices(struct db_connection *connection, const struct place *endpoint,
                        int64_t behind, int64_t *ret_last, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT COALESCE(MAX(notice), 0) FROM (SELECT notice"
	                         " FROM webhook_deliveries WHERE account = $1 AND endpoint = $2"
	                         " AND notice > $3 ORDER BY notice LIMIT $4) AS portion");
	db_bind_integer(query, endpoint->account);
	db_bind_integer(query, endpoint->number);
	db_bind_integer(query, behind);
	db_bind_integer(query, DELIVERIES_AT_ONCE);
	*ret_last = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

static int fill_endpoint(struct db_connection *connection, const struct place *endpoint,
                         struct error *error)
{
	int64_t behind = 0, last = 0;
	int result = next_notices(connection, endpoint, behind, &last, error);
	while (!result && last) {
		struct db_query *query =
			db_query(connection, "INSERT INTO daily_deliveries AS t (" DELIVERY_COLUMNS
		                         ") " DELIVERY_TOTALS ADD_DELIVERIES);
		db_bind_integer(query, endpoint->account);
		db_bind_integer(query, endpoint->number);
		db_bind_integer(query, behind);
		db_bind_integer(query, last);
		int64_t changes;
		result = db_execute(query, &changes, error);
		behind = last;
		if (!result)
			result = next_notices(connection, endpoint, behind, &last, error);
	}
	return result;
}

static struct db_query *next_endpoints(struct db_connection *connection, const struct place *after)
{
	struct db_query *query =
		db_query(connection, "SELECT account, endpoint, 0 FROM webhook_endpoints"
	                         " WHERE account > $1 OR (account = $1 AND endpoint > $3)"
	                         " ORDER BY account, endpoint LIMIT $2");
	db_bind_integer(query, after->account);
	db_bind_integer(query, PLACES_AT_ONCE);
	db_bind_integer(query, after->number);
	return query;
}

/* ---- one after the other ---- */

static int fill_each(struct db_connection *connection,
                     struct db_query *(*next)(struct db_connection *connection,
                                              const struct place *after),
                     int (*fill)(struct db_connection *connection, const struct place *place,
                                 struct error *error),
                     struct error *error)
{
	struct place places[PLACES_AT_ONCE];
	struct place last = {-1, -1, 0};
	size_t count;
	int result;
	do {
		struct db_query *query = next(connection, &last);
		for (count = 0; count < PLACES_AT_ONCE && db_step(query); count++)
			places[count] =
				(struct place){db_integer(query, 0), db_integer(query, 1), db_integer(query, 2)};
		result = db_end(query, error);
		for (size_t i = 0; i < count && !result; i++)
			result = fill(connection, &places[i], error);
		if (count)
			last = places[count - 1];
	} while (!result && count == PLACES_AT_ONCE);
	return result;
}

int fill_totals(struct db_connection *connection, struct error *error)
{
	int result = fill_seals(connection, error);
	if (!result)
		result = fill_each(connection, next_accounts, fill_account, error);
	if (!result)
		result = fill_each(connection, next_endpoints, fill_endpoint, error);
	return result;
}
