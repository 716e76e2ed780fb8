/* Describes the server for the check of a configuration. */
#include <stdio.h>

#include "db/postgres/postgres_internal.h"

static const char facts_query[] =
	"SELECT current_setting('server_version'), "
	"COALESCE(host(inet_server_addr()), 'a local socket'), current_database(), "
	"current_setting('server_encoding'), CAST(pg_has_role('pg_read_all_stats', 'MEMBER') AS INT), "
	"CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT), "
	"(SELECT string_agg(application_name || ' (' || COALESCE(sync_state, 'hidden') || ')', ', ') "
	"FROM pg_stat_replication)";

static void copy(struct db_query *query, int column, char *text, size_t size)
{
	struct slice value = db_text(query, column);
	snprintf(text, size, "%.*s", (int)value.size, value.data ? value.data : "");
}

int pg_describe(struct db_connection *reader, struct db_facts *ret, struct error *error)
{
	struct db_query *query = db_query(reader, facts_query);
	if (db_step(query)) {
		copy(query, 0, ret->version, sizeof ret->version);
		copy(query, 1, ret->host, sizeof ret->host);
		copy(query, 2, ret->name, sizeof ret->name);
		copy(query, 3, ret->encoding, sizeof ret->encoding);
		ret->sees_standbys = db_integer(query, 4) != 0;
		ret->clock_us = db_integer(query, 5);
		copy(query, 6, ret->standbys, sizeof ret->standbys);
	}
	return db_end(query, error);
}
