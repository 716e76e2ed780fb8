#include "store/usage/overview.h"

#include "base/clock.h"
#include "store/transaction.h"

struct reading {
	struct db_connection *connection;
	struct arena *arena;
	int64_t account, today;
	int64_t chains[OVERVIEW_CHANNELS]; /* those that are listed individually; 0: none */
	struct account_activity *activity;
};

/* ---- events ---- */

/* Finds the channels with the most events in these days. */
static int read_channels(struct reading *reading, struct error *error)
{
	struct account_activity *activity = reading->activity;
	struct row row = {
		.arena = reading->arena,
		.query = db_query(reading->connection,
	                      "SELECT g.chain, c.channel_id, f.name FROM"
	                      " (SELECT chain, sum(events) AS events FROM daily_usage"
	                      " WHERE account = $1 AND day >= $2 AND day <= $3 AND chain % 2 = 0"
	                      " GROUP BY chain ORDER BY events DESC, chain LIMIT $4) AS g"
	                      " JOIN channels c ON c.account = $1 AND c.channel = g.chain / 2"
	                      " JOIN channel_configs f ON f.account = $1 AND f.channel = c.channel"
	                      " AND f.version = c.config_version ORDER BY g.events DESC, g.chain")};
	db_bind(row.query, reading->account, activity->first_day, reading->today, OVERVIEW_CHANNELS);
	while (!row.failed && activity->channel_count < OVERVIEW_CHANNELS && db_step(row.query)) {
		reading->chains[activity->channel_count] = db_integer(row.query, 0);
		activity->channels[activity->channel_count++] = (struct overview_channel){
			.channel_id = row_string(&row, 1), .name = row_string(&row, 2)};
	}
	return row_end(&row, true, MSG_NONE, slice_of(""), error);
}

static struct overview_channel *channel_of(struct reading *reading, int64_t chain)
{
	struct account_activity *activity = reading->activity;
	for (size_t i = 0; i < OVERVIEW_CHANNELS && chain; i++)
		if (reading->chains[i] == chain)
			return &activity->channels[i];
	if (activity->channel_count <= OVERVIEW_CHANNELS &&
	    (!activity->channel_count || activity->channels[activity->channel_count - 1].channel_id))
		activity->channels[activity->channel_count++] = (struct overview_channel){0};
	return &activity->channels[activity->channel_count - 1];
}

static int read_counts(struct reading *reading, struct error *error)
{
	struct account_activity *activity = reading->activity;
	struct db_query *query = db_query(
		reading->connection,
		"SELECT day, CASE WHEN chain IN ($4, $5, $6, $7, $8, $9, $10) THEN chain ELSE 0 END"
		" AS shown, sum(events) FROM daily_usage WHERE account = $1 AND day >= $2"
		" AND day <= $3 AND chain % 2 = 0 GROUP BY day, shown");
	db_bind(query, reading->account, activity->first_day, reading->today);
	for (size_t i = 0; i < OVERVIEW_CHANNELS; i++)
		db_bind_integer(query, reading->chains[i]);
	while (db_step(query)) {
		int64_t day = db_integer(query, 0), events = db_integer(query, 2);
		struct overview_channel *channel = channel_of(reading, db_integer(query, 1));
		channel->counts[day - activity->first_day] = events;
		channel->total += events;
		activity->events += events;
		activity->events_today += day == reading->today ? events : 0;
	}
	int result = db_end(query, error);
	if (result)
		return result;
	query = db_query(reading->connection, "SELECT COALESCE(sum(events), 0) FROM daily_usage"
	                                      " WHERE account = $1 AND day = $2 AND chain % 2 = 1");
	db_bind(query, reading->account, reading->today);
	if (db_step(query))
		activity->test_events_today = db_integer(query, 0);
	return db_end(query, error);
}

/* ---- work in progress ---- */

/* Reads only chains that may have pending events: those that the sealer lists, and those of the
 * staged round. Times never decrease along a chain, so its first pending event is the oldest
 * one. */
#define WAITING_CHAINS                                                                             \
	"(SELECT u.chain FROM unsealed_chains u WHERE u.account = $1 UNION"                            \
	" SELECT s.chain FROM segments s WHERE s.account = $1 AND s.chain > 0"                         \
	" AND s.round = (SELECT round FROM staged_round))"

static int read_pending(struct reading *reading, struct error *error)
{
	struct db_query *query =
		db_query(reading->connection,
	             "SELECT COALESCE(sum(waiting), 0), MIN(received_at) FROM"
	             " (SELECT last_sequence - sealed AS waiting, (SELECT e.received_at FROM events e"
	             " WHERE e.account = $1 AND e.event = p.chain * 1099511627776 + p.sealed + 1)"
	             " AS received_at FROM (SELECT c.chain, c.last_sequence, " SEALED_SEQUENCE(
					 "c") " AS sealed FROM " WAITING_CHAINS " AS w JOIN chains c ON c.account = $1"
	                      " AND c.chain = w.chain) AS p WHERE last_sequence > sealed) AS pending");
	db_bind_integer(query, reading->account);
	reading->activity->oldest_pending_at_us = TIME_NONE;
	if (db_step(query)) {
		reading->activity->pending_events = db_integer(query, 0);
		reading->activity->oldest_pending_at_us = row_time(query, 1);
	}
	return db_end(query, error);
}

static int count_certifying(struct reading *reading, struct error *error)
{
	struct db_query *query =
		db_query(reading->connection, "SELECT count(*) FROM certifications"
	                                  " WHERE account = $1 AND status = 'processing'");
	db_bind_integer(query, reading->account);
	if (db_step(query))
		reading->activity->certifying = db_integer(query, 0);
	return db_end(query, error);
}

static int read_certifying(struct reading *reading, struct error *error)
{
	struct account_activity *activity = reading->activity;
	struct row row = {.arena = reading->arena,
	                  .query = db_query(reading->connection,
	                                    "SELECT r.certification_id, c.channel_id, r.requested_at,"
	                                    " r.progress_permille FROM certifications r JOIN channels c"
	                                    " ON c.account = r.account AND c.channel = r.channel"
	                                    " WHERE r.account = $1 AND r.status = 'processing'"
	                                    " ORDER BY r.certification LIMIT $2")};
	db_bind(row.query, reading->account, OVERVIEW_CERTIFYING);
	while (!row.failed && activity->certification_count < OVERVIEW_CERTIFYING &&
	       db_step(row.query)) {
		struct overview_certification *item =
			&activity->certifications[activity->certification_count++];
		store_copy_id(item->certification_id, db_text(row.query, 0));
		item->channel_id = row_string(&row, 1);
		item->requested_at_us = db_integer(row.query, 2);
		item->progress_permille = db_integer(row.query, 3);
	}
	return row_end(&row, true, MSG_NONE, slice_of(""), error);
}

int store_read_activity(struct store *store, struct slice account_id, int64_t now_us,
                        struct arena *arena, struct account_activity *ret, struct error *error)
{
	struct reading reading = {.arena = arena, .today = time_day(now_us), .activity = ret};
	*ret = (struct account_activity){.first_day = reading.today - OVERVIEW_DAYS + 1};
	reading.connection = begin_read(store, &error);
	int result = find_account_number(reading.connection, account_id, &reading.account, error)
		?: read_channels(&reading, error)
		?: read_counts(&reading, error)
		?: read_pending(&reading, error)
		?: count_certifying(&reading, error)
		?: read_certifying(&reading, error);
	return end_read(reading.connection, result);
}
