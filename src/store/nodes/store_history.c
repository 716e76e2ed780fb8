/* The last round of the store, for rollback detection, and the rollbacks that an operator
 * accepted. */
#include "store/events/segments.h"
#include "store/transaction.h"

int store_read_round_roots(struct store *store, int64_t round, int64_t *ret_last,
                           struct sha256 *ret_last_root, bool *ret_present, struct sha256 *ret_root,
                           struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT round, root FROM seal_rounds WHERE round = $1"
	                         " OR round = (SELECT MAX(round) FROM seal_rounds) ORDER BY round");
	db_bind_integer(query, round);
	*ret_last = 0;
	*ret_last_root = (struct sha256){{0}};
	*ret_present = false;
	while (db_step(query)) {
		*ret_last = db_integer(query, 0);
		*ret_last_root = store_sha256(db_blob(query, 1));
		if (*ret_last == round) {
			*ret_present = true;
			*ret_root = *ret_last_root;
		}
	}
	return end_read(connection, db_end(query, error));
}

static void bind_rollback(struct db_query *query, const struct accepted_rollback *rollback)
{
	db_bind(query, rollback->accepted_at_us, rollback->node, rollback->round, &rollback->root,
	        rollback->known_round, &rollback->known_root, rollback->reason, rollback->ended_log);
}

int store_record_rollback(struct store *store, const struct accepted_rollback *rollback,
                          struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query =
		db_query(connection, "INSERT INTO rollbacks (accepted_at, node, round, root, known_round,"
	                         " known_root, reason, ended_log)"
	                         " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
	bind_rollback(query, rollback);
	int result = db_execute(query, NULL, error);
	if (!result) {
		/* Logs of other names, which a later change of log.origin could continue. */
		query = db_query(connection,
		                 "INSERT INTO rollbacks (accepted_at, node, round, root, known_round,"
		                 " known_root, reason, ended_log)"
		                 " SELECT $1, $2, $3, $4, $5, $6, $7, origin"
		                 " FROM (SELECT DISTINCT origin FROM log_checkpoints) AS logs"
		                 " WHERE origin <> COALESCE($8, '')");
		bind_rollback(query, rollback);
		result = db_execute(query, NULL, error);
	}
	return end_write(connection, result, error);
}
