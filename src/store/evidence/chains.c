/* The queue of certifications for archive timestamps, and the chains of those that have one. */
#include "store/evidence/evidence_rows.h"
#include "store/shards/shard_work.h"

#define CHAINS_MAX 64 /* of one record; more than EVIDENCE_CHAINS_MAX */

/* ---- the queue ---- */

#define WAITING(of)                                                                                \
	"SELECT q.account, q.certification, q.reason, q.attempts, c.certification_id"                  \
	" FROM evidence_queue q JOIN certifications c ON c.account = q.account"                        \
	" AND c.certification = q.certification WHERE q.next_attempt_at <= $1" of                      \
	" ORDER BY q.since, q.account, q.certification LIMIT $2"
#define WAITING_OF WORK_ACCOUNTS("q", "$3") WORK_ACCOUNTS("c", "$3")

static int list_waiting(struct store *store, int64_t now_us, size_t limit, struct work_accounts *of,
                        struct evidence_queue_entry *ret_items, size_t *ret_count,
                        struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		of->all ? db_query(connection, WAITING("")) : db_query(connection, WAITING(WAITING_OF));
	db_bind(query, now_us, (int64_t)limit);
	shard_work_bind(query, of);
	size_t count = 0;
	for (; count < limit && db_step(query); count++) {
		ret_items[count] = (struct evidence_queue_entry){
			.account = db_integer(query, 0),
			.certification = db_integer(query, 1),
			.starts_record = !slice_is(db_text(query, 2), "digest"),
			.attempts = db_integer(query, 3),
		};
		store_copy_id(ret_items[count].certification_id, db_text(query, 4));
	}
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_count = count;
	return result;
}

int store_list_evidence_queue(struct store *store, int64_t now_us, size_t limit,
                              struct evidence_queue_entry *ret_items, size_t *ret_count,
                              struct error *error)
{
	struct work_accounts of;
	*ret_count = 0;
	int result = shard_work_find(store, WORK_EVIDENCE, &of, error);
	if (!result && !work_is_empty(&of))
		result = list_waiting(store, now_us, limit, &of, ret_items, ret_count, error);
	shard_work_free(&of);
	return result;
}

int store_delay_evidence(struct store *store, const struct evidence_queue_entry *item,
                         int64_t next_us, const char *cause, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query =
		db_query(connection, "UPDATE evidence_queue SET next_attempt_at = $3, last_error = $4,"
	                         " attempts = attempts + 1"
	                         " WHERE account = $1 AND certification = $2");
	db_bind(query, item->account, item->certification, next_us, cause);
	int64_t changes = 0;
	return end_write(connection, db_execute(query, &changes, error), error);
}

static int leave_queue(struct db_connection *connection, int64_t account, int64_t certification,
                       int64_t *ret_changes, struct error *error)
{
	struct db_query *query = db_query(connection, "DELETE FROM evidence_queue"
	                                              " WHERE account = $1 AND certification = $2");
	db_bind(query, account, certification);
	return db_execute(query, ret_changes, error);
}

int store_remove_from_evidence_queue(struct store *store, const struct evidence_queue_entry *item,
                                     struct error *error)
{
	int64_t changes;
	struct db_connection *connection = begin_write(store, &error);
	int result = leave_queue(connection, item->account, item->certification, &changes, error);
	return end_write(connection, result, error);
}

/* ---- chains ---- */

int write_evidence_chain(struct db_connection *connection, const struct evidence_chain_row *chain,
                         int64_t stamp, int64_t place, struct error *error)
{
	int64_t changes = 0;
	int result = leave_queue(connection, chain->account, chain->certification, &changes, error);
	if (!result && changes != 1)
		result = error_cause(error, ERR_REFUSED, "certification %lld is not queued for evidence",
		                     (long long)chain->certification);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "INSERT INTO evidence_chains (account, certification, record, chain,"
	                         " hashes, after_stamp, stamp, place)"
	                         " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
	db_bind(query, chain->account, chain->certification, chain->record, chain->chain,
	        db_bytes(chain->hashes), db_null_if(chain->after_stamp, 0), stamp, place);
	return db_execute(query, NULL, error);
}

int store_last_evidence_chain(struct store *store, int64_t account, int64_t certification,
                              int64_t *ret_record, int64_t *ret_chain, struct error *error)
{
	int64_t record = 0, chain = 0;
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query = db_query(connection, "SELECT record, chain FROM evidence_chains"
	                                              " WHERE account = $1 AND certification = $2"
	                                              " ORDER BY record DESC, chain DESC LIMIT 1");
	db_bind(query, account, certification);
	if (db_step(query)) {
		record = db_integer(query, 0);
		chain = db_integer(query, 1);
	}
	int result = end_read(connection, db_end(query, error));
	if (result)
		return result;
	*ret_record = record;
	*ret_chain = chain;
	return OK;
}

static bool read_chain(struct row *row, struct evidence_chain_row *ret)
{
	struct db_query *query = row->query;
	*ret = (struct evidence_chain_row){
		.account = db_integer(query, 0),
		.certification = db_integer(query, 1),
		.record = db_integer(query, 2),
		.chain = db_integer(query, 3),
		.hashes = row_bytes(row, 4),
		.after_stamp = db_is_null(query, 5) ? 0 : db_integer(query, 5),
		.stamp = db_integer(query, 6),
		.place = db_integer(query, 7),
		.is_written = !db_is_null(query, 8),
	};
	return !ret->is_written || evidence_algorithm_of(db_text(query, 8), &ret->algorithm);
}

int store_list_evidence_chains(struct store *store, int64_t account, int64_t certification,
                               struct arena *arena, struct evidence_chain_row **ret_chains,
                               size_t *ret_count, struct error *error)
{
	struct evidence_chain_row *chains = arena_alloc(arena, CHAINS_MAX * sizeof *chains);
	if (!chains)
		return ERR_NO_MEMORY;
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {
		.arena = arena,
		.query = db_query(connection,
	                      "SELECT e.account, e.certification, e.record, e.chain, e.hashes,"
	                      " e.after_stamp, e.stamp, e.place, a.algorithm FROM evidence_chains e"
	                      " LEFT JOIN archive_timestamps a ON a.stamp = e.stamp"
	                      " WHERE e.account = $1 AND e.certification = $2"
	                      " AND e.record = (SELECT COALESCE(MAX(CASE WHEN r.stamp <= n.last"
	                      " THEN r.record END), MAX(r.record)) FROM evidence_chains r,"
	                      " (SELECT COALESCE(MAX(stamp), 0) AS last FROM archive_timestamps) n"
	                      " WHERE r.account = $1 AND r.certification = $2)"
	                      " ORDER BY e.chain LIMIT $3")};
	db_bind(row.query, account, certification, CHAINS_MAX + 1);
	size_t count = 0;
	bool known = true;
	while (count < CHAINS_MAX && db_step(row.query))
		known = read_chain(&row, &chains[count++]) && known;
	bool more = count == CHAINS_MAX && db_step(row.query);
	int result = end_read(connection, db_end(row.query, error));
	if (!result && row.failed)
		return ERR_NO_MEMORY;
	if (!result && more)
		return error_cause(error, ERR_CORRUPT,
		                   "an evidence record of certification %lld has more than %d chains",
		                   (long long)certification, CHAINS_MAX);
	if (!result && !known)
		return error_cause(error, ERR_CORRUPT,
		                   "an archive timestamp has an unknown digest algorithm");
	if (!result) {
		*ret_chains = chains;
		*ret_count = count;
	}
	return result;
}
