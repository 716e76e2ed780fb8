/* The check of a PostgreSQL server for settings that make the speed of registrations uneven. */
#include "store/nodes/servers.h"

#include <inttypes.h>
#include <stdio.h>

#define SENTENCE_MAX 512
#define MIB (INT64_C(1) << 20)
#define CHECKPOINT_LOG_LEAST (INT64_C(4) << 30)
#define EVENT_LOG 690 /* bytes of WAL for an event of 200 bytes (bench/stores) */

static const char pace_query[] = "SELECT pg_size_bytes(current_setting('min_wal_size')),"
								 " pg_size_bytes(current_setting('max_wal_size')),"
								 " pg_size_bytes(current_setting('wal_segment_size')),"
								 " (current_setting('wal_init_zero') = 'on')::int::bigint,"
								 " (current_setting('wal_recycle') = 'on')::int::bigint";

struct log_settings {
	int64_t least, most; /* min_wal_size, max_wal_size */
	int64_t segment;
	bool fills, recycles;
};

/* A checkpoint renames old segments for later use, up to max_wal_size. After an idle period only
 * min_wal_size remains. */
static void check_segments(const struct log_settings *log, servers_found *found, void *context)
{
	char sentence[SENTENCE_MAX], why[64];
	if (!log->fills || (log->recycles && log->least >= log->most))
		return;
	if (log->recycles)
		snprintf(why, sizeof why, "wal_init_zero is on and min_wal_size %" PRId64 " MB",
		         log->least / MIB);
	else
		snprintf(why, sizeof why, "wal_init_zero is on and wal_recycle off");
	snprintf(sentence, sizeof sentence,
	         "the server's %s: each new WAL segment (%" PRId64 " MB, about %" PRId64
	         " thousand small events) is filled with zeros while all "
	         "registrations wait, first on the server and then on the standby; set wal_init_zero "
	         "to off, also on the standbys",
	         why, log->segment / MIB, log->segment / EVENT_LOG / 1000);
	found(context, sentence);
}

static void check_checkpoints(const struct log_settings *log, servers_found *found, void *context)
{
	char sentence[SENTENCE_MAX];
	if (log->most >= CHECKPOINT_LOG_LEAST)
		return;
	snprintf(sentence, sizeof sentence,
	         "the server's max_wal_size is %" PRId64 " MB: under load a checkpoint starts about "
	         "every %" PRId64 " thousand small events and is followed by full-page writes; "
	         "set it to %" PRId64 " MB or more, also on the standbys",
	         log->most / MIB, log->most / 2 / EVENT_LOG / 1000, CHECKPOINT_LOG_LEAST / MIB);
	found(context, sentence);
}

int servers_check_pace(struct db *db, servers_found *found, void *context, struct error *error)
{
	struct log_settings log = {0};
	struct db_connection *reader = db_take_reader(db);
	struct db_query *query = db_query(reader, pace_query);
	bool found_settings = db_step(query);
	if (found_settings)
		log = (struct log_settings){
			.least = db_integer(query, 0),
			.most = db_integer(query, 1),
			.segment = db_integer(query, 2),
			.fills = db_integer(query, 3) != 0,
			.recycles = db_integer(query, 4) != 0,
		};
	int result = db_end(query, error);
	db_give(reader);
	if (result || !found_settings)
		return result;
	check_segments(&log, found, context);
	check_checkpoints(&log, found, context);
	return OK;
}
