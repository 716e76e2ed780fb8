/* Checks that the servers are configured as docs/operate/sharding.md requires. The coordinator
 * passes queries of the shard servers (workers) on. Changes nothing and does not wait for the
 * writer lock. The role need not be a superuser. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "db/citus/internal.h"

#define SENTENCE_MAX 512
#define NAMES_MAX ((size_t)8192)
#define IDENTIFIER_MAX 64 /* the server's limit, including NUL */
#define NAME "n.nodename || ':' || n.nodeport"
#define SEPARATOR "chr(31)"

struct reporter {
	db_finding_function *found;
	void *context;
	const char *what, *name; /* the server */
	size_t problems;
};

static void report(struct reporter *reporter, const char *setting, const char *problem)
{
	char sentence[SENTENCE_MAX + 128];
	snprintf(sentence, sizeof sentence, "%s: %s", reporter->name, problem);
	reporter->problems++;
	reporter->found(reporter->context, reporter->what, setting, true, sentence);
}

__attribute__((format(printf, 2, 3))) static void report_problem(struct reporter *reporter,
                                                                 const char *format, ...)
{
	char sentence[SENTENCE_MAX];
	va_list list;
	va_start(list, format);
	vsnprintf(sentence, sizeof sentence, format, list);
	va_end(list);
	report(reporter, "store.sharded", sentence);
}

static void copy(struct db_query *query, int column, char *text, size_t size)
{
	struct slice value = db_text(query, column);
	snprintf(text, size, "%.*s", (int)value.size, value.data ? value.data : "");
}

/* ---- queries of every server ---- */

/* The start time distinguishes a server from the one that it replaced after a promotion. */
#define STARTED "extract(epoch FROM pg_postmaster_start_time())::text"
#define COMMON                                                                                     \
	STARTED ", COALESCE((SELECT extversion FROM pg_extension WHERE extname = 'citus'), ''),"       \
			" current_setting('max_prepared_transactions'),"                                       \
			" pg_has_role('pg_read_all_stats', 'USAGE')::int::text"
#define COMMON_COUNT 4
struct common {
	char started[48], extension[32], prepared[16];
	bool sees_standbys;
};

static void read_common(struct db_query *query, int first, struct common *ret)
{
	copy(query, first, ret->started, sizeof ret->started);
	copy(query, first + 1, ret->extension, sizeof ret->extension);
	copy(query, first + 2, ret->prepared, sizeof ret->prepared);
	ret->sees_standbys = slice_is(db_text(query, first + 3), "1");
}

static void check_common(struct reporter *reporter, const struct common *common, const char *role,
                         int64_t connections)
{
	if (strtoll(common->prepared, NULL, 10) < connections)
		report_problem(
			reporter,
			"max_prepared_transactions is %s, less than the coordinator's max_connections "
			"(%" PRId64 "): increase it, also on the standbys",
			common->prepared, connections);
	if (!common->sees_standbys)
		report_problem(reporter, "the role lacks pg_read_all_stats: GRANT pg_read_all_stats TO %s",
		               role);
}

/* ---- the coordinator ---- */

struct summary {
	bool distributes; /* the server supports it, and tables are or will be distributed */
	char name[128];   /* of its own entry; empty: none */
	int64_t workers;  /* number of registered workers */
	int64_t shards;   /* of table accounts; 0: not distributed yet */
};

struct coordinator {
	struct common common;
	char role[IDENTIFIER_MAX], database[IDENTIFIER_MAX];
	int64_t connections;
	bool reads_settings;
};
static const char coordinator_query[] =
	"SELECT " COMMON ", current_user::text, current_database()::text,"
	" current_setting('max_connections')::bigint,"
	" pg_has_role('pg_read_all_settings', 'USAGE')::int::bigint";

static int read_coordinator(struct db_connection *reader, struct coordinator *ret,
                            struct error *error)
{
	struct db_query *query = db_query(reader, coordinator_query);
	if (db_step(query)) {
		read_common(query, 0, &ret->common);
		copy(query, COMMON_COUNT, ret->role, sizeof ret->role);
		copy(query, COMMON_COUNT + 1, ret->database, sizeof ret->database);
		ret->connections = db_integer(query, COMMON_COUNT + 2);
		ret->reads_settings = db_integer(query, COMMON_COUNT + 3) != 0;
	}
	return db_end(query, error);
}

/* Connection parameters that detect an unreachable worker. */
static const char missing_keywords_query[] =
	"SELECT string_agg(word, ', ') FROM unnest(ARRAY['connect_timeout', 'keepalives_idle',"
	" 'keepalives_interval', 'keepalives_count', 'tcp_user_timeout']) AS word"
	" WHERE current_setting('citus.node_conninfo') !~ ('(^|\\s)' || word || '\\s*=')";

static int check_conninfo(struct db_connection *reader, const struct coordinator *own,
                          struct reporter *reporter, struct error *error)
{
	if (!own->reads_settings) {
		report_problem(
			reporter,
			"citus.node_conninfo is hidden from this role: GRANT pg_read_all_settings TO %s",
			own->role);
		return OK;
	}
	struct db_query *query = db_query(reader, missing_keywords_query);
	if (db_step(query) && !db_is_null(query, 0))
		report_problem(
			reporter,
			"citus.node_conninfo lacks %.*s: without these the coordinator detects an unreachable "
			"worker too late",
			(int)db_text(query, 0).size, db_text(query, 0).data);
	return db_end(query, error);
}

/* The server to which the coordinator's own entry leads. */
static const char own_entry_query[] =
	"SELECT " NAME ", success::int::bigint, result FROM pg_catalog.pg_dist_node n,"
	" LATERAL master_run_on_worker(ARRAY[n.nodename], ARRAY[n.nodeport],"
	" ARRAY['SELECT " STARTED "'], false) AS answer"
	" WHERE n.groupid = 0 AND n.noderole = 'primary'";

static int check_name(struct db_connection *reader, const struct coordinator *own,
                      struct summary *ret, struct reporter *reporter, struct error *error)
{
	static const char remedy[] = "call citus_set_coordinator_host('HOST', PORT)";
	struct db_query *query = db_query(reader, own_entry_query);
	if (!db_step(query)) {
		report_problem(reporter, "the coordinator has no entry for itself: %s", remedy);
		return db_end(query, error);
	}
	copy(query, 0, ret->name, sizeof ret->name);
	struct slice reply = db_text(query, 2);
	if (db_integer(query, 1) == 0)
		report_problem(reporter, "its own address, %s, does not answer (%.*s): %s", ret->name,
		               (int)reply.size, reply.data, remedy);
	else if (!slice_is(reply, own->common.started))
		report_problem(reporter, "its own address, %s, leads to another server: %s", ret->name,
		               remedy);
	return db_end(query, error);
}

#define SHARDS_OF_ACCOUNTS                                                                         \
	"pg_catalog.pg_dist_shard s JOIN pg_catalog.pg_dist_placement p USING (shardid)"               \
	" WHERE s.logicalrelid = to_regclass('accounts') AND s.shardminvalue IS NOT NULL"
static const char shards_query[] =
	"SELECT (SELECT count(*) FROM pg_catalog.pg_dist_node WHERE groupid > 0 AND"
	" noderole = 'primary' AND isactive), (SELECT count(*) FROM " SHARDS_OF_ACCOUNTS "),"
	" (SELECT count(*) FROM " SHARDS_OF_ACCOUNTS " AND p.groupid = 0),"
	" current_setting('citus.shard_count')::bigint";

/* Checks the existing shards, or the configured number of shards. */
static int check_shards(struct db_connection *reader, const struct coordinator *own,
                        struct summary *ret, struct reporter *reporter, struct error *error)
{
	int64_t misplaced = 0, planned = 0;
	struct db_query *query = db_query(reader, shards_query);
	if (db_step(query)) {
		ret->workers = db_integer(query, 0);
		ret->shards = db_integer(query, 1);
		misplaced = db_integer(query, 2);
		planned = db_integer(query, 3);
	}
	int result = db_end(query, error);
	if (result)
		return result;
	if (ret->workers == 0)
		report_problem(reporter,
		               "no workers are registered: call citus_add_node('HOST', PORT) for each");
	if (misplaced)
		report_problem(reporter,
		               "the coordinator holds %" PRId64
		               " shards, which belong on workers: set shouldhaveshards to false "
		               "with citus_set_node_property and call citus_rebalance_start()",
		               misplaced);
	if (ret->shards && ret->shards < ret->workers)
		report_problem(reporter,
		               "there are %" PRId64 " shards for %" PRId64
		               " workers, and shards are never split: "
		               "restore a backup into a database with a higher citus.shard_count",
		               ret->shards, ret->workers);
	else if (!ret->shards && planned < ret->workers)
		report_problem(reporter,
		               "citus.shard_count is %" PRId64 " for %" PRId64
		               " workers: ALTER DATABASE %s SET "
		               "citus.shard_count = 32",
		               planned, ret->workers, own->database);
	return OK;
}

static int check_tables(struct db *db, struct reporter *reporter, struct error *error)
{
	BUF_AUTO struct buf names;
	buf_init(&names, NAMES_MAX);
	size_t count = 0;
	int result = citus_list_undistributed(db, &names, error);
	if (result || !names.size)
		return result;
	for (size_t i = 0; i < names.size; i++)
		count += names.data[i] == '\n';
	report_problem(reporter,
	               "%zu tables are not distributed as required, the first is %.*s: run constancia "
	               "store distribute",
	               count, (int)strcspn(names.data, "\n"), names.data);
	return OK;
}

/* Reads whether the tables are distributed. Also reports a mismatch between the server and
 * store.sharded. */
static int find_distributed(struct db_connection *reader, bool sharded, bool *ret_distributes,
                            struct reporter *reporter, struct error *error)
{
	bool offered, distributed;
	int result = citus_find_distributed(reader, &offered, &distributed, error);
	if (result)
		return result;
	if (sharded && !offered)
		report_problem(reporter, "the database distributes no tables: CREATE EXTENSION citus, or "
		                         "remove store.sharded");
	if (distributed && !sharded)
		report_problem(reporter, "its tables are distributed: set store.sharded = true");
	*ret_distributes = offered && (sharded || distributed);
	return OK;
}

static int check_own(struct db_connection *reader, struct summary *ret, struct reporter *reporter,
                     struct error *error)
{
	struct coordinator own = {0};
	int result = read_coordinator(reader, &own, error);
	if (result)
		return result;
	check_common(reporter, &own.common, own.role, own.connections);
	result = check_conninfo(reader, &own, reporter, error)
		?: check_name(reader, &own, ret, reporter, error)
		?: check_shards(reader, &own, ret, reporter, error);
	return result;
}

static int check_coordinator(struct db *db, bool has_schema, struct summary *ret,
                             struct reporter *reporter, struct error *error)
{
	struct db_connection *reader = db_take_reader(db);
	int result = find_distributed(reader, db->sharded, &ret->distributes, reporter, error);
	if (!result && ret->distributes)
		result = check_own(reader, ret, reporter, error);
	db_give(reader);
	if (!result && ret->distributes && has_schema)
		result = check_tables(db, reporter, error);
	return result;
}

/* ---- a worker ---- */

/* Settings of one transaction do not reach the sessions on the workers. */
static const struct {
	const char *name, *wrong, *remedy;
} session_settings[] = {
	{"lock_timeout", "0", "'5s'"},
	{"jit", "on", "off"},
	{"enable_seqscan", "on", "off"},
};
#define SESSION_SETTINGS                                                                           \
	"current_setting('lock_timeout'), current_setting('jit'), current_setting('enable_seqscan')"
#define SESSION_SETTINGS_COUNT 3
static const char worker_question[] =
	"SELECT concat_ws(" SEPARATOR ", " COMMON ", " SESSION_SETTINGS ")";
enum { ANSWERED, RESPONSE, SHARDS, SHARDS_OF_ALL, FACTS };
static const char worker_query[] =
	"SELECT success::int::bigint, result, (SELECT count(*) FROM " SHARDS_OF_ACCOUNTS
	" AND p.groupid = one.groupid), (SELECT count(*) FROM " SHARDS_OF_ACCOUNTS "),"
	" part[1], part[2], part[3], part[4], part[5], part[6], part[7]"
	" FROM (SELECT n.groupid, success, result, string_to_array(result, " SEPARATOR ") AS part"
	" FROM pg_catalog.pg_dist_node n, LATERAL master_run_on_worker(ARRAY[n.nodename],"
	" ARRAY[n.nodeport], ARRAY[$2], false) AS answer WHERE " NAME " = $1"
	" AND n.noderole = 'primary') AS one";

static void check_session(struct db_query *query, const struct coordinator *own,
                          struct reporter *reporter)
{
	for (int i = 0; i < SESSION_SETTINGS_COUNT; i++) {
		struct slice value = db_text(query, FACTS + COMMON_COUNT + i);
		if (slice_is(value, session_settings[i].wrong))
			report_problem(reporter,
			               "sessions have %s = %.*s: ALTER ROLE %s IN DATABASE %s SET %s = %s",
			               session_settings[i].name, (int)value.size, value.data, own->role,
			               own->database, session_settings[i].name, session_settings[i].remedy);
	}
}

static void check_worker_facts(struct db_query *query, const struct coordinator *own,
                               struct reporter *reporter)
{
	struct common common;
	read_common(query, FACTS, &common);
	check_common(reporter, &common, own->role, own->connections);
	if (strcmp(common.extension, own->common.extension) != 0)
		report_problem(
			reporter,
			"the extension is '%s', the coordinator's is '%s': ALTER EXTENSION citus UPDATE",
			common.extension, own->common.extension);
	check_session(query, own, reporter);
	if (db_integer(query, SHARDS_OF_ALL) > 0 && db_integer(query, SHARDS) == 0)
		report_problem(reporter,
		               "the worker has no shards: call citus_rebalance_start() on the coordinator");
}

static int ask_worker(struct db *db, struct reporter *reporter, struct error *error)
{
	struct coordinator own = {0};
	struct db_connection *reader = db_take_reader(db);
	char reply[128] = "the coordinator has no entry for it";
	bool answered = false;
	int result = read_coordinator(reader, &own, error);
	if (!result) {
		struct db_query *query = db_query(reader, worker_query);
		db_bind(query, reporter->name, worker_question);
		bool known = db_step(query);
		answered = known && db_integer(query, ANSWERED) != 0;
		if (answered)
			check_worker_facts(query, &own, reporter);
		else if (known)
			copy(query, RESPONSE, reply, sizeof reply);
		result = db_end(query, error);
	}
	db_give(reader);
	return result || answered ? result : error_cause(error, ERR_UNAVAILABLE, "%s", reply);
}

/* Registrations do not use the coordinator's connections. A worker that did not answer is not asked
 * again, because that might hang. */
static void check_worker(struct db *db, const struct db_shard_server *server,
                         struct reporter *reporter)
{
	struct error error = {0};
	char sentence[SENTENCE_MAX];
	if (server->result)
		report(reporter, "store.require_replicas", server->cause);
	int result = server->answered ? ask_worker(db, reporter, &error) : OK;
	if (result)
		report(reporter, "store.url", error_reason(&error, result));
	error_clear(&error);
	result = server->answered ? citus_try_server(db, server->name, &error) : OK;
	snprintf(sentence, sizeof sentence,
	         "the coordinator reaches it, but this machine, which must connect to it "
	         "directly for registrations, does not: %s",
	         error_reason(&error, result));
	if (result)
		report(reporter, "store.url", sentence);
	if (!reporter->problems)
		reporter->found(reporter->context, reporter->what, "store.require_replicas", false,
		                server->name);
}

static int check_workers(struct db *db, db_finding_function *found, void *context,
                         struct error *error)
{
	struct db_shard_server servers[DB_SHARD_SERVERS_MAX];
	size_t count = 0;
	int result = db_check_shard_servers(db, servers, DB_SHARD_SERVERS_MAX, &count, error);
	for (size_t i = 0; i < count; i++) {
		struct reporter reporter = {found, context, "shards", servers[i].name, 0};
		check_worker(db, &servers[i], &reporter);
	}
	return result;
}

int citus_check_servers(struct db *db, bool has_schema, db_finding_function *found, void *context,
                        struct error *error)
{
	struct reporter reporter = {found, context, "coordinator", "coordinator", 0};
	struct summary summary = {0};
	struct error failed = {0};
	char sentence[SENTENCE_MAX];
	int result = check_coordinator(db, has_schema, &summary, &reporter, &failed);
	if (result)
		report(&reporter, "store.url", error_reason(&failed, result));
	if (!summary.distributes)
		return OK;
	snprintf(sentence, sizeof sentence, "%s: %" PRId64 " shards on %" PRId64 " workers",
	         summary.name, summary.shards, summary.workers);
	if (!reporter.problems)
		found(context, reporter.what, "store.sharded", false, sentence);
	return check_workers(db, found, context, error);
}
