/* Search for certifications that must be queued for an archive timestamp. It reads outside of write
 * transactions and in the order of an index, so that each row is read once, whatever the number of
 * queued ones. */
#include "base/tuned.h"
#include "store/evidence/evidence_rows.h"
#include "store/shards/shard_work.h"

struct found {
	struct evidence_cursor at;
	int64_t since_us;
};

/* Returns the number of rows to read at once. */
static int64_t found_max(void)
{
	return tuned_up_to("requeued", EVIDENCE_LEAVES_MAX);
}

static size_t read_found(struct db_query *query, struct found *items)
{
	size_t count = 0;
	while (db_step(query) && count < EVIDENCE_LEAVES_MAX)
		items[count++] =
			(struct found){{db_integer(query, 0), db_integer(query, 1), db_integer(query, 2)},
		                   db_integer(query, 3)};
	return count;
}

/* Entries that are queued from now on belong to the same pass. */
static int end_find(struct store *store, struct evidence_cursor *cursor, const struct found *items,
                    size_t count, int result, size_t *ret_count)
{
	if (result)
		return result;
	if (count > 0) {
		*cursor = items[count - 1].at;
		work_invalidate(store);
	}
	*ret_count = count;
	return OK;
}

/* ---- chains with another algorithm ---- */

static int list_others(struct store *store, enum digest_algorithm algorithm,
                       const struct evidence_cursor *after, struct found *ret_items,
                       size_t *ret_count, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query = db_query(
		connection, "SELECT e.account, 0, e.certification, 0 FROM evidence_chains e"
					" JOIN archive_timestamps a ON a.stamp = e.stamp"
					" WHERE (e.account, e.certification) > ($2, $3) AND a.algorithm <> $1"
					" AND NOT EXISTS (SELECT 1 FROM evidence_queue q"
					" WHERE q.account = e.account AND q.certification = e.certification)"
					" AND" EVIDENCE_CHAIN_IS_LAST " ORDER BY e.account, e.certification LIMIT $4");
	db_bind(query, evidence_algorithm_text(algorithm), after->account, after->certification,
	        found_max());
	*ret_count = read_found(query, ret_items);
	return end_read(connection, db_end(query, error));
}

static int queue_others(struct store *store, const struct found *items, size_t count,
                        int64_t now_us, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	int result = OK;
	for (size_t i = 0; i < count && !result; i++) {
		struct db_query *query = db_query(
			connection, "INSERT INTO evidence_queue (account, certification, reason, since,"
						" next_attempt_at, attempts) VALUES ($1, $2, 'digest', $3, 0, 0)"
						" ON CONFLICT DO NOTHING");
		db_bind(query, items[i].at.account, items[i].at.certification, now_us);
		result = db_execute(query, NULL, error);
	}
	return end_write(connection, result, error);
}

int store_rehash_evidence(struct store *store, enum digest_algorithm algorithm, int64_t now_us,
                          struct evidence_cursor *cursor, size_t *ret_count, struct error *error)
{
	struct found items[EVIDENCE_LEAVES_MAX];
	size_t count = 0;
	int result = list_others(store, algorithm, cursor, items, &count, error);
	if (!result && count > 0)
		result = queue_others(store, items, count, now_us, error);
	return end_find(store, cursor, items, count, result, ret_count);
}

/* ---- certifications that were never queued ---- */

static int list_forgotten(struct store *store, const struct evidence_cursor *after,
                          struct found *ret_items, size_t *ret_count, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT c.account, c.chain, c.certification, c.completed_at"
	                         " FROM certifications c"
	                         " WHERE (c.account, c.chain, c.certification) > ($1, $2, $3)"
	                         " AND c.status = 'completed' AND c.chain % 2 = 0"
	                         " AND NOT EXISTS (SELECT 1 FROM evidence_chains e"
	                         " WHERE e.account = c.account AND e.certification = c.certification)"
	                         " AND NOT EXISTS (SELECT 1 FROM evidence_queue q"
	                         " WHERE q.account = c.account AND q.certification = c.certification)"
	                         " ORDER BY c.account, c.chain, c.certification LIMIT $4");
	db_bind(query, after->account, after->chain, after->certification, found_max());
	*ret_count = read_found(query, ret_items);
	return end_read(connection, db_end(query, error));
}

/* A certification that was staged in the meantime is no longer queued. */
static int queue_forgotten(struct store *store, const struct found *items, size_t count,
                           struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	int result = OK;
	for (size_t i = 0; i < count && !result; i++) {
		struct db_query *query = db_query(
			connection, "INSERT INTO evidence_queue (account, certification, reason, since,"
						" next_attempt_at, attempts) SELECT $1, $2, 'first', $3, 0, 0"
						" WHERE NOT EXISTS (SELECT 1 FROM evidence_chains"
						" WHERE account = $1 AND certification = $2) ON CONFLICT DO NOTHING");
		db_bind(query, items[i].at.account, items[i].at.certification, items[i].since_us);
		result = db_execute(query, NULL, error);
	}
	return end_write(connection, result, error);
}

int store_queue_missing_evidence(struct store *store, struct evidence_cursor *cursor,
                                 size_t *ret_count, struct error *error)
{
	struct found items[EVIDENCE_LEAVES_MAX];
	size_t count = 0;
	int result = list_forgotten(store, cursor, items, &count, error);
	if (!result && count > 0)
		result = queue_forgotten(store, items, count, error);
	return end_find(store, cursor, items, count, result, ret_count);
}
