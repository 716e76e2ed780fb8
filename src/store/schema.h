/* The numbered steps of each engine's schema, embedded from schema/ENGINE/NNN-name.sql. */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

struct schema_step {
	const char *name;
	const char *sql;
};
struct schema {
	const struct schema_step *steps;
	unsigned count;
};
extern const struct schema sqlite_schema;
extern const struct schema postgres_schema;

#endif
