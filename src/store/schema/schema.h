/* The numbered steps of each engine's schema, embedded from schema/ENGINE/NNN-name.sql. */
#ifndef STORE_SCHEMA_SCHEMA_H
#define STORE_SCHEMA_SCHEMA_H

#include "db/schema.h"

extern const struct db_schemas store_schemas;
/* How the embedded engine has events (events/arrivals.c). */
extern const struct schema_arrivals event_arrivals;
/* What the steps need behind their statements (usage/fill.c). */
int store_fill(struct db_connection *connection, const char *step,
               const struct schema_progress *progress, struct error *error) MUST_CHECK;

#endif
