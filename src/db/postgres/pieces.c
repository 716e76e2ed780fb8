/* Queries of the table shards on all servers.
 *
 * Each server is queried through its own connection. The coordinator routes the statement to the
 * server by an account that maps to it. The query is passed as text, because shard names exist only
 * on the shard servers. So an unreachable server is missing from the result, where a query over all
 * shards would fail; and a hanging server blocks only its own connection. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "db/postgres/internal.h"

#define LISTED_LIFE_US (60 * US_PER_SECOND)
#define LISTED_LEAST_US US_PER_SECOND /* minimum time between two lists of shards */
#define ANSWER_WAIT_US (2 * US_PER_SECOND)
/* For an unreachable server, which is queried again in the next round; and to read results that
 * arrived during the wait for another server. */
#define LATE_WAIT_US INT64_C(2000)
#define QUESTION_MAX ((size_t)8 * 1024 * 1024)
#define ACCOUNTS_TRIED 4096 /* account numbers to try until each server has one */

struct pg_piece {
	size_t server;
	int64_t from; /* minimum hash of its accounts */
	int64_t shard;
	char table[48];
};

static const char offered_query[] =
	"SELECT count(*)::bigint FROM pg_catalog.pg_class WHERE oid = to_regclass('pg_catalog.pg_dist_node')";
#define PLACED                                                                                     \
	"pg_catalog.pg_dist_placement p JOIN pg_catalog.pg_dist_node n ON n.groupid = p.groupid"       \
	" AND n.noderole = 'primary'"
#define NAME "n.nodename || ':' || n.nodeport"
static const char servers_query[] =
	"SELECT " NAME ", min(t.account)::bigint FROM"
	" (SELECT account, get_shard_id_for_distribution_column('accounts', account) AS shardid"
	" FROM generate_series(1::bigint, $1) AS account) AS t"
	" JOIN " PLACED " ON p.shardid = t.shardid GROUP BY 1 ORDER BY 1 LIMIT $2";
static const char pieces_query[] =
	"SELECT " NAME ", s.shardminvalue::bigint, s.shardid::bigint, c.relname::text"
	" FROM pg_catalog.pg_dist_shard s JOIN pg_catalog.pg_class c ON c.oid = s.logicalrelid"
	" JOIN " PLACED " ON p.shardid = s.shardid WHERE s.shardminvalue IS NOT NULL ORDER BY 1, 2";
static const char place_query[] =
	"SELECT " NAME " FROM " PLACED
	" WHERE p.shardid = get_shard_id_for_distribution_column('accounts', $1)";
static const char question_query[] =
	"SELECT answer FROM (SELECT query_to_xml($2, false, true, '')::text AS answer) AS a,"
	" (SELECT count(*) FROM " DB_ROWS_OF_SHARD ") AS shard";

void pg_pieces_init(struct pg_db *db)
{
	pthread_mutex_init(&db->pieces.mutex, NULL);
	pthread_mutex_init(&db->pieces.away_mutex, NULL);
	buf_init(&db->pieces.text, QUESTION_MAX);
}

void pg_pieces_free(struct pg_db *db)
{
	struct pg_pieces *pieces = &db->pieces;
	for (size_t i = 0; i < pieces->server_count; i++) {
		pg_free_connection(pieces->servers[i].connection);
		pg_free_connection(pieces->servers[i].trying);
	}
	pg_free_connection(pieces->lister);
	free(pieces->items);
	buf_free(&pieces->text);
	pthread_mutex_destroy(&pieces->mutex);
	pthread_mutex_destroy(&pieces->away_mutex);
}

/* ---- list of shards ---- */

static int note_server(struct pg_db *db, struct slice name, int64_t account)
{
	struct pg_pieces *pieces = &db->pieces;
	size_t at = 0;
	while (at < pieces->server_count && !slice_is(name, pieces->servers[at].name))
		at++;
	struct pg_piece_server *server = &pieces->servers[at];
	if (at == DB_SHARD_SERVERS_MAX || name.size >= sizeof server->name)
		return ERR_NO_MEMORY;
	if (!server->connection)
		server->connection = pg_make_connection(db, PG_READER);
	if (!server->trying)
		server->trying = pg_make_connection(db, PG_READER);
	if (!server->connection || !server->trying)
		return ERR_NO_MEMORY;
	if (at == pieces->server_count)
		pieces->server_count++;
	snprintf(server->name, sizeof server->name, "%.*s", (int)name.size, name.data);
	server->listed = true;
	server->account = account;
	return OK;
}

static int list_servers(struct pg_db *db, struct error *error)
{
	struct pg_pieces *pieces = &db->pieces;
	struct db_connection *lister = &pieces->lister->base;
	for (size_t i = 0; i < pieces->server_count; i++)
		pieces->servers[i].listed = false;
	struct db_query *query = pg_make_query(lister, servers_query, false);
	pg_bind_integer(query, ACCOUNTS_TRIED);
	pg_bind_integer(query, DB_SHARD_SERVERS_MAX);
	int result = OK;
	while (!result && pg_step(query))
		result = note_server(db, pg_text(query, 0), pg_integer(query, 1));
	int ended = pg_end(query, error);
	return result ? result : ended;
}

static int add_piece(struct pg_pieces *pieces, size_t *room, const struct pg_piece *piece)
{
	if (pieces->count == *room) {
		*room = *room ? 2 * *room : 512;
		struct pg_piece *items = realloc(pieces->items, *room * sizeof *items);
		if (!items)
			return ERR_NO_MEMORY;
		pieces->items = items;
	}
	pieces->items[pieces->count++] = *piece;
	return OK;
}

static int list_pieces(struct pg_db *db, struct error *error)
{
	struct pg_pieces *pieces = &db->pieces;
	struct db_query *query = pg_make_query(&pieces->lister->base, pieces_query, false);
	size_t room = 0;
	int result = OK;
	free(pieces->items);
	pieces->items = NULL;
	pieces->count = 0;
	while (!result && pg_step(query)) {
		struct pg_piece piece = {.from = pg_integer(query, 1), .shard = pg_integer(query, 2)};
		struct slice table = pg_text(query, 3);
		while (piece.server < pieces->server_count &&
		       !slice_is(pg_text(query, 0), pieces->servers[piece.server].name))
			piece.server++;
		snprintf(piece.table, sizeof piece.table, "%.*s", (int)table.size, table.data);
		result = piece.server < pieces->server_count
		             ? add_piece(pieces, &room, &piece)
		             : error_cause(error, ERR_INTERNAL, "a server has shards without accounts");
	}
	int ended = pg_end(query, result ? NULL : error);
	return result ? result : ended;
}

static int list_all(struct pg_db *db, struct error *error)
{
	struct pg_pieces *pieces = &db->pieces;
	if (!pieces->lister)
		pieces->lister = pg_make_connection(db, PG_READER);
	if (!pieces->lister)
		return ERR_NO_MEMORY;
	int64_t now_us = clock_monotonic_us();
	int64_t life_us = pieces->outdated ? LISTED_LEAST_US : LISTED_LIFE_US;
	if (pieces->listed_us && now_us - pieces->listed_us < life_us)
		return OK;
	pieces->lister->base.failure = OK;
	error_clear(&pieces->lister->base.error);
	struct db_query *query = pg_make_query(&pieces->lister->base, offered_query, false);
	bool offered = pg_step(query) && pg_integer(query, 0) > 0;
	int result = pg_end(query, error);
	if (!result && offered)
		result = list_servers(db, error);
	if (!result && offered)
		result = list_pieces(db, error);
	if (result)
		return result;
	pieces->listed_us = now_us;
	pieces->outdated = false;
	pieces->distributed = pieces->count > 0;
	return OK;
}

/* ---- the query ---- */

/* Writes the part with the shard's table names in place of those in braces. */
static int write_part(struct pg_pieces *pieces, const char *part, size_t first, size_t end,
                      struct error *error)
{
	for (const char *at = part; *at;) {
		size_t plain = strcspn(at, "{");
		buf_add(&pieces->text, at, plain);
		at += plain;
		if (!*at)
			break;
		struct slice name = slice_make(at + 1, strcspn(at + 1, "}"));
		size_t i = first;
		while (i < end && !slice_is(name, pieces->items[i].table))
			i++;
		if (i == end)
			return error_cause(error, ERR_INTERNAL, "%.*s is not distributed", (int)name.size,
			                   name.data);
		buf_printf(&pieces->text, "%s_%lld", pieces->items[i].table,
		           (long long)pieces->items[i].shard);
		at = name.data + name.size + 1;
	}
	return OK;
}

static int write_question(struct pg_pieces *pieces, size_t server, const char *const *parts,
                          size_t count, struct error *error)
{
	struct buf *text = &pieces->text;
	const char *joint = "SELECT string_agg(part || ' ' || account, ',') AS a FROM (";
	int result = OK;
	buf_clear(text);
	for (size_t first = 0, end; first < pieces->count && !result; first = end) {
		const struct pg_piece *piece = &pieces->items[first];
		for (end = first + 1; end < pieces->count && pieces->items[end].server == piece->server &&
		                      pieces->items[end].from == piece->from;)
			end++;
		for (size_t i = 0; i < count && piece->server == server && !result; i++) {
			buf_printf(text, "%s(SELECT %zu AS part, account FROM (", joint, i);
			result = write_part(pieces, parts[i], first, end, error);
			buf_printf(text, ") AS piece)");
			joint = " UNION ALL ";
		}
	}
	buf_printf(text, ") AS found");
	return result ? result : buf_check(text);
}

/* A late answer belongs to an earlier query; it only shows that the server is reachable. */
static void ask(struct pg_pieces *pieces, struct pg_piece_server *server)
{
	struct pg_connection *connection = server->connection;
	struct pg_query *late = server->question;
	server->late = false;
	if (late) {
		connection->base.failure = OK;
		server->late =
			!pg_collect(connection, late, clock_monotonic_us() + LATE_WAIT_US) && connection->pg;
		if (server->late)
			return;
		server->question = NULL;
		server->away = server->trial != NULL; /* otherwise wait for it again */
		(void)!pg_end(&late->base, NULL);
	}
	connection->base.failure = OK;
	error_clear(&connection->base.error);
	struct db_query *query = pg_make_query(&connection->base, question_query, false);
	pg_bind_integer(query, server->account);
	pg_bind_text(query, buf_slice(&pieces->text));
	pg_send(query);
	server->question = connection->base.failure ? NULL : pg_query(query);
}

static void start_trial(struct pg_piece_server *server)
{
	struct pg_connection *trying = server->trying;
	if (server->trial)
		return;
	trying->base.failure = OK;
	error_clear(&trying->base.error);
	struct db_query *query = pg_make_query(&trying->base, pg_shard_write, false);
	pg_bind_integer(query, server->account);
	pg_send(query);
	server->trial = trying->base.failure ? NULL : pg_query(query);
}

/* Returns whether the server commits, as far as known. */
static bool has_committed(struct pg_piece_server *server, int64_t deadline_us)
{
	struct pg_connection *trying = server->trying;
	struct pg_query *trial = server->trial;
	if (!trial)
		return true;
	trying->base.failure = OK;
	error_clear(&trying->base.error);
	if (!pg_collect(trying, trial, deadline_us) && trying->pg)
		return false;
	server->trial = NULL;
	return pg_end(&trial->base, NULL) == OK;
}

/* Parses "<row …><a>0 17,2 5</a></row>": pairs of part number and account. */
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
		if (part < count)
			found(context, part, account);
		if (*next != ',')
			return;
		at = next + 1;
	}
}

static void read_result(struct pg_pieces *pieces, struct pg_piece_server *server,
                        int64_t deadline_us, size_t count, db_found_function *found, void *context)
{
	struct pg_connection *connection = server->connection;
	struct pg_query *question = server->question;
	int64_t least_us = clock_monotonic_us() + LATE_WAIT_US;
	deadline_us = deadline_us > least_us ? deadline_us : least_us;
	if (question) { /* late, from an earlier round */
		connection->base.failure = OK;
		error_clear(&connection->base.error);
	}
	if (question && !pg_collect(connection, question, deadline_us) && connection->pg) {
		server->away = true;
		return;
	}
	server->question = NULL;
	bool silent = server->late || !has_committed(server, deadline_us);
	if (question && !silent && !connection->base.failure && pg_step(&question->base))
		read_answer(pg_text(&question->base, 0), count, found, context);
	if (question)
		(void)!pg_end(&question->base, NULL);
	int failure = connection->base.failure;
	/* An error of the statement is an answer, too: its shards may have moved. A server that
	 * answered an earlier query was not asked this one. */
	server->away = silent || failure == ERR_UNAVAILABLE;
	pieces->outdated = pieces->outdated || failure;
}

static void report_unreachable(struct pg_pieces *pieces)
{
	pthread_mutex_lock(&pieces->away_mutex);
	size_t count = 0;
	for (size_t i = 0; i < pieces->server_count; i++)
		if (pieces->servers[i].listed && pieces->servers[i].away)
			memcpy(pieces->away[count++], pieces->servers[i].name, sizeof *pieces->away);
	atomic_store(&pieces->away_count, count);
	pthread_mutex_unlock(&pieces->away_mutex);
}

static int ask_all(struct pg_pieces *pieces, const char *const *parts, size_t count,
                   db_found_function *found, void *context, bool *ret_all, struct error *error)
{
	int result = OK;
	bool doubted = atomic_exchange(&pieces->doubted, false);
	for (size_t i = 0; i < pieces->server_count && !result; i++) {
		if (!pieces->servers[i].listed)
			continue;
		result = write_question(pieces, i, parts, count, error);
		if (!result)
			ask(pieces, &pieces->servers[i]);
		if (doubted)
			start_trial(&pieces->servers[i]);
	}
	if (result)
		return result;
	int64_t now_us = clock_monotonic_us();
	*ret_all = true;
	for (size_t i = 0; i < pieces->server_count; i++) {
		struct pg_piece_server *server = &pieces->servers[i];
		if (!server->listed)
			continue;
		int64_t wait_us = server->away ? LATE_WAIT_US : ANSWER_WAIT_US;
		read_result(pieces, server, now_us + wait_us, count, found, context);
		*ret_all = *ret_all && !server->away && !server->connection->base.failure;
	}
	report_unreachable(pieces);
	return OK;
}

int pg_ask_pieces(struct db *base, const char *const *parts, size_t count, db_found_function *found,
                  void *context, struct db_asked *ret, struct error *error)
{
	struct pg_db *db = pg_db(base);
	struct pg_pieces *pieces = &db->pieces;
	pthread_mutex_lock(&pieces->mutex);
	int result = list_all(db, error);
	ret->distributed = pieces->distributed;
	if (!result && pieces->distributed)
		result = ask_all(pieces, parts, count, found, context, &ret->all, error);
	pthread_mutex_unlock(&pieces->mutex);
	return result;
}

/* ---- unreachable servers ---- */

bool pg_is_away(struct pg_pieces *pieces, struct slice name)
{
	bool found = false;
	pthread_mutex_lock(&pieces->away_mutex);
	for (size_t i = 0; i < atomic_load(&pieces->away_count); i++)
		found = found || slice_is(name, pieces->away[i]);
	pthread_mutex_unlock(&pieces->away_mutex);
	return found;
}

void pg_doubt_servers(struct pg_db *db)
{
	atomic_store(&db->pieces.doubted, true);
}

bool pg_misses_servers(const struct db *base)
{
	return atomic_load(&((const struct pg_db *)base)->pieces.away_count) > 0;
}

bool pg_misses(struct db_connection *base, int64_t account)
{
	struct db_query *query = pg_make_query(base, place_query, false);
	pg_bind_integer(query, account);
	bool away = pg_step(query) && pg_is_away(&pg_db(base->db)->pieces, pg_text(query, 0));
	return !pg_end(query, NULL) && away;
}
