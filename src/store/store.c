#include <assert.h>
#include <stdlib.h>

#include "base/digest.h"
#include "store/audit/audit_log.h"
#include "store/events/digest_index_internal.h"
#include "store/schema/store_schemas.h"
#include "store/shards/shard_work.h"
#include "store/store_internal.h"
#include "store/transaction.h"

void store_fresh_id(const char *prefix, char id[ID_SIZE])
{
	static const char digits[] = ID_DIGITS;
	uint8_t random[ID_OWN_SIZE];
	random_bytes(random, sizeof random);
	size_t size = strlen(prefix);
	assert(size + sizeof random < ID_SIZE);
	memcpy(id, prefix, size);
	for (size_t i = 0; i < sizeof random; i++)
		id[size++] = digits[random[i] & 31];
	id[size] = '\0';
}

int audit_write_list(struct db_connection *connection, struct act *act, const char *name,
                     const struct buf *lines, struct error *error)
{
	BUF_AUTO struct buf text;
	buf_init(&text, AUDIT_DOCUMENT_MAX);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_begin_array(&writer, name);
	for (const char *at = lines->data; at && *at;) {
		size_t size = strcspn(at, "\n");
		json_slice(&writer, NULL, slice_make(at, size));
		at += size + (at[size] == '\n');
	}
	json_end_array(&writer);
	json_end_object(&writer);
	int result = buf_check(&text);
	const char *kept = result ? NULL : arena_copy(act->arena, text.data, text.size);
	if (!result && !kept)
		result = ERR_NO_MEMORY;
	if (!result)
		result = json_parse(act->arena, slice_make(kept, text.size), NULL, &act->arguments, error);
	return result ? result : audit_write_alone(connection, act, error);
}

struct migration {
	struct act *act;
	const struct buf *steps; /* one per line */
};

static int record_migration(struct db_connection *connection, void *context, struct error *error)
{
	struct migration *migration = context;
	return audit_write_list(connection, migration->act, "steps", migration->steps, error);
}

int store_migrate(const struct db_options *options, bool dry_run, struct act *act, struct buf *out,
                  const struct schema_progress *progress, struct error *error)
{
	struct migration migration = {act, out};
	struct db *db;
	int result = db_open(options, &store_schemas, &db, error);
	if (result)
		return result;
	result =
		db_migrate(db, dry_run, out, progress, act ? record_migration : NULL, &migration, error);
	db_close(db);
	return result;
}

/* ---- opening ---- */

int store_check_alone(const struct db_options *options, struct error *error)
{
	struct db *db;
	if (db_url_path(options->url))
		return OK;
	int result = db_open(options, &store_schemas, &db, error);
	if (result)
		return result;
	result = db_check_alone(db, "certifications", error);
	db_close(db);
	return result;
}

int store_open(const struct db_options *options, struct store **ret_store, struct error *error)
{
	struct store *store = calloc(1, sizeof *store);
	if (!store)
		return ERR_NO_MEMORY;
	int result = db_open(options, &store_schemas, &store->db, error)
		?: db_check_schema(store->db, options->create, error)
		?: register_open(store, error)
		?: shard_work_open(store)
		?: digest_index_open(store);
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
	shard_work_close(store);
	digest_index_close(store);
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

bool store_has_page_backups(const struct store *store)
{
	return db_has_page_backups(store->db);
}

int store_backup_pages(struct store *store, const struct db_page_target *target,
                       struct db_pages *ret, struct error *error)
{
	return db_backup_pages(store->db, target, ret, error);
}

const char *store_schema_name(void)
{
	return store_schemas.sqlite.steps[store_schemas.sqlite.count - 1].name;
}

const char *store_step_kind(struct slice name)
{
	const struct schema *schema = &store_schemas.sqlite;
	bool rolling = false;
	for (unsigned i = 0; i < schema->count; i++)
		rolling = rolling || (schema->steps[i].rolling && slice_is(name, schema->steps[i].name));
	return rolling ? "rolling" : "stop";
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

int store_find_secret(struct store *store, const char *name, bool *ret_found, struct sha256 *ret,
                      struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query = db_query(connection, "SELECT value FROM settings WHERE name = $1");
	db_bind_string(query, name);
	*ret_found = db_step(query) && hex_decode(db_text(query, 0), ret->bytes, SHA256_SIZE);
	return end_read(connection, db_end(query, error));
}

int store_get_secret(struct store *store, const char *name, struct sha256 *ret, struct error *error)
{
	bool found = false;
	/* Reading first, so that a start does not wait for a commit that waits for its standby. */
	int found_result = store_find_secret(store, name, &found, ret, error);
	if (found_result || found)
		return found_result;
	struct sha256 fresh;
	char text[2 * SHA256_SIZE + 1];
	random_bytes(fresh.bytes, SHA256_SIZE);
	hex_encode(fresh.bytes, SHA256_SIZE, text);
	struct db_connection *writer = db_take_writer(store->db);
	int result = db_begin(writer, error);
	struct db_query *query = db_query(
		writer, "INSERT INTO settings(name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING");
	db_bind(query, name, text);
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

static int confirm(struct store *store, const int64_t *account, struct error *error)
{
	struct db_connection *writer = db_take_writer(store->db);
	int result = db_begin(writer, error);
	if (!result && account)
		db_bind_to_shard(writer, *account);
	if (!result)
		result =
			db_execute(db_query(writer, "UPDATE settings SET value = value WHERE name = 'schema'"),
		               NULL, error);
	if (!result)
		result = db_commit(writer, error);
	db_give(writer);
	return result;
}

int store_confirm(struct store *store, struct error *error)
{
	return confirm(store, NULL, error);
}

int store_confirm_account(struct store *store, int64_t account, struct error *error)
{
	return confirm(store, &account, error);
}

int store_get_installation(struct store *store, char ret[INSTALLATION_SIZE], struct error *error)
{
	struct sha256 identifier;
	int result = store_get_secret(store, "installation", &identifier, error);
	if (!result)
		hex_encode(identifier.bytes, SHA256_SIZE, ret);
	return result;
}
