/* Checks of the shard servers.
 *
 * They are queried through the coordinator, the server of the address, each on its own connection.
 * A server that hangs blocks only that connection and is not queried again meanwhile. Readers are
 * not used, because all of them may be waiting for that server. */
#include <stdio.h>

#include "base/clock.h"
#include "db/postgres/internal.h"

#define ANSWER_WAIT_US INT64_C(3000000)
#define LEAST_WAIT_US INT64_C(100000) /* to read results that have already arrived */
enum { ANSWERED = 6, SAID };

static const char offered_query[] =
	"SELECT count(*)::bigint FROM pg_catalog.pg_class WHERE oid = to_regclass('pg_catalog.pg_dist_node')";
/* Group 0 is the coordinator. */
static const char servers_query[] = "SELECT nodename, nodeport::bigint FROM pg_catalog.pg_dist_node"
									" WHERE groupid > 0 AND noderole = 'primary' AND isactive"
									" ORDER BY nodename, nodeport LIMIT $1";

struct place {
	char host[96];
	int64_t port;
};

static int find_places(struct db_connection *reader, size_t max, struct place *places,
                       size_t *ret_count, struct error *error)
{
	struct db_query *query = pg_make_query(reader, offered_query, false);
	bool offered = pg_step(query) && pg_integer(query, 0) > 0;
	int result = pg_end(query, error);
	*ret_count = 0;
	if (result || !offered)
		return result;
	query = pg_make_query(reader, servers_query, false);
	pg_bind_integer(query, (int64_t)max);
	while (*ret_count < max && pg_step(query)) {
		struct slice host = pg_text(query, 0);
		struct place *place = &places[(*ret_count)++];
		snprintf(place->host, sizeof place->host, "%.*s", (int)host.size, host.data);
		place->port = pg_integer(query, 1);
	}
	return pg_end(query, error);
}

/* NULL: no memory, or more servers seen than there is room for. */
static struct pg_shard_server *server_at(struct pg_db *db, const struct place *place)
{
	char name[sizeof db->shard_servers->name];
	snprintf(name, sizeof name, "%.95s:%lld", place->host, (long long)place->port);
	for (size_t i = 0; i < db->shard_server_count; i++)
		if (strcmp(db->shard_servers[i].name, name) == 0)
			return &db->shard_servers[i];
	if (db->shard_server_count == DB_SHARD_SERVERS_MAX)
		return NULL;
	struct pg_shard_server *server = &db->shard_servers[db->shard_server_count];
	server->connection = pg_make_connection(db, PG_READER);
	if (!server->connection)
		return NULL;
	db->shard_server_count++;
	snprintf(server->name, sizeof server->name, "%s", name);
	return server;
}

static void ask(struct pg_shard_server *server, const struct place *place)
{
	struct pg_connection *connection = server->connection;
	if (server->question && connection->pg)
		return;
	connection->base.failure = OK;
	error_clear(&connection->base.error);
	struct db_query *query = pg_make_query(&connection->base, pg_shard_server_query, false);
	pg_bind_text(query, slice_of(place->host));
	pg_bind_integer(query, place->port);
	pg_bind_text(query, slice_of(pg_shard_server_question));
	pg_send(query);
	server->question = connection->base.failure ? NULL : pg_query(query);
}

/* Returns whether the server answered. */
static bool judge(struct pg_connection *connection, struct db_query *query)
{
	bool known = pg_step(query), answered = known && pg_integer(query, ANSWERED) != 0;
	if (!known)
		pg_fail(connection, ERR_UNAVAILABLE, "unknown server");
	else if (!answered)
		pg_fail(connection, ERR_UNAVAILABLE, "%.*s", (int)pg_text(query, SAID).size,
		        pg_text(query, SAID).data);
	else
		pg_judge_replicas(connection, pg_query(query)->result, "");
	return answered;
}

static bool read_result(struct pg_shard_server *server, int64_t deadline_us)
{
	struct pg_connection *connection = server->connection;
	struct pg_query *question = server->question;
	bool answered = false;
	if (!question)
		return false;
	/* A late answer from an earlier round. */
	connection->base.failure = OK;
	error_clear(&connection->base.error);
	int64_t least_us = clock_monotonic_us() + LEAST_WAIT_US;
	if (!pg_collect(connection, question, deadline_us > least_us ? deadline_us : least_us)) {
		if (connection->pg) {
			error_cause(&connection->base.error, ERR_UNAVAILABLE, "it does not answer");
			return false;
		}
	} else {
		answered = judge(connection, &question->base);
	}
	server->question = NULL;
	(void)!pg_end(&question->base, NULL);
	return answered;
}

static int ask_all(struct pg_db *db, const struct place *places, size_t count,
                   struct db_shard_server *items)
{
	struct pg_shard_server *servers[DB_SHARD_SERVERS_MAX];
	for (size_t i = 0; i < count; i++) {
		servers[i] = server_at(db, &places[i]);
		if (!servers[i])
			return ERR_NO_MEMORY;
		ask(servers[i], &places[i]);
	}
	int64_t deadline_us = clock_monotonic_us() + ANSWER_WAIT_US;
	for (size_t i = 0; i < count; i++) {
		items[i].answered = read_result(servers[i], deadline_us);
		const struct db_connection *connection = &servers[i]->connection->base;
		items[i].result = connection->failure;
		snprintf(items[i].name, sizeof items[i].name, "%s", servers[i]->name);
		snprintf(items[i].cause, sizeof items[i].cause, "%s",
		         connection->failure ? connection->error.cause : "");
	}
	return OK;
}

int pg_ask_shard_servers(struct db *base, struct db_shard_server *items, size_t max,
                         size_t *ret_count, struct error *error)
{
	struct place places[DB_SHARD_SERVERS_MAX];
	size_t count;
	struct pg_db *db = pg_db(base);
	if (!db->shard_lister)
		db->shard_lister = pg_make_connection(db, PG_READER);
	if (!db->shard_lister)
		return ERR_NO_MEMORY;
	db->shard_lister->base.failure = OK;
	int result =
		find_places(&db->shard_lister->base,
	                max < DB_SHARD_SERVERS_MAX ? max : DB_SHARD_SERVERS_MAX, places, &count, error);
	if (!result)
		result = ask_all(db, places, count, items);
	if (!result)
		*ret_count = count;
	return result;
}

void pg_forget_shard_servers(struct pg_db *db)
{
	for (size_t i = 0; i < db->shard_server_count; i++)
		pg_free_connection(db->shard_servers[i].connection);
	pg_free_connection(db->shard_lister);
}
