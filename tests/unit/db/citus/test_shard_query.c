/* What is made of the servers' answers, which come late or never. Connections follow a script that
 * states, for each wait, whether an answer has arrived. */
#include "testing.h"
#include "base/clock.h"
#include "db/citus/internal.h"

enum asked { OFFERED, SERVERS, PIECES, QUESTION, TRIAL, KINDS };
static const char *const marks[KINDS] = {"count(*)", "generate_series", "shardminvalue",
                                         "query_to_xml", "pg_logical_emit_message"};
static struct pg_connection connections[8];
static size_t connection_count;
static struct pg_query queries[KINDS];
static bool stepped[KINDS];
static const char *answer; /* to the query */
static char question[1024];
static int64_t last_wait_us;
static const bool *here; /* for each wait for the answer to a query or a connection attempt */

struct pg_connection *__wrap_pg_make_connection(struct pg_db *db, enum pg_use use);
void __wrap_pg_free_connection(struct pg_connection *connection);
struct db_query *__wrap_pg_make_query(struct db_connection *connection, const char *sql,
                                      bool is_long);
void __wrap_pg_bind_integer(struct db_query *query, int64_t value);
void __wrap_pg_bind_text(struct db_query *query, struct slice text);
void __wrap_pg_send(struct db_query *query);
bool __wrap_pg_step(struct db_query *query);
int __wrap_pg_end(struct db_query *query, struct error *error);
int64_t __wrap_pg_integer(struct db_query *query, int column);
struct slice __wrap_pg_text(struct db_query *query, int column);
bool __wrap_pg_collect(struct pg_connection *connection, const struct pg_query *until,
                       int64_t deadline_us);

struct pg_connection *__wrap_pg_make_connection(struct pg_db *db, enum pg_use use)
{
	(void)use;
	struct pg_connection *connection = &connections[connection_count++];
	connection->base.db = &db->base;
	connection->pg = (PGconn *)connection; /* it is connected */
	return connection;
}

void __wrap_pg_free_connection(struct pg_connection *connection)
{
	(void)connection;
}

static enum asked kind_of(const struct db_query *query)
{
	return (enum asked)((const struct pg_query *)query - queries);
}

struct db_query *__wrap_pg_make_query(struct db_connection *connection, const char *sql,
                                      bool is_long)
{
	(void)is_long;
	enum asked kind = QUESTION;
	for (size_t i = 0; i < KINDS; i++)
		if (strstr(sql, marks[i]) && (i != OFFERED || strstr(sql, "to_regclass")))
			kind = (enum asked)i;
	queries[kind].base.connection = connection;
	stepped[kind] = false;
	return &queries[kind].base;
}

void __wrap_pg_bind_integer(struct db_query *query, int64_t value)
{
	(void)query, (void)value;
}

void __wrap_pg_bind_text(struct db_query *query, struct slice text)
{
	(void)query;
	snprintf(question, sizeof question, "%.*s", (int)text.size, text.data);
}

void __wrap_pg_send(struct db_query *query)
{
	(void)query;
}

/* Each answer is one row. */
bool __wrap_pg_step(struct db_query *query)
{
	bool first = !stepped[kind_of(query)];
	stepped[kind_of(query)] = true;
	return first;
}

int __wrap_pg_end(struct db_query *query, struct error *error)
{
	(void)query, (void)error;
	return OK;
}

int64_t __wrap_pg_integer(struct db_query *query, int column)
{
	(void)query;
	return column + 1; /* any number */
}

struct slice __wrap_pg_text(struct db_query *query, int column)
{
	if (kind_of(query) == QUESTION)
		return slice_of(answer);
	return slice_of(kind_of(query) == PIECES && column == 3 ? "mails" : "one:5432");
}

bool __wrap_pg_collect(struct pg_connection *connection, const struct pg_query *until,
                       int64_t deadline_us)
{
	(void)connection, (void)until;
	last_wait_us = deadline_us - clock_monotonic_us();
	return *here++;
}

static int64_t limits; /* the sum of the accounts that are the last ones within the limit */

static void note(void *context, size_t part, int64_t account, bool is_limit)
{
	(void)part;
	*(int64_t *)context = account;
	limits += is_limit ? account : 0;
}

static struct db_shard_part part = {.text = "SELECT account FROM {mails}", .limit = 2};

/* The account that is found, 0: none. */
static int64_t ask(struct citus_db *db, const char *said, const bool *when,
                   struct db_shard_query_result *ret)
{
	int64_t account = 0;
	answer = said;
	here = when;
	assert_int_equal(citus_query_shards(&db->pg.base, &part, 1, note, &account, ret, NULL), OK);
	return account;
}

static void open_queries(struct citus_db *db)
{
	memset(connections, 0, sizeof connections);
	connection_count = 0;
	citus_shard_query_init(db);
}

TEST_CASE(an_answer_is_one_to_the_question_that_was_asked)
{
	struct citus_db db = {0};
	struct db_shard_query_result asked;
	open_queries(&db);
	assert_int_equal(ask(&db, "<a>0 17</a>", (bool[]){true}, &asked), 17);
	assert_true(asked.all);
	assert_int_equal(ask(&db, "", (bool[]){false}, &asked), 0);
	assert_false(asked.all);
	assert_true(citus_has_unreachable(&db.pg.base));
	/* It is here while somebody waits for the next one, which was not asked yet. */
	assert_int_equal(ask(&db, "<a>0 17</a>", (bool[]){false, true}, &asked), 0);
	assert_false(asked.all);
	assert_int_equal(ask(&db, "<a>0 23</a>", (bool[]){true}, &asked), 23);
	assert_true(asked.all);
	assert_false(citus_has_unreachable(&db.pg.base));
	citus_shard_query_free(&db);
}

TEST_CASE(a_server_that_does_not_commit_is_away)
{
	struct citus_db db = {0};
	struct db_shard_query_result asked;
	open_queries(&db);
	assert_int_equal(ask(&db, "<a>0 17</a>", (bool[]){true}, &asked), 17);
	citus_doubt_servers(&db);
	assert_int_equal(ask(&db, "<a>0 17</a>", (bool[]){true, false}, &asked), 0);
	assert_true(citus_has_unreachable(&db.pg.base));
	assert_int_equal(ask(&db, "<a>0 17</a>", (bool[]){true, false}, &asked), 0);
	assert_int_equal(ask(&db, "<a>0 17</a>", (bool[]){true, true}, &asked), 17);
	assert_false(citus_has_unreachable(&db.pg.base));
	assert_int_equal(ask(&db, "<a>0 17</a>", (bool[]){true}, &asked), 17);
	citus_shard_query_free(&db);
}

TEST_CASE(a_server_that_commits_again_is_awaited_as_usual)
{
	struct citus_db db = {0};
	struct db_shard_query_result asked;
	open_queries(&db);
	assert_int_equal(ask(&db, "<a>0 17</a>", (bool[]){true}, &asked), 17);
	citus_doubt_servers(&db);
	assert_int_equal(ask(&db, "", (bool[]){true, false}, &asked), 0);
	assert_int_equal(ask(&db, "", (bool[]){false}, &asked), 0);
	assert_true(last_wait_us < US_PER_SECOND);
	/* The answers to the former question and to the trial are here, that to the next one is not. */
	assert_int_equal(ask(&db, "", (bool[]){true, true, false}, &asked), 0);
	assert_true(last_wait_us > US_PER_SECOND);
	assert_int_equal(ask(&db, "<a>0 17</a>", (bool[]){true, true}, &asked), 17);
	assert_false(citus_has_unreachable(&db.pg.base));
	citus_shard_query_free(&db);
}

TEST_CASE(the_last_accounts_within_the_limit_are_marked)
{
	struct citus_db db = {0};
	struct db_shard_query_result asked;
	open_queries(&db);
	limits = 0;
	assert_int_equal(ask(&db, "<a>0 17,0 23+,0 5,0 9+</a>", (bool[]){true}, &asked), 9);
	assert_int_equal(limits, 23 + 9);
	assert_non_null(strstr(question, "(SELECT account FROM mails_3 ORDER BY account LIMIT 2)"));
	citus_shard_query_free(&db);
}

TEST_CASE(accounts_before_the_first_one_follow_after_the_others)
{
	struct citus_db db = {0};
	struct db_shard_query_result asked;
	open_queries(&db);
	part.from = 24;
	assert_int_equal(ask(&db, "<a>0 31+</a>", (bool[]){true}, &asked), 31);
	part.from = 0;
	assert_non_null(strstr(
		question,
		"row_number() OVER (ORDER BY account < 24, account) = 2 THEN '+' ELSE '' END AS mark FROM ("
		"(SELECT account FROM (SELECT account FROM mails_3) AS half WHERE account >= 24"
		" ORDER BY account LIMIT 2) UNION ALL"
		" (SELECT account FROM (SELECT account FROM mails_3) AS half WHERE account < 24"
		" ORDER BY account LIMIT 2)) AS shard ORDER BY account < 24, account LIMIT 2)"));
	citus_shard_query_free(&db);
}

TEST_MAIN(NULL, NULL)
