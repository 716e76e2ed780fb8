#include "chains.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/store_internal.h"

static void run(struct store *store, const char *sql)
{
	struct error error;
	error_clear(&error);
	struct db_connection *writer = db_take_writer(store->db);
	int result = db_begin(writer, &error);
	if (!result)
		result = db_run(writer, sql, &error);
	if (!result)
		result = db_commit(writer, &error);
	db_give(writer);
	if (result) {
		fprintf(stderr, "bench: %d %s\n", result, error.cause);
		exit(2);
	}
}

void chains_copy(struct store *store, int64_t account, int64_t channel, long count, long accounts)
{
	static const char *const copies[] = {
		"INSERT INTO accounts (account, account_id, name, created_at, active_at, balance,"
		" last_entry) SELECT account + n, substr(account_id, 1, 8) || n, name, created_at,"
		" active_at, balance, last_entry FROM accounts, numbers WHERE account = first_account"
		" AND n < each",
		"INSERT INTO channels SELECT account + n % each, channel + n, substr(channel_id, 1, 8) || n,"
		" created_at, suspended, config_version FROM channels, numbers"
		" WHERE account = first_account AND channel = first_channel",
		"INSERT INTO channel_configs SELECT account + n % each, channel + n, version, sealed_at,"
		" modality, name, description, declarant, supplementary_info, config_hash"
		" FROM channel_configs, numbers WHERE account = first_account AND channel = first_channel",
		"INSERT INTO chains (account, chain, created_at, genesis_hash, last_chain_hash)"
		" SELECT account + n % each, chain + 2 * n, created_at, genesis_hash, genesis_hash"
		" FROM chains, numbers WHERE account = first_account AND chain / 2 = first_channel",
	};
	char sql[1024];
	snprintf(sql, sizeof sql,
	         "CREATE TABLE numbers AS WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL"
	         " SELECT n + 1 FROM more WHERE n < %ld) SELECT n, %ld AS each, %" PRId64
	         " AS first_account, %" PRId64 " AS first_channel FROM more",
	         count - 1, accounts, account, channel);
	run(store, sql);
	for (size_t i = 0; i < sizeof copies / sizeof *copies && count > 1; i++)
		run(store, copies[i]);
	run(store, "DROP TABLE numbers");
}
