/* Database schema: numbered steps, each applied once and in order. The opener of a database passes
 * the steps of each engine. The first step creates a table settings(name, value), whose row
 * "schema" has the name of the last step applied.
 *
 * A step is of one of two kinds. Programs that know the step before a `rolling` step, and every
 * step back to the last `stop` step, continue to work on the database after it. A `stop` step
 * excludes all programs that do not know it. The row "schema_programs" has the last `stop` step and
 * the last step, separated by a space: an older program uses the database if it knows the first of
 * them, and if the second is the value of "schema". */
#ifndef DB_SCHEMA_H
#define DB_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct db_connection;

struct schema_step {
	const char *name;              /* "001-initial" */
	const char *const *statements; /* without parameters; ended by NULL */
	bool rolling;
};
/* Receiver of progress of a step that moves much data; called by the thread that applies the
 * step. */
struct schema_progress {
	void (*tell)(void *context, const char *what, int64_t done, int64_t total);
	void *context;
};
struct schema {
	const struct schema_step *steps;
	unsigned count;
};
/* A table that the embedded engine stores as an append log, in insertion order, while queries read
 * it under `name` in key order (sqlite/append_table.c). A key consists of a group number and a
 * position in the group of `place_bits` bits. The keys of a group are consecutive. A query is
 * efficient if it specifies the owner and bounds of the key within one group, or values of `named`,
 * with or without an order. All other queries read the whole table. `name` cannot be written to.
 * The schema has three tables with the same columns:
 * - NAME_arrived: `arrival` INTEGER PRIMARY KEY and the columns; append-only.
 * - NAME_before: the columns, with the key as primary key; the rows of a group that precede those
 *   in NAME_arrived.
 * - NAME_runs: consecutive keys of a group that were inserted consecutively, by the arrival of the
 *   first: (arrival, key, count, place, previous, jump, jump_key, jump_place), see struct
 *   append_run. */
struct schema_append_log {
	const char *name;
	/* Separated by ", ": the key first, then the owner. `types`: the same with types. */
	const char *columns, *types;
	const char *large; /* a column that is read only if requested */
	const char *named; /* a column with its own index over values other than NULL */
	const char *key;   /* name of the first column */
	unsigned place_bits;
	const char *last_run; /* a query: arrival of the last run of owner ?1 and group ?2; 0: none */
};
/* A table, and where a server that distributes tables has its rows: on the server of the account in
 * its column `account`, or on the coordinator. */
struct schema_table {
	const char *name;
	bool by_account;
};
struct db_schemas {
	struct schema sqlite;
	struct schema postgres;
	const struct schema_table *tables;        /* the table of accounts first; ended by NULL */
	const struct schema_append_log *arrivals; /* only for the embedded engine; NULL: none */
	/* Completes a step after its statements, in the same transaction, for example by filling new
	 * tables. Called for each applied step; `progress` may be NULL. */
	int (*fill)(struct db_connection *connection, const char *step,
	            const struct schema_progress *progress, struct error *error);
};

#endif
