#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "db/db_driver.h"

#define ARRAY_SIZE_MAX ((size_t)256 << 20)

static const struct db_driver *driver_of(const struct db_query *query)
{
	return query->connection->db->driver;
}

static const struct db_driver *driver_by_url(const char *url)
{
	if (strncmp(url, "sqlite:", 7) == 0)
		return &sqlite_driver;
	if (strncmp(url, "postgresql://", 13) == 0 || strncmp(url, "postgres://", 11) == 0)
		return &postgres_driver;
	return NULL;
}

/* ---- addresses for display ---- */

struct shown {
	char *text;
	size_t size, used;
};

static void show(struct shown *shown, const char *from, size_t size)
{
	assert(shown->used < shown->size);
	size_t room = shown->size - 1 - shown->used;
	size = size < room ? size : room;
	memcpy(shown->text + shown->used, from, size);
	shown->used += size;
	shown->text[shown->used] = '\0';
}

/* Returns the '@' after user and password, or NULL. Also finds passwords that are not escaped: one
 * with a slash ends at an '@' that is not in a parameter value. */
static const char *end_of_credentials(const char *authority)
{
	const char *found = memrchr(authority, '@', strcspn(authority, "/"));
	if (found)
		return found;
	const char *word = authority;
	for (const char *at = authority; *at; at++) {
		if (*at == '?' || *at == '&')
			word = at + 1;
		else if (*at == '@' && !memchr(word, '=', (size_t)(at - word)))
			found = at;
	}
	return found;
}

/* Copies up to the '?' of the parameters. */
static const char *show_server(struct shown *shown, const char *url)
{
	const char *authority = strstr(url, "://");
	authority = authority ? authority + 3 : url;
	const char *end = end_of_credentials(authority);
	const char *colon = end ? memchr(authority, ':', (size_t)(end - authority)) : NULL;
	const char *rest = url;
	if (colon) {
		show(shown, url, (size_t)(colon - url));
		rest = end;
	}
	size_t size = strcspn(rest, "?");
	show(shown, rest, size);
	return rest + size;
}

/* Treats an escaped name as secret, without decoding it. */
static bool may_be_secret(const char *name, size_t size)
{
	static const char word[] = "password";
	return memchr(name, '%', size) || memmem(name, size, word, sizeof word - 1);
}

/* A password may be in postgresql://user:PASSWORD@host or in the parameter password=PASSWORD. */
void db_shown_url(const char *url, char *text, size_t size)
{
	assert(size > 0);
	struct shown shown = {text, size, 0};
	*text = '\0';
	if (driver_by_url(url) == &sqlite_driver) {
		show(&shown, url, strlen(url));
		return;
	}
	const char *pairs = strstr(url, "://") ? NULL : strstr(url, "password");
	if (pairs) { /* keyword=value pairs are not a valid address here */
		show(&shown, url, (size_t)(pairs - url));
		return;
	}
	for (const char *at = show_server(&shown, url); *at;) {
		size_t length = 1 + strcspn(at + 1, "&");
		size_t name = strcspn(at, "=");
		bool secret = name < length && may_be_secret(at, name);
		show(&shown, at, secret ? name + 1 : length);
		at += length;
	}
}

int db_check_url(const char *url, struct error *error)
{
	const struct db_driver *driver = driver_by_url(url);
	int result = driver ? driver->check_url(url, error) : ERR_VALIDATION;
	if (result != ERR_VALIDATION)
		return result;
	char shown[256];
	db_shown_url(url, shown, sizeof shown);
	return error_set(error, result, MSG_STORE_URL, shown, NULL);
}

/* Returns what is wrong with an address that the driver's library accepts, or refuses without a
 * reason that may be shown: its texts can contain parts of the password. */
static const char *find_address_mistake(const char *url)
{
	static const char escape[] =
		"must have the password escaped: write @ as %40, / as %2F, : as %3A, # as %23, ? as %3F "
		"and % as %25";
	const struct db_driver *driver = driver_by_url(url);
	if (!driver || !driver->shared)
		return NULL;
	const char *authority = strstr(url, "://") + 3;
	size_t size = strcspn(authority, "/?");
	const char *at = memchr(authority, '@', size);
	const char *path = authority + size;
	if (at && memchr(at + 1, '@', size - (size_t)(at + 1 - authority)))
		return escape;
	if (memchr(path, '@', strcspn(path, "?")) && *path)
		return escape;
	for (const char *sign = strchr(url, '%'); sign; sign = strchr(sign + 1, '%'))
		if (!isxdigit((unsigned char)sign[1]) || !isxdigit((unsigned char)sign[2]))
			return escape;
	return strpbrk(url, " \t") ? "must not contain spaces" : NULL;
}

void db_check_settings(const struct db_options *options, const struct setting_check *check)
{
	struct error error = {0};
	int result = *options->url ? db_check_url(options->url, &error) : OK;
	const char *mistake = find_address_mistake(options->url);
	bool unknown = strncmp(error.cause, "invalid URI query parameter", 27) == 0;
	error.cause[strcspn(error.cause, "\n")] = '\0';
	if (mistake || unknown)
		setting_fault(check, "store.url", mistake ? mistake : error.cause);
	else if (result)
		setting_fault(check, "store.url",
		              result == ERR_VALIDATION ? error_message(&error, LANGUAGE_ENGLISH)
		                                       : error_reason(&error, result));
	setting_check_range(check, "store.require_replicas", options->require_replicas, 0, 100);
	setting_check_range(check, "store.commit_timeout", options->commit_timeout_us, 100000,
	                    60000000);
}

const char *db_url_path(const char *url)
{
	const struct db_driver *driver = driver_by_url(url);
	return driver && !driver->shared ? strchr(url, ':') + 1 : NULL;
}

const char *db_url_engine(const char *url)
{
	const struct db_driver *driver = driver_by_url(url);
	return driver ? driver->engine : NULL;
}

int db_open(const struct db_options *options, const struct db_schemas *schemas, struct db **ret_db,
            struct error *error)
{
	assert(ret_db);
	int result = db_check_url(options->url, error);
	if (result)
		return result;
	const struct db_driver *driver = driver_by_url(options->url);
	if (driver == &postgres_driver && options->sharded)
		driver = &citus_driver;
	result = driver->open(options, ret_db, error);
	if (!result)
		db_shown_url(options->url, (*ret_db)->shown_url, sizeof(*ret_db)->shown_url);
	if (!result && schemas) {
		(*ret_db)->schema = driver == &sqlite_driver ? &schemas->sqlite : &schemas->postgres;
		(*ret_db)->fill = schemas->fill;
		(*ret_db)->arrivals = schemas->arrivals;
		(*ret_db)->tables = schemas->tables;
	}
	return result;
}

void db_close(struct db *db)
{
	if (db)
		db->driver->close(db);
}

bool db_is_shared(const struct db *db)
{
	return db->driver->shared;
}

bool db_is_sharded(const struct db *db)
{
	return db->sharded;
}

unsigned db_registrar_count(const struct db *db)
{
	return db->driver->registrar_count(db);
}

const char *db_promise(const struct db *db)
{
	return db->driver->promise(db);
}

int64_t db_now_us(const struct db *db)
{
	return db->driver->now_us ? db->driver->now_us(db) : clock_now_us();
}

int64_t db_latest_now_us(const struct db *db)
{
	return db->driver->latest_now_us ? db->driver->latest_now_us(db) : clock_now_us();
}

int db_ready(struct db *db, struct error *error)
{
	thread_assert_may_block();
	if (db_is_poisoned(db))
		return error_cause(error, ERR_UNAVAILABLE, "an earlier sync of the store failed");
	return db->driver->ready(db, error);
}

int db_count_replicas(struct db *db, struct db_replicas *ret, struct error *error)
{
	thread_assert_may_block();
	struct db_replicas found = {0};
	int result = db->driver->count_replicas ? db->driver->count_replicas(db, &found, error) : OK;
	if (!result)
		*ret = found;
	return result;
}

int db_check_shard_servers(struct db *db, struct db_shard_server *items, size_t max,
                           size_t *ret_count, struct error *error)
{
	thread_assert_may_block();
	*ret_count = 0;
	return db->driver->ask_shard_servers
	           ? db->driver->ask_shard_servers(db, items, max, ret_count, error)
	           : OK;
}

int db_list_undistributed(struct db *db, struct buf *out, struct error *error)
{
	return db->driver->list_undistributed
	           ? db->driver->list_undistributed(db, out, error)
	           : error_set(error, ERR_REFUSED, MSG_STORE_DISTRIBUTES_NOT, NULL);
}

int db_distribute(struct db *db, struct buf *out, const struct schema_progress *progress,
                  struct error *error)
{
	return db->driver->distribute ? db->driver->distribute(db, out, progress, error)
	                              : error_set(error, ERR_REFUSED, MSG_STORE_DISTRIBUTES_NOT, NULL);
}

/* Also where the setting does not say that tables are distributed, but the server does. */
int db_check_servers(struct db *db, bool has_schema, db_finding_function *found, void *context,
                     struct error *error)
{
	return db->driver->shared ? citus_driver.check_servers(db, has_schema, found, context, error)
	                          : OK;
}

int db_query_shards(struct db *db, const struct db_shard_part *parts, size_t count,
                    db_found_function *found, void *context, struct db_shard_query_result *ret,
                    struct error *error)
{
	assert(count <= DB_PARTS_MAX && found && ret);
	thread_assert_may_block();
	*ret = (struct db_shard_query_result){.all = true};
	return db->driver->query_shards
	           ? db->driver->query_shards(db, parts, count, found, context, ret, error)
	           : OK;
}

bool db_has_unreachable(const struct db *db)
{
	return db->driver->has_unreachable && db->driver->has_unreachable(db);
}

bool db_is_unreachable(struct db_connection *connection, int64_t account)
{
	thread_assert_may_block();
	return db_has_unreachable(connection->db) &&
	       connection->db->driver->is_unreachable(connection, account);
}

int db_check_reachable(struct db_connection *connection, int64_t account, struct error *error)
{
	if (!db_is_unreachable(connection, account))
		return OK;
	struct error away = {0};
	(void)error_cause(&away, ERR_UNAVAILABLE, "the server with the account's rows is unreachable");
	(void)db_fail(connection, &away);
	return db_report(connection, error);
}

int db_fail(struct db_connection *connection, const struct error *error)
{
	assert(error->code < 0);
	if (!connection->failure)
		connection->error = *error;
	if (!connection->failure)
		connection->failure = error->code;
	return connection->failure;
}

int db_await_writes(struct db *db, struct error *error)
{
	int result = db_ready(db, error);
	return !result && db->driver->await_writes ? db->driver->await_writes(db, error) : result;
}

bool db_is_poisoned(const struct db *db)
{
	return atomic_load(&db->poisoned);
}

/* ---- connections and transactions ---- */

int db_describe(struct db_connection *reader, struct db_facts *ret, struct error *error)
{
	assert(reader->is_taken && ret);
	const struct db_driver *driver = reader->db->driver;
	if (!driver->describe)
		return error_cause(error, ERR_INTERNAL, "%s is no server", driver->engine);
	return driver->describe(reader, ret, error);
}

/* A connection that two threads had would write what one of them did in the other's transaction. */
static struct db_connection *take(struct db_connection *connection)
{
	assert(!connection->is_taken && !connection->kept);
	connection->is_taken = true;
	return connection;
}

struct db_connection *db_take_writer(struct db *db)
{
	thread_assert_may_block();
	return take(db->driver->take_writer(db));
}

struct db_connection *db_take_local(struct db *db)
{
	thread_assert_may_block();
	return take(db->driver->take_local ? db->driver->take_local(db) : db->driver->take_writer(db));
}

struct db_connection *db_take_registrar(struct db *db, unsigned number, int64_t account)
{
	assert(number < db_registrar_count(db));
	thread_assert_may_block();
	return take(db->driver->take_registrar(db, number, account));
}

struct db_connection *db_take_reader(struct db *db)
{
	thread_assert_may_block();
	return take(db->driver->take_reader(db));
}

struct db_connection *db_side_connection(struct db_connection *connection)
{
	assert(connection->is_taken);
	const struct db_driver *driver = connection->db->driver;
	return driver->side_connection ? driver->side_connection(connection) : connection;
}

void db_limit_wait(struct db_connection *reader)
{
	assert(reader->is_taken);
	if (reader->db->driver->limit_wait)
		reader->db->driver->limit_wait(reader);
}

void db_give(struct db_connection *connection)
{
	if (!connection)
		return;
	assert(connection->is_taken);
	connection->db->driver->rollback(connection);
	connection->failure = OK;
	connection->kept = NULL;
	connection->is_taken = false;
	connection->db->driver->give(connection);
}

void db_attach(struct db_connection *connection, void *kept)
{
	assert(connection->is_taken); /* db_give detaches it */
	connection->kept = kept;
}

void *db_attached(const struct db_connection *connection)
{
	return connection->kept;
}

struct db *db_of(struct db_connection *connection)
{
	return connection->db;
}

int db_begin(struct db_connection *connection, struct error *error)
{
	thread_assert_may_block();
	assert(connection->is_taken);
	connection->failure = OK;
	connection->may_retry = false;
	error_clear(&connection->error);
	return connection->db->driver->begin(connection, error);
}

void db_bind_to_shard(struct db_connection *connection, int64_t account)
{
	assert(connection->is_taken);
	if (connection->db->driver->restrict_to_shard)
		connection->db->driver->restrict_to_shard(connection, account);
}

int db_commit(struct db_connection *connection, struct error *error)
{
	thread_assert_may_block();
	assert(connection->is_taken);
	return connection->db->driver->commit(connection, error);
}

int db_written(struct db_connection *connection, struct db_written *ret, struct error *error)
{
	assert(connection->is_taken && connection->db->driver->written);
	return connection->db->driver->written(connection, ret, error);
}

int db_failure(const struct db_connection *connection)
{
	return connection->failure;
}

int db_get_failure(const struct db_connection *connection, struct error *error)
{
	return db_report(connection, error);
}

bool db_may_retry(const struct db_connection *connection)
{
	return connection->may_retry;
}

/* ---- queries ---- */

int db_run(struct db_connection *connection, const char *sql, struct error *error)
{
	assert(connection->is_taken);
	thread_assert_may_block();
	return connection->db->driver->run(connection, sql, error);
}

int db_has_table(struct db_connection *connection, const char *name, bool *ret_present,
                 struct error *error)
{
	assert(connection->is_taken && ret_present);
	struct db_query *query = db_query(connection, connection->db->driver->table_query);
	db_bind_string(query, name);
	*ret_present = db_step(query) && db_integer(query, 0) > 0;
	return db_end(query, error);
}

struct db_query *db_query(struct db_connection *connection, const char *literal_sql)
{
	return connection->db->driver->query(connection, literal_sql, false);
}

struct db_query *db_query_long(struct db_connection *connection, const char *literal_sql)
{
	return connection->db->driver->query(connection, literal_sql, true);
}

void db_bind_integer(struct db_query *query, int64_t value)
{
	driver_of(query)->bind_integer(query, value);
}

void db_bind_text(struct db_query *query, struct slice text)
{
	driver_of(query)->bind_text(query, text);
}

void db_bind_string(struct db_query *query, const char *text)
{
	if (text)
		db_bind_text(query, slice_of(text));
	else
		db_bind_null(query);
}

void db_bind_blob(struct db_query *query, const void *data, size_t size)
{
	if (data)
		driver_of(query)->bind_blob(query, data, size);
	else
		db_bind_null(query);
}

void db_bind_sha256(struct db_query *query, const struct sha256 *hash)
{
	db_bind_blob(query, hash, sizeof *hash);
}

void db_bind_bytes(struct db_query *query, struct db_bytes bytes)
{
	db_bind_blob(query, bytes.bytes.data, bytes.bytes.size);
}

void db_bind_nullable(struct db_query *query, struct db_nullable value)
{
	if (value.is_null)
		db_bind_null(query);
	else
		db_bind_integer(query, value.value);
}

void db_bind_null(struct db_query *query)
{
	driver_of(query)->bind_null(query);
}

void db_send(struct db_query *query)
{
	if (driver_of(query)->send)
		driver_of(query)->send(query);
}

bool db_step(struct db_query *query)
{
	thread_assert_may_block();
	return driver_of(query)->step(query);
}

int db_execute(struct db_query *query, int64_t *ret_changes, struct error *error)
{
	return driver_of(query)->execute(query, ret_changes, error);
}

int db_end(struct db_query *query, struct error *error)
{
	return driver_of(query)->end(query, error);
}

void db_release(struct db_query *query)
{
	(void)!db_end(query, NULL);
}

int64_t db_integer(struct db_query *query, int column)
{
	return driver_of(query)->integer(query, column);
}

bool db_is_null(struct db_query *query, int column)
{
	return driver_of(query)->is_null(query, column);
}

struct slice db_text(struct db_query *query, int column)
{
	return driver_of(query)->text(query, column);
}

struct slice db_blob(struct db_query *query, int column)
{
	return driver_of(query)->blob(query, column);
}

/* ---- arrays ---- */

void db_array_init(struct db_array *array, enum db_type type)
{
	*array = (struct db_array){.type = type};
	buf_init(&array->wire, ARRAY_SIZE_MAX);
	db_array_clear(array);
}

void db_array_clear(struct db_array *array)
{
	static const char header[DB_ARRAY_HEADER_SIZE];
	buf_clear(&array->wire);
	buf_add(&array->wire, header, sizeof header);
	array->count = 0;
	array->has_null = false;
}

void db_array_free(struct db_array *array)
{
	buf_free(&array->wire);
}

void db_array_add_bytes(struct db_array *array, const void *data, size_t size)
{
	if (!data) {
		db_array_add_null(array);
		return;
	}
	assert(size <= INT32_MAX);
	uint8_t length[4] = {(uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8),
	                     (uint8_t)size};
	buf_add(&array->wire, length, sizeof length);
	buf_add(&array->wire, data, size);
	array->count++;
}

void db_array_add_integer(struct db_array *array, int64_t value)
{
	uint64_t wire = __builtin_bswap64((uint64_t)value);
	db_array_add_bytes(array, &wire, sizeof wire);
}

void db_array_add_null(struct db_array *array)
{
	buf_add(&array->wire, "\xff\xff\xff\xff", 4);
	array->has_null = true;
	array->count++;
}

void db_bind_array(struct db_query *query, struct db_array *array)
{
	assert(driver_of(query)->bind_array);
	driver_of(query)->bind_array(query, array);
}

/* ---- housekeeping ---- */

int db_maintain(struct db *db, struct error *error)
{
	return db->driver->maintain ? db->driver->maintain(db, error) : OK;
}

const char *db_backup_name(const struct db *db)
{
	return db->driver->backup_name;
}

const char *db_backup_name_of(const char *url)
{
	assert(driver_by_url(url));
	return driver_by_url(url)->backup_name;
}

int db_backup(struct db *db, const char *path, struct error *error)
{
	return db->driver->backup(db, path, error);
}

int db_check_vacant(const struct db_options *options, struct error *error)
{
	int result = db_check_url(options->url, error);
	return result ? result : driver_by_url(options->url)->vacant(options, error);
}

int db_restore(const struct db_options *options, const char *path, const struct db_mark *mark,
               struct error *error)
{
	int result = db_check_vacant(options, error);
	return result ? result : driver_by_url(options->url)->restore(options, path, mark, error);
}

bool db_has_page_backups(const struct db *db)
{
	return db->driver->backup_pages;
}

int db_backup_pages(struct db *db, const struct db_page_target *target, struct db_pages *ret,
                    struct error *error)
{
	assert(db->driver->backup_pages);
	return db->driver->backup_pages(db, target, ret, error);
}

static int refuse_pages(const struct db_driver *driver, struct error *error)
{
	return driver->restore_page_chain
	           ? OK
	           : error_cause(error, ERR_REFUSED, "%s has no backups by pages", driver->engine);
}

int db_check_page_chain(const char *url, const struct db_page_chain *chain, struct error *error)
{
	const struct db_driver *driver = driver_by_url(url);
	int result = refuse_pages(driver, error);
	return result ? result : driver->check_page_chain(chain, error);
}

int db_restore_page_chain(const struct db_options *options, const struct db_page_chain *chain,
                          const struct db_mark *mark, struct error *error)
{
	int result = db_check_vacant(options, error);
	if (!result)
		result = refuse_pages(driver_by_url(options->url), error);
	return result ? result
	              : driver_by_url(options->url)->restore_page_chain(options, chain, mark, error);
}
