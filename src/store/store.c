#include <stdio.h>
#include <stdlib.h>

#include "base/digest.h"
#include "store/internal.h"
#include "store/schema.h"

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
	const struct schema *schema = db_schema(db_of(connection));
	bool present = false;
	int result = db_has_table(connection, "settings", &present, error);
	*ret_applied = 0;
	snprintf(name, 64, "none");
	if (result != OK || !present)
		return result;
	struct db_query *query =
	    db_query(connection, "SELECT value FROM settings WHERE name = 'schema'");
	if (db_step(query)) {
		struct slice value = db_text(query, 0);
		snprintf(name, 64, "%.*s", (int)value.size, value.data);
	}
	result = db_end(query, error);
	for (unsigned i = 0; i < schema->count && result == OK; i++)
		if (strcmp(schema->steps[i].name, name) == 0)
			*ret_applied = i + 1;
	return result;
}

/* `applied` 0 with a name: a step that this program does not have. */
static int wrong_schema(const struct schema *schema, unsigned applied, const char *name,
                        struct error *error)
{
	bool newer = applied == 0 && strcmp(name, "none") != 0;
	return error_set(error, ERR_REFUSED, newer ? MSG_STORE_SCHEMA_NEWER : MSG_STORE_SCHEMA, name,
	                 schema->steps[schema->count - 1].name, NULL);
}

static int apply_step(struct db_connection *connection, const struct schema_step *step,
                      struct error *error)
{
	int result = db_run(connection, step->sql, error);
	if (result != OK)
		return result;
	struct db_query *query =
	    db_query(connection, "INSERT INTO settings(name, value) VALUES ('schema', $1) "
	                         "ON CONFLICT (name) DO UPDATE SET value = excluded.value");
	db_bind_string(query, step->name);
	return db_execute(query, NULL, error);
}

/* Brings the schema to its last step, from `none` only when `create`. One transaction of the
 * writer, which excludes other nodes' writers: whoever comes second finds nothing left to do.
 * The names of the steps go into `out`, which may be NULL. */
static int move_schema(struct db *db, bool create, bool dry_run, struct buf *out,
                       struct error *error)
{
	const struct schema *schema = db_schema(db);
	struct db_connection *connection = db_take_writer(db);
	unsigned applied = 0;
	char name[64];
	int result = db_begin(connection, error);
	if (result == OK)
		result = read_schema(connection, &applied, name, error);
	if (result == OK && applied == 0 && (!create || strcmp(name, "none") != 0))
		result = wrong_schema(schema, applied, name, error);
	for (unsigned i = applied; i < schema->count && result == OK; i++) {
		if (out)
			buf_printf(out, "%s\n", schema->steps[i].name);
		if (!dry_run)
			result = apply_step(connection, &schema->steps[i], error);
	}
	if (result == OK && !dry_run && applied < schema->count)
		result = db_commit(connection, error);
	db_give(connection);
	return result;
}

static int check_schema(struct db *db, bool create, struct error *error)
{
	struct db_connection *connection = db_take_reader(db);
	unsigned applied = 0;
	char name[64];
	int result = read_schema(connection, &applied, name, error);
	db_give(connection);
	if (result != OK || applied == db_schema(db)->count)
		return result;
	if (create && applied == 0 && strcmp(name, "none") == 0)
		return move_schema(db, true, false, NULL, error);
	return wrong_schema(db_schema(db), applied, name, error);
}

int store_migrate(const struct db_options *options, bool dry_run, struct buf *out,
                  struct error *error)
{
	struct db *db;
	int result = db_open(options, &db, error);
	if (result != OK)
		return result;
	result = move_schema(db, false, dry_run, out, error);
	db_close(db);
	return result;
}

/* ---- opening ---- */

int store_open(const struct db_options *options, struct store **ret_store, struct error *error)
{
	struct store *store = calloc(1, sizeof *store);
	if (!store)
		return ERR_NO_MEMORY;
	int result = db_open(options, &store->db, error);
	if (result == OK)
		result = check_schema(store->db, options->create, error);
	if (result == OK)
		result = register_open(store, error);
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
	register_close(store);
	db_close(store->db);
	free(store);
}

struct db *store_db(struct store *store)
{
	return store->db;
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

int store_confirm(struct store *store, struct error *error)
{
	struct db_connection *writer = db_take_writer(store->db);
	int result = db_begin(writer, error);
	if (result == OK)
		result = db_execute(
		    db_query(writer, "UPDATE settings SET value = value WHERE name = 'schema'"), NULL, error);
	if (result == OK)
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
