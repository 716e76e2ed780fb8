/* Direct connections of registrars to shard servers.
 *
 * If tables are distributed, a registrar connects directly to the server with the account's rows
 * and uses the shards themselves. So no distributed plan is needed, no other server takes part in
 * the commit, and its promise is that of one server, as without distribution.
 *
 * The coordinator gives the location of the account's rows in each transaction, under a lock (the
 * fence) that is held there until the commit is answered. An operation that moves the rows, or that
 * promotes another server and registers it with the coordinator, waits for the lock. Nothing is
 * acknowledged unless the lock was held to the end. So a server that was replaced without its
 * knowledge acknowledges nothing more. Moves also end on the shard servers: there the transaction
 * takes the same lock, and continues only if the rows are still there.
 *
 * The state here belongs to one registrar, and so to one thread. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "db/citus/internal.h"

#define GROUPS_MAX 1024
#define UNDISTRIBUTED_LIFE_US US_PER_SECOND

struct citus_routes {
	bool distributed;         /* result of the last check */
	int64_t undistributed_us; /* time when tables were found not distributed; 0: never */
	struct citus_shard_group *groups[GROUPS_MAX];
	size_t group_count;
	struct pg_connection *servers[DB_SHARD_SERVERS_MAX];
	size_t server_count;
};

void citus_free_routes(struct citus_routes *routes)
{
	if (!routes)
		return;
	for (size_t i = 0; i < routes->group_count; i++)
		free(routes->groups[i]);
	for (size_t i = 0; i < routes->server_count; i++)
		pg_free_connection(routes->servers[i]);
	free(routes);
}

/* ---- location of an account's rows ---- */

/* Moving or splitting the shard, or registering another server for it, waits for this lock. */
static const char fence_query[] =
	"SELECT lock_shard_metadata(5, ARRAY[" CITUS_SHARD_OF_ACCOUNT "])";
static const char place_query[] =
	"SELECT p.shardid, n.nodename, n.nodeport::bigint FROM " CITUS_PLACEMENTS
	" AND n.isactive WHERE p.shardid = " CITUS_SHARD_OF_ACCOUNT;
static const char group_query[] =
	"SELECT c.relname::text, s.shardid, n.nodename, n.nodeport::bigint FROM pg_catalog.pg_dist_shard a"
	" JOIN pg_catalog.pg_dist_partition pa ON pa.logicalrelid = a.logicalrelid"
	" JOIN pg_catalog.pg_dist_partition ps ON ps.colocationid = pa.colocationid"
	" JOIN pg_catalog.pg_dist_shard s ON s.logicalrelid = ps.logicalrelid"
	" AND s.shardminvalue = a.shardminvalue"
	" JOIN pg_catalog.pg_class c ON c.oid = s.logicalrelid"
	" JOIN (" CITUS_PLACEMENTS ") ON p.shardid = s.shardid"
	" WHERE a.shardid = $1";

static int find_distributed(struct citus_routes *routes, struct pg_connection *coordinator,
                            struct error *error)
{
	if (routes->distributed ||
	    (routes->undistributed_us &&
	     clock_monotonic_us() - routes->undistributed_us < UNDISTRIBUTED_LIFE_US))
		return OK;
	bool offered, distributed;
	int result = citus_find_distributed(&coordinator->base, &offered, &distributed, error);
	routes->distributed = !result && distributed;
	routes->undistributed_us = !result && !distributed ? clock_monotonic_us() : 0;
	return result;
}

/* NULL: no memory, or more servers seen than there is room for. */
static struct pg_connection *server_at(struct citus_routes *routes, struct pg_db *db,
                                       struct slice host, int64_t port)
{
	char name[sizeof routes->servers[0]->host], number[sizeof routes->servers[0]->port];
	snprintf(name, sizeof name, "%.*s", (int)host.size, host.data);
	snprintf(number, sizeof number, "%u", (unsigned)(uint16_t)port);
	for (size_t i = 0; i < routes->server_count; i++)
		if (strcmp(routes->servers[i]->host, name) == 0 &&
		    strcmp(routes->servers[i]->port, number) == 0)
			return routes->servers[i];
	if (routes->server_count == DB_SHARD_SERVERS_MAX || host.size >= sizeof name)
		return NULL;
	struct pg_connection *server = pg_make_connection(db, PG_SHARD);
	if (!server)
		return NULL;
	snprintf(server->host, sizeof server->host, "%s", name);
	snprintf(server->port, sizeof server->port, "%s", number);
	return routes->servers[routes->server_count++] = server;
}

static int add_row(struct citus_routes *routes, struct pg_db *db, struct db_query *query,
                   struct citus_shard_group *group)
{
	struct slice table = pg_text(query, 0);
	struct pg_connection *server = server_at(routes, db, pg_text(query, 2), pg_integer(query, 3));
	if (!server || group->count == TABLES_MAX || table.size >= sizeof group->tables->table)
		return ERR_NO_MEMORY;
	if (group->connection && group->connection != server)
		return ERR_UNAVAILABLE; /* the shard is being moved */
	group->connection = server;
	assert(group->count < TABLES_MAX);
	struct citus_table_shard *table_shard = &group->tables[group->count++];
	snprintf(table_shard->table, sizeof table_shard->table, "%.*s", (int)table.size, table.data);
	table_shard->shard = pg_integer(query, 1);
	return OK;
}

static int read_group(struct citus_routes *routes, struct pg_connection *coordinator,
                      struct citus_shard_group *group, struct error *error)
{
	struct db_query *query = pg_make_query(&coordinator->base, group_query, false);
	pg_bind_integer(query, group->shard);
	group->count = 0;
	group->connection = NULL;
	int result = OK;
	while (!result && pg_step(query))
		result = add_row(routes, pg_db(coordinator->base.db), query, group);
	int ended = pg_end(query, error);
	if (!ended && !result && group->count == 0)
		result = ERR_UNAVAILABLE;
	group->outdated = ended || result;
	return ended    ? ended
	       : result ? error_cause(error, result,
	                              "postgresql: the location of the account's rows is unknown")
	                : OK;
}

static struct citus_shard_group *group_of(struct citus_routes *routes, int64_t shard)
{
	for (size_t i = 0; i < routes->group_count; i++)
		if (routes->groups[i]->shard == shard)
			return routes->groups[i];
	struct citus_shard_group *group =
		routes->group_count < GROUPS_MAX ? calloc(1, sizeof *group) : NULL;
	if (!group)
		return NULL;
	group->shard = shard;
	group->outdated = true;
	return routes->groups[routes->group_count++] = group;
}

/* Locks the placement of the account's rows, as the coordinator knows it, until citus_end_fence. */
static int begin_fence(struct citus_routes *routes, struct pg_connection *coordinator,
                       int64_t account, struct citus_shard_group **ret_group, struct error *error)
{
	int result = pg_connect(coordinator, error);
	if (result)
		return result;
	coordinator->in_transaction = true;
	pg_send_text(coordinator, NULL, "BEGIN");
	pg_send_text(coordinator, pg_note_latest_clock,
	             pg_db(coordinator->base.db)->transaction_settings[coordinator->use]);
	pg_send_number(coordinator, NULL, fence_query, account);
	struct db_query *query = pg_make_query(&coordinator->base, place_query, false);
	pg_bind_integer(query, account);
	bool found = pg_step(query);
	int64_t shard = found ? pg_integer(query, 0) : 0;
	struct pg_connection *server = found ? server_at(routes, pg_db(coordinator->base.db),
	                                                 pg_text(query, 1), pg_integer(query, 2))
	                                     : NULL;
	result = pg_end(query, error);
	if (result)
		return result;
	struct citus_shard_group *group = server ? group_of(routes, shard) : NULL;
	if (!group)
		return error_cause(error, ERR_UNAVAILABLE,
		                   "postgresql: the location of the account's rows is unknown");
	*ret_group = group;
	if (!group->outdated && group->connection == server)
		return OK;
	return read_group(routes, coordinator, group, error);
}

bool citus_end_fence(struct pg_connection *connection)
{
	struct pg_connection *coordinator = citus_connection(connection)->coordinator;
	assert(connection->use == PG_SHARD && coordinator);
	bool held = coordinator->in_transaction && coordinator->pg && !coordinator->base.failure;
	if (coordinator->in_transaction)
		pg_roll_back(coordinator);
	return held && coordinator->pg;
}

int citus_try_server(struct db *base, const char *name, struct error *error)
{
	const char *port = strrchr(name, ':');
	struct pg_connection *server = port ? pg_make_connection(pg_db(base), PG_SHARD) : NULL;
	if (!server)
		return ERR_NO_MEMORY;
	snprintf(server->host, sizeof server->host, "%.*s", (int)(port - name), name);
	snprintf(server->port, sizeof server->port, "%s", port + 1);
	int result = pg_connect(server, error);
	pg_free_connection(server);
	return result;
}

static bool is_unreachable(const struct pg_connection *server)
{
	char name[sizeof server->host + sizeof server->port + 1];
	snprintf(name, sizeof name, "%s:%s", server->host, server->port);
	return citus_is_unreachable(citus_db(server->base.db), slice_of(name));
}

struct pg_connection *citus_route(struct citus_routes *routes, struct pg_connection *coordinator,
                                  int64_t account)
{
	struct citus_shard_group *group = NULL;
	struct error *refusal = &citus_connection(coordinator)->refusal;
	citus_reset(coordinator);
	error_clear(refusal);
	int result = find_distributed(routes, coordinator, refusal);
	if (!result && routes->distributed)
		result = begin_fence(routes, coordinator, account, &group, refusal);
	if (!result && group && is_unreachable(group->connection))
		result = error_cause(refusal, ERR_UNAVAILABLE,
		                     "postgresql: the server with the account's rows is unreachable");
	if (result) {
		routes->distributed = false; /* checked again */
		if (coordinator->in_transaction)
			pg_roll_back(coordinator);
		return coordinator;
	}
	if (!group)
		return coordinator;
	assert(group->connection && group->connection->use == PG_SHARD);
	struct citus_connection *own = citus_connection(group->connection);
	own->coordinator = coordinator;
	own->group = group;
	own->account = account;
	own->pg.variant = group->shard;
	return &own->pg;
}

/* ---- the lock ---- */

/* Writes through Citus take the same lock, in mode 5 (ShareLock). */
static const char lock_query[] = "SELECT lock_shard_metadata(5, ARRAY[$1])";
static const char here_query[] =
	"SELECT count(*) FROM pg_catalog.pg_dist_placement p, pg_catalog.pg_dist_local_group l"
	" WHERE p.shardid = $1 AND p.groupid = l.groupid";

static void check_here(struct pg_connection *connection, const PGresult *row, int64_t sent_us)
{
	(void)sent_us;
	if (strcmp(PQgetvalue(row, 0, 0), "0") != 0)
		return;
	citus_connection(connection)->group->outdated = true;
	if (!connection->base.failure)
		connection->base.may_retry = true;
	pg_fail(connection, ERR_UNAVAILABLE, "the account's rows have moved to another server");
}

void citus_hold_shards(struct pg_connection *connection)
{
	assert(connection->use == PG_SHARD && citus_connection(connection)->group);
	int64_t shard = citus_connection(connection)->group->shard;
	pg_send_number(connection, NULL, lock_query, shard);
	pg_send_number(connection, check_here, here_query, shard);
}

/* ---- statements ---- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool names_table_next(struct slice word)
{
	return slice_is(word, "FROM") || slice_is(word, "JOIN") || slice_is(word, "INTO") ||
	       slice_is(word, "UPDATE");
}

static const struct citus_table_shard *find_table(const struct citus_shard_group *group,
                                                  struct slice table)
{
	for (size_t i = 0; i < group->count; i++)
		if (slice_is(table, group->tables[i].table))
			return &group->tables[i];
	return NULL;
}

/* Returns whether an alias of the program follows the table name: its words are in lower case,
 * keywords except AS are in upper case. */
static bool is_renamed(const char *rest)
{
	return rest[0] == ' ' && (islower((unsigned char)rest[1]) || strncmp(rest + 1, "AS ", 3) == 0);
}

char *citus_name_shards(const struct citus_shard_group *group, const char *sql)
{
	assert(group);
	struct buf text;
	buf_init(&text, 64 * 1024);
	bool table_next = false;
	while (*sql) {
		size_t size = 0;
		while (is_word(sql[size]))
			size++;
		struct slice word = slice_make(sql, size ? size : 1);
		const struct citus_table_shard *table_shard =
			table_next && size ? find_table(group, word) : NULL;
		buf_add(&text, word.data, word.size);
		sql += word.size;
		if (table_shard)
			buf_printf(&text, "_%lld", (long long)table_shard->shard);
		if (table_shard && !is_renamed(sql))
			buf_printf(&text, " AS %s", table_shard->table);
		if (size)
			table_next = names_table_next(word);
	}
	return buf_take(&text);
}

struct citus_routes *citus_make_routes(void)
{
	return calloc(1, sizeof(struct citus_routes));
}

/* ---- detached commits ---- */

static void ignore_notice(void *context, const PGresult *notice)
{
	(void)context, (void)notice;
}

/* Checks whether a detached commit is over; its outcome does not matter. */
static bool is_over(const struct pg_connection *connection, struct citus_detached *detached)
{
	int64_t longest = PG_LIMBO_TIMEOUTS * pg_db(connection->base.db)->commit_timeout_us;
	if (!pg_is_answered(detached->pg) && clock_monotonic_us() - detached->since_us < longest)
		return false;
	PQfinish(detached->pg);
	detached->pg = NULL;
	return true;
}

bool citus_detach_commit(struct pg_connection *connection)
{
	assert(connection->use == PG_SHARD && connection->pg);
	struct citus_connection *own = citus_connection(connection);
	size_t at = 0;
	while (at < DETACHED_MAX && own->detached[at].pg && !is_over(connection, &own->detached[at]))
		at++;
	if (at == DETACHED_MAX)
		return false;
	own->detached[at] = (struct citus_detached){connection->pg, own->account, clock_monotonic_us()};
	PQsetNoticeReceiver(connection->pg, ignore_notice, NULL);
	connection->pg = NULL;
	pg_disconnect(connection);
	return true;
}

bool citus_is_detached(struct pg_connection *connection, int64_t account)
{
	bool waits = false;
	for (size_t i = 0; i < DETACHED_MAX; i++) {
		struct citus_detached *detached = &citus_connection(connection)->detached[i];
		if (detached->pg && detached->account == account)
			waits = !is_over(connection, detached) || waits;
	}
	return waits;
}

void citus_drop_detached(struct pg_connection *connection)
{
	for (size_t i = 0; i < DETACHED_MAX; i++) {
		PQfinish(citus_connection(connection)->detached[i].pg);
		citus_connection(connection)->detached[i].pg = NULL;
	}
}
