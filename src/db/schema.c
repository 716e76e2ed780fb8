#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "db/db_driver.h"

/* Nodes that were just stopped may still be connected for a moment. */
#define EXCLUSION_PATIENCE_US (5 * US_PER_SECOND)
/* Locks may be held for long, by a backup for example. */
#define LOCK_PATIENCE_US (30 * US_PER_SECOND)
#define PAUSE_NS 250000000L
#define PROGRAMS_SIZE (2 * DB_SCHEMA_NAME_SIZE)

/* State of a database: the number of applied steps, 0 if empty or of an unknown step, and the rows
 * of its settings. */
struct state {
	unsigned applied;
	char name[DB_SCHEMA_NAME_SIZE]; /* "none": empty */
	char programs[PROGRAMS_SIZE];
};

/* Returns the number of steps up to that of this name; 0: it is unknown. */
static unsigned find_step(const struct schema *schema, struct slice name)
{
	for (unsigned i = 0; i < schema->count; i++)
		if (slice_is(name, schema->steps[i].name))
			return i + 1;
	return 0;
}

static int read_schema(struct db_connection *connection, struct state *ret, struct error *error)
{
	bool present = false;
	int result = db_has_table(connection, "settings", &present, error);
	*ret = (struct state){.name = "none"};
	if (result || !present)
		return result;
	struct db_query *query = db_query(
		connection, "SELECT name, value FROM settings WHERE name IN ('schema', 'schema_programs')");
	while (db_step(query)) {
		bool is_name = slice_is(db_text(query, 0), "schema");
		struct slice value = db_text(query, 1);
		snprintf(is_name ? ret->name : ret->programs,
		         is_name ? sizeof ret->name : sizeof ret->programs, "%.*s", (int)value.size,
		         value.data);
	}
	ret->applied = find_step(db_of(connection)->schema, slice_of(ret->name));
	return db_end(query, error);
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

/* Returns whether all steps that this program does not know are `rolling`. */
static bool is_newer_and_usable(const struct schema *schema, const char *name, const char *programs)
{
	const char *space = strchr(programs, ' ');
	return space && strcmp(space + 1, name) == 0 && find_step(schema, slice_of(name)) == 0 &&
	       find_step(schema, slice_make(programs, (size_t)(space - programs))) > 0;
}

int db_judge_schema(const struct db *db, const char *name, const char *programs,
                    struct error *error)
{
	const struct schema *schema = db->schema;
	unsigned applied = find_step(schema, slice_of(name));
	if (applied == schema->count || is_newer_and_usable(schema, name, programs))
		return OK;
	return wrong_schema(db, applied, *name ? name : "none", error);
}

static int set(struct db_connection *connection, const char *name, const char *value,
               struct error *error)
{
	struct db_query *query =
		db_query(connection, "INSERT INTO settings(name, value) VALUES ($1, $2) "
	                         "ON CONFLICT (name) DO UPDATE SET value = excluded.value");
	db_bind(query, name, value);
	return db_execute(query, NULL, error);
}

/* Records that the first `count` steps are applied. */
static int record_schema(struct db_connection *connection, unsigned count, struct error *error)
{
	const struct schema_step *steps = db_of(connection)->schema->steps;
	char programs[PROGRAMS_SIZE];
	unsigned last_stop = count;
	while (last_stop > 1 && steps[last_stop - 1].rolling)
		last_stop--;
	snprintf(programs, sizeof programs, "%s %s", steps[last_stop - 1].name, steps[count - 1].name);
	int result = set(connection, "schema", steps[count - 1].name, error);
	return result ? result : set(connection, "schema_programs", programs, error);
}

struct migration {
	bool create, dry_run;
	struct buf *out; /* NULL: none */
	const struct schema_progress *progress;
	int (*within)(struct db_connection *connection, void *context, struct error *error);
	void *context;
	/* Of an attempt: */
	bool rolling;     /* all due steps are */
	int64_t began_us; /* monotonic: of the steps */
	const char *step; /* the last one that was begun; NULL: none */
	bool held;        /* other programs prevented it: connected ones, or by locks that they hold */
};

static int limit(struct db_connection *connection, const struct migration *migration, bool on,
                 struct error *error)
{
	const struct db_driver *driver = db_of(connection)->driver;
	if (!migration->rolling || !driver->limit_statements)
		return OK;
	int64_t spent_us = clock_monotonic_us() - migration->began_us;
	return driver->limit_statements(connection, on ? spent_us : -1, error);
}

static int apply_step(struct db_connection *connection, const struct migration *migration,
                      const struct schema_step *step, struct error *error)
{
	int result = OK;
	for (const char *const *sql = step->statements; *sql && !result; sql++) {
		result = limit(connection, migration, true, error);
		if (!result)
			result = db_run(connection, *sql, error);
	}
	return result ? result
	              : db_of(connection)->fill(connection, step->name, migration->progress, error);
}

static int apply_steps(struct db_connection *connection, struct migration *migration,
                       unsigned applied, struct error *error)
{
	const struct schema *schema = db_of(connection)->schema;
	int result = OK;
	bool applies = !migration->dry_run && applied < schema->count;
	migration->began_us = clock_monotonic_us();
	for (unsigned i = applied; i < schema->count && !result; i++) {
		if (migration->out)
			buf_printf(migration->out, "%s\n", schema->steps[i].name);
		migration->step = schema->steps[i].name;
		if (applies)
			result = apply_step(connection, migration, &schema->steps[i], error);
	}
	migration->held = migration->rolling && result == ERR_UNAVAILABLE;
	return result || !applies ? result : limit(connection, migration, false, error);
}

/* Excludes other programs, which an empty database does not have. */
static int exclude_programs(struct db_connection *connection, struct migration *migration,
                            unsigned applied, struct error *error)
{
	const struct db *db = db_of(connection);
	bool rolling = !db->sharded;
	for (unsigned i = applied; i < db->schema->count; i++)
		rolling = rolling && db->schema->steps[i].rolling;
	migration->rolling = rolling;
	if (rolling || migration->dry_run || applied == 0 || applied == db->schema->count ||
	    !db->driver->exclude_programs)
		return OK;
	char from[256];
	int result = db->driver->exclude_programs(connection, from, sizeof from, error);
	if (result != ERR_UNAVAILABLE || !*from)
		return result;
	migration->held = true;
	return error_set(error, result, MSG_STORE_NODES_RUN, from, NULL);
}

/* Brings the schema to its last step; an empty database only with `create`. Uses one transaction of
 * the writer, which excludes the writers of other nodes, so a second node finds nothing left to do.
 */
static int move_schema(struct db *db, struct migration *migration, struct error *error)
{
	assert(db->schema && db->schema->count > 0);
	const struct schema *schema = db->schema;
	struct db_connection *connection = db_take_writer(db);
	struct state state;
	migration->held = false;
	if (migration->out)
		buf_clear(migration->out);
	int result = db_begin(connection, error);
	if (!result)
		result = read_schema(connection, &state, error);
	if (!result && is_newer_and_usable(schema, state.name, state.programs))
		state.applied = schema->count;
	if (!result && state.applied == 0 && (!migration->create || strcmp(state.name, "none") != 0))
		result = wrong_schema(db, state.applied, state.name, error);
	if (!result)
		result = exclude_programs(connection, migration, state.applied, error);
	if (!result)
		result = apply_steps(connection, migration, state.applied, error);
	assert(result || (state.applied <= schema->count && (migration->create || state.applied > 0)));
	bool moved = !result && !migration->dry_run && state.applied < schema->count;
	if (moved)
		result = record_schema(connection, schema->count, error);
	if (moved && !result && migration->within)
		result = migration->within(connection, migration->context, error);
	if (moved && !result)
		result = db_commit(connection, error);
	db_give(connection);
	return result;
}

int db_check_schema(struct db *db, bool create, struct error *error)
{
	assert(db->schema);
	struct db_connection *connection = db_take_reader(db);
	struct state state;
	int result = read_schema(connection, &state, error);
	db_give(connection);
	if (!result && create && state.applied == 0 && strcmp(state.name, "none") == 0)
		result = move_schema(db, &(struct migration){.create = true}, error);
	else if (!result)
		result = db_judge_schema(db, state.name, state.programs, error);
	return !result && db->driver->schema_checked ? db->driver->schema_checked(db, error) : result;
}

int db_check_alone(struct db *db, const char *table, struct error *error)
{
	char name[DB_SCHEMA_NAME_SIZE] = "";
	struct db_connection *connection = db_take_reader(db);
	struct state state;
	int result = read_schema(connection, &state, error);
	bool empty = state.applied == 0 && strcmp(state.name, "none") == 0;
	if (!result && empty && db->driver->neighbour_query) {
		struct db_query *query = db_query(connection, db->driver->neighbour_query);
		db_bind_string(query, table);
		if (db_step(query))
			snprintf(name, sizeof name, "%.*s", (int)db_text(query, 0).size,
			         db_text(query, 0).data);
		result = db_end(query, error);
	}
	db_give(connection);
	return result || !*name ? result
	                        : error_cause(error, ERR_REFUSED,
	                                      "schema %s of the database of store.url has the store of "
	                                      "another installation, whose locks this one would share: "
	                                      "create a database of its own for each installation",
	                                      name);
}

static bool may_attempt_again(const struct migration *migration, int64_t began_us)
{
	int64_t patience_us = migration->rolling ? LOCK_PATIENCE_US : EXCLUSION_PATIENCE_US;
	return migration->held && clock_monotonic_us() - began_us < patience_us;
}

static int refuse_step(const struct migration *migration, struct error *error)
{
	if (!migration->rolling)
		return error->code = ERR_REFUSED;
	char cause[ERROR_CAUSE_MAX];
	snprintf(cause, sizeof cause, "%s", error->cause);
	return error_set(error, ERR_REFUSED, MSG_STORE_STEP_LOCKED, migration->step, cause, NULL);
}

int db_migrate(struct db *db, bool dry_run, struct buf *out, const struct schema_progress *progress,
               int (*within)(struct db_connection *connection, void *context, struct error *error),
               void *context, struct error *error)
{
	struct migration migration = {
		.dry_run = dry_run, .out = out, .progress = progress, .within = within, .context = context};
	struct error own = {0};
	int64_t began_us = clock_monotonic_us();
	int result = move_schema(db, &migration, &own);
	while (may_attempt_again(&migration, began_us)) {
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
		error_clear(&own);
		result = move_schema(db, &migration, &own);
	}
	if (migration.held)
		result = refuse_step(&migration, &own);
	if (result && error)
		*error = own;
	return result;
}
