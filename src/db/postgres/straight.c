/* Where tables are distributed, a registrar goes straight to the server that has the account's rows
 * and works on the pieces themselves: nothing is planned for several servers, nobody else takes
 * part in the commit, and what it promises is that server's, as without distribution. The server
 * that all are asked by is needed for one thing, where an account's rows are, and is asked once.
 * Pieces do move: a transaction holds the lock that whoever moves them waits for, and only goes on
 * where they still are.
 *
 * What is kept here is of one registrar, so of one thread. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "db/postgres/internal.h"

#define ACCOUNTS_KEPT 4096
#define SETS_MAX 1024
#define UNDISTRIBUTED_LIFE_US US_PER_SECOND

struct pg_straight {
	int64_t undistributed_us; /* when that was found; 0: it was not */
	struct {
		int64_t account; /* 0: none */
		struct pg_piece_set *set;
	} accounts[ACCOUNTS_KEPT];
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

/* ---- where an account's rows are ---- */

static const char distributed_query[] =
	"SELECT count(*)::bigint FROM pg_catalog.pg_class WHERE oid = to_regclass('pg_catalog.pg_dist_shard')";
/* No row: nothing is distributed yet. */
static const char shard_query[] =
	"SELECT get_shard_id_for_distribution_column('accounts', $1)"
	" FROM pg_catalog.pg_dist_partition"
	" WHERE logicalrelid = to_regclass('accounts') AND partmethod = 'h'";
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

static int find_shard(struct pg_connection *asker, int64_t account, int64_t *ret_shard,
                      struct error *error)
{
	struct db_connection *base = &asker->base;
	struct db_query *query = pg_make_query(base, distributed_query, false);
	bool distributed = pg_step(query) && pg_integer(query, 0) > 0;
	int result = pg_end(query, error);
	*ret_shard = 0;
	if (result || !distributed)
		return result;
	query = pg_make_query(base, shard_query, false);
	pg_bind_integer(query, account);
	if (pg_step(query))
		*ret_shard = pg_integer(query, 0);
	return pg_end(query, error);
}

/* NULL: no memory, or more servers came and went than are remembered. */
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
		return ERR_UNAVAILABLE; /* it is being moved */
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
	                              "postgresql: it is not known who has the account's rows")
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

/* NULL without a failure: nothing is distributed. */
static int find_set(struct pg_straight *straight, struct pg_connection *asker, int64_t account,
                    struct pg_piece_set **ret_set, struct error *error)
{
	size_t at = (uint64_t)account % ACCOUNTS_KEPT;
	*ret_set = NULL;
	if (straight->accounts[at].account == account) {
		*ret_set = straight->accounts[at].set;
		return OK;
	}
	if (straight->undistributed_us &&
	    clock_monotonic_us() - straight->undistributed_us < UNDISTRIBUTED_LIFE_US)
		return OK;
	int64_t shard;
	int result = find_shard(asker, account, &shard, error);
	if (result)
		return result;
	straight->undistributed_us = shard ? 0 : clock_monotonic_us();
	if (!shard)
		return OK;
	*ret_set = set_of(straight, shard);
	if (!*ret_set)
		return error_cause(error, ERR_NO_MEMORY, "postgresql: too many pieces");
	straight->accounts[at].account = account;
	straight->accounts[at].set = *ret_set;
	return OK;
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

struct pg_connection *pg_go_straight(struct pg_straight *straight, struct pg_connection *asker,
                                     int64_t account)
{
	struct pg_piece_set *set;
	asker->base.failure = OK;
	error_clear(&asker->base.error);
	error_clear(&asker->refusal);
	int result = find_set(straight, asker, account, &set, &asker->refusal);
	/* Without a connection it may have another name by now. */
	if (!result && set && (set->outdated || !set->connection->pg))
		result = read_set(straight, asker, set, &asker->refusal);
	if (result || !set)
		return asker;
	char name[sizeof set->connection->host + sizeof set->connection->port + 1];
	snprintf(name, sizeof name, "%s:%s", set->connection->host, set->connection->port);
	if (pg_is_away(&pg_db(asker->base.db)->pieces, slice_of(name))) {
		error_cause(&asker->refusal, ERR_UNAVAILABLE,
		            "postgresql: the server that has the account's rows is away");
		return asker;
	}
	set->connection->set = set;
	set->connection->account = account;
	return set->connection;
}

/* ---- the lock ---- */

/* What writes by way of the servers' own distribution takes the same, in mode 5 (ShareLock). */
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
	pg_fail(connection, ERR_UNAVAILABLE, "the account's rows are on another server by now");
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

/* Whether the program gives the table another name there: its words are small, those of the
 * language are not, but for AS. */
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
