/* The schema of a database: numbered steps, applied in order and each once. Whoever opens a
 * database hands in the steps of each engine. The first step makes a table settings(name, value),
 * where the name of the last one that was applied stands as "schema". */
#ifndef DB_SCHEMA_H
#define DB_SCHEMA_H

struct schema_step {
	const char *name; /* "001-initial" */
	const char *sql;  /* statements without parameters */
};
struct schema {
	const struct schema_step *steps;
	unsigned count;
};
struct db_schemas {
	struct schema sqlite;
	struct schema postgres;
};

#endif
