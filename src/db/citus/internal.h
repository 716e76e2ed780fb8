/* Internal to the Citus driver: shared by its files.
 *
 * It extends the PostgreSQL driver, for a server whose tables are distributed by account. The
 * server of the address is the coordinator; others, the shard servers, have the rows of accounts.
 * Until tables are distributed it works like the PostgreSQL driver. */
#ifndef DB_CITUS_INTERNAL_H
#define DB_CITUS_INTERNAL_H

#include "db/postgres/postgres_internal.h"

/* The shards of all tables with the rows of the same accounts (co-located shards), which are always
 * moved together. */
#define TABLES_MAX 64
struct citus_shard_group {
	int64_t shard; /* of the table of accounts */
	struct citus_table_shard {
		char table[48];
		int64_t shard;
	} tables[TABLES_MAX];
	size_t count;
	bool outdated;                    /* it was moved */
	struct pg_connection *connection; /* to its shard server */
};

/* A pending commit of one account, detached so that the registrar can continue. */
struct citus_detached {
	PGconn *pg; /* NULL: none */
	int64_t account;
	int64_t since_us;
};
#define DETACHED_MAX 8

struct citus_connection {
	struct pg_connection pg;
	bool on_shard; /* db_bind_to_shard was called in this transaction, for `account` */
	int64_t account;
	int64_t process;      /* id of the server process, when the writer commits */
	uint64_t written;     /* position in the log of its shard's server after its last write */
	struct error refusal; /* PG_REGISTRAR: why no direct connection was available */
	/* PG_SHARD only: */
	struct citus_shard_group *group;              /* the shards in use */
	struct pg_connection *coordinator;            /* connection that locks their placement */
	struct citus_detached detached[DETACHED_MAX]; /* commits without an answer */
};

/* A query that was sent to a shard server through the coordinator, over its own connection. */
struct citus_question {
	struct pg_connection *connection;
	struct pg_query *sent; /* not answered; NULL: none */
};

/* A shard server and the query of its state. */
struct citus_shard_server {
	char name[128];
	struct citus_question check;
};

/* A server with account shards, and the queries of its shards. */
struct citus_queried_server {
	char name[128];
	bool listed;     /* in the last list of shards */
	bool away;       /* it did not answer */
	int64_t account; /* an account number that maps to this server */
	struct citus_question query;
	bool late;                   /* `query` is from an earlier round */
	struct citus_question trial; /* a test commit */
};

/* `mutex` serializes queries; `unreachable_mutex` protects only the names. */
struct citus_shard_query {
	pthread_mutex_t mutex;
	struct pg_connection *lister;
	int64_t listed_us; /* monotonic; 0: never */
	bool distributed, outdated;
	struct citus_shard *items; /* sorted by server, then by shard of the accounts */
	size_t count;
	struct citus_queried_server servers[DB_SHARD_SERVERS_MAX];
	size_t server_count;
	struct buf text; /* text of a query */
	pthread_mutex_t unreachable_mutex;
	char away[DB_SHARD_SERVERS_MAX][128];
	atomic_size_t unreachable_count;
	atomic_bool doubted; /* it is in doubt whether all servers commit */
};

struct citus_db {
	struct pg_db pg;
	struct pg_connection *lock_holder; /* private to writer_lock.c, like: */
	int64_t lock_process, lock_kept_us;
	struct citus_routes *routes[PG_REGISTRARS]; /* private to shard_connection.c */
	struct citus_shard_server shard_servers[DB_SHARD_SERVERS_MAX]; /* to shard_servers.c, like: */
	size_t shard_server_count;
	struct pg_connection *server_lister;
	struct citus_shard_query shards; /* private to shard_query.c */
};

static inline struct citus_db *citus_db(struct db *db)
{
	return (struct citus_db *)db;
}
static inline struct citus_connection *citus_connection(struct pg_connection *connection)
{
	return (struct citus_connection *)connection;
}
/* Makes a connection usable after a failure. */
static inline void citus_reset(struct pg_connection *connection)
{
	connection->base.failure = OK;
	error_clear(&connection->base.error);
}

/* Returns one row even without such an account: account 0 has a shard, too. */
#define CITUS_ON_SHARD "(SELECT count(*) FROM accounts WHERE account = $1) AS shard"
/* Primary servers (n) of the shards (p). */
#define CITUS_PLACEMENTS                                                                           \
	"pg_catalog.pg_dist_placement p JOIN pg_catalog.pg_dist_node n ON n.groupid = p.groupid"       \
	" AND n.noderole = 'primary'"
#define CITUS_SHARD_OF_ACCOUNT "get_shard_id_for_distribution_column('accounts', $1)"

/* ---- shard_servers.c: the servers, and checks of their state ---- */

/* Reads whether the database has the extension, and whether the table of accounts is distributed.
 */
int citus_find_distributed(struct db_connection *connection, bool *ret_offered,
                           bool *ret_distributed, struct error *error) MUST_CHECK;
int citus_ask_shard_servers(struct db *base, struct db_shard_server *items, size_t max,
                            size_t *ret_count, struct error *error) MUST_CHECK;
void citus_forget_shard_servers(struct citus_db *db);
/* Prepares a query over the connection, to be sent by citus_ask after its parameters are bound. */
struct db_query *citus_question(struct citus_question *question, const char *literal_sql);
void citus_ask(struct citus_question *question, struct db_query *query);

/* ---- distribute.c, check_servers.c ---- */

int citus_list_undistributed(struct db *db, struct buf *out, struct error *error) MUST_CHECK;
int citus_distribute(struct db *db, struct buf *out, const struct schema_progress *progress,
                     struct error *error) MUST_CHECK;
int citus_check_servers(struct db *db, bool has_schema, db_finding_function *found, void *context,
                        struct error *error) MUST_CHECK;

/* ---- writer_lock.c: the writer lock ---- */

/* Acquires the writer lock until citus_unlock_writer. Only the holder of the writer may call these
 * functions. */
int citus_lock_writer(struct citus_db *db, struct error *error) MUST_CHECK;
void citus_unlock_writer(struct citus_db *db);
/* Keeps the lock alive for the next statement of the writer: for the usual time, or for any
 * time. */
void citus_keep_lock(struct citus_db *db, bool however_long);
/* Confirms the lock after all statements of the transaction and directly before COMMIT. If the
 * transaction is on several servers, the commit is in two phases. ERR_UNAVAILABLE: the lock was
 * lost. */
int citus_confirm_lock(struct pg_connection *writer, struct error *error) MUST_CHECK;
/* Makes the server cancel a COMMIT that waits for another server. Returns true once all statements
 * are answered. Disconnects if they are not, but the transaction has committed or rolled back. */
bool citus_cancel_commit(struct pg_connection *writer) MUST_CHECK;

/* ---- shard_query.c: queries of all shards ---- */

void citus_shard_query_init(struct citus_db *db);
void citus_shard_query_free(struct citus_db *db);
int citus_query_shards(struct db *base, const struct db_shard_part *parts, size_t count,
                       db_found_function *found, void *context, struct db_shard_query_result *ret,
                       struct error *error) MUST_CHECK;
/* Reports a commit that took too long. In the next query each server must also make a test commit.
 * A server that does not, because it or its standby hangs, counts as unreachable until it does. */
void citus_doubt_servers(struct citus_db *db);
bool citus_has_unreachable(const struct db *base);
bool citus_is_unreachable(struct citus_db *db, struct slice name); /* "host:port" */
bool citus_is_account_unreachable(struct db_connection *base, int64_t account);
/* Writes to the shard of account $1 and returns the position in the log. */
extern const char citus_shard_write[];

/* ---- shard_connection.c: direct connections of registrars to shard servers ---- */

struct citus_routes *citus_make_routes(void);        /* NULL: no memory */
void citus_free_routes(struct citus_routes *routes); /* NULL-safe */
/* Returns the connection for a transaction of the account. Returns `coordinator`, which locates the
 * account's rows and locks their placement, if tables are not distributed or no direct connection
 * is available; its `refusal` then has the reason. */
struct pg_connection *citus_route(struct citus_routes *routes, struct pg_connection *coordinator,
                                  int64_t account);
int citus_try_server(struct db *base, const char *name, struct error *error) MUST_CHECK;
/* Returns whether the placement of the rows was locked until now, and releases the lock. */
bool citus_end_fence(struct pg_connection *connection);
/* Locks the placement of the account's rows within the transaction, and requests the check that
 * they are on this server. */
void citus_hold_shards(struct pg_connection *connection);
/* Returns the statement with shard names in place of table names; the caller frees it. NULL: no
 * memory. */
char *citus_name_shards(const struct citus_shard_group *group, const char *sql);
/* Detaches a pending commit of one account, so that the next transaction gets a new connection.
 * Returns false if there is no room. */
bool citus_detach_commit(struct pg_connection *connection) MUST_CHECK;
/* Returns whether a detached commit of the account is still pending. */
bool citus_is_detached(struct pg_connection *connection, int64_t account);
void citus_drop_detached(struct pg_connection *connection);

/* Evaluates the row of a query of a shard server's replication. The server does not report a
 * cancelled wait for standbys. So after a commit the standbys must be past the last write, else
 * the outcome is unknown. */
pg_judge_function citus_judge_shard;

#endif
