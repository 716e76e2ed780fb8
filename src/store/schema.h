/* The numbered steps of each engine's schema, embedded from schema/ENGINE/NNN-name.sql. */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

#include "db/schema.h"

extern const struct db_schemas store_schemas;

#endif
