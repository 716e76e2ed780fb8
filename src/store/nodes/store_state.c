#include "store/nodes/store_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/shards/shard_routing.h"
#include "store/transaction.h"

#define TEXT_OF(number) #number
#define NUMBER_TEXT(number) TEXT_OF(number)
/* A nested statement, so that every planner looks each event up by its number (event_number). */
#define RECEIVED_AT(account, chain, sequence, of)                                                  \
	"(SELECT e.received_at FROM events e WHERE e.account = " account of " AND e.event = (" chain   \
	" << " NUMBER_TEXT(EVENT_SEQUENCE_BITS) ") + " sequence ")"

/* Times never decrease along a chain, so its first pending event is the oldest one: the first event
 * after the staged ones, or the first staged for a round that is not written yet. */
#define AFTER_STAGED(of_events, of)                                                                \
	"SELECT " RECEIVED_AT(                                                                         \
		"c.account", "c.chain", "c.sealed_sequence + 1",                                           \
		of_events) " AS received_at FROM unsealed_chains u"                                        \
				   " JOIN chains c ON c.account = u.account AND c.chain = u.chain" of
#define STAGED                                                                                     \
	"SELECT " RECEIVED_AT("s.account", "s.chain", "s.first_sequence",                              \
	                      "") " FROM segments s WHERE s.round = (SELECT round FROM staged_round)"
#define OLDEST                                                                                     \
	"SELECT MIN(received_at) FROM (" AFTER_STAGED("", "") " UNION ALL " STAGED ") pending"
#define OLDEST_OF                                                                                  \
	"SELECT MIN(received_at) FROM (" AFTER_STAGED(                                                 \
		WORK_ACCOUNTS("e", "$1"),                                                                  \
		" WHERE u.account = ANY($1)" WORK_ACCOUNTS("c", "$1")) ") pending"

/* A join by account, which a server with distributed tables runs on each shard. */
#define STAGED_OF_ROUND                                                                            \
	"SELECT MIN(e.received_at) FROM segments s JOIN events e ON e.account = s.account AND"         \
	" e.event = (s.chain << " NUMBER_TEXT(EVENT_SEQUENCE_BITS) ") + s.first_sequence"              \
															   " WHERE s.round = $1"

static int oldest_pending(struct store *store, int64_t *ret_received_at_us, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query = db_query(connection, OLDEST);
	bool found = db_step(query) && !db_is_null(query, 0);
	int64_t received_at_us = found ? db_integer(query, 0) : TIME_NONE;
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_received_at_us = received_at_us;
	return result;
}

/* Staged events are read only while a block is staged and all servers answer. The round follows
 * soon, or a failure is reported elsewhere. */
static int read_staged_round(struct db_connection *connection, int64_t *ret_round,
                             struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT round FROM staged_round WHERE blocks > 0 AND round >"
	                         " (SELECT COALESCE(MAX(round), 0) FROM seal_rounds)");
	*ret_round = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

static int64_t earlier_us(int64_t a_us, struct db_query *query)
{
	int64_t b_us = db_step(query) && !db_is_null(query, 0) ? db_integer(query, 0) : TIME_NONE;
	db_release(query);
	return b_us == TIME_NONE || (a_us != TIME_NONE && a_us < b_us) ? a_us : b_us;
}

static int oldest_pending_of(struct store *store, struct work_accounts *of, bool all,
                             int64_t *ret_received_at_us, struct error *error)
{
	int64_t received_at_us = TIME_NONE, round = 0;
	struct db_connection *connection = begin_read(store, &error);
	int result = all ? read_staged_round(connection, &round, error) : OK;
	if (!result && !work_is_empty(of)) {
		struct db_query *query = db_query(connection, OLDEST_OF);
		shard_work_bind(query, of);
		received_at_us = earlier_us(received_at_us, query);
	}
	if (!result && round > 0) {
		struct db_query *query = db_query(connection, STAGED_OF_ROUND);
		db_bind_integer(query, round);
		received_at_us = earlier_us(received_at_us, query);
	}
	if (!result)
		result = db_get_failure(connection, error);
	result = end_read(connection, result);
	if (!result)
		*ret_received_at_us = received_at_us;
	return result;
}

int store_oldest_pending(struct store *store, int64_t *ret_received_at_us, struct error *error)
{
	struct work_accounts of;
	int result = shard_work_find(store, WORK_UNSEALED, &of, error);
	if (!result)
		result = of.all ? oldest_pending(store, ret_received_at_us, error)
		                : oldest_pending_of(store, &of, work_is_complete(store), ret_received_at_us,
		                                    error);
	shard_work_free(&of);
	return result;
}

int store_count_replicas(struct store *store, struct store_replicas *ret, struct error *error)
{
	struct db_replicas found = {0};
	int result = db_count_replicas(store->db, &found, error);
	if (!result)
		*ret = (struct store_replicas){found.required, found.synchronous, found.lag_bytes,
		                               found.lag_us};
	return result;
}

int store_ask_shard_servers(struct store *store, struct db_shard_server *items, size_t max,
                            size_t *ret_count, struct error *error)
{
	return db_check_shard_servers(store->db, items, max, ret_count, error);
}

/* ---- bounds ---- */

static int read_count(struct db_query *query, struct bound_use *ret, struct error *error)
{
	if (db_step(query))
		ret->used = db_integer(query, 0);
	return db_end(query, error);
}

/* Reads an account, a channel and a count. */
static int read_of_channel(struct db_connection *connection, struct db_query *query,
                           struct bound_use *ret, struct error *error)
{
	bool found = db_step(query);
	int64_t account = found ? db_integer(query, 0) : 0, channel = found ? db_integer(query, 1) : 0;
	ret->used = found ? db_integer(query, 2) : 0;
	int result = db_end(query, error);
	if (result || !found)
		return result;
	query =
		db_query(connection, "SELECT channel_id FROM channels WHERE account = $1 AND channel = $2");
	db_bind(query, account, channel);
	if (db_step(query))
		store_copy_id(ret->about, db_text(query, 0));
	return db_end(query, error);
}

static int read_certifications(struct db_connection *connection, int64_t now_us, enum mode mode,
                               struct bound_use *ret, struct error *error)
{
	struct db_query *query = db_query(
		connection, "SELECT last_number FROM certification_numbers WHERE year = $1 AND mode = $2");
	db_bind(query, time_year(now_us), mode_text(mode));
	return read_count(query, ret, error);
}

/* Reads the account that is nearest to its limit of stored bytes. */
static int read_stored(struct db_connection *connection, int64_t stored_max, struct bound_use *ret,
                       struct error *error)
{
	struct db_query *query = db_query(
		connection, "SELECT account_id, CASE WHEN stored_bytes >= most THEN 100"
					" ELSE CAST(100.0 * stored_bytes / most AS BIGINT) END AS percent FROM"
					" (SELECT account_id, stored_bytes, COALESCE(bound_stored_bytes, $1) AS most"
					" FROM accounts) AS bounded WHERE most > 0 AND stored_bytes > 0"
					" ORDER BY percent DESC LIMIT 1");
	db_bind_integer(query, stored_max);
	if (db_step(query)) {
		store_copy_id(ret->about, db_text(query, 0));
		ret->used = db_integer(query, 1);
	}
	return db_end(query, error);
}

/* Numbers are never reused, so the highest one is the count. */
static int read_bounds(struct db_connection *connection, int64_t now_us, int64_t stored_max,
                       struct bound_use *ret, struct error *error)
{
	int result =
		routing_read_number(connection, ROUTING_CHANNELS, &ret[BOUND_CHANNELS].used, error);
	if (!result)
		result = read_of_channel(connection,
		                         db_query(connection,
		                                  "SELECT account, chain / 2, last_sequence FROM chains"
		                                  " ORDER BY last_sequence DESC LIMIT 1"),
		                         &ret[BOUND_EVENTS], error);
	if (!result)
		result = read_of_channel(connection,
		                         db_query(connection,
		                                  "SELECT account, channel, config_version FROM channels"
		                                  " ORDER BY config_version DESC LIMIT 1"),
		                         &ret[BOUND_CONFIGS], error);
	if (!result)
		result = read_certifications(connection, now_us, MODE_LIVE, &ret[BOUND_LIVE_CERTIFICATIONS],
		                             error);
	if (!result)
		result = read_certifications(connection, now_us, MODE_TEST, &ret[BOUND_TEST_CERTIFICATIONS],
		                             error);
	if (!result)
		result = read_count(db_query(connection, "SELECT COUNT(*) FROM signers"),
		                    &ret[BOUND_SIGNERS], error);
	if (!result)
		result = read_count(db_query(connection, "SELECT COUNT(*) FROM timestamp_roots"),
		                    &ret[BOUND_TIMESTAMP_ROOTS], error);
	if (!result)
		result = read_stored(connection, stored_max, &ret[BOUND_STORED], error);
	return result;
}

int store_read_bounds(struct store *store, int64_t now_us, int64_t stored_max,
                      struct bound_use ret[BOUND_COUNT], struct error *error)
{
	struct bound_use read[BOUND_COUNT] = {0};
	struct db_connection *connection = begin_read(store, &error);
	int result = end_read(connection, read_bounds(connection, now_us, stored_max, read, error));
	if (!result)
		memcpy(ret, read, sizeof read);
	return result;
}

/* ---- backups ---- */

#define LAST_BACKUP "last_backup"

int store_note_backup(struct store *store, int64_t at_us, struct error *error)
{
	char text[24];
	struct db_connection *connection = begin_write(store, &error);
	snprintf(text, sizeof text, "%" PRId64, at_us);
	struct db_query *query =
		db_query(connection, "INSERT INTO settings(name, value) VALUES ('" LAST_BACKUP "', $1)"
	                         " ON CONFLICT (name) DO UPDATE SET value = excluded.value");
	db_bind_string(query, text);
	return end_write(connection, db_execute(query, NULL, error), error);
}

int store_last_backup(struct store *store, int64_t *ret_at_us, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT value FROM settings WHERE name = '" LAST_BACKUP "'");
	char text[24] = "";
	bool found = db_step(query);
	if (found) {
		struct slice value = db_text(query, 0);
		snprintf(text, sizeof text, "%.*s", (int)value.size, value.data);
	}
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_at_us = found ? strtoll(text, NULL, 10) : TIME_NONE;
	return result;
}
