#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "db/postgres/internal.h"

static const char *skip_space(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

unsigned pg_standbys_waited_for(const char *names)
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
	/* A number is one only before a list; a standby may be called "2". */
	return *skip_space(end) == '(' && number < 1000 ? (unsigned)number : 1;
}

/* A name is text in the catalogue's own type; the settings are asked for as they are in force where
 * the question is asked. Standbys count once they stream and the server waits for them. */
#define QUESTION(synchronous_commit)                                                               \
	"SELECT " synchronous_commit ", current_setting('fsync'), "                                    \
	"current_setting('full_page_writes'), current_setting('synchronous_standby_names'), "          \
	"count(*) FILTER (WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')), "           \
	"count(*) FILTER (WHERE state IS NULL) FROM pg_stat_get_wal_senders()"

const char pg_replica_query[] = QUESTION("current_setting('synchronous_commit')");
/* Behind a COMMIT that setting is the session's, no longer the one that the transaction had. */
const char pg_committed_query[] = QUESTION("'on'");

enum column { SYNCHRONOUS_COMMIT, FSYNC, FULL_PAGE_WRITES, STANDBY_NAMES, PRESENT, HIDDEN };

static bool is_text(const PGresult *row, enum column column, const char *text)
{
	return strcmp(PQgetvalue(row, 0, column), text) == 0;
}

static unsigned count_of(const PGresult *row, enum column column)
{
	return (unsigned)strtoul(PQgetvalue(row, 0, column), NULL, 10);
}

void pg_judge_replicas(struct pg_connection *connection, const PGresult *row)
{
	unsigned wanted = pg_db(connection->base.db)->require_replicas;
	const char *names = PQgetvalue(row, 0, STANDBY_NAMES);
	unsigned waited_for = pg_standbys_waited_for(names);
	unsigned present = count_of(row, PRESENT);
	if (!is_text(row, SYNCHRONOUS_COMMIT, "on") &&
	    !is_text(row, SYNCHRONOUS_COMMIT, "remote_apply"))
		pg_fail(connection, ERR_UNAVAILABLE, "the server's synchronous_commit is %s, not on",
		        PQgetvalue(row, 0, SYNCHRONOUS_COMMIT));
	else if (!is_text(row, FSYNC, "on"))
		pg_fail(connection, ERR_UNAVAILABLE, "the server runs with fsync off");
	else if (!is_text(row, FULL_PAGE_WRITES, "on"))
		pg_fail(connection, ERR_UNAVAILABLE, "the server runs with full_page_writes off");
	else if (waited_for < wanted)
		pg_fail(connection, ERR_UNAVAILABLE,
		        "commits wait for %u standbys, store.require_replicas asks for %u: "
		        "synchronous_standby_names is '%s'",
		        waited_for, wanted, names);
	else if (present < wanted && count_of(row, HIDDEN) > 0)
		pg_fail(connection, ERR_UNAVAILABLE,
		        "the state of the standbys is hidden from this role: GRANT pg_read_all_stats");
	else if (present < wanted)
		pg_fail(connection, ERR_UNAVAILABLE,
		        "%u synchronous standbys are connected, store.require_replicas asks for %u",
		        present, wanted);
}
