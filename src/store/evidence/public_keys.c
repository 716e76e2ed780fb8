#include "store/evidence/public_keys.h"

#include "store/transaction.h"

static const char *kind_text(enum public_key_kind kind)
{
	return kind == PUBLIC_KEY_LOG ? "log" : "receipt";
}

/* Finds out whether the key is known, and whether another one would be too many. */
static int inspect(struct db_connection *connection, enum public_key_kind kind, const char *key,
                   bool *ret_known, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT key, used_until FROM public_keys WHERE kind = $1");
	size_t count = 0;
	bool ended = false;
	db_bind(query, kind_text(kind));
	for (; db_step(query); count++) {
		bool same = slice_is(db_text(query, 0), key);
		*ret_known |= same;
		ended |= same && !db_is_null(query, 1);
	}
	int result = db_end(query, error);
	if (!result && ended)
		return error_cause(error, ERR_REFUSED, "the use of the key %s was ended", key);
	return result || *ret_known || count < PUBLIC_KEYS_MAX
	           ? result
	           : error_cause(error, ERR_FULL,
	                         "the store has %d public keys of this kind, the maximum",
	                         PUBLIC_KEYS_MAX);
}

int store_add_public_key(struct store *store, enum public_key_kind kind, const char *key,
                         struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	bool known = false;
	int result = inspect(connection, kind, key, &known, error);
	if (result || known)
		return end_write(connection, result, error);
	struct db_query *query =
		db_query(connection, "INSERT INTO public_keys(kind, key, used_from) VALUES ($1, $2, $3) "
	                         "ON CONFLICT DO NOTHING");
	db_bind(query, kind_text(kind), key, store_now_us(store));
	return end_write(connection, db_execute(query, NULL, error), error);
}

int store_put_key_proof(struct store *store, const char *key, const char *proof,
                        const char *proof_of, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = db_query(connection, "UPDATE public_keys SET proof = $2, proof_of = $3"
	                                              " WHERE kind = 'receipt' AND key = $1");
	db_bind(query, key, proof, proof_of);
	return end_write_of_one(connection, query, error);
}

int store_end_public_key(struct store *store, struct slice key, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = db_query(connection, "UPDATE public_keys SET used_until = $2"
	                                              " WHERE key = $1 AND used_until IS NULL");
	db_bind(query, key, store_now_us(store));
	return end_write_of_one(connection, query, error);
}

int store_list_public_keys(struct store *store, enum public_key_kind kind, struct arena *arena,
                           struct public_key **ret_items, size_t *ret_count, struct error *error)
{
	static const struct member columns[] =
		COLUMNS_OF(struct public_key, key, used_from_us, used_until_us, proof, proof_of);
	static const struct row_type type = ROW_TYPE(struct public_key, columns, NULL);
	struct public_key *items = NULL;
	bool more = false;
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {
		.query = db_query(connection, "SELECT key, used_from, used_until, proof, proof_of "
	                                  "FROM public_keys WHERE kind = $1 ORDER BY used_from, key"),
		.arena = arena,
	};
	db_bind(row.query, kind_text(kind));
	*ret_count = 0;
	int result = row_list(&row, &type, &items, ret_count, &more, PUBLIC_KEYS_MAX, error);
	*ret_items = items;
	return end_read(connection, result);
}
