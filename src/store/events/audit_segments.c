/* Audit records in sealing rounds: unsealed records and the contents of their segments. */
#include <assert.h>

#include "store/audit/audit_log.h"
#include "store/events/staged_round.h"
#include "store/shards/shard_work.h"

#define NO_ACCOUNT "installation"

/* ---- unsealed records ---- */

/* Limits the chains before their segments are looked up; with shards both are one step. */
#define UNSEALED(piece, of, of_segments, of_last)                                                   \
	"SELECT u.account, u.chain, u.last, a.account_id, s.last_sequence, s.number, s.document FROM (" \
	"SELECT account, chain, MAX(number) AS last FROM unsealed_acts"                                 \
	" WHERE (account, chain) > ($1, $2)" of " GROUP BY account, chain" piece ") u"                  \
	" LEFT JOIN accounts a ON a.account = u.account"                                                \
	" LEFT JOIN segments s ON s.account = u.account" of_segments                                    \
	" AND s.chain = u.chain AND s.number = ("                                                       \
	"SELECT m.number FROM segments m WHERE m.account = u.account" of_last " AND m.chain = u.chain"  \
	" ORDER BY m.number DESC LIMIT 1)"
#define FIRST_CHAINS " ORDER BY account, chain LIMIT $3"
#define UNSEALED_ORDER " ORDER BY u.account, u.chain"

#define IN_SHARDS(of, of_segments, of_last, of_joined)                                             \
	UNSEALED("", of, of_segments, of_last) of_joined UNSEALED_ORDER " LIMIT $3"
#define UNSEALED_OF " WHERE u.account = ANY($4)"

static struct db_query *ask_unsealed(struct db_connection *connection,
                                     const struct work_accounts *of)
{
	if (!db_is_sharded(db_of(connection)))
		return db_query(connection, UNSEALED(FIRST_CHAINS, "", "", "") UNSEALED_ORDER);
	return of->all
	           ? db_query(connection, IN_SHARDS("", "", "", ""))
	           : db_query(connection, IN_SHARDS(" AND account = ANY($4)", WORK_ACCOUNTS("s", "$4"),
	                                            WORK_ACCOUNTS("m", "$4"), UNSEALED_OF));
}

static int list_unsealed_records(struct store *store, int64_t after_account, int64_t after_chain,
                                 size_t limit, struct work_accounts *of,
                                 struct unsealed_chain *ret_chains, size_t *ret_count,
                                 struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query = ask_unsealed(connection, of);
	db_bind(query, after_account, after_chain, (int64_t)limit);
	shard_work_bind(query, of);
	size_t count = 0;
	for (; count < limit && db_step(query); count++) {
		struct unsealed_chain *chain = &ret_chains[count];
		*chain = (struct unsealed_chain){
			.account = db_integer(query, 0),
			.chain = db_integer(query, 1),
			.last_sequence = db_integer(query, 2),
			.sealed_sequence = db_is_null(query, 4) ? 0 : db_integer(query, 4),
			.sealed_segment = db_is_null(query, 5) ? 0 : db_integer(query, 5),
		};
		bool on_none = db_is_null(query, 3);
		store_copy_id(chain->channel_id, on_none ? slice_of(NO_ACCOUNT) : db_text(query, 3));
		struct slice document = db_text(query, 6);
		chain->seal_hash = sha256_of(document.data, document.size);
	}
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_count = count;
	return result;
}

int store_list_unsealed_audit_records(struct store *store, int64_t after_account,
                                      int64_t after_chain, size_t limit,
                                      struct unsealed_chain *ret_chains, size_t *ret_count,
                                      struct error *error)
{
	struct work_accounts of;
	*ret_count = 0;
	int result = shard_work_find(store, WORK_AUDIT_LOG, &of, error);
	if (!result && !work_is_empty(&of))
		result = list_unsealed_records(store, after_account, after_chain, limit, &of, ret_chains,
		                               ret_count, error);
	shard_work_free(&of);
	return result;
}

/* ---- contents of a segment ---- */

static int missing(int64_t account, int64_t chain, int64_t number, struct error *error)
{
	return error_cause(
		error, ERR_CORRUPT, "%s audit records of account %lld: number %lld is missing",
		chain == URGENT_AUDIT_CHAIN ? "urgent" : "ordinary", (long long)account, (long long)number);
}

/* Reads one row. The first row is the record before the first of the segment. */
static int take_record(struct db_query *query, int64_t number, int64_t first, struct sha256 *hashes,
                       struct sha256 *ret_before, struct sha256 *ret_last, struct error *error)
{
	struct slice document = db_text(query, 1);
	struct sha256 kept = store_sha256(db_blob(query, 2));
	if (number < first) {
		*ret_before = *ret_last = kept;
		return OK;
	}
	struct sha256 hash = audit_chain_hash(ret_last, document);
	if (!sha256_equal(&hash, &kept))
		return error_cause(error, ERR_CORRUPT,
		                   "the document of audit record %lld does not match its chain_hash",
		                   (long long)number);
	hashes[number - first] = sha256_of(document.data, document.size);
	*ret_last = kept;
	return OK;
}

#define RECORD_COLUMNS "SELECT number, document, chain_hash FROM acts WHERE account = $1"

static int read_record_hashes(struct db_connection *connection, int64_t account, int64_t chain,
                              int64_t first, int64_t last, struct sha256 *hashes,
                              struct sha256 *ret_before, struct sha256 *ret_last,
                              struct error *error)
{
	bool urgent = chain == URGENT_AUDIT_CHAIN;
	int64_t next = first > 1 ? first - 1 : 1;
	struct db_query *query =
		urgent ? db_query_long(connection, RECORD_COLUMNS " AND number <= -$2 AND number >= -$3"
	                                                      " ORDER BY number DESC")
			   : db_query_long(connection, RECORD_COLUMNS " AND number >= $2 AND number <= $3"
	                                                      " ORDER BY number");
	db_bind(query, account, next, last);
	int result = OK;
	for (; !result && next <= last && db_step(query); next++) {
		int64_t number = db_integer(query, 0);
		if ((urgent ? -number : number) != next)
			break;
		result = take_record(query, next, first, hashes, ret_before, ret_last, error);
	}
	int ended = db_end(query, error);
	if (result || ended)
		return result ? result : ended;
	return next > last ? OK : missing(account, chain, next, error);
}

int store_read_audit_hashes(struct store *store, int64_t account, int64_t chain, int64_t first,
                            int64_t last, struct sha256 *ret_hashes, struct sha256 *ret_before,
                            struct sha256 *ret_last, struct error *error)
{
	assert(is_audit_chain(chain));
	struct db_connection *connection = begin_read(store, &error);
	*ret_before = *ret_last = (struct sha256){{0}};
	return end_read(connection, read_record_hashes(connection, account, chain, first, last,
	                                               ret_hashes, ret_before, ret_last, error));
}

/* ---- staging and unstaging ---- */

static int check_continues(struct db_connection *connection, const struct segment_record *segment,
                           struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT number, last_sequence, document FROM segments"
	                         " WHERE account = $1 AND chain = $2 ORDER BY number DESC LIMIT 1");
	db_bind(query, segment->account, segment->chain);
	int64_t number = 0, last = 0;
	bool follows = true;
	if (db_step(query)) {
		struct slice document = db_text(query, 2);
		struct sha256 hash = sha256_of(document.data, document.size);
		number = db_integer(query, 0);
		last = db_integer(query, 1);
		follows = sha256_equal(&hash, &segment->previous_seal_hash);
	}
	int result = db_end(query, error);
	if (!result &&
	    (!follows || segment->number != number + 1 || segment->first_sequence != last + 1))
		return error_cause(error, ERR_REFUSED, "segment %s does not continue its chain",
		                   segment->segment_id);
	return result;
}

int stage_audit_records(struct db_connection *connection, const struct segment_record *segment,
                        struct error *error)
{
	int result = check_continues(connection, segment, error);
	if (result)
		return result;
	/* These rows only list the chains to examine. A missing one does not exclude a record from its
	 * segment. */
	struct db_query *query = db_query(connection, "DELETE FROM unsealed_acts WHERE account = $1"
	                                              " AND chain = $2 AND number <= $3");
	db_bind(query, segment->account, segment->chain, segment->last_sequence);
	return db_execute(query, NULL, error);
}

static int delete_last(struct db_connection *connection, int64_t account, int64_t chain,
                       int64_t number, struct error *error)
{
	struct db_query *query =
		db_query(connection, "DELETE FROM segments WHERE account = $1 AND chain = $2"
	                         " AND number = $3 AND NOT EXISTS (SELECT 1 FROM segments m"
	                         " WHERE m.account = $1 AND m.chain = $2 AND m.number > $3)");
	db_bind(query, account, chain, number);
	int64_t changes = 0;
	int result = db_execute(query, &changes, error);
	if (!result && changes != 1)
		return error_cause(error, ERR_REFUSED,
		                   "audit records of account %lld: segment %lld is not the last segment",
		                   (long long)account, (long long)number);
	return result;
}

int unstage_audit_records(struct db_connection *connection, int64_t account, int64_t chain,
                          int64_t number, int64_t first_sequence, struct error *error)
{
	int result = delete_last(connection, account, chain, number, error);
	if (result)
		return result;
	bool urgent = chain == URGENT_AUDIT_CHAIN;
	struct db_query *query =
		urgent ? db_query(connection, "INSERT INTO unsealed_acts (account, chain, number)"
	                                  " SELECT account, $2, -number FROM acts WHERE account = $1"
	                                  " AND number <= -$3 ON CONFLICT DO NOTHING")
			   : db_query(connection, "INSERT INTO unsealed_acts (account, chain, number)"
	                                  " SELECT account, $2, number FROM acts WHERE account = $1"
	                                  " AND number >= $3 ON CONFLICT DO NOTHING");
	db_bind(query, account, chain, first_sequence);
	return db_execute(query, NULL, error);
}
