#include "store/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/transaction.h"

#define TEXT_OF(number) #number
#define NUMBER_TEXT(number) TEXT_OF(number)
/* A statement within one, so that each event is looked up by its number (event_number's), whatever
 * a planner believes of the tables. */
#define RECEIVED_AT(account, chain, sequence)                                                      \
	"(SELECT e.received_at FROM events e WHERE e.account = " account " AND e.event = (" chain      \
	" << " NUMBER_TEXT(EVENT_SEQUENCE_BITS) ") + " sequence ")"

/* Within a chain the times never decrease, so that its first pending event is its oldest one: the
 * one behind what is staged, or the first of what is staged for a round that is not there yet. */
int store_oldest_pending(struct store *store, int64_t *ret_received_at_us, struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct db_query *query = db_query(
		connection,
		"SELECT MIN(received_at) FROM ("
		"SELECT " RECEIVED_AT(
			"c.account", "c.chain",
			"c.sealed_sequence + 1") " AS received_at FROM unsealed_chains u"
									 " JOIN chains c ON c.account = u.account AND c.chain = u.chain"
									 " UNION ALL "
									 "SELECT " RECEIVED_AT(
										 "s.account", "s.chain",
										 "s.first_sequence") " FROM segments s WHERE s.round = (SELECT round FROM staged_round)) pending");
	bool found = db_step(query) && !db_is_null(query, 0);
	int64_t received_at_us = found ? db_integer(query, 0) : TIME_NONE;
	result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_received_at_us = received_at_us;
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
	return db_ask_shard_servers(store->db, items, max, ret_count, error);
}

/* ---- backups ---- */

#define LAST_BACKUP "last_backup"

int store_note_backup(struct store *store, int64_t at_us, struct error *error)
{
	struct db_connection *connection;
	char text[24];
	int result = begin_write(store, &connection, error);
	if (result)
		return result;
	snprintf(text, sizeof text, "%" PRId64, at_us);
	struct db_query *query =
		db_query(connection, "INSERT INTO settings(name, value) VALUES ('" LAST_BACKUP "', $1)"
	                         " ON CONFLICT (name) DO UPDATE SET value = excluded.value");
	db_bind_string(query, text);
	return end_write(connection, db_execute(query, NULL, error), error);
}

int store_last_backup(struct store *store, int64_t *ret_at_us, struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "SELECT value FROM settings WHERE name = '" LAST_BACKUP "'");
	char text[24] = "";
	bool found = db_step(query);
	if (found) {
		struct slice value = db_text(query, 0);
		snprintf(text, sizeof text, "%.*s", (int)value.size, value.data);
	}
	result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_at_us = found ? strtoll(text, NULL, 10) : TIME_NONE;
	return result;
}
