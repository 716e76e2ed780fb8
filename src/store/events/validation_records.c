#include "store/events/validation_records.h"

#include "store/transaction.h"

/* ---- writing ---- */

static int write_object(struct db_connection *connection, const struct validation_object *object,
                        int64_t now_us, struct error *error)
{
	struct db_query *query =
		db_query(connection, "INSERT INTO validation_objects (sha256, kind, der, first_seen)"
	                         " VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING");
	db_bind(query, &object->sha256, validation_kind_text(object->kind), db_bytes(object->der),
	        now_us);
	return db_execute(query, NULL, error);
}

static int write_link(struct db_connection *connection, const struct sha256 *token_hash,
                      const struct validation_object *object, struct error *error)
{
	struct db_query *query =
		db_query(connection, "INSERT INTO token_validation (token_hash, sha256) VALUES ($1, $2)"
	                         " ON CONFLICT DO NOTHING");
	db_bind(query, token_hash, &object->sha256);
	int64_t changes = 0;
	return db_execute(query, &changes, error);
}

int store_write_validation(struct store *store, const struct sha256 *token_hash,
                           const struct validation_object *objects, size_t count, int64_t now_us,
                           struct error *error)
{
	if (count == 0)
		return OK;
	struct db_connection *connection = begin_write(store, &error);
	int result = OK;
	for (size_t i = 0; i < count && !result; i++)
		result = write_object(connection, &objects[i], now_us, error);
	for (size_t i = 0; i < count && !result; i++)
		result = write_link(connection, token_hash, &objects[i], error);
	return end_write(connection, result, error);
}

/* ---- reading ---- */

static int read_object(struct db_query *query, struct arena *arena, struct validation_object *ret)
{
	struct slice der = db_blob(query, 2);
	const char *copy = arena_copy(arena, der.data, der.size);
	*ret = (struct validation_object){
		.sha256 = store_sha256(db_blob(query, 0)),
		.der = slice_make(copy, der.size),
	};
	if (!copy)
		return ERR_NO_MEMORY;
	struct sha256 found = sha256_of(copy, der.size);
	return validation_kind_parse(db_text(query, 1), &ret->kind) &&
	               sha256_equal(&found, &ret->sha256)
	           ? OK
	           : ERR_CORRUPT;
}

int store_list_validation(struct store *store, const struct sha256 *token_hash, struct arena *arena,
                          const struct validation_object **ret_objects, size_t *ret_count,
                          struct error *error)
{
	struct validation_object *objects = arena_alloc(arena, TOKEN_OBJECTS_MAX * sizeof *objects);
	if (!objects)
		return ERR_NO_MEMORY;
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT o.sha256, o.kind, o.der FROM token_validation t"
	                         " JOIN validation_objects o ON o.sha256 = t.sha256"
	                         " WHERE t.token_hash = $1 ORDER BY o.sha256");
	db_bind_blob(query, token_hash, sizeof *token_hash);
	size_t count = 0;
	int found = OK;
	while (!found && db_step(query))
		found =
			count < TOKEN_OBJECTS_MAX ? read_object(query, arena, &objects[count++]) : ERR_CORRUPT;
	int result = end_read(connection, db_end(query, error));
	if (result)
		return result;
	if (found == ERR_CORRUPT)
		return error_cause(error, found,
		                   "the validation objects of a token are damaged or too many");
	if (!found) {
		*ret_objects = objects;
		*ret_count = count;
	}
	return found;
}
