/* The check of each transaction that the server's standbys and settings support what a commit
 * promises. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "db/postgres/postgres_internal.h"

static const char *skip_space(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

unsigned pg_count_awaited_standbys(const char *names)
{
	names = skip_space(names);
	if (*names == '\0')
		return 0;
	if (strncasecmp(names, "FIRST", 5) == 0 && isspace((unsigned char)names[5]))
		names = skip_space(names + 5);
	else if (strncasecmp(names, "ANY", 3) == 0 && isspace((unsigned char)names[3]))
		names = skip_space(names + 3);
	if (!isdigit((unsigned char)*names))
		return 1;
	char *end;
	unsigned long number = strtoul(names, &end, 10);
	/* A number counts only before a list; a standby may be named "2". */
	return *skip_space(end) == '(' && number < 1000 ? (unsigned)number : 1;
}

/* A name has a type of its own in the catalog, so it is cast to text. Settings are read as in force
 * where the query runs. */
const char pg_replica_query[] = PG_REPLICAS(PG_OF_TRANSACTION, "");
const char pg_committed_query[] = PG_REPLICAS(PG_OF_COMMITTED, "");

const char pg_lag_query[] =
	"SELECT count(*)::bigint, COALESCE(MAX(GREATEST(pg_wal_lsn_diff(pg_current_wal_lsn(),"
	" flush_lsn), 0)), 0)::bigint,"
	" COALESCE(MAX(EXTRACT(EPOCH FROM flush_lag) * 1000000), 0)::bigint"
	" FROM pg_stat_get_wal_senders()"
	" WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')";

enum column {
	SYNCHRONOUS_COMMIT,
	FSYNC,
	FULL_PAGE_WRITES,
	STANDBY_NAMES,
	PRESENT,
	HIDDEN,
};

static bool is_text(const PGresult *row, enum column column, const char *text)
{
	return strcmp(PQgetvalue(row, 0, column), text) == 0;
}

static unsigned count_of(const PGresult *row, enum column column)
{
	return (unsigned)strtoul(PQgetvalue(row, 0, column), NULL, 10);
}

void pg_judge_replicas_at(struct pg_connection *connection, const PGresult *row, const char *where)
{
	unsigned wanted = pg_db(connection->base.db)->require_replicas;
	const char *names = PQgetvalue(row, 0, STANDBY_NAMES);
	unsigned waited_for = pg_count_awaited_standbys(names);
	unsigned present = count_of(row, PRESENT);
	if (!is_text(row, SYNCHRONOUS_COMMIT, "on") &&
	    !is_text(row, SYNCHRONOUS_COMMIT, "remote_apply"))
		pg_fail(connection, ERR_UNAVAILABLE, "%sthe server's synchronous_commit is %s, not on",
		        where, PQgetvalue(row, 0, SYNCHRONOUS_COMMIT));
	else if (!is_text(row, FSYNC, "on"))
		pg_fail(connection, ERR_UNAVAILABLE, "%sthe server runs with fsync off", where);
	else if (!is_text(row, FULL_PAGE_WRITES, "on"))
		pg_fail(connection, ERR_UNAVAILABLE, "%sthe server runs with full_page_writes off", where);
	else if (waited_for < wanted)
		pg_fail(connection, ERR_UNAVAILABLE,
		        "%scommits wait for %u standbys, store.require_replicas asks for %u: "
		        "synchronous_standby_names is '%s'",
		        where, waited_for, wanted, names);
	else if (present < wanted && count_of(row, HIDDEN) > 0)
		pg_fail(connection, ERR_UNAVAILABLE,
		        "%sthe state of the standbys is hidden from this role: GRANT pg_read_all_stats",
		        where);
	else if (present < wanted)
		pg_fail(connection, ERR_UNAVAILABLE,
		        "%s%u synchronous standbys are connected, store.require_replicas asks for %u",
		        where, present, wanted);
}

void pg_check_replicas(struct pg_connection *connection, const PGresult *row, int64_t sent_us)
{
	(void)sent_us;
	pg_judge_replicas_at(connection, row, "");
}
