/* Checks the servers of a distributed store. Reports a line per problem, or one line that describes
 * the server. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/connect_internal.h"
#include "store/nodes/servers.h"

struct server_trial {
	struct trial *trial;
	const char *what, *name;
	size_t findings;
};

static void report_problem(struct server_trial *server, const char *setting, const char *sentence)
{
	server->findings++;
	trial_begin(server->trial, server->what, setting);
	trial_end(server->trial, true, "%s: %s", server->name, sentence);
}

static void report_unready(void *context, const char *sentence)
{
	report_problem(context, "store.sharded", sentence);
}

/* Checks that this machine reaches the worker directly, since registrations bypass the
 * coordinator. */
static void try_direct_connection(struct server_trial *server, struct db *db)
{
	struct error error = {0};
	char sentence[ERROR_CAUSE_MAX + 128];
	int result = db_try_shard_server(db, server->name, &error);
	if (!result)
		return;
	snprintf(sentence, sizeof sentence,
	         "the coordinator reaches it, but this machine, which must connect to it "
	         "directly for registrations, does not: %s",
	         error_reason(&error, result));
	report_problem(server, "store.url", sentence);
}

/* Sends further queries only to a worker that answered, since others could block. */
static void try_worker(struct trial *trial, struct db *db, const struct db_shard_server *found)
{
	struct server_trial server = {trial, "shards", found->name, 0};
	struct error error = {0};
	if (found->result)
		report_problem(&server, "store.require_replicas", found->cause);
	int result = found->answered
	                 ? servers_check_worker(db, found->name, report_unready, &server, &error)
	                 : OK;
	if (result)
		report_problem(&server, "store.url", error_reason(&error, result));
	if (found->answered)
		try_direct_connection(&server, db);
	if (server.findings)
		return;
	trial_begin(trial, server.what, "store.require_replicas");
	trial_end(trial, false, "%s", found->name);
}

static void try_workers(struct trial *trial, struct db *db)
{
	struct db_shard_server servers[DB_SHARD_SERVERS_MAX];
	struct error error = {0};
	size_t count = 0;
	int result = db_ask_shard_servers(db, servers, DB_SHARD_SERVERS_MAX, &count, &error);
	if (result) {
		trial_begin(trial, "shards", "store.url");
		trial_fail(trial, result, &error);
	}
	for (size_t i = 0; i < count; i++)
		try_worker(trial, db, &servers[i]);
}

void try_servers(struct trial *trial, struct db *db, bool has_schema)
{
	struct server_trial server = {trial, "coordinator", "coordinator", 0};
	struct servers_coordinator own;
	struct error error = {0};
	int result = servers_check_coordinator(db, trial->settings->store_sharded, has_schema, &own,
	                                       report_unready, &server, &error);
	if (result)
		report_problem(&server, "store.url", error_reason(&error, result));
	if (own.distributes && !server.findings) {
		trial_begin(trial, server.what, "store.sharded");
		trial_end(trial, false, "%s: %" PRId64 " shards on %" PRId64 " workers", own.name,
		          own.shards, own.workers);
	}
	if (own.distributes)
		try_workers(trial, db);
}
