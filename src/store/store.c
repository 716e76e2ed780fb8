#include <stdlib.h>

#include "base/digest.h"
#include "store/internal.h"
#include "store/schema.h"

void store_fresh_id(const char *prefix, char id[ID_SIZE])
{
	static const char digits[] = ID_DIGITS;
	uint8_t random[16];
	random_bytes(random, sizeof random);
	size_t size = strlen(prefix);
	memcpy(id, prefix, size);
	for (size_t i = 0; i < sizeof random; i++)
		id[size++] = digits[random[i] & 31];
	id[size] = '\0';
}

int store_migrate(const struct db_options *options, bool dry_run, struct buf *out,
                  struct error *error)
{
	struct db *db;
	int result = db_open(options, &store_schemas, &db, error);
	if (result)
		return result;
	result = db_migrate(db, dry_run, out, error);
	db_close(db);
	return result;
}

/* ---- opening ---- */

int store_open(const struct db_options *options, struct store **ret_store, struct error *error)
{
	struct store *store = calloc(1, sizeof *store);
	if (!store)
		return ERR_NO_MEMORY;
	int result = db_open(options, &store_schemas, &store->db, error);
	if (!result)
		result = db_check_schema(store->db, options->create, error);
	if (!result)
		result = register_open(store, error);
	if (result) {
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
	register_close(store);
	db_close(store->db);
	free(store);
}

bool store_is_poisoned(const struct store *store)
{
	return db_is_poisoned(store->db);
}

int store_maintain(struct store *store, struct error *error)
{
	return db_maintain(store->db, error);
}

int store_backup(struct store *store, const char *path, struct error *error)
{
	return db_backup(store->db, path, error);
}

const char *store_backup_name(const struct store *store)
{
	return db_backup_name(store->db);
}

int store_ready(struct store *store, struct error *error)
{
	return db_ready(store->db, error);
}

int store_await_writes(struct store *store, struct error *error)
{
	return db_await_writes(store->db, error);
}

const char *store_promise(struct store *store)
{
	return db_promise(store->db);
}

int64_t store_now_us(const struct store *store)
{
	return db_now_us(store->db);
}

bool store_is_shared(const struct store *store)
{
	return db_is_shared(store->db);
}

int64_t store_latest_now_us(const struct store *store)
{
	return db_latest_now_us(store->db);
}

unsigned store_sequencer_count(struct store *store)
{
	return db_registrar_count(store->db);
}

int store_get_secret(struct store *store, const char *name, struct sha256 *ret, struct error *error)
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
	if (!result)
		result = db_execute(query, NULL, error);
	query = db_query(writer, "SELECT value FROM settings WHERE name = $1");
	db_bind_string(query, name);
	bool whole = db_step(query) && hex_decode(db_text(query, 0), ret->bytes, SHA256_SIZE);
	if (!result)
		result = db_end(query, error);
	if (!result && !whole)
		result = error_cause(error, ERR_CORRUPT, "the secret %s is not 64 hex digits", name);
	if (!result)
		result = db_commit(writer, error);
	db_give(writer);
	return result;
}

int store_confirm(struct store *store, struct error *error)
{
	struct db_connection *writer = db_take_writer(store->db);
	int result = db_begin(writer, error);
	if (!result)
		result =
			db_execute(db_query(writer, "UPDATE settings SET value = value WHERE name = 'schema'"),
		               NULL, error);
	if (!result)
		result = db_commit(writer, error);
	db_give(writer);
	return result;
}

int store_get_installation(struct store *store, char ret[INSTALLATION_SIZE], struct error *error)
{
	struct sha256 identifier;
	int result = store_get_secret(store, "installation", &identifier, error);
	if (!result)
		hex_encode(identifier.bytes, SHA256_SIZE, ret);
	return result;
}
