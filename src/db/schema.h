/* The schema of a database: numbered steps, applied in order and each once. Whoever opens a
 * database hands in the steps of each engine. The first step makes a table settings(name, value),
 * where the name of the last one that was applied stands as "schema". */
#ifndef DB_SCHEMA_H
#define DB_SCHEMA_H

#include <stdint.h>

#include "base/error.h"

struct db_connection;

struct schema_step {
	const char *name;              /* "001-initial" */
	const char *const *statements; /* without parameters; NULL ends them */
};
/* Who is told how far a step is that moves much; by the thread that applies it. */
struct schema_progress {
	void (*tell)(void *context, const char *what, int64_t done, int64_t total);
	void *context;
};
struct schema {
	const struct schema_step *steps;
	unsigned count;
};
/* A table whose rows the embedded engine keeps in the order in which they came, while queries read
 * them under `name` by their key, as if they were laid out by it (sqlite/arrivals.c). A key is a
 * group's number and a place in the group, `place_bits` of it; a group's keys grow by one. Queries
 * that name the owner and bounds of the key within one group cost what they read; so do those that
 * name values of `named`, alone or in order; all others read everything. Nothing is written by that
 * name. The schema has three tables of the same columns:
 * - NAME_arrived: `arrival` INTEGER PRIMARY KEY and the columns; only appended to.
 * - NAME_before: the columns, with the key for its own; what a group had before the others.
 * - NAME_runs: consecutive keys of a group that came one behind the other, by the arrival of the
 *   first: (arrival, key, count, place, previous, jump, jump_key, jump_place), see struct
 *   arrival_run. */
struct schema_arrivals {
	const char *name;
	/* Separated by ", "; the key first, then the owner. `types`: the same with their types. */
	const char *columns, *types;
	const char *large; /* one that is not read where nobody asks for it */
	const char *named; /* one with an index of its own, that has it where it is not NULL */
	const char *key;   /* the first column's name */
	unsigned place_bits;
	const char *last_run; /* a query: arrival of the last run of owner ?1 and group ?2, 0: none */
};
struct db_schemas {
	struct schema sqlite;
	struct schema postgres;
	const struct schema_arrivals *arrivals; /* the embedded engine's; NULL: none */
	/* Does what a step needs behind its statements, in the same transaction: fills tables that it
	 * made. Called for each step that is applied; `progress` may be NULL. */
	int (*fill)(struct db_connection *connection, const char *step,
	            const struct schema_progress *progress, struct error *error);
};

#endif
