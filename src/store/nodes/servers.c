#include "store/nodes/servers.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SENTENCE_MAX 512
#define NAMES_MAX ((size_t)8192)
#define IDENTIFIER_MAX 64 /* the server's own limit, with the end */
#define NAME "n.nodename || ':' || n.nodeport"
#define APART "chr(31)"

struct told {
	servers_found *found;
	void *context;
};

__attribute__((format(printf, 2, 3))) static void tell(const struct told *told, const char *format,
                                                       ...)
{
	char sentence[SENTENCE_MAX];
	va_list list;
	va_start(list, format);
	vsnprintf(sentence, sizeof sentence, format, list);
	va_end(list);
	told->found(told->context, sentence);
}

static void copy(struct db_query *query, int column, char *text, size_t size)
{
	struct slice value = db_text(query, column);
	snprintf(text, size, "%.*s", (int)value.size, value.data ? value.data : "");
}

/* ---- what every server is asked ---- */

/* When it was started tells a server from the one that it was promoted in the place of. */
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

static void judge_common(const struct told *told, const struct common *common, const char *role,
                         int64_t connections)
{
	if (strtoll(common->prepared, NULL, 10) < connections)
		tell(told,
		     "max_prepared_transactions is %s, less than the coordinator's max_connections "
		     "(%" PRId64 "): raise it, on its standbys too",
		     common->prepared, connections);
	if (!common->sees_standbys)
		tell(told, "the role lacks pg_read_all_stats: GRANT pg_read_all_stats TO %s", role);
}

/* ---- the coordinator ---- */

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

/* By what it finds out that a worker was cut off. */
static const char lacking_query[] =
	"SELECT string_agg(word, ', ') FROM unnest(ARRAY['connect_timeout', 'keepalives_idle',"
	" 'keepalives_interval', 'keepalives_count', 'tcp_user_timeout']) AS word"
	" WHERE current_setting('citus.node_conninfo') !~ ('(^|\\s)' || word || '\\s*=')";

static int check_conninfo(struct db_connection *reader, const struct coordinator *own,
                          const struct told *told, struct error *error)
{
	if (!own->reads_settings) {
		tell(told, "citus.node_conninfo is hidden from this role: GRANT pg_read_all_settings TO %s",
		     own->role);
		return OK;
	}
	struct db_query *query = db_query(reader, lacking_query);
	if (db_step(query) && !db_is_null(query, 0))
		tell(told,
		     "citus.node_conninfo lacks %.*s: without them it does not find out in time that a "
		     "worker was cut off",
		     (int)db_text(query, 0).size, db_text(query, 0).data);
	return db_end(query, error);
}

/* Whom the name that it is known by leads to. */
static const char named_query[] =
	"SELECT " NAME ", success::int::bigint, result FROM pg_catalog.pg_dist_node n,"
	" LATERAL master_run_on_worker(ARRAY[n.nodename], ARRAY[n.nodeport],"
	" ARRAY['SELECT " STARTED "'], false) AS answer"
	" WHERE n.groupid = 0 AND n.noderole = 'primary'";

static int check_name(struct db_connection *reader, const struct coordinator *own,
                      struct servers_coordinator *ret, const struct told *told, struct error *error)
{
	static const char remedy[] = "call citus_set_coordinator_host('HOST', PORT)";
	struct db_query *query = db_query(reader, named_query);
	if (!db_step(query)) {
		tell(told, "it does not know its own name: %s", remedy);
		return db_end(query, error);
	}
	copy(query, 0, ret->name, sizeof ret->name);
	struct slice said = db_text(query, 2);
	if (db_integer(query, 1) == 0)
		tell(told, "its own name, %s, does not answer (%.*s): %s", ret->name, (int)said.size,
		     said.data, remedy);
	else if (!slice_is(said, own->common.started))
		tell(told, "its own name, %s, is that of another server: %s", ret->name, remedy);
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

/* As they are, or will be. */
static int check_shards(struct db_connection *reader, const struct coordinator *own,
                        struct servers_coordinator *ret, const struct told *told,
                        struct error *error)
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
		tell(told, "it knows no worker: call citus_add_node('HOST', PORT) for each");
	if (misplaced)
		tell(told,
		     "it has %" PRId64
		     " shards itself, which belong on workers: set shouldhaveshards to false "
		     "by citus_set_node_property, and call citus_rebalance_start()",
		     misplaced);
	if (ret->shards && ret->shards < ret->workers)
		tell(told,
		     "there are %" PRId64 " shards for %" PRId64
		     " workers, and none is ever divided: bring "
		     "a backup into a database with more (citus.shard_count)",
		     ret->shards, ret->workers);
	else if (!ret->shards && planned < ret->workers)
		tell(told,
		     "citus.shard_count is %" PRId64 " for %" PRId64 " workers: ALTER DATABASE %s SET "
		     "citus.shard_count = 32",
		     planned, ret->workers, own->database);
	return OK;
}

static int check_tables(struct db *db, const struct told *told, struct error *error)
{
	BUF_AUTO struct buf names;
	buf_init(&names, NAMES_MAX);
	size_t count = 0;
	int result = servers_list_undistributed(db, &names, error);
	if (result || !names.size)
		return result;
	for (size_t i = 0; i < names.size; i++)
		count += names.data[i] == '\n';
	tell(
		told,
		"tables that are not distributed as they are to be: %zu, the first of them %.*s: constancia "
		"store distribute",
		count, (int)strcspn(names.data, "\n"), names.data);
	return OK;
}

static const char offered_query[] = "SELECT count(*)::bigint FROM pg_catalog.pg_class"
									" WHERE oid = to_regclass('pg_catalog.pg_dist_node')";
static const char distributed_query[] =
	"SELECT count(*)::bigint FROM pg_catalog.pg_dist_partition"
	" WHERE logicalrelid = to_regclass('accounts') AND partmethod = 'h'";

static int end_count(struct db_query *query, bool *ret_some, struct error *error)
{
	*ret_some = db_step(query) && db_integer(query, 0) > 0;
	return db_end(query, error);
}

/* Tells, too, where only one of the server and the settings is for distributed tables. */
static int find_distributed(struct db_connection *reader, bool sharded, bool *ret_distributes,
                            const struct told *told, struct error *error)
{
	bool offered = false, distributed = false;
	int result = end_count(db_query(reader, offered_query), &offered, error);
	if (!result && offered)
		result = end_count(db_query(reader, distributed_query), &distributed, error);
	if (result)
		return result;
	if (sharded && !offered)
		tell(told, "the database distributes no tables: CREATE EXTENSION citus, or leave "
		           "store.sharded out");
	if (distributed && !sharded)
		tell(told, "its tables are distributed: store.sharded = true");
	*ret_distributes = offered && (sharded || distributed);
	return OK;
}

static int check_own(struct db_connection *reader, struct servers_coordinator *ret,
                     const struct told *told, struct error *error)
{
	struct coordinator own = {0};
	int result = read_coordinator(reader, &own, error);
	if (result)
		return result;
	judge_common(told, &own.common, own.role, own.connections);
	result = check_conninfo(reader, &own, told, error);
	if (!result)
		result = check_name(reader, &own, ret, told, error);
	if (!result)
		result = check_shards(reader, &own, ret, told, error);
	return result;
}

int servers_check_coordinator(struct db *db, bool sharded, bool has_schema,
                              struct servers_coordinator *ret, servers_found *found, void *context,
                              struct error *error)
{
	struct told told = {found, context};
	struct db_connection *reader = db_take_reader(db);
	*ret = (struct servers_coordinator){0};
	int result = find_distributed(reader, sharded, &ret->distributes, &told, error);
	if (!result && ret->distributes)
		result = check_own(reader, ret, &told, error);
	db_give(reader);
	if (!result && ret->distributes && has_schema)
		result = check_tables(db, &told, error);
	return result;
}

/* ---- a worker ---- */

/* What a transaction sets for itself does not reach the sessions there. */
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
	"SELECT concat_ws(" APART ", " COMMON ", " SESSION_SETTINGS ")";
enum { ANSWERED, SAID, SHARDS, SHARDS_OF_ALL, FACTS };
static const char worker_query[] =
	"SELECT success::int::bigint, result, (SELECT count(*) FROM " SHARDS_OF_ACCOUNTS
	" AND p.groupid = one.groupid), (SELECT count(*) FROM " SHARDS_OF_ACCOUNTS "),"
	" part[1], part[2], part[3], part[4], part[5], part[6], part[7]"
	" FROM (SELECT n.groupid, success, result, string_to_array(result, " APART ") AS part"
	" FROM pg_catalog.pg_dist_node n, LATERAL master_run_on_worker(ARRAY[n.nodename],"
	" ARRAY[n.nodeport], ARRAY[$2], false) AS answer WHERE " NAME " = $1"
	" AND n.noderole = 'primary') AS one";

static void judge_session(struct db_query *query, const struct coordinator *own,
                          const struct told *told)
{
	for (int i = 0; i < SESSION_SETTINGS_COUNT; i++) {
		struct slice value = db_text(query, FACTS + COMMON_COUNT + i);
		if (slice_is(value, session_settings[i].wrong))
			tell(told, "sessions have %s = %.*s: ALTER ROLE %s IN DATABASE %s SET %s = %s",
			     session_settings[i].name, (int)value.size, value.data, own->role, own->database,
			     session_settings[i].name, session_settings[i].remedy);
	}
}

static void judge_worker(struct db_query *query, const struct coordinator *own,
                         const struct told *told)
{
	struct common common;
	read_common(query, FACTS, &common);
	judge_common(told, &common, own->role, own->connections);
	if (strcmp(common.extension, own->common.extension) != 0)
		tell(told, "the extension is '%s', the coordinator's is '%s': ALTER EXTENSION citus UPDATE",
		     common.extension, own->common.extension);
	judge_session(query, own, told);
	if (db_integer(query, SHARDS_OF_ALL) > 0 && db_integer(query, SHARDS) == 0)
		tell(told, "it has no shards: call citus_rebalance_start() on the coordinator");
}

int servers_check_worker(struct db *db, const char *name, servers_found *found, void *context,
                         struct error *error)
{
	struct told told = {found, context};
	struct coordinator own = {0};
	struct db_connection *reader = db_take_reader(db);
	char said[128] = "nobody knows it";
	bool answered = false;
	int result = read_coordinator(reader, &own, error);
	if (!result) {
		struct db_query *query = db_query(reader, worker_query);
		db_bind_string(query, name);
		db_bind_string(query, worker_question);
		bool known = db_step(query);
		answered = known && db_integer(query, ANSWERED) != 0;
		if (answered)
			judge_worker(query, &own, &told);
		else if (known)
			copy(query, SAID, said, sizeof said);
		result = db_end(query, error);
	}
	db_give(reader);
	if (!result && !answered)
		result = error_cause(error, ERR_UNAVAILABLE, "%s", said);
	return result;
}
