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
struct db_schemas {
	struct schema sqlite;
	struct schema postgres;
	/* Does what a step needs behind its statements, in the same transaction: fills tables that it
	 * made. Called for each step that is applied; `progress` may be NULL. */
	int (*fill)(struct db_connection *connection, const char *step,
	            const struct schema_progress *progress, struct error *error);
};

#endif
