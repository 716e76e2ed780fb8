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
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "db/postgres/internal.h"

#define SETS_MAX 1024
#define UNDISTRIBUTED_LIFE_US US_PER_SECOND

struct pg_straight {
	bool distributed;         /* result of the last check */
	int64_t undistributed_us; /* time when tables were found not distributed; 0: never */
	struct pg_piece_set *sets[SETS_MAX];
	size_t set_count;
	struct pg_connection *servers[DB_SHARD_SERVERS_MAX];
	size_t server_count;
};

void pg_free_straight(struct pg_straight *straight)
{
	if (!straight)
		return;
	for (size_t i = 0; i < straight->set_count; i++)
		free(straight->sets[i]);
	for (size_t i = 0; i < straight->server_count; i++)
		pg_free_connection(straight->servers[i]);
	free(straight);
}

/* ---- location of an account's rows ---- */

static const char distributed_query[] =
	"SELECT count(*)::bigint FROM pg_catalog.pg_class WHERE oid = to_regclass('pg_catalog.pg_dist_shard')";
static const char accounts_query[] =
	"SELECT count(*)::bigint FROM pg_catalog.pg_dist_partition"
	" WHERE logicalrelid = to_regclass('accounts') AND partmethod = 'h'";
#define SHARD_OF_ACCOUNT "get_shard_id_for_distribution_column('accounts', $1)"
/* Moving or splitting the shard, or registering another server for it, waits for this lock. */
static const char fence_query[] = "SELECT lock_shard_metadata(5, ARRAY[" SHARD_OF_ACCOUNT "])";
static const char place_query[] =
	"SELECT p.shardid, n.nodename, n.nodeport::bigint FROM pg_catalog.pg_dist_placement p"
	" JOIN pg_catalog.pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'"
	" AND n.isactive WHERE p.shardid = " SHARD_OF_ACCOUNT;
static const char set_query[] =
	"SELECT c.relname::text, s.shardid, n.nodename, n.nodeport::bigint FROM pg_catalog.pg_dist_shard a"
	" JOIN pg_catalog.pg_dist_partition pa ON pa.logicalrelid = a.logicalrelid"
	" JOIN pg_catalog.pg_dist_partition ps ON ps.colocationid = pa.colocationid"
	" JOIN pg_catalog.pg_dist_shard s ON s.logicalrelid = ps.logicalrelid"
	" AND s.shardminvalue = a.shardminvalue"
	" JOIN pg_catalog.pg_class c ON c.oid = s.logicalrelid"
	" JOIN pg_catalog.pg_dist_placement p ON p.shardid = s.shardid"
	" JOIN pg_catalog.pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'"
	" WHERE a.shardid = $1";

static int find_distributed(struct pg_straight *straight, struct pg_connection *asker,
                            struct error *error)
{
	if (straight->distributed ||
	    (straight->undistributed_us &&
	     clock_monotonic_us() - straight->undistributed_us < UNDISTRIBUTED_LIFE_US))
		return OK;
	struct db_query *query = pg_make_query(&asker->base, distributed_query, false);
	bool distributed = pg_step(query) && pg_integer(query, 0) > 0;
	int result = pg_end(query, error);
	if (!result && distributed) {
		query = pg_make_query(&asker->base, accounts_query, false);
		distributed = pg_step(query) && pg_integer(query, 0) > 0;
		result = pg_end(query, error);
	}
	straight->distributed = !result && distributed;
	straight->undistributed_us = !result && !distributed ? clock_monotonic_us() : 0;
	return result;
}

/* NULL: no memory, or more servers seen than there is room for. */
static struct pg_connection *server_at(struct pg_straight *straight, struct pg_db *db,
                                       struct slice host, int64_t port)
{
	char name[sizeof straight->servers[0]->host], number[sizeof straight->servers[0]->port];
	snprintf(name, sizeof name, "%.*s", (int)host.size, host.data);
	snprintf(number, sizeof number, "%u", (unsigned)(uint16_t)port);
	for (size_t i = 0; i < straight->server_count; i++)
		if (strcmp(straight->servers[i]->host, name) == 0 &&
		    strcmp(straight->servers[i]->port, number) == 0)
			return straight->servers[i];
	if (straight->server_count == DB_SHARD_SERVERS_MAX || host.size >= sizeof name)
		return NULL;
	struct pg_connection *server = pg_make_connection(db, PG_STRAIGHT);
	if (!server)
		return NULL;
	snprintf(server->host, sizeof server->host, "%s", name);
	snprintf(server->port, sizeof server->port, "%s", number);
	return straight->servers[straight->server_count++] = server;
}

static int add_row(struct pg_straight *straight, struct pg_db *db, struct db_query *query,
                   struct pg_piece_set *set)
{
	struct slice table = pg_text(query, 0);
	struct pg_connection *server = server_at(straight, db, pg_text(query, 2), pg_integer(query, 3));
	if (!server || set->count == PG_TABLES_MAX || table.size >= sizeof set->pieces->table)
		return ERR_NO_MEMORY;
	if (set->connection && set->connection != server)
		return ERR_UNAVAILABLE; /* the shard is being moved */
	set->connection = server;
	struct pg_table_piece *piece = &set->pieces[set->count++];
	snprintf(piece->table, sizeof piece->table, "%.*s", (int)table.size, table.data);
	piece->shard = pg_integer(query, 1);
	return OK;
}

static int read_set(struct pg_straight *straight, struct pg_connection *asker,
                    struct pg_piece_set *set, struct error *error)
{
	struct db_query *query = pg_make_query(&asker->base, set_query, false);
	pg_bind_integer(query, set->shard);
	set->count = 0;
	set->connection = NULL;
	int result = OK;
	while (!result && pg_step(query))
		result = add_row(straight, pg_db(asker->base.db), query, set);
	int ended = pg_end(query, error);
	if (!ended && !result && set->count == 0)
		result = ERR_UNAVAILABLE;
	set->outdated = ended || result;
	return ended    ? ended
	       : result ? error_cause(error, result,
	                              "postgresql: the location of the account's rows is unknown")
	                : OK;
}

static struct pg_piece_set *set_of(struct pg_straight *straight, int64_t shard)
{
	for (size_t i = 0; i < straight->set_count; i++)
		if (straight->sets[i]->shard == shard)
			return straight->sets[i];
	struct pg_piece_set *set = straight->set_count < SETS_MAX ? calloc(1, sizeof *set) : NULL;
	if (!set)
		return NULL;
	set->shard = shard;
	set->outdated = true;
	return straight->sets[straight->set_count++] = set;
}

/* Locks the placement of the account's rows, as the coordinator knows it, until pg_end_fence. */
static int begin_fence(struct pg_straight *straight, struct pg_connection *asker, int64_t account,
                       struct pg_piece_set **ret_set, struct error *error)
{
	int result = pg_connect(asker, error);
	if (result)
		return result;
	asker->in_transaction = true;
	pg_send_text(asker, PG_STATEMENT, "BEGIN");
	pg_send_text(asker, PG_SETTINGS, pg_db(asker->base.db)->transaction_settings[asker->use]);
	pg_send_number(asker, PG_STATEMENT, fence_query, account);
	struct db_query *query = pg_make_query(&asker->base, place_query, false);
	pg_bind_integer(query, account);
	bool found = pg_step(query);
	int64_t shard = found ? pg_integer(query, 0) : 0;
	struct pg_connection *server =
		found ? server_at(straight, pg_db(asker->base.db), pg_text(query, 1), pg_integer(query, 2))
			  : NULL;
	result = pg_end(query, error);
	if (result)
		return result;
	struct pg_piece_set *set = server ? set_of(straight, shard) : NULL;
	if (!set)
		return error_cause(error, ERR_UNAVAILABLE,
		                   "postgresql: the location of the account's rows is unknown");
	*ret_set = set;
	if (!set->outdated && set->connection == server)
		return OK;
	return read_set(straight, asker, set, error);
}

bool pg_end_fence(struct pg_connection *connection)
{
	struct pg_connection *asker = connection->asker;
	bool held = asker->in_transaction && asker->pg && !asker->base.failure;
	if (asker->in_transaction)
		pg_roll_back(asker);
	return held && asker->pg;
}

int pg_try_server(struct db *base, const char *name, struct error *error)
{
	const char *port = strrchr(name, ':');
	struct pg_connection *server = port ? pg_make_connection(pg_db(base), PG_STRAIGHT) : NULL;
	if (!server)
		return ERR_NO_MEMORY;
	snprintf(server->host, sizeof server->host, "%.*s", (int)(port - name), name);
	snprintf(server->port, sizeof server->port, "%s", port + 1);
	int result = pg_connect(server, error);
	pg_free_connection(server);
	return result;
}

static bool is_away(const struct pg_connection *server)
{
	char name[sizeof server->host + sizeof server->port + 1];
	snprintf(name, sizeof name, "%s:%s", server->host, server->port);
	return pg_is_away(&pg_db(server->base.db)->pieces, slice_of(name));
}

struct pg_connection *pg_go_straight(struct pg_straight *straight, struct pg_connection *asker,
                                     int64_t account)
{
	struct pg_piece_set *set = NULL;
	asker->base.failure = OK;
	error_clear(&asker->base.error);
	error_clear(&asker->refusal);
	int result = find_distributed(straight, asker, &asker->refusal);
	if (!result && straight->distributed)
		result = begin_fence(straight, asker, account, &set, &asker->refusal);
	if (!result && set && is_away(set->connection))
		result = error_cause(&asker->refusal, ERR_UNAVAILABLE,
		                     "postgresql: the server with the account's rows is unreachable");
	if (result) {
		straight->distributed = false; /* to be checked again */
		if (asker->in_transaction)
			pg_roll_back(asker);
		return asker;
	}
	if (!set)
		return asker;
	set->connection->asker = asker;
	set->connection->set = set;
	set->connection->account = account;
	return set->connection;
}

/* ---- the lock ---- */

/* Writes through Citus take the same lock, in mode 5 (ShareLock). */
static const char lock_query[] = "SELECT lock_shard_metadata(5, ARRAY[$1])";
static const char here_query[] =
	"SELECT count(*) FROM pg_catalog.pg_dist_placement p, pg_catalog.pg_dist_local_group l"
	" WHERE p.shardid = $1 AND p.groupid = l.groupid";

static void send_with_shard(struct pg_connection *connection, enum pg_kind kind, const char *sql)
{
	pg_send_number(connection, kind, sql, connection->set->shard);
}

void pg_hold_pieces(struct pg_connection *connection)
{
	send_with_shard(connection, PG_STATEMENT, lock_query);
	send_with_shard(connection, PG_HERE_CHECK, here_query);
}

void pg_judge_here(struct pg_connection *connection, const PGresult *row)
{
	if (strcmp(PQgetvalue(row, 0, 0), "0") != 0)
		return;
	connection->set->outdated = true;
	if (!connection->base.failure)
		connection->base.may_retry = true;
	pg_fail(connection, ERR_UNAVAILABLE, "the account's rows have moved to another server");
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

static const struct pg_table_piece *piece_of(const struct pg_piece_set *set, struct slice table)
{
	for (size_t i = 0; i < set->count; i++)
		if (slice_is(table, set->pieces[i].table))
			return &set->pieces[i];
	return NULL;
}

/* Returns whether an alias of the program follows the table name: its words are in lower case,
 * keywords except AS are in upper case. */
static bool is_renamed(const char *rest)
{
	return rest[0] == ' ' && (islower((unsigned char)rest[1]) || strncmp(rest + 1, "AS ", 3) == 0);
}

char *pg_name_pieces(const struct pg_piece_set *set, const char *sql)
{
	struct buf text;
	buf_init(&text, 64 * 1024);
	bool table_next = false;
	while (*sql) {
		size_t size = 0;
		while (is_word(sql[size]))
			size++;
		struct slice word = slice_make(sql, size ? size : 1);
		const struct pg_table_piece *piece = table_next && size ? piece_of(set, word) : NULL;
		buf_add(&text, word.data, word.size);
		sql += word.size;
		if (piece)
			buf_printf(&text, "_%lld", (long long)piece->shard);
		if (piece && !is_renamed(sql))
			buf_printf(&text, " AS %s", piece->table);
		if (size)
			table_next = names_table_next(word);
	}
	return buf_take(&text);
}

struct pg_straight *pg_make_straight(void)
{
	return calloc(1, sizeof(struct pg_straight));
}
