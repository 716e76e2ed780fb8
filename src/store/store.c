#include <stdio.h>
#include <stdlib.h>

#include "base/digest.h"
#include "store/client_refs.h"
#include "store/internal.h"
#include "store/schema.h"

#define BATCH_ARENA_MAX ((size_t)256 << 20)

void store_fresh_id(const char *prefix, char id[ID_SIZE])
{
	static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
	uint8_t random[16];
	random_bytes(random, sizeof random);
	size_t size = strlen(prefix);
	memcpy(id, prefix, size);
	for (size_t i = 0; i < sizeof random; i++)
		id[size++] = digits[random[i] & 31];
	id[size] = '\0';
}

/* ---- schema ---- */

/* The number of steps applied; 0 for an empty database. */
static int read_schema(struct db_connection *connection, unsigned *ret_applied, char name[64],
                       struct error *error)
{
	struct db_query *query = db_query(
	    connection, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'settings'");
	bool present = db_step(query) && db_integer(query, 0) > 0;
	int result = db_end(query, error);
	*ret_applied = 0;
	snprintf(name, 64, "none");
	if (result != OK || !present)
		return result;
	query = db_query(connection, "SELECT value FROM settings WHERE name = 'schema'");
	if (db_step(query)) {
		struct slice value = db_text(query, 0);
		snprintf(name, 64, "%.*s", (int)value.size, value.data);
	}
	result = db_end(query, error);
	for (unsigned i = 0; i < schema_step_count && result == OK; i++)
		if (strcmp(schema_steps[i].name, name) == 0)
			*ret_applied = i + 1;
	return result;
}

static int apply_steps(struct db_connection *connection, unsigned first, struct error *error)
{
	int result = db_begin(connection, error);
	for (unsigned i = first; i < schema_step_count && result == OK; i++) {
		result = db_run(connection, schema_steps[i].sql, error);
		struct db_query *query =
		    db_query(connection, "INSERT INTO settings(name, value) VALUES ('schema', $1) "
		                         "ON CONFLICT (name) DO UPDATE SET value = excluded.value");
		db_bind_string(query, schema_steps[i].name);
		if (result == OK)
			result = db_execute(query, NULL, error);
	}
	return result == OK ? db_commit(connection, error) : result;
}

static int check_schema(struct db *db, bool create, struct error *error)
{
	struct db_connection *connection = db_take_writer(db);
	unsigned applied;
	char name[64];
	int result = read_schema(connection, &applied, name, error);
	if (result == OK && applied == 0 && create && strcmp(name, "none") == 0)
		result = apply_steps(connection, 0, error);
	else if (result == OK && applied != schema_step_count)
		result = error_set(error, ERR_REFUSED, MSG_STORE_SCHEMA, name,
		                   schema_steps[schema_step_count - 1].name, NULL);
	db_give(connection);
	return result;
}

int store_migrate(const char *url, bool dry_run, struct buf *out, struct error *error)
{
	struct db *db;
	int result = db_open(url, false, &db, error);
	if (result != OK)
		return result;
	struct db_connection *connection = db_take_writer(db);
	unsigned applied;
	char name[64];
	result = read_schema(connection, &applied, name, error);
	if (result == OK && applied == 0 && strcmp(name, "none") != 0)
		result = error_set(error, ERR_REFUSED, MSG_STORE_SCHEMA, name,
		                   schema_steps[schema_step_count - 1].name, NULL);
	for (unsigned i = applied; i < schema_step_count && result == OK; i++)
		buf_printf(out, "%s\n", schema_steps[i].name);
	if (result == OK && !dry_run && applied < schema_step_count)
		result = apply_steps(connection, applied, error);
	db_give(connection);
	db_close(db);
	return result;
}

/* ---- opening ---- */

int store_open(const char *url, bool create, struct store **ret_store, struct error *error)
{
	struct store *store = calloc(1, sizeof *store);
	if (!store)
		return ERR_NO_MEMORY;
	arena_init(&store->batch_arena, BATCH_ARENA_MAX);
	int result = db_open(url, create, &store->db, error);
	if (result == OK)
		result = check_schema(store->db, create, error);
	if (result == OK) {
		struct db_connection *reader = db_take_reader(store->db);
		result = client_refs_open(reader, CLIENT_REFS_GATHERED, &store->client_refs, error);
		db_give(reader);
	}
	if (result != OK) {
		store_close(store);
		return result;
	}
	*ret_store = store;
	return OK;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	client_refs_close(store->client_refs);
	db_close(store->db);
	arena_free(&store->batch_arena);
	free(store);
}

struct db *store_db(struct store *store)
{
	return store->db;
}

int store_ready(struct store *store, struct error *error)
{
	if (db_is_poisoned(store->db))
		return error_cause(error, ERR_UNAVAILABLE, "an earlier sync of the store failed");
	struct db_connection *reader = db_take_reader(store->db);
	struct db_query *query = db_query(reader, "SELECT value FROM settings WHERE name = 'schema'");
	db_step(query);
	int result = db_end(query, error);
	db_give(reader);
	return result;
}

const char *store_promise(struct store *store)
{
	return "durable";
}

int store_get_secret(struct store *store, const char *name, struct sha256 *ret,
                     struct error *error)
{
	struct sha256 fresh;
	char text[2 * SHA256_SIZE + 1];
	random_bytes(fresh.bytes, SHA256_SIZE);
	hex_encode(fresh.bytes, SHA256_SIZE, text);
	struct db_connection *writer = db_take_writer(store->db);
	int result = db_begin(writer, error);
	struct db_query *query = db_query(
	    writer, "INSERT INTO settings(name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING");
	db_bind_string(query, name);
	db_bind_string(query, text);
	if (result == OK)
		result = db_execute(query, NULL, error);
	query = db_query(writer, "SELECT value FROM settings WHERE name = $1");
	db_bind_string(query, name);
	bool whole = db_step(query) && hex_decode(db_text(query, 0), ret->bytes, SHA256_SIZE);
	if (result == OK)
		result = db_end(query, error);
	if (result == OK && !whole)
		result = error_cause(error, ERR_CORRUPT, "the secret %s is not 64 hex digits", name);
	if (result == OK)
		result = db_commit(writer, error);
	db_give(writer);
	return result;
}
