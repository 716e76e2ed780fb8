#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "db/db_driver.h"

/* Gets the number of applied steps; 0 for an empty database. */
static int read_schema(struct db_connection *connection, unsigned *ret_applied, char name[64],
                       struct error *error)
{
	const struct schema *schema = db_of(connection)->schema;
	bool present = false;
	int result = db_has_table(connection, "settings", &present, error);
	*ret_applied = 0;
	snprintf(name, 64, "none");
	if (result || !present)
		return result;
	struct db_query *query =
		db_query(connection, "SELECT value FROM settings WHERE name = 'schema'");
	if (db_step(query)) {
		struct slice value = db_text(query, 0);
		snprintf(name, 64, "%.*s", (int)value.size, value.data);
	}
	result = db_end(query, error);
	for (unsigned i = 0; i < schema->count && !result; i++)
		if (strcmp(schema->steps[i].name, name) == 0)
			*ret_applied = i + 1;
	return result;
}

/* `applied` is 0 with a name for a step that is unknown to this program. */
static int wrong_schema(const struct db *db, unsigned applied, const char *name,
                        struct error *error)
{
	const struct schema *schema = db->schema;
	assert(schema->count > 0);
	bool absent = applied == 0 && strcmp(name, "none") == 0;
	bool newer = applied == 0 && !absent;
	if (absent)
		return error_set(error, ERR_NOT_FOUND, MSG_STORE_ABSENT, db->shown_url, NULL);
	return error_set(error, ERR_REFUSED, newer ? MSG_STORE_SCHEMA_NEWER : MSG_STORE_SCHEMA, name,
	                 schema->steps[schema->count - 1].name, NULL);
}

static int apply_step(struct db_connection *connection, const struct schema_step *step,
                      const struct schema_progress *progress, struct error *error)
{
	int result = OK;
	for (const char *const *sql = step->statements; *sql && !result; sql++)
		result = db_run(connection, *sql, error);
	if (!result)
		result = db_of(connection)->fill(connection, step->name, progress, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "INSERT INTO settings(name, value) VALUES ('schema', $1) "
	                         "ON CONFLICT (name) DO UPDATE SET value = excluded.value");
	db_bind_string(query, step->name);
	return db_execute(query, NULL, error);
}

/* Brings the schema to its last step; an empty database only with `create`. Uses one transaction of
 * the writer, which excludes the writers of other nodes, so a second node finds nothing left to do.
 * Appends the names of the steps to `out`, which may be NULL. */
static int move_schema(struct db *db, bool create, bool dry_run, struct buf *out,
                       const struct schema_progress *progress,
                       int (*within)(struct db_connection *, void *, struct error *), void *context,
                       struct error *error)
{
	assert(db->schema && db->schema->count > 0);
	const struct schema *schema = db->schema;
	struct db_connection *connection = db_take_writer(db);
	unsigned applied = 0;
	char name[64];
	int result = db_begin(connection, error);
	if (!result)
		result = read_schema(connection, &applied, name, error);
	if (!result && applied == 0 && (!create || strcmp(name, "none") != 0))
		result = wrong_schema(db, applied, name, error);
	for (unsigned i = applied; i < schema->count && !result; i++) {
		if (out)
			buf_printf(out, "%s\n", schema->steps[i].name);
		if (!dry_run)
			result = apply_step(connection, &schema->steps[i], progress, error);
	}
	assert(result || (applied <= schema->count && (create || applied > 0)));
	bool moved = !dry_run && applied < schema->count;
	if (!result && moved && within)
		result = within(connection, context, error);
	if (!result && moved)
		result = db_commit(connection, error);
	db_give(connection);
	return result;
}

int db_check_schema(struct db *db, bool create, struct error *error)
{
	assert(db->schema);
	struct db_connection *connection = db_take_reader(db);
	unsigned applied = 0;
	char name[64];
	int result = read_schema(connection, &applied, name, error);
	db_give(connection);
	if (!result && create && applied == 0 && strcmp(name, "none") == 0)
		result = move_schema(db, true, false, NULL, NULL, NULL, NULL, error);
	else if (!result && applied != db->schema->count)
		result = wrong_schema(db, applied, name, error);
	return !result && db->driver->schema_checked ? db->driver->schema_checked(db, error) : result;
}

int db_migrate(struct db *db, bool dry_run, struct buf *out, const struct schema_progress *progress,
               int (*within)(struct db_connection *connection, void *context, struct error *error),
               void *context, struct error *error)
{
	return move_schema(db, false, dry_run, out, progress, within, context, error);
}
