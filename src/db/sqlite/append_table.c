/* Append log: a virtual table that reads rows by key although they are stored in insertion order.
 * It covers the three tables described at struct schema_append_log. It reads them with statements
 * of the same connection, and so in the snapshot of the query. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tuned.h"
#include "db/append_run.h"
#include "db/sqlite/sqlite_internal.h"

#define TEXT_MAX 1024     /* of a statement */
#define RUNS_AT_ONCE 1024 /* runs kept while rows are read in order; initially: */
#define RUNS_AT_FIRST 32

/* Query plan, in sqlite3_index_info.idxNum, with flags. */
enum plan { PLAN_RANGE, PLAN_NAMED, PLAN_FROM_NAME, PLAN_ALL };
#define PLAN_MASK 3
#define EXACT 4      /* one key */
#define DESCENDING 8 /* by key */
#define WITH_LARGE 16

/* Statements of a cursor, each prepared on first use. */
enum part {
	PART_LAST_RUN,
	PART_RUN,
	PART_BEFORE,
	PART_ARRIVED,
	PART_NAMED,
	PART_FROM_NAME,
	PART_ALL
};
#define PARTS 7
#define PART_KINDS 4 /* descending, with the large column */
struct statements {
	sqlite3_stmt *parts[PARTS][PART_KINDS];
	struct statements *next_free;
};

struct table {
	sqlite3_vtab base;
	sqlite3 *sqlite;
	const struct schema_append_log *schema;
	int large, named;  /* column numbers */
	size_t runs_first; /* runs that a cursor searches at first */
	struct statements *free_statements;
};

struct cursor {
	sqlite3_vtab_cursor base;
	struct statements *statements;
	int plan;
	int64_t owner, group, first, last; /* range of keys */
	sqlite3_stmt *row;                 /* at a row; NULL: at the end */
	enum { AT_BEFORE, AT_RUNS, AT_END } stage;
	struct append_run head; /* last run of the group */
	int64_t next;           /* ascending: first key whose run was not searched, unless `over` */
	bool over;              /* no such key */
	size_t wanted;          /* number of runs to search */
	struct append_run *runs;
	size_t count, room;
};

static struct table *table_of(struct cursor *cursor)
{
	return (struct table *)cursor->base.pVtab;
}

/* ---- statements ---- */

/* Writes the columns, with NULL in place of the large one. */
static void write_columns(const struct schema_append_log *schema, bool with_large,
                          char text[TEXT_MAX])
{
	const char *at = with_large ? NULL : strstr(schema->columns, schema->large);
	int size = at ? snprintf(text, TEXT_MAX, "%.*sNULL AS %s", (int)(at - schema->columns),
	                         schema->columns, at)
	              : snprintf(text, TEXT_MAX, "%s", schema->columns);
	assert(size > 0 && size < TEXT_MAX); /* constants of the program */
}

static void write_part(const struct schema_append_log *schema, enum part part, bool descending,
                       bool with_large, char text[4 * TEXT_MAX])
{
	char columns[TEXT_MAX], where[128] = "";
	const char *name = schema->name;
	const char *order = descending ? "DESC" : "ASC";
	write_columns(schema, with_large, columns);
	size_t room = (size_t)4 * TEXT_MAX;
	switch (part) {
	case PART_LAST_RUN: snprintf(text, room, "%s", schema->last_run); return;
	case PART_RUN:
		snprintf(text, room,
		         "SELECT %s, count, place, previous, jump, jump_key, jump_place FROM main.%s_runs "
		         "WHERE arrival = ?1",
		         schema->key, name);
		return;
	case PART_BEFORE:
		snprintf(text, room,
		         "SELECT %s FROM main.%s_before WHERE %s BETWEEN ?1 AND ?2 ORDER BY %s %s", columns,
		         name, schema->key, schema->key, order);
		return;
	case PART_ARRIVED:
		snprintf(text, room,
		         "SELECT %s FROM main.%s_arrived WHERE arrival BETWEEN ?1 AND ?2 "
		         "ORDER BY arrival %s",
		         columns, name, order);
		return;
	case PART_NAMED: snprintf(where, sizeof where, "WHERE %s = ?1", schema->named); break;
	case PART_FROM_NAME: snprintf(where, sizeof where, "WHERE %s > ?1", schema->named); break;
	case PART_ALL: break;
	}
	snprintf(text, room,
	         "SELECT %s FROM main.%s_before %s UNION ALL SELECT %s FROM main.%s_arrived %s",
	         columns, name, where, columns, name, where);
	if (part == PART_FROM_NAME) {
		size_t size = strlen(text);
		snprintf(text + size, room - size, " ORDER BY %s", schema->named);
	}
}

/* Gets a statement, ready for binding. */
static int use(struct cursor *cursor, enum part part, sqlite3_stmt **ret)
{
	assert((size_t)part < PARTS);
	struct table *table = table_of(cursor);
	bool descending = cursor->plan & DESCENDING;
	bool with_large = cursor->plan & WITH_LARGE;
	sqlite3_stmt **statement =
		&cursor->statements->parts[part][(descending ? 1 : 0) + (with_large ? 2 : 0)];
	if (!*statement) {
		char text[4 * TEXT_MAX];
		write_part(table->schema, part, descending, with_large, text);
		int result =
			sqlite3_prepare_v3(table->sqlite, text, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
		if (result != SQLITE_OK)
			return result;
	}
	*ret = *statement;
	return SQLITE_OK;
}

/* ---- runs ---- */

/* Reads a run; {0} for arrival 0. */
static int read_run(struct cursor *cursor, int64_t arrival, struct append_run *run)
{
	*run = (struct append_run){0};
	if (arrival == 0)
		return SQLITE_OK;
	sqlite3_stmt *statement;
	int result = use(cursor, PART_RUN, &statement);
	if (result != SQLITE_OK)
		return result;
	sqlite3_bind_int64(statement, 1, arrival);
	result = sqlite3_step(statement);
	if (result == SQLITE_ROW) {
		*run = (struct append_run){.arrival = arrival,
		                           .key = sqlite3_column_int64(statement, 0),
		                           .count = sqlite3_column_int64(statement, 1),
		                           .place = sqlite3_column_int64(statement, 2),
		                           .previous = sqlite3_column_int64(statement, 3),
		                           .jump = sqlite3_column_int64(statement, 4),
		                           .jump_key = sqlite3_column_int64(statement, 5),
		                           .jump_place = sqlite3_column_int64(statement, 6)};
		bool whole = run->count > 0 && run->previous < arrival && run->jump <= run->previous &&
		             run->key >> table_of(cursor)->schema->place_bits == cursor->group;
		result = whole ? SQLITE_OK : SQLITE_CORRUPT_VTAB;
	} else if (result == SQLITE_DONE) {
		result = SQLITE_CORRUPT_VTAB; /* a pointer referred to it */
	}
	sqlite3_reset(statement);
	return result;
}

static int read_head(struct cursor *cursor)
{
	sqlite3_stmt *statement;
	int result = use(cursor, PART_LAST_RUN, &statement);
	if (result != SQLITE_OK)
		return result;
	sqlite3_bind_int64(statement, 1, cursor->owner);
	sqlite3_bind_int64(statement, 2, cursor->group);
	result = sqlite3_step(statement);
	int64_t arrival = result == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
	sqlite3_reset(statement);
	if (result != SQLITE_ROW && result != SQLITE_DONE)
		return result;
	return read_run(cursor, arrival, &cursor->head);
}

/* Finds the last run that begins at or before the key; {0}: none. */
static int find_run(struct cursor *cursor, int64_t key, struct append_run *run)
{
	int result = SQLITE_OK;
	*run = cursor->head;
	while (result == SQLITE_OK && run->arrival && run->key > key)
		result = read_run(cursor, append_run_step(run, key), run);
	return result;
}

static int keep_run(struct cursor *cursor, const struct append_run *run)
{
	if (cursor->count == cursor->room) {
		size_t room = cursor->room ? 2 * cursor->room : table_of(cursor)->runs_first;
		struct append_run *runs = sqlite3_realloc64(cursor->runs, room * sizeof *runs);
		if (!runs)
			return SQLITE_NOMEM;
		cursor->runs = runs;
		cursor->room = room;
	}
	assert(cursor->count < cursor->room);
	cursor->runs[cursor->count++] = *run;
	return SQLITE_OK;
}

/* Reads ahead the next runs with keys of the range, in reverse order. */
static int look_ahead(struct cursor *cursor)
{
	assert(!cursor->over && cursor->next <= cursor->last && cursor->wanted > 0);
	struct append_run run;
	int64_t last = cursor->last - cursor->next < (int64_t)cursor->wanted
	                   ? cursor->last
	                   : cursor->next + (int64_t)cursor->wanted - 1;
	int result = find_run(cursor, last, &run);
	while (result == SQLITE_OK && run.arrival && append_run_last_key(&run) >= cursor->next) {
		result = keep_run(cursor, &run);
		if (result == SQLITE_OK)
			result = read_run(cursor, run.previous, &run);
	}
	if (cursor->count > 0 && append_run_last_key(&cursor->runs[0]) > last)
		last = append_run_last_key(&cursor->runs[0]);
	cursor->over = last >= cursor->last;
	if (!cursor->over)
		cursor->next = last + 1;
	if (cursor->wanted < RUNS_AT_ONCE)
		cursor->wanted *= 2;
	return result;
}

/* Gets the next run to read; {0}: none. */
static int next_run(struct cursor *cursor, struct append_run *run)
{
	int result = SQLITE_OK;
	if (cursor->plan & DESCENDING) {
		*run = (struct append_run){0};
		if (cursor->head.arrival && append_run_last_key(&cursor->head) >= cursor->first) {
			*run = cursor->head;
			result = read_run(cursor, run->previous, &cursor->head);
		}
		return result;
	}
	while (result == SQLITE_OK && cursor->count == 0 && !cursor->over &&
	       cursor->next <= cursor->last)
		result = look_ahead(cursor);
	*run = cursor->count > 0 ? cursor->runs[--cursor->count] : (struct append_run){0};
	return result;
}

/* ---- stages of a range: ascending, NAME_before and then the runs ---- */

static int begin_before(struct cursor *cursor, int64_t first, int64_t last)
{
	cursor->stage = AT_BEFORE;
	int result = use(cursor, PART_BEFORE, &cursor->row);
	if (result != SQLITE_OK)
		return result;
	sqlite3_bind_int64(cursor->row, 1, first);
	sqlite3_bind_int64(cursor->row, 2, last);
	return SQLITE_OK;
}

/* Finds the last run at the end of the range. Ascending runs are searched from there backwards;
 * descending ones begin there. */
static int begin_runs(struct cursor *cursor)
{
	cursor->stage = AT_RUNS;
	int result = read_head(cursor);
	if (result == SQLITE_OK && cursor->plan & DESCENDING)
		return find_run(cursor, cursor->last, &cursor->head);
	int64_t end = cursor->head.arrival ? append_run_last_key(&cursor->head) : INT64_MIN;
	if (cursor->last > end)
		cursor->last = end;
	return result;
}

static int begin_run(struct cursor *cursor, const struct append_run *run)
{
	assert(run->count > 0); /* by read_run */
	int64_t skipped = cursor->first > run->key ? cursor->first - run->key : 0;
	int64_t end = append_run_last_key(run);
	int64_t left = end > cursor->last ? end - cursor->last : 0;
	int result = use(cursor, PART_ARRIVED, &cursor->row);
	if (result != SQLITE_OK)
		return result;
	sqlite3_bind_int64(cursor->row, 1, run->arrival + skipped);
	sqlite3_bind_int64(cursor->row, 2, run->arrival + run->count - 1 - left);
	return SQLITE_OK;
}

/* Continues after the last row of a stage or a run. */
static int next_rows(struct cursor *cursor)
{
	bool descending = cursor->plan & DESCENDING;
	cursor->row = NULL;
	int result = SQLITE_OK;
	if (cursor->stage == AT_BEFORE) {
		if (descending) {
			cursor->stage = AT_END;
			return SQLITE_OK;
		}
		result = begin_runs(cursor);
	}
	if (cursor->stage == AT_END || result != SQLITE_OK)
		return result;
	struct append_run run;
	result = next_run(cursor, &run);
	if (result != SQLITE_OK)
		return result;
	if (run.arrival)
		return begin_run(cursor, &run);
	cursor->stage = AT_END;
	return descending ? begin_before(cursor, cursor->first, cursor->last) : SQLITE_OK;
}

static int move(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;
	int result = SQLITE_OK;
	while (cursor->row && result == SQLITE_OK) {
		result = sqlite3_step(cursor->row);
		if (result == SQLITE_ROW)
			return SQLITE_OK;
		sqlite3_reset(cursor->row);
		if (result == SQLITE_DONE)
			result = next_rows(cursor);
	}
	return result;
}

static void stop(struct cursor *cursor)
{
	if (cursor->row)
		sqlite3_reset(cursor->row);
	cursor->row = NULL;
	cursor->count = 0;
	cursor->stage = AT_END;
}

static int begin_range(struct cursor *cursor, sqlite3_value **values)
{
	unsigned bits = table_of(cursor)->schema->place_bits;
	cursor->owner = sqlite3_value_int64(values[0]);
	cursor->first = sqlite3_value_int64(values[1]);
	cursor->last = sqlite3_value_int64(values[cursor->plan & EXACT ? 1 : 2]);
	cursor->group = cursor->first >> bits;
	cursor->next = cursor->first;
	cursor->over = false;
	cursor->wanted = table_of(cursor)->runs_first;
	if (cursor->first > cursor->last)
		return SQLITE_OK;
	if (cursor->last >> bits != cursor->group) {
		cursor->base.pVtab->zErrMsg = sqlite3_mprintf("the range covers more than one group");
		return SQLITE_ERROR;
	}
	if (!(cursor->plan & DESCENDING))
		return begin_before(cursor, cursor->first, cursor->last);
	int result = begin_runs(cursor);
	return result == SQLITE_OK ? next_rows(cursor) : result;
}

static int begin_named(struct cursor *cursor, enum part part, sqlite3_value **values, int count)
{
	cursor->stage = AT_END;
	int result = use(cursor, part, &cursor->row);
	if (result == SQLITE_OK && count > 0)
		result = sqlite3_bind_value(cursor->row, 1, values[0]);
	return result;
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *unused, int count,
                  sqlite3_value **values)
{
	struct cursor *cursor = (struct cursor *)base;
	(void)unused;
	stop(cursor);
	cursor->plan = plan;
	int result = SQLITE_OK;
	switch ((enum plan)(plan & PLAN_MASK)) {
	case PLAN_RANGE: result = begin_range(cursor, values); break;
	case PLAN_NAMED: result = begin_named(cursor, PART_NAMED, values, count); break;
	case PLAN_FROM_NAME: result = begin_named(cursor, PART_FROM_NAME, values, count); break;
	case PLAN_ALL: result = begin_named(cursor, PART_ALL, values, count); break;
	}
	return result == SQLITE_OK ? move(base) : result;
}

/* ---- the virtual table ---- */

/* Returns the number of a column in a list. */
static int column_number(const char *columns, const char *name)
{
	int number = 0;
	size_t size = strlen(name);
	for (const char *at = columns; at; number++) {
		if (strncmp(at, name, size) == 0 && (at[size] == ',' || at[size] == '\0'))
			return number;
		at = strchr(at, ' ');
		if (at)
			at++;
	}
	abort(); /* the list is a constant of the program */
}

static int connect(sqlite3 *sqlite, void *context, int count, const char *const *arguments,
                   sqlite3_vtab **ret, char **ret_error)
{
	const struct schema_append_log *schema = context;
	(void)count, (void)arguments, (void)ret_error;
	char declaration[TEXT_MAX + 32];
	int size = snprintf(declaration, sizeof declaration, "CREATE TABLE rows(%s)", schema->types);
	assert(size > 0 && (size_t)size < sizeof declaration);
	int result = sqlite3_declare_vtab(sqlite, declaration);
	if (result != SQLITE_OK)
		return result;
	struct table *table = sqlite3_malloc(sizeof *table);
	if (!table)
		return SQLITE_NOMEM;
	*table = (struct table){.runs_first = (size_t)tuned_up_to("append_runs", RUNS_AT_FIRST),
	                        .sqlite = sqlite,
	                        .schema = schema,
	                        .large = column_number(schema->columns, schema->large),
	                        .named = column_number(schema->columns, schema->named)};
	*ret = &table->base;
	return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *base)
{
	struct table *table = (struct table *)base;
	while (table->free_statements) {
		struct statements *statements = table->free_statements;
		table->free_statements = statements->next_free;
		for (int part = 0; part < PARTS; part++)
			for (int kind = 0; kind < PART_KINDS; kind++)
				sqlite3_finalize(statements->parts[part][kind]);
		sqlite3_free(statements);
	}
	sqlite3_free(table);
	return SQLITE_OK;
}

/* Numbers of the usable constraints; -1: none. */
struct constraints {
	int owner, exact, lower, upper, name, from_name;
};

static struct constraints find_constraints(const struct table *table,
                                           const sqlite3_index_info *info)
{
	struct constraints found = {-1, -1, -1, -1, -1, -1};
	for (int i = 0; i < info->nConstraint; i++) {
		const struct sqlite3_index_constraint *one = &info->aConstraint[i];
		bool equal = one->op == SQLITE_INDEX_CONSTRAINT_EQ;
		bool above = one->op == SQLITE_INDEX_CONSTRAINT_GT;
		if (!one->usable)
			continue;
		if (one->iColumn == table->named && equal)
			found.name = i;
		else if (one->iColumn == table->named && above)
			found.from_name = i;
		else if (one->iColumn == 1 && equal)
			found.owner = i;
		else if (one->iColumn == 0 && equal)
			found.exact = i;
		else if (one->iColumn == 0 && (above || one->op == SQLITE_INDEX_CONSTRAINT_GE))
			found.lower = i;
		else if (one->iColumn == 0 &&
		         (one->op == SQLITE_INDEX_CONSTRAINT_LT || one->op == SQLITE_INDEX_CONSTRAINT_LE))
			found.upper = i;
	}
	return found;
}

/* SQLite checks all constraints again, so bounds may be treated as inclusive. */
static int choose(sqlite3_vtab *base, sqlite3_index_info *info)
{
	struct table *table = (struct table *)base;
	struct constraints found = find_constraints(table, info);
	bool ordered = info->nOrderBy == 1;
	bool descending = ordered && info->aOrderBy[0].desc;
	bool by_key = ordered && info->aOrderBy[0].iColumn == 0;
	int plan;
	if (found.owner >= 0 && (found.exact >= 0 || (found.lower >= 0 && found.upper >= 0))) {
		plan =
			PLAN_RANGE | (found.exact >= 0 ? EXACT : 0) | (by_key && descending ? DESCENDING : 0);
		info->aConstraintUsage[found.owner].argvIndex = 1;
		info->aConstraintUsage[found.exact >= 0 ? found.exact : found.lower].argvIndex = 2;
		if (found.exact < 0)
			info->aConstraintUsage[found.upper].argvIndex = 3;
		info->orderByConsumed = by_key;
		info->estimatedCost = found.exact >= 0 ? 20 : 2000;
		info->estimatedRows = found.exact >= 0 ? 1 : 1000;
		info->idxFlags = found.exact >= 0 ? SQLITE_INDEX_SCAN_UNIQUE : 0;
	} else if (found.name >= 0) {
		plan = PLAN_NAMED;
		info->aConstraintUsage[found.name].argvIndex = 1;
		info->estimatedCost = 20;
		info->estimatedRows = 1;
	} else if (found.from_name >= 0) {
		plan = PLAN_FROM_NAME;
		info->aConstraintUsage[found.from_name].argvIndex = 1;
		info->orderByConsumed = ordered && !descending && info->aOrderBy[0].iColumn == table->named;
		info->estimatedCost = 1e6;
		info->estimatedRows = 1000000;
	} else {
		plan = PLAN_ALL;
		info->estimatedCost = 1e12;
		info->estimatedRows = 1000000000;
	}
	sqlite3_uint64 large = table->large < 63 ? (sqlite3_uint64)1 << table->large : 0;
	info->idxNum = plan | (info->colUsed & large ? WITH_LARGE : 0);
	return SQLITE_OK;
}

static struct statements *take_statements(struct table *table)
{
	struct statements *statements = table->free_statements;
	if (statements) {
		table->free_statements = statements->next_free;
		return statements;
	}
	statements = sqlite3_malloc(sizeof *statements);
	if (statements)
		*statements = (struct statements){0};
	return statements;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	struct table *table = (struct table *)base;
	struct cursor *cursor = sqlite3_malloc(sizeof *cursor);
	if (!cursor)
		return SQLITE_NOMEM;
	struct statements *statements = take_statements(table);
	if (!statements) {
		sqlite3_free(cursor);
		return SQLITE_NOMEM;
	}
	*cursor = (struct cursor){.statements = statements, .stage = AT_END};
	*ret = &cursor->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	assert(((struct cursor *)base)->statements);
	struct cursor *cursor = (struct cursor *)base;
	struct table *table = table_of(cursor);
	stop(cursor);
	cursor->statements->next_free = table->free_statements;
	table->free_statements = cursor->statements;
	sqlite3_free(cursor->runs);
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
	return !((struct cursor *)base)->row;
}

static int read_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
	sqlite3_result_value(context, sqlite3_column_value(((struct cursor *)base)->row, number));
	return SQLITE_OK;
}

static int read_key(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = sqlite3_column_int64(((struct cursor *)base)->row, 0);
	return SQLITE_OK;
}

static const sqlite3_module module = {
	.xCreate = connect,
	.xConnect = connect,
	.xBestIndex = choose,
	.xDisconnect = disconnect,
	.xDestroy = disconnect,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = move,
	.xEof = is_at_end,
	.xColumn = read_column,
	.xRowid = read_key,
};

int sqlite_add_append_log(struct sqlite_connection *connection)
{
	const struct schema_append_log *schema = connection->base.db->arrivals;
	char sql[TEXT_MAX];
	if (connection->has_append_log || !schema)
		return OK;
	snprintf(sql, sizeof sql, "CREATE VIRTUAL TABLE temp.%s USING arrivals", schema->name);
	if (sqlite3_create_module(connection->sqlite, "arrivals", &module, (void *)schema) != SQLITE_OK)
		return sqlite_fail(connection, "arrivals");
	if (sqlite3_exec(connection->sqlite, sql, NULL, NULL, NULL) != SQLITE_OK)
		return sqlite_fail(connection, sql);
	connection->has_append_log = true;
	return OK;
}
