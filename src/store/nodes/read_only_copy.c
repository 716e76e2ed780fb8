#include "store/nodes/read_only_copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/transaction.h"

#define QUIET "quiet"   /* setting: time in microseconds, a space, the reason */
#define WOKEN "woken"   /* time in microseconds */
#define COPIED "copied" /* time in microseconds: quiet.copied_us */

static void read_text(struct db_query *query, char text[COPY_MARK_SIZE])
{
	snprintf(text, COPY_MARK_SIZE, "%.*s", (int)db_text(query, 0).size, db_text(query, 0).data);
}

static int read_mark(struct db_query *query, struct quiet *quiet, struct error *error)
{
	char text[COPY_MARK_SIZE] = "";
	char *reason = text;
	quiet->is = db_step(query);
	if (quiet->is)
		read_text(query, text);
	quiet->since_us = strtoll(text, &reason, 10);
	snprintf(quiet->reason, sizeof quiet->reason, "%s", *reason ? reason + 1 : "");
	return db_end(query, error);
}

static int read_time(struct db_query *query, int64_t *ret, struct error *error)
{
	char text[COPY_MARK_SIZE] = "";
	if (db_step(query))
		read_text(query, text);
	*ret = strtoll(text, NULL, 10);
	return db_end(query, error);
}

/* A restore that was killed after the data was complete leaves its marks in this table. */
static int read_leftover_resume(struct db_connection *connection, struct quiet *quiet,
                                struct error *error)
{
	int64_t left_us = 0;
	int result = read_time(
		db_query(connection, "SELECT value FROM " DB_RESTORING " WHERE name = '" WOKEN "'"),
		&left_us, error);
	if (left_us > quiet->woken_us)
		quiet->woken_us = left_us;
	return result;
}

/* A store that began as a resumed copy, or was resumed by an older version, has no COPIED. */
static int read_woken(struct db_connection *connection, bool left, struct quiet *quiet,
                      struct error *error)
{
	int result =
		read_time(db_query(connection, "SELECT value FROM settings WHERE name = '" WOKEN "'"),
	              &quiet->woken_us, error);
	if (!result)
		result =
			read_time(db_query(connection, "SELECT value FROM settings WHERE name = '" COPIED "'"),
		              &quiet->copied_us, error);
	if (!result && left)
		result = read_leftover_resume(connection, quiet, error);
	if (!quiet->copied_us)
		quiet->copied_us = quiet->woken_us;
	return result;
}

static int read_state(struct db_connection *connection, struct quiet *ret, struct error *error)
{
	*ret = (struct quiet){0};
	bool left = false;
	int result = read_mark(
		db_query(connection, "SELECT value FROM settings WHERE name = '" QUIET "'"), ret, error);
	if (!result)
		result = db_has_table(connection, DB_RESTORING, &left, error);
	if (!result && left && !ret->is)
		result = read_mark(
			db_query(connection, "SELECT value FROM " DB_RESTORING " WHERE name = '" QUIET "'"),
			ret, error);
	return result ? result : read_woken(connection, left, ret, error);
}

int store_get_copy_state(struct store *store, struct quiet *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct quiet quiet;
	int result = end_read(connection, read_state(connection, &quiet, error));
	if (!result)
		*ret = quiet;
	return result;
}

struct db_mark copy_mark(const char *reason, int64_t now_us, char text[COPY_MARK_SIZE])
{
	snprintf(text, COPY_MARK_SIZE, "%" PRId64 "%s%s", now_us, reason ? " " : "",
	         reason ? reason : "");
	return (struct db_mark){reason ? QUIET : WOKEN, text};
}

int store_mark_copy(struct store *store, const char *reason, int64_t now_us, struct error *error)
{
	char text[COPY_MARK_SIZE];
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query =
		db_query(connection, "INSERT INTO settings (name, value) VALUES ('" QUIET "', $1)"
	                         " ON CONFLICT (name) DO NOTHING");
	db_bind_string(query, copy_mark(reason, now_us, text).value);
	return end_write(connection, db_execute(query, NULL, error), error);
}

static int write_time(struct db_connection *connection, const char *name, int64_t time_us,
                      struct error *error)
{
	char text[COPY_MARK_SIZE];
	struct db_query *query =
		db_query(connection, "INSERT INTO settings (name, value) VALUES ($1, $2)"
	                         " ON CONFLICT (name) DO UPDATE SET value = excluded.value");
	db_bind(query, name, copy_mark(NULL, time_us, text).value);
	return db_execute(query, NULL, error);
}

static int end_copy(struct db_connection *connection, int64_t now_us, struct error *error)
{
	struct quiet quiet;
	int result = read_state(connection, &quiet, error);
	if (result)
		return result;
	int64_t since_us = quiet.is ? quiet.since_us : now_us;
	result = write_time(connection, COPIED, quiet.copied_us ? quiet.copied_us : since_us, error)
		?: write_time(connection, WOKEN, now_us, error)
		?: db_execute(db_query(connection, "DELETE FROM settings WHERE name = '" QUIET "'"), NULL,
		              error);
	return result ? result : db_run(connection, "DROP TABLE IF EXISTS " DB_RESTORING, error);
}

int store_resume_copy(struct store *store, int64_t now_us, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	return end_write(connection, end_copy(connection, now_us, error), error);
}

/* ---- pending work ---- */

#define ENABLED "e.disabled_at IS NULL AND e.deleted_at IS NULL"

int store_count_pending_work(struct store *store, int64_t before_us, struct pending_work *ret,
                             struct error *error)
{
	static const char *const texts[] = {
		"SELECT count(*) FROM webhook_endpoints e JOIN webhook_deliveries d"
		" ON d.account = e.account AND d.endpoint = e.endpoint"
		" WHERE " ENABLED " AND d.status = 'waiting'",
		"SELECT count(*) FROM mails WHERE state = 'waiting'",
		"SELECT count(*) FROM payments WHERE state <> 'over'",
		"SELECT count(*) FROM certifications WHERE status = 'processing'",
		"SELECT count(*) FROM payments WHERE state <> 'over' AND action = 'charge'",
		"SELECT count(*) FROM topups t JOIN accounts a ON a.account = t.account"
		" WHERE t.enabled = 1 AND t.purchase IS NULL AND a.disabled = 0"
		" AND a.balance < t.threshold",
	};
	struct pending_work due = {0};
	int64_t *const counts[] = {&due.notices,        &due.mails,   &due.payments,
	                           &due.certifications, &due.charges, &due.topups};
	struct db_connection *connection = begin_read(store, &error);
	int result = OK;
	for (size_t i = 0; i < sizeof texts / sizeof *texts && !result; i++) {
		struct db_query *query = db_query(connection, texts[i]);
		*counts[i] = db_step(query) ? db_integer(query, 0) : 0;
		result = db_end(query, error);
	}
	if (!result) {
		struct db_query *query =
			db_query(connection, "SELECT count(*) FROM certifications WHERE status = 'processing'"
		                         " AND requested_at < $1");
		db_bind_integer(query, before_us);
		due.certifications_before = db_step(query) ? db_integer(query, 0) : 0;
		result = db_end(query, error);
	}
	due.payments += due.topups;
	if (!result)
		*ret = due;
	return end_read(connection, result);
}

/* Skips at most 500 deliveries of the next endpoint. */
static int skip_batch(struct store *store, int64_t now_us, int64_t *account, int64_t *endpoint,
                      bool *ret_found, int64_t *ret_changes, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT e.account, e.endpoint FROM webhook_endpoints e WHERE " ENABLED
	                         " AND e.next_at IS NOT NULL AND (e.account > $1 OR (e.account = $1"
	                         " AND e.endpoint >= $2)) ORDER BY e.account, e.endpoint LIMIT 1");
	db_bind(query, *account, *endpoint);
	*ret_found = db_step(query);
	if (*ret_found) {
		*account = db_integer(query, 0);
		*endpoint = db_integer(query, 1);
	}
	int result = db_end(query, error);
	if (result || !*ret_found)
		return end_write(connection, result, error);
	/* The endpoint may have been disabled since; its deliveries are then kept. */
	query = db_query(connection, "SELECT e.endpoint FROM webhook_endpoints e WHERE " ENABLED
	                             " AND e.account = $1 AND e.endpoint = $2 FOR UPDATE");
	db_bind(query, *account, *endpoint);
	*ret_changes = 0;
	bool enabled = db_step(query);
	result = db_end(query, error);
	if (result || !enabled)
		return end_write(connection, result, error);
	query =
		db_query(connection, "UPDATE webhook_deliveries SET status = 'failed', next_attempt_at = $3"
	                         " WHERE account = $1 AND endpoint = $2 AND notice IN (SELECT notice"
	                         " FROM webhook_deliveries WHERE account = $1 AND endpoint = $2"
	                         " AND status = 'waiting' ORDER BY replayed, next_attempt_at, notice"
	                         " LIMIT 500)");
	db_bind(query, *account, *endpoint, now_us);
	result = db_execute(query, ret_changes, error);
	if (!result && *ret_changes == 0) {
		query = db_query(connection, "UPDATE webhook_endpoints SET next_at = NULL"
		                             " WHERE account = $1 AND endpoint = $2");
		db_bind(query, *account, *endpoint);
		result = db_execute(query, NULL, error);
	}
	return end_write(connection, result, error);
}

int store_skip_deliveries(struct store *store, int64_t now_us, int64_t *ret_count,
                          struct error *error)
{
	int64_t account = 0, endpoint = 0, count = 0, changes = 0;
	bool found = true;
	int result = OK;
	while (!result && found) {
		changes = 0;
		result = skip_batch(store, now_us, &account, &endpoint, &found, &changes, error);
		count += changes;
		endpoint += found && changes == 0;
	}
	*ret_count = count;
	return result;
}
