#include "store/nodes/unverified_clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/transaction.h"

#define NAME "clock_not_compared" /* setting: end of the period in microseconds */
#define GOES_ON "now"
#define VALUE_SIZE 24

static int write_value(struct store *store, const char *text, const char *value,
                       struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = db_query(connection, text);
	db_bind_string(query, value);
	return end_write(connection, db_execute(query, NULL, error), error);
}

int store_get_unverified_clock(struct store *store, struct unverified_clock *ret,
                               struct error *error)
{
	char value[VALUE_SIZE] = "";
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT value FROM settings WHERE name = '" NAME "'");
	bool found = db_step(query);
	if (found)
		snprintf(value, sizeof value, "%.*s", (int)db_text(query, 0).size, db_text(query, 0).data);
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret = (struct unverified_clock){found, found && strcmp(value, GOES_ON) == 0,
		                                 strtoll(value, NULL, 10)};
	return result;
}

int store_begin_unverified_clock(struct store *store, struct error *error)
{
	struct unverified_clock found;
	int result = store_get_unverified_clock(store, &found, error);
	if (result || found.is_open)
		return result;
	return write_value(store,
	                   "INSERT INTO settings (name, value) VALUES ('" NAME "', $1)"
	                   " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
	                   GOES_ON, error);
}

int store_end_unverified_clock(struct store *store, int64_t until_us, struct error *error)
{
	struct unverified_clock found;
	char value[VALUE_SIZE];
	int result = store_get_unverified_clock(store, &found, error);
	if (result || !found.is_open)
		return result;
	snprintf(value, sizeof value, "%" PRId64, until_us);
	return write_value(
		store, "UPDATE settings SET value = $1 WHERE name = '" NAME "' AND value = '" GOES_ON "'",
		value, error);
}

int store_forget_unverified_clock(struct store *store, int64_t until_us, struct error *error)
{
	char value[VALUE_SIZE];
	snprintf(value, sizeof value, "%" PRId64, until_us);
	return write_value(store, "DELETE FROM settings WHERE name = '" NAME "' AND value = $1", value,
	                   error);
}
