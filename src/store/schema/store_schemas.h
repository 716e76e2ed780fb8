/* The numbered migration steps of each engine, embedded from schema/ENGINE/NNN-name.sql. */
#ifndef STORE_SCHEMA_STORE_SCHEMAS_H
#define STORE_SCHEMA_STORE_SCHEMAS_H

#include "db/schema.h"

extern const struct db_schemas store_schemas;
/* How the embedded engine stores events (events/append_log.c). */
extern const struct schema_append_log event_arrivals;
/* Fills new tables after the statements of a step (usage/fill.c). */
int store_fill(struct db_connection *connection, const char *step,
               const struct schema_progress *progress, struct error *error) MUST_CHECK;

#endif
