/* Checks of the shard servers. The coordinator passes the check on, over one connection per server:
 * a hanging server blocks only its own connection and is not queried again meanwhile. The readers
 * are not used, because they may all be waiting for that server. */
#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "db/citus/internal.h"

#define ANSWER_WAIT_US INT64_C(3000000)
#define LEAST_WAIT_US INT64_C(100000) /* for answers that arrived during the wait for another */

static const char offered_query[] = "SELECT count(*)::bigint FROM pg_catalog.pg_class"
									" WHERE oid = to_regclass('pg_catalog.pg_dist_partition')";
static const char distributed_query[] =
	"SELECT count(*)::bigint FROM pg_catalog.pg_dist_partition"
	" WHERE logicalrelid = to_regclass('accounts') AND partmethod = 'h'";
/* The group 0 is the coordinator. */
static const char servers_query[] =
	"SELECT nodename, nodeport::bigint FROM pg_catalog.pg_dist_node"
	" WHERE groupid > 0 AND noderole = 'primary' AND isactive ORDER BY nodename, nodeport LIMIT $1";
/* The answer of a server is one text, so its columns are joined there and split here. */
#define SEPARATOR "chr(31)"
static const char server_check[] =
	"SELECT concat_ws(" SEPARATOR ", a, b, c, d, e, f)"
	" FROM (" PG_REPLICAS(PG_OF_TRANSACTION, "") ") AS answer(a, b, c, d, e, f)";
static const char server_query[] =
	"SELECT part[1], part[2], part[3], part[4], part[5], part[6], success::int::bigint, result"
	" FROM (SELECT success, result, string_to_array(result, " SEPARATOR ") AS part"
	" FROM master_run_on_worker(ARRAY[$1], ARRAY[$2::int], ARRAY[$3], false)) AS one";
enum { ANSWERED = PG_REPLICAS_COLUMNS, RESPONSE };

static int ask_count(struct db_connection *connection, const char *literal_sql, bool *ret_some,
                     struct error *error)
{
	struct db_query *query = pg_make_query(connection, literal_sql, false);
	*ret_some = pg_step(query) && pg_integer(query, 0) > 0;
	return pg_end(query, error);
}

int citus_find_distributed(struct db_connection *connection, bool *ret_offered,
                           bool *ret_distributed, struct error *error)
{
	*ret_distributed = false;
	int result = ask_count(connection, offered_query, ret_offered, error);
	return result || !*ret_offered
	           ? result
	           : ask_count(connection, distributed_query, ret_distributed, error);
}

struct db_query *citus_question(struct citus_question *question, const char *literal_sql)
{
	citus_reset(question->connection);
	return pg_make_query(&question->connection->base, literal_sql, false);
}

void citus_ask(struct citus_question *question, struct db_query *query)
{
	pg_send(query);
	question->sent = question->connection->base.failure ? NULL : pg_query(query);
}

/* ---- checks ---- */

struct place {
	char host[96];
	int64_t port;
};

static int find_places(struct db_connection *reader, size_t max, struct place *places,
                       size_t *ret_count, struct error *error)
{
	bool offered;
	int result = ask_count(reader, offered_query, &offered, error);
	*ret_count = 0;
	if (result || !offered)
		return result;
	struct db_query *query = pg_make_query(reader, servers_query, false);
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
static struct citus_shard_server *server_at(struct citus_db *db, const struct place *place)
{
	char name[sizeof db->shard_servers->name];
	snprintf(name, sizeof name, "%.95s:%lld", place->host, (long long)place->port);
	for (size_t i = 0; i < db->shard_server_count; i++)
		if (strcmp(db->shard_servers[i].name, name) == 0)
			return &db->shard_servers[i];
	if (db->shard_server_count == DB_SHARD_SERVERS_MAX)
		return NULL;
	struct citus_shard_server *server = &db->shard_servers[db->shard_server_count];
	server->check.connection = pg_make_connection(&db->pg, PG_READER);
	if (!server->check.connection)
		return NULL;
	db->shard_server_count++;
	snprintf(server->name, sizeof server->name, "%s", name);
	return server;
}

static void ask_server(struct citus_question *check, const struct place *place)
{
	if (check->sent && check->connection->pg)
		return;
	struct db_query *query = citus_question(check, server_query);
	pg_bind_text(query, slice_of(place->host));
	pg_bind_integer(query, place->port);
	pg_bind_text(query, slice_of(server_check));
	citus_ask(check, query);
}

/* Returns whether the server answered. */
static bool judge(struct pg_connection *connection, struct db_query *query)
{
	bool known = pg_step(query), answered = known && pg_integer(query, ANSWERED) != 0;
	if (!known)
		pg_fail(connection, ERR_UNAVAILABLE, "unknown server");
	else if (!answered)
		pg_fail(connection, ERR_UNAVAILABLE, "%.*s", (int)pg_text(query, RESPONSE).size,
		        pg_text(query, RESPONSE).data);
	else
		pg_judge_replicas_at(connection, pg_query(query)->result, "");
	return answered;
}

static bool read_answer(struct citus_question *check, int64_t deadline_us)
{
	struct pg_connection *connection = check->connection;
	struct pg_query *sent = check->sent;
	bool answered = false;
	if (!sent)
		return false;
	citus_reset(connection); /* the answer may be late, from an earlier round */
	int64_t least_us = clock_monotonic_us() + LEAST_WAIT_US;
	if (pg_collect(connection, sent, deadline_us > least_us ? deadline_us : least_us)) {
		answered = judge(connection, &sent->base);
	} else if (connection->pg) {
		error_cause(&connection->base.error, ERR_UNAVAILABLE, "it does not answer");
		return false;
	}
	check->sent = NULL;
	(void)!pg_end(&sent->base, NULL);
	return answered;
}

static int ask_all(struct citus_db *db, const struct place *places, size_t count,
                   struct db_shard_server *items)
{
	assert(count <= DB_SHARD_SERVERS_MAX);
	struct citus_shard_server *servers[DB_SHARD_SERVERS_MAX];
	for (size_t i = 0; i < count; i++) {
		servers[i] = server_at(db, &places[i]);
		if (!servers[i])
			return ERR_NO_MEMORY;
		ask_server(&servers[i]->check, &places[i]);
	}
	int64_t deadline_us = clock_monotonic_us() + ANSWER_WAIT_US;
	for (size_t i = 0; i < count; i++) {
		items[i].answered = read_answer(&servers[i]->check, deadline_us);
		const struct db_connection *connection = &servers[i]->check.connection->base;
		items[i].result = connection->failure;
		snprintf(items[i].name, sizeof items[i].name, "%s", servers[i]->name);
		snprintf(items[i].cause, sizeof items[i].cause, "%s",
		         connection->failure ? connection->error.cause : "");
	}
	return OK;
}

int citus_ask_shard_servers(struct db *base, struct db_shard_server *items, size_t max,
                            size_t *ret_count, struct error *error)
{
	struct place places[DB_SHARD_SERVERS_MAX];
	size_t count;
	struct citus_db *db = citus_db(base);
	if (!db->server_lister)
		db->server_lister = pg_make_connection(&db->pg, PG_READER);
	if (!db->server_lister)
		return ERR_NO_MEMORY;
	citus_reset(db->server_lister);
	int result =
		find_places(&db->server_lister->base,
	                max < DB_SHARD_SERVERS_MAX ? max : DB_SHARD_SERVERS_MAX, places, &count, error);
	if (!result)
		result = ask_all(db, places, count, items);
	if (!result)
		*ret_count = count;
	return result;
}

void citus_forget_shard_servers(struct citus_db *db)
{
	for (size_t i = 0; i < db->shard_server_count; i++)
		pg_free_connection(db->shard_servers[i].check.connection);
	pg_free_connection(db->server_lister);
}
