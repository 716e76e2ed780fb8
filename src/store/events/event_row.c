#include "store/events/event_row.h"

#include "store/store_internal.h"

/* Each kind of member is an int64_t or a slice on its way from and to the database. */
#define INTEGER_NULL TIME_NONE

/* ---- kinds of members ---- */

static inline int64_t get_integer(const int64_t *member)
{
	return *member;
}

static inline void set_integer(int64_t *member, int64_t value)
{
	*member = value;
}

static inline int64_t get_size(const int64_t *member)
{
	return *member < 0 ? INTEGER_NULL : *member;
}

static inline void set_size(int64_t *member, int64_t value)
{
	*member = value == INTEGER_NULL ? -1 : value;
}

static inline struct slice get_slice(const struct slice *member)
{
	return *member;
}

static inline void set_slice(struct slice *member, struct slice value)
{
	*member = value;
}

static inline struct slice get_string(const char *const *member)
{
	return slice_of(*member);
}

static inline void set_string(const char **member, struct slice value)
{
	*member = value.data;
}

static inline struct slice get_hash(const struct declaration *member)
{
	return slice_make(member->hash, hash_algorithm_size(member->hash_algorithm));
}

static inline void set_hash(struct declaration *member, struct slice value)
{
	member->hash_algorithm = value.size == SHA512_SIZE ? HASH_SHA512 : HASH_SHA256;
	memcpy(member->hash, value.data, value.size < DIGEST_SIZE_MAX ? value.size : DIGEST_SIZE_MAX);
}

static inline struct slice get_sha256(const struct sha256 *member)
{
	return slice_make(member->bytes, SHA256_SIZE);
}

static inline void set_sha256(struct sha256 *member, struct slice value)
{
	*member = store_sha256(value);
}

/* ---- types of columns ---- */

static inline void bind_INTEGER(struct db_query *query, int64_t value)
{
	db_bind(query, db_null_if(value, INTEGER_NULL));
}

static inline void bind_TEXT(struct db_query *query, struct slice value)
{
	if (value.data)
		db_bind_text(query, value);
	else
		db_bind_null(query);
}

static inline void bind_BLOB(struct db_query *query, struct slice value)
{
	db_bind_blob(query, value.data, value.size);
}

static inline void add_INTEGER(struct db_array *array, int64_t value)
{
	if (value == INTEGER_NULL)
		db_array_add_null(array);
	else
		db_array_add_integer(array, value);
}

static inline void add_TEXT(struct db_array *array, struct slice value)
{
	db_array_add_bytes(array, value.data, value.size);
}

static inline void add_BLOB(struct db_array *array, struct slice value)
{
	db_array_add_bytes(array, value.data, value.size);
}

static inline int64_t read_INTEGER(struct db_query *query, int column)
{
	return db_is_null(query, column) ? INTEGER_NULL : db_integer(query, column);
}

static inline struct slice read_TEXT(struct db_query *query, int column)
{
	return db_is_null(query, column) ? (struct slice){0} : db_text(query, column);
}

static inline struct slice read_BLOB(struct db_query *query, int column)
{
	return db_blob(query, column);
}

/* ---- rows ---- */

#define CHECK_PARAMETER(parameter, name, sql, kind, member)                                        \
	_Static_assert((parameter) == EVENT_FIRST_PARAMETER + (int)EVENT_COLUMN_##name,                \
	               "parameters are consecutive");
EVENT_COLUMNS(CHECK_PARAMETER)

void event_row_bind(struct db_query *query, const struct event *event)
{
#define BIND(parameter, name, sql, kind, member) bind_##sql(query, get_##kind(&event->member));
	EVENT_COLUMNS(BIND)
}

void event_row_init_arrays(struct db_array *arrays)
{
#define INIT(parameter, name, sql, kind, member)                                                   \
	db_array_init(&arrays[EVENT_COLUMN_##name], DB_##sql##S);
	EVENT_COLUMNS(INIT)
}

void event_row_add(struct db_array *arrays, const struct event *event)
{
#define ADD(parameter, name, sql, kind, member)                                                    \
	add_##sql(&arrays[EVENT_COLUMN_##name], get_##kind(&event->member));
	EVENT_COLUMNS(ADD)
}

void event_row_read(struct db_query *query, int column, struct event *event)
{
#define READ(parameter, name, sql, kind, member)                                                   \
	set_##kind(&event->member, read_##sql(query, column + (int)EVENT_COLUMN_##name));
	EVENT_COLUMNS(READ)
}

/* Only texts refer to the memory of the query. */
#define KEEP_INTEGER(kind, member)
#define KEEP_BLOB(kind, member)
#define KEEP_TEXT(kind, member)                                                                    \
	{                                                                                              \
		struct slice text = get_##kind(&event->member);                                            \
		if (text.data && !(text.data = arena_copy(arena, text.data, text.size)))                   \
			return ERR_NO_MEMORY;                                                                  \
		set_##kind(&event->member, text);                                                          \
	}

int event_row_keep(struct arena *arena, struct event *event)
{
#define KEEP(parameter, name, sql, kind, member) KEEP_##sql(kind, member)
	EVENT_COLUMNS(KEEP)
	return OK;
}
