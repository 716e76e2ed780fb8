#include "store/events/segments.h"

#include "store/shards/shard_work.h"
#include "store/transaction.h"

/* ---- chains with unsealed events ---- */

#define UNSEALED_COLUMNS                                                                            \
	" c.account, c.chain, channel_id, c.last_sequence, sealed_sequence, sealed_segment, seal_hash," \
	" last_received_at"

static int read_unsealed(struct db_connection *connection, struct db_query *query, size_t limit,
                         struct unsealed_chain *ret_chains, size_t *ret_count, struct error *error)
{
	size_t count = 0;
	for (; count < limit && db_step(query); count++) {
		struct unsealed_chain *chain = &ret_chains[count];
		*chain = (struct unsealed_chain){
			.account = db_integer(query, 0),
			.chain = db_integer(query, 1),
			.last_sequence = db_integer(query, 3),
			.last_received_at_us = db_integer(query, 7),
			.sealed_sequence = db_integer(query, 4),
			.sealed_segment = db_integer(query, 5),
			.seal_hash = store_sha256(db_blob(query, 6)),
		};
		store_copy_id(chain->channel_id, db_text(query, 2));
	}
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_count = count;
	return result;
}

#define UNSEALED(of)                                                                               \
	"SELECT" UNSEALED_COLUMNS " FROM unsealed_chains u"                                            \
	" JOIN chains c ON c.account = u.account AND c.chain = u.chain"                                \
	" JOIN channels h ON h.account = u.account AND h.channel = u.chain / 2"                        \
	" WHERE (u.account, u.chain) > ($1, $2) AND last_sequence > sealed_sequence" of                \
	" ORDER BY u.account, u.chain LIMIT $3"
#define UNSEALED_OF WORK_ACCOUNTS("u", "$4") WORK_ACCOUNTS("c", "$4") WORK_ACCOUNTS("h", "$4")

static int list_unsealed(struct store *store, int64_t after_account, int64_t after_chain,
                         size_t limit, struct work_accounts *of, struct unsealed_chain *ret_chains,
                         size_t *ret_count, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		of->all ? db_query(connection, UNSEALED("")) : db_query(connection, UNSEALED(UNSEALED_OF));
	db_bind(query, after_account, after_chain, (int64_t)limit);
	shard_work_bind(query, of);
	return read_unsealed(connection, query, limit, ret_chains, ret_count, error);
}

int store_list_unsealed(struct store *store, int64_t after_account, int64_t after_chain,
                        size_t limit, struct unsealed_chain *ret_chains, size_t *ret_count,
                        struct error *error)
{
	struct work_accounts of;
	*ret_count = 0;
	int result = shard_work_find(store, WORK_UNSEALED, &of, error);
	if (!result && !work_is_empty(&of))
		result = list_unsealed(store, after_account, after_chain, limit, &of, ret_chains, ret_count,
		                       error);
	shard_work_free(&of);
	return result;
}

/* Live certifications in processing, as r, and their chains, as c. */
#define FROM_OPEN                                                                                  \
	" FROM certifications r JOIN chains c ON c.account = r.account AND c.chain = r.chain"
#define WHERE_OPEN " WHERE r.status = 'processing' AND r.chain % 2 = 0"

#define WANTED(of)                                                                                 \
	"SELECT DISTINCT" UNSEALED_COLUMNS FROM_OPEN                                                   \
	" JOIN channels h ON h.account = c.account AND h.channel = c.chain / 2" WHERE_OPEN             \
	" AND c.sealed_sequence < r.last_sequence" of " ORDER BY c.account, c.chain LIMIT $1"
#define WANTED_OF WORK_ACCOUNTS("r", "$2") WORK_ACCOUNTS("c", "$2") WORK_ACCOUNTS("h", "$2")

static int list_wanted(struct store *store, size_t limit, struct work_accounts *of,
                       struct unsealed_chain *ret_chains, size_t *ret_count, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		of->all ? db_query(connection, WANTED("")) : db_query(connection, WANTED(WANTED_OF));
	db_bind_integer(query, (int64_t)limit);
	shard_work_bind(query, of);
	return read_unsealed(connection, query, limit, ret_chains, ret_count, error);
}

int store_list_wanted(struct store *store, size_t limit, struct unsealed_chain *ret_chains,
                      size_t *ret_count, struct error *error)
{
	struct work_accounts of;
	*ret_count = 0;
	int result = shard_work_find(store, WORK_CERTIFICATIONS, &of, error);
	if (!result && !work_is_empty(&of))
		result = list_wanted(store, limit, &of, ret_chains, ret_count, error);
	shard_work_free(&of);
	return result;
}

#define AWAITED(of)                                                                                \
	"SELECT 1" FROM_OPEN WHERE_OPEN " AND c.sealed_sequence >= r.last_sequence"                    \
	" AND " SEALED_SEQUENCE("c") " < r.last_sequence" of " LIMIT 1"

static int round_is_awaited(struct store *store, struct work_accounts *of, bool *ret_awaited,
                            struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		of->all ? db_query(connection, AWAITED(""))
				: db_query(connection, AWAITED(WORK_ACCOUNTS("r", "$1") WORK_ACCOUNTS("c", "$1")));
	shard_work_bind(query, of);
	bool awaited = db_step(query);
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_awaited = awaited;
	return result;
}

int store_round_is_awaited(struct store *store, bool *ret_awaited, struct error *error)
{
	struct work_accounts of;
	*ret_awaited = false;
	int result = shard_work_find(store, WORK_CERTIFICATIONS, &of, error);
	if (!result && !work_is_empty(&of))
		result = round_is_awaited(store, &of, ret_awaited, error);
	shard_work_free(&of);
	return result;
}

/* ---- input of a round ---- */

static int read_genesis_hash(struct db_connection *connection, int64_t account, int64_t chain,
                             struct sha256 *ret_hash, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT genesis_hash FROM chains WHERE account = $1 AND chain = $2");
	db_bind(query, account, chain);
	bool found = db_step(query);
	if (found)
		*ret_hash = store_sha256(db_blob(query, 0));
	int result = db_end(query, error);
	return result ? result : found ? OK : ERR_NOT_FOUND;
}

static int read_event_hashes(struct db_connection *connection, int64_t account, int64_t chain,
                             int64_t first, int64_t last, struct sha256 *ret_hashes,
                             struct error *error)
{
	struct db_query *query =
		db_query_long(connection, "SELECT event, chain_hash FROM events"
	                              " WHERE account = $1 AND event BETWEEN $2 AND $3 ORDER BY event");
	db_bind(query, account, event_number(chain, first), event_number(chain, last));
	int64_t next = first;
	for (; next <= last && db_step(query); next++) {
		struct slice hash = db_blob(query, 1);
		if (db_integer(query, 0) != event_number(chain, next) || hash.size != SHA256_SIZE)
			break;
		ret_hashes[next - first] = store_sha256(hash);
	}
	int result = db_end(query, error);
	if (result)
		return result;
	return next > last ? OK
	                   : error_cause(error, ERR_CORRUPT, "chain %lld: event %lld is missing",
	                                 (long long)chain, (long long)next);
}

int store_read_chain_hashes(struct store *store, int64_t account, int64_t chain, int64_t first,
                            int64_t last, struct sha256 *ret_hashes, struct error *error)
{
	struct sha256 before, end;
	if (is_audit_chain(chain))
		return store_read_audit_hashes(store, account, chain, first, last, ret_hashes, &before,
		                               &end, error);
	struct db_connection *connection = begin_read(store, &error);
	int result = OK;
	if (first == 0)
		result = read_genesis_hash(connection, account, chain, ret_hashes++, error);
	if (!result)
		result = read_event_hashes(connection, account, chain, first ? first : 1, last, ret_hashes,
		                           error);
	return end_read(connection, result);
}

/* ---- reading ---- */

#define SEGMENT_COLUMNS                                                                            \
	"SELECT account, chain, number, segment_id, first_sequence, last_sequence, round, root,"       \
	" document, nodes, path, place FROM segments"

static int read_segment(struct row *row, struct segment_record *ret_segment, struct error *error)
{
	struct segment_record segment = {0};
	bool found = db_step(row->query);
	if (found) {
		segment.account = db_integer(row->query, 0);
		segment.chain = db_integer(row->query, 1);
		segment.number = db_integer(row->query, 2);
		store_copy_id(segment.segment_id, db_text(row->query, 3));
		segment.first_sequence = db_integer(row->query, 4);
		segment.last_sequence = db_integer(row->query, 5);
		segment.round = db_integer(row->query, 6);
		segment.root = store_sha256(db_blob(row->query, 7));
		segment.document = row_bytes(row, 8);
		segment.nodes = row_bytes(row, 9);
		segment.path = row_bytes(row, 10);
		segment.place = db_is_null(row->query, 11) ? SEGMENT_HAS_PATH : db_integer(row->query, 11);
	}
	int result = row_result(row, found, error);
	if (!result)
		*ret_segment = segment;
	return result;
}

int store_find_segment(struct store *store, int64_t account, int64_t chain, int64_t sequence,
                       struct arena *arena, struct segment_record *ret_segment, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = db_query(connection,
	                                    SEGMENT_COLUMNS " WHERE account = $1 AND chain = $2"
	                                                    " AND first_sequence <= $3"
	                                                    " AND round <= (SELECT"
	                                                    " COALESCE(MAX(round), 0) FROM seal_rounds)"
	                                                    " ORDER BY first_sequence DESC LIMIT 1")};
	db_bind(row.query, account, chain, sequence);
	struct segment_record segment;
	int result = end_read(connection, read_segment(&row, &segment, error));
	if (!result && segment.last_sequence < sequence)
		return ERR_NOT_FOUND;
	if (!result)
		*ret_segment = segment;
	return result;
}

int store_get_segment(struct store *store, int64_t account, int64_t chain, int64_t number,
                      struct arena *arena, struct segment_record *ret_segment, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query =
	                      db_query(connection, SEGMENT_COLUMNS " WHERE account = $1 AND chain = $2"
	                                                           " AND number = $3")};
	db_bind(row.query, account, chain, number);
	return end_read(connection, read_segment(&row, ret_segment, error));
}

int store_read_segment_rounds(struct store *store, int64_t account, int64_t chain, int64_t first,
                              int64_t last, int64_t *ret_rounds, int64_t *ret_places,
                              struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query_long(connection, "SELECT number, round, place FROM segments WHERE account = $1"
	                              " AND chain = $2 AND number BETWEEN $3 AND $4 ORDER BY number");
	db_bind(query, account, chain, first, last);
	int64_t next = first;
	for (; next <= last && db_step(query) && db_integer(query, 0) == next; next++) {
		ret_rounds[next - first] = db_integer(query, 1);
		if (ret_places)
			ret_places[next - first] =
				db_is_null(query, 2) ? SEGMENT_HAS_PATH : db_integer(query, 2);
	}
	int result = db_end(query, error);
	if (!result && next <= last)
		result = error_cause(error, ERR_CORRUPT, "chain %lld: segment %lld is missing",
		                     (long long)chain, (long long)next);
	return end_read(connection, result);
}

/* A seal document is ASCII, so its characters are its bytes. */
int store_measure_seals(struct store *store, int64_t account, int64_t chain, int64_t first,
                        int64_t last, int64_t *ret_bytes, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query = db_query_long(
		connection, "SELECT COALESCE(SUM(LENGTH(document)), 0) FROM segments"
					" WHERE account = $1 AND chain = $2 AND number BETWEEN $3 AND $4");
	db_bind(query, account, chain, first, last);
	int64_t bytes = db_step(query) ? db_integer(query, 0) : 0;
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_bytes = bytes;
	return result;
}

int store_read_seals(struct store *store, int64_t account, int64_t chain, int64_t first,
                     int64_t last, int (*each)(void *context, struct slice document), void *context,
                     struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query_long(connection, "SELECT number, document FROM segments WHERE account = $1"
	                              " AND chain = $2 AND number BETWEEN $3 AND $4 ORDER BY number");
	db_bind(query, account, chain, first, last);
	int64_t next = first;
	int given = OK;
	for (; next <= last && !given && db_step(query) && db_integer(query, 0) == next; next++)
		given = each(context, db_text(query, 1));
	int result = db_end(query, error);
	if (!result && given)
		result = given;
	else if (!result && next <= last)
		result = error_cause(error, ERR_CORRUPT, "chain %lld: segment %lld is missing",
		                     (long long)chain, (long long)next);
	return end_read(connection, result);
}
