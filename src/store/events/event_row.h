/* Rows of events: lists of their columns for statements, and functions that bind and read them, all
 * made from event_columns.def. Private to the files that read or write events. */
#ifndef STORE_EVENT_ROW_H
#define STORE_EVENT_ROW_H

#include "db/db.h"
#include "store/events/event_columns.def"
#include "store/store.h"

/* Parts of statements; each begins with ", ". */
#define EVENT_COLUMN_NAMES EVENT_COLUMNS(EVENT_NAME_)
#define EVENT_NAME_(parameter, name, sql, kind, member) ", " #name
#define EVENT_COLUMN_PARAMETERS EVENT_COLUMNS(EVENT_PARAMETER_)
#define EVENT_PARAMETER_(parameter, name, sql, kind, member) ", $" #parameter
/* Names with their types in SQLite. */
#define EVENT_COLUMN_TYPES EVENT_COLUMNS(EVENT_TYPE_)
#define EVENT_TYPE_(parameter, name, sql, kind, member) ", " #name " " #sql
/* Arrays as parameters, on a server. */
#define EVENT_COLUMN_ARRAYS EVENT_COLUMNS(EVENT_ARRAY_)
#define EVENT_ARRAY_(parameter, name, sql, kind, member)                                           \
	", unnest($" #parameter "::" EVENT_ARRAY_OF_##sql "[])"
#define EVENT_ARRAY_OF_INTEGER "bigint"
#define EVENT_ARRAY_OF_TEXT "text"
#define EVENT_ARRAY_OF_BLOB "bytea"

#define EVENT_FIRST_PARAMETER 6
#define EVENT_NUMBER_(parameter, name, sql, kind, member) EVENT_COLUMN_##name,
enum event_column { EVENT_COLUMNS(EVENT_NUMBER_) EVENT_COLUMN_COUNT };

/* Binds EVENT_COLUMN_PARAMETERS, after the parameters before them. */
void event_row_bind(struct db_query *query, const struct event *event);
/* Initializes EVENT_COLUMN_COUNT arrays. */
void event_row_init_arrays(struct db_array *arrays);
/* Adds a value to each of the arrays. */
void event_row_add(struct db_array *arrays, const struct event *event);
/* Reads EVENT_COLUMN_NAMES, of which the first has the index `column`. Texts are valid until the
 * next step. */
void event_row_read(struct db_query *query, int column, struct event *event);
/* Copies the texts of a row that was read into the arena. Returns ERR_NO_MEMORY. */
int event_row_keep(struct arena *arena, struct event *event) MUST_CHECK;

#endif
