/* Queries of the table shards on all servers.
 *
 * Each server is queried through its own connection. The coordinator routes the statement to the
 * server by an account that maps to it. The query is passed as text, because shard names exist only
 * on the shard servers. So an unreachable server is missing from the result, where a query over all
 * shards would fail; and a hanging server blocks only its own connection. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "db/citus/internal.h"

#define LISTED_LIFE_US (60 * US_PER_SECOND)
#define LISTED_LEAST_US US_PER_SECOND /* minimum time between two lists of shards */
#define ANSWER_WAIT_US (2 * US_PER_SECOND)
/* For an unreachable server, which is queried again in the next round; and to read results that
 * arrived during the wait for another server. */
#define LATE_WAIT_US INT64_C(2000)
#define QUESTION_MAX ((size_t)8 * 1024 * 1024)
#define LIMIT_MARK "+"
#define ACCOUNTS_TRIED 4096 /* account numbers to try until each server has one */

struct citus_shard {
	size_t server;
	int64_t from; /* minimum hash of its accounts */
	int64_t shard;
	char table[48];
};

#define NAME "n.nodename || ':' || n.nodeport"
static const char servers_query[] =
	"SELECT " NAME ", min(t.account)::bigint FROM"
	" (SELECT account, get_shard_id_for_distribution_column('accounts', account) AS shardid"
	" FROM generate_series(1::bigint, $1) AS account) AS t"
	" JOIN " CITUS_PLACEMENTS " ON p.shardid = t.shardid GROUP BY 1 ORDER BY 1 LIMIT $2";
static const char shards_query[] =
	"SELECT " NAME ", s.shardminvalue::bigint, s.shardid::bigint, c.relname::text"
	" FROM pg_catalog.pg_dist_shard s JOIN pg_catalog.pg_class c ON c.oid = s.logicalrelid"
	" JOIN " CITUS_PLACEMENTS
	" ON p.shardid = s.shardid WHERE s.shardminvalue IS NOT NULL ORDER BY 1, 2";
static const char place_query[] =
	"SELECT " NAME " FROM " CITUS_PLACEMENTS " WHERE p.shardid = " CITUS_SHARD_OF_ACCOUNT;
static const char question_query[] =
	"SELECT answer FROM (SELECT query_to_xml($2, false, true, '')::text AS answer) AS a,"
	" " CITUS_ON_SHARD;

void citus_shard_query_init(struct citus_db *db)
{
	pthread_mutex_init(&db->shards.mutex, NULL);
	pthread_mutex_init(&db->shards.unreachable_mutex, NULL);
	buf_init(&db->shards.text, QUESTION_MAX);
}

void citus_shard_query_free(struct citus_db *db)
{
	struct citus_shard_query *queries = &db->shards;
	for (size_t i = 0; i < queries->server_count; i++) {
		pg_free_connection(queries->servers[i].query.connection);
		pg_free_connection(queries->servers[i].trial.connection);
	}
	pg_free_connection(queries->lister);
	free(queries->items);
	buf_free(&queries->text);
	pthread_mutex_destroy(&queries->mutex);
	pthread_mutex_destroy(&queries->unreachable_mutex);
}

/* ---- list of shards ---- */

static int note_server(struct citus_db *db, struct slice name, int64_t account)
{
	struct citus_shard_query *queries = &db->shards;
	size_t at = 0;
	while (at < queries->server_count && !slice_is(name, queries->servers[at].name))
		at++;
	struct citus_queried_server *server = &queries->servers[at];
	if (at == DB_SHARD_SERVERS_MAX || name.size >= sizeof server->name)
		return ERR_NO_MEMORY;
	if (!server->query.connection)
		server->query.connection = pg_make_connection(&db->pg, PG_READER);
	if (!server->trial.connection)
		server->trial.connection = pg_make_connection(&db->pg, PG_READER);
	if (!server->query.connection || !server->trial.connection)
		return ERR_NO_MEMORY;
	if (at == queries->server_count)
		queries->server_count++;
	snprintf(server->name, sizeof server->name, "%.*s", (int)name.size, name.data);
	server->listed = true;
	server->account = account;
	return OK;
}

static int list_servers(struct citus_db *db, struct error *error)
{
	struct citus_shard_query *queries = &db->shards;
	struct db_connection *lister = &queries->lister->base;
	for (size_t i = 0; i < queries->server_count; i++)
		queries->servers[i].listed = false;
	struct db_query *query = pg_make_query(lister, servers_query, false);
	pg_bind_integer(query, ACCOUNTS_TRIED);
	pg_bind_integer(query, DB_SHARD_SERVERS_MAX);
	int result = OK;
	while (!result && pg_step(query))
		result = note_server(db, pg_text(query, 0), pg_integer(query, 1));
	int ended = pg_end(query, error);
	return result ? result : ended;
}

static int add_shard(struct citus_shard_query *queries, size_t *room,
                     const struct citus_shard *shard)
{
	if (queries->count == *room) {
		*room = *room ? 2 * *room : 512;
		struct citus_shard *items = realloc(queries->items, *room * sizeof *items);
		if (!items)
			return ERR_NO_MEMORY;
		queries->items = items;
	}
	queries->items[queries->count++] = *shard;
	return OK;
}

static int list_shards(struct citus_db *db, struct error *error)
{
	struct citus_shard_query *queries = &db->shards;
	struct db_query *query = pg_make_query(&queries->lister->base, shards_query, false);
	size_t room = 0;
	int result = OK;
	free(queries->items);
	queries->items = NULL;
	queries->count = 0;
	while (!result && pg_step(query)) {
		struct citus_shard shard = {.from = pg_integer(query, 1), .shard = pg_integer(query, 2)};
		struct slice table = pg_text(query, 3);
		while (shard.server < queries->server_count &&
		       !slice_is(pg_text(query, 0), queries->servers[shard.server].name))
			shard.server++;
		snprintf(shard.table, sizeof shard.table, "%.*s", (int)table.size, table.data);
		result = shard.server < queries->server_count
		             ? add_shard(queries, &room, &shard)
		             : error_cause(error, ERR_INTERNAL, "a server has shards without accounts");
	}
	int ended = pg_end(query, result ? NULL : error);
	return result ? result : ended;
}

static int list_all(struct citus_db *db, struct error *error)
{
	struct citus_shard_query *queries = &db->shards;
	if (!queries->lister)
		queries->lister = pg_make_connection(&db->pg, PG_READER);
	if (!queries->lister)
		return ERR_NO_MEMORY;
	int64_t now_us = clock_monotonic_us();
	int64_t life_us = queries->outdated ? LISTED_LEAST_US : LISTED_LIFE_US;
	if (queries->listed_us && now_us - queries->listed_us < life_us)
		return OK;
	citus_reset(queries->lister);
	bool offered, distributed;
	int result = citus_find_distributed(&queries->lister->base, &offered, &distributed, error);
	if (!result && distributed)
		result = list_servers(db, error);
	if (!result && distributed)
		result = list_shards(db, error);
	if (result)
		return result;
	queries->listed_us = now_us;
	queries->outdated = false;
	queries->distributed = distributed;
	return OK;
}

/* ---- the query ---- */

/* Writes the text with the shard's table names in place of those in braces. */
static int write_text(struct citus_shard_query *queries, const char *part, size_t first, size_t end,
                      struct error *error)
{
	for (const char *at = part; *at;) {
		size_t plain = strcspn(at, "{");
		buf_add(&queries->text, at, plain);
		at += plain;
		if (!*at)
			break;
		struct slice name = slice_make(at + 1, strcspn(at + 1, "}"));
		size_t i = first;
		while (i < end && !slice_is(name, queries->items[i].table))
			i++;
		if (i == end)
			return error_cause(error, ERR_INTERNAL, "%.*s is not distributed", (int)name.size,
			                   name.data);
		buf_printf(&queries->text, "%s_%lld", queries->items[i].table,
		           (long long)queries->items[i].shard);
		at = name.data + name.size + 1;
	}
	return OK;
}

/* Writes the accounts of the part, those for which the comparison with `from` is true. */
static int write_half(struct citus_shard_query *queries, const struct db_shard_part *part,
                      const char *comparison, size_t first, size_t end, struct error *error)
{
	buf_add_text(&queries->text, "(SELECT account FROM (");
	int result = write_text(queries, part->text, first, end, error);
	buf_printf(&queries->text, ") AS half WHERE account %s %lld ORDER BY account LIMIT %lld)",
	           comparison, (long long)part->from, (long long)part->limit);
	return result;
}

/* Each half ends at the limit, so that an index serves it however many accounts there are. */
static int write_accounts(struct citus_shard_query *queries, const struct db_shard_part *part,
                          size_t first, size_t end, struct error *error)
{
	if (part->from > 0) {
		int result = write_half(queries, part, ">=", first, end, error);
		buf_add_text(&queries->text, " UNION ALL ");
		return result ? result : write_half(queries, part, "<", first, end, error);
	}
	int result = write_text(queries, part->text, first, end, error);
	buf_printf(&queries->text, " ORDER BY account LIMIT %lld", (long long)part->limit);
	return result;
}

static int write_part(struct citus_shard_query *queries, size_t number,
                      const struct db_shard_part *part, size_t first, size_t end,
                      struct error *error)
{
	struct buf *text = &queries->text;
	char order[64] = "ORDER BY account";
	if (part->from > 0)
		snprintf(order, sizeof order, "ORDER BY account < %lld, account", (long long)part->from);
	buf_printf(text,
	           "(SELECT %zu AS part, account, CASE WHEN row_number() OVER (%s) = %lld"
	           " THEN '" LIMIT_MARK "' ELSE '' END AS mark FROM (",
	           number, order, (long long)part->limit);
	int result = write_accounts(queries, part, first, end, error);
	buf_add_text(text, ") AS shard");
	if (part->from > 0)
		buf_printf(text, " %s LIMIT %lld", order, (long long)part->limit);
	buf_add_text(text, ")");
	return result;
}

static int write_question(struct citus_shard_query *queries, size_t server,
                          const struct db_shard_part *parts, size_t count, struct error *error)
{
	struct buf *text = &queries->text;
	const char *joint = "SELECT string_agg(part || ' ' || account || mark, ',') AS a FROM (";
	int result = OK;
	buf_clear(text);
	for (size_t first = 0, end; first < queries->count && !result; first = end) {
		const struct citus_shard *shard = &queries->items[first];
		for (end = first + 1; end < queries->count && queries->items[end].server == shard->server &&
		                      queries->items[end].from == shard->from;)
			end++;
		for (size_t i = 0; i < count && shard->server == server && !result; i++) {
			buf_add_text(text, joint);
			result = write_part(queries, i, &parts[i], first, end, error);
			joint = " UNION ALL ";
		}
	}
	buf_printf(text, ") AS found");
	return result ? result : buf_check(text);
}

/* Returns whether the server commits, as far as known. */
static bool has_committed(struct citus_question *trial, int64_t deadline_us)
{
	struct pg_query *sent = trial->sent;
	if (!sent)
		return true;
	citus_reset(trial->connection);
	if (!pg_collect(trial->connection, sent, deadline_us) && trial->connection->pg)
		return false;
	trial->sent = NULL;
	return pg_end(&sent->base, NULL) == OK;
}

/* A late answer belongs to an earlier query; it only shows that the server is reachable. */
static void ask(struct citus_shard_query *queries, struct citus_queried_server *server)
{
	struct pg_connection *connection = server->query.connection;
	struct pg_query *late = server->query.sent;
	server->late = false;
	if (late) {
		connection->base.failure = OK;
		server->late =
			!pg_collect(connection, late, clock_monotonic_us() + LATE_WAIT_US) && connection->pg;
		if (server->late)
			return;
		server->query.sent = NULL;
		/* Without a pending test commit, this query is awaited as usual. Its answer may always be
		 * too late for a shorter wait. */
		server->away = !has_committed(&server->trial, clock_monotonic_us() + LATE_WAIT_US);
		(void)!pg_end(&late->base, NULL);
	}
	struct db_query *query = citus_question(&server->query, question_query);
	pg_bind_integer(query, server->account);
	pg_bind_text(query, buf_slice(&queries->text));
	citus_ask(&server->query, query);
}

static void start_trial(struct citus_queried_server *server)
{
	if (server->trial.sent)
		return;
	struct db_query *query = citus_question(&server->trial, citus_shard_write);
	pg_bind_integer(query, server->account);
	citus_ask(&server->trial, query);
}

/* Parses "<row …><a>0 17,2 5+</a></row>": pairs of part number and account, with the mark of the
 * last account within the limit. */
static void read_answer(struct slice answer, size_t count, db_found_function *found, void *context)
{
	const char *at = memmem(answer.data, answer.size, "<a>", 3);
	const char *end = answer.data + answer.size;
	for (at = at ? at + 3 : end; at < end;) {
		char *next;
		unsigned long part = strtoul(at, &next, 10);
		if (next == at || *next != ' ')
			return;
		at = next;
		int64_t account = strtoll(at, &next, 10);
		if (next == at)
			return;
		bool is_limit = *next == *LIMIT_MARK;
		next += is_limit;
		if (part < count)
			found(context, part, account, is_limit);
		if (*next != ',')
			return;
		at = next + 1;
	}
}

static void read_result(struct citus_shard_query *queries, struct citus_queried_server *server,
                        int64_t deadline_us, size_t count, db_found_function *found, void *context)
{
	struct pg_connection *connection = server->query.connection;
	struct pg_query *question = server->query.sent;
	int64_t least_us = clock_monotonic_us() + LATE_WAIT_US;
	deadline_us = deadline_us > least_us ? deadline_us : least_us;
	if (question)
		citus_reset(connection); /* it may be late, from an earlier round */
	if (question && !pg_collect(connection, question, deadline_us) && connection->pg) {
		server->away = true;
		return;
	}
	server->query.sent = NULL;
	bool silent = server->late || !has_committed(&server->trial, deadline_us);
	if (question && !silent && !connection->base.failure && pg_step(&question->base))
		read_answer(pg_text(&question->base, 0), count, found, context);
	if (question)
		(void)!pg_end(&question->base, NULL);
	int failure = connection->base.failure;
	/* An error of the statement is an answer, too: its shards may have moved. A server that
	 * answered an earlier query was not asked this one. */
	server->away = silent || failure == ERR_UNAVAILABLE;
	queries->outdated = queries->outdated || failure;
}

static void report_unreachable(struct citus_shard_query *queries)
{
	assert(queries->server_count <= DB_SHARD_SERVERS_MAX);
	pthread_mutex_lock(&queries->unreachable_mutex);
	size_t count = 0;
	for (size_t i = 0; i < queries->server_count; i++)
		if (queries->servers[i].listed && queries->servers[i].away)
			memcpy(queries->away[count++], queries->servers[i].name, sizeof *queries->away);
	atomic_store(&queries->unreachable_count, count);
	pthread_mutex_unlock(&queries->unreachable_mutex);
}

static int ask_all(struct citus_shard_query *queries, const struct db_shard_part *parts,
                   size_t count, db_found_function *found, void *context, bool *ret_all,
                   struct error *error)
{
	int result = OK;
	bool doubted = atomic_exchange(&queries->doubted, false);
	for (size_t i = 0; i < queries->server_count && !result; i++) {
		if (!queries->servers[i].listed)
			continue;
		result = write_question(queries, i, parts, count, error);
		if (!result)
			ask(queries, &queries->servers[i]);
		if (doubted)
			start_trial(&queries->servers[i]);
	}
	if (result)
		return result;
	int64_t now_us = clock_monotonic_us();
	*ret_all = true;
	for (size_t i = 0; i < queries->server_count; i++) {
		struct citus_queried_server *server = &queries->servers[i];
		if (!server->listed)
			continue;
		int64_t wait_us = server->away ? LATE_WAIT_US : ANSWER_WAIT_US;
		read_result(queries, server, now_us + wait_us, count, found, context);
		*ret_all = *ret_all && !server->away && !server->query.connection->base.failure;
	}
	report_unreachable(queries);
	return OK;
}

int citus_query_shards(struct db *base, const struct db_shard_part *parts, size_t count,
                       db_found_function *found, void *context, struct db_shard_query_result *ret,
                       struct error *error)
{
	struct citus_db *db = citus_db(base);
	struct citus_shard_query *queries = &db->shards;
	pthread_mutex_lock(&queries->mutex);
	int result = list_all(db, error);
	ret->distributed = queries->distributed;
	if (!result && queries->distributed)
		result = ask_all(queries, parts, count, found, context, &ret->all, error);
	pthread_mutex_unlock(&queries->mutex);
	return result;
}

/* ---- unreachable servers ---- */

bool citus_is_unreachable(struct citus_db *db, struct slice name)
{
	struct citus_shard_query *queries = &db->shards;
	bool found = false;
	pthread_mutex_lock(&queries->unreachable_mutex);
	for (size_t i = 0; i < atomic_load(&queries->unreachable_count); i++)
		found = found || slice_is(name, queries->away[i]);
	pthread_mutex_unlock(&queries->unreachable_mutex);
	return found;
}

void citus_doubt_servers(struct citus_db *db)
{
	atomic_store(&db->shards.doubted, true);
}

bool citus_has_unreachable(const struct db *base)
{
	return atomic_load(&((const struct citus_db *)base)->shards.unreachable_count) > 0;
}

bool citus_is_account_unreachable(struct db_connection *base, int64_t account)
{
	struct db_query *query = pg_make_query(base, place_query, false);
	pg_bind_integer(query, account);
	bool away = pg_step(query) && citus_is_unreachable(citus_db(base->db), pg_text(query, 0));
	return !pg_end(query, NULL) && away;
}
