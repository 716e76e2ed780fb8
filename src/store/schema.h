/* The numbered steps of the schema, embedded from schema/NNN-name.sql. */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

struct schema_step {
	const char *name;
	const char *sql;
};
extern const struct schema_step schema_steps[];
extern const unsigned schema_step_count;

#endif
